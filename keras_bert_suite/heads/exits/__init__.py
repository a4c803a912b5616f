"""A class or numbers for each text, from the first layer that is sure enough."""

from keras_bert_suite.heads.base.head import Head


def make_parts(said, packer, encoder):
    """The parts of an `EarlyExitClassifier`: those of a `TextClassifier`."""
    from keras_bert_suite.heads.base.text_data import TextData
    from keras_bert_suite.heads.texts import make_classifier_parts

    return make_classifier_parts(said, packer, encoder, TextData)


HEAD = Head(
    task="EarlyExitClassifier",
    make_parts=make_parts,
    settings=("problem_type",),
    served="keras_bert_suite.heads.exits.served:ServedExits",
    columns="keras_bert_suite.serving.answer_columns:open_problem",
)
