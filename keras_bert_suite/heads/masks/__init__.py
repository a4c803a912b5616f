"""Guesses for masked tokens of texts."""

from keras_bert_suite.heads.base.head import Head


def make_parts(said, packer, encoder):
    """The parts of a `MaskedLM`."""
    from keras_bert_suite.heads.masks.answers import GuessAnswers
    from keras_bert_suite.heads.masks.data import MaskedTextData

    data = MaskedTextData(
        packer,
        encoder,
        said["input_names"],
        masking=said.get("masking"),
        direction=said.get("direction"),
    )
    return data, GuessAnswers(data, said["top_k"])


def describe(task):
    """The direction of a model that sees one side of a mask."""
    return {} if task.data.direction is None else {"direction": task.data.direction}


HEAD = Head(
    task="MaskedLM",
    make_parts=make_parts,
    settings=("top_k",),
    describe=describe,
    served="keras_bert_suite.heads.masks.served:ServedMasks",
)
