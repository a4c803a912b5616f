"""A tag for each word, and the entities of tags: named entities, parts of speech."""

import numpy as np

from keras_bert_suite.heads.base.head import Head

#: The weights of a CRF, and how much faster they learn than the encoder.
CRF_RATE = ("(^|/)crf/", 100.0)


def make_parts(said, packer, encoder):
    """The parts of a `TokenClassifier`."""
    from keras_bert_suite.heads.tags.answers import WordAnswers
    from keras_bert_suite.heads.tags.labels import Tags

    labels = Tags(said["labels"])
    answers = WordAnswers(labels) if encoder.frame_dim is None else _make_frame_answers(labels)
    return _make_data(said, packer, encoder, labels), answers


def make_chain_parts(said, packer, encoder):
    """The parts of a `CrfTokenClassifier`. A runtime has the scores of its layer as `crf`."""
    from keras_bert_suite.heads.tags.answers import ChainAnswers
    from keras_bert_suite.heads.tags.labels import ChainTags

    layer = said.get("layer")
    labels = ChainTags(
        said["labels"],
        said.get("scheme"),
        layer and layer.allowed,
        bool(layer and layer.constrained_training),
    )
    data = _make_data(said, packer, encoder, labels)
    if encoder.frame_dim is not None:
        return data, _make_frame_answers(labels, layer.read_scores)
    if layer:
        return data, ChainAnswers(labels, layer.read_scores)
    scores = [np.array(values, "float32") for values in said["crf"]]
    return data, ChainAnswers(labels, lambda: scores)


def _make_frame_answers(labels, read_scores=None):
    from keras_bert_suite.heads.tags.frames import FrameChainAnswers, FrameTagAnswers

    if read_scores is None:
        return FrameTagAnswers(labels)
    return FrameChainAnswers(labels, read_scores)


def _make_data(said, packer, encoder, labels):
    from keras_bert_suite.heads.tags.data import WordData
    from keras_bert_suite.heads.tags.frames import FrameTagData

    if encoder.frame_dim is not None:
        return FrameTagData(packer, encoder, labels, said["input_names"], said.get("word_cutting"))
    return WordData(packer, encoder, labels, said["input_names"], said.get("word_cutting"))


def describe_chains(task):
    return {"crf": [scores.tolist() for scores in task.crf.read_scores()]}


HEAD = Head(
    task="TokenClassifier",
    make_parts=make_parts,
    settings=("word_cutting",),
    served="keras_bert_suite.heads.tags.served:ServedEntities",
    columns="keras_bert_suite.serving.answer_columns:EntityColumns",
    takes_frames=True,
    takes_condition=True,
)
CHAIN_HEAD = Head(
    task="CrfTokenClassifier",
    make_parts=make_chain_parts,
    settings=("word_cutting", "scheme"),
    describe=describe_chains,
    served="keras_bert_suite.heads.tags.served:ServedChains",
    columns="keras_bert_suite.serving.answer_columns:EntityColumns",
    rate_multipliers=(CRF_RATE,),
    takes_frames=True,
    takes_condition=True,
)
