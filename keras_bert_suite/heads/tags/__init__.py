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
    return _make_data(said, packer, encoder, labels), WordAnswers(labels)


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
    if layer:
        return data, ChainAnswers(labels, layer.read_scores)
    scores = [np.array(values, "float32") for values in said["crf"]]
    return data, ChainAnswers(labels, lambda: scores)


def _make_data(said, packer, encoder, labels):
    from keras_bert_suite.heads.tags.data import WordData

    return WordData(packer, encoder, labels, said["input_names"], said.get("word_cutting"))


def describe_chains(task):
    return {"crf": [scores.tolist() for scores in task.crf.read_scores()]}


HEAD = Head(
    task="TokenClassifier",
    make_parts=make_parts,
    settings=("word_cutting",),
    served="keras_bert_suite.heads.tags.served:ServedEntities",
)
CHAIN_HEAD = Head(
    task="CrfTokenClassifier",
    make_parts=make_chain_parts,
    settings=("word_cutting", "scheme"),
    describe=describe_chains,
    served="keras_bert_suite.heads.tags.served:ServedChains",
    rate_multipliers=(CRF_RATE,),
)
