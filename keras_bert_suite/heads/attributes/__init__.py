"""A class of each of several attributes for each text."""

from keras_bert_suite.heads.base.head import Head


def make_parts(said, packer, encoder):
    """The parts of an `AttributeClassifier`."""
    from keras_bert_suite.heads.attributes.answers import AttributeAnswers
    from keras_bert_suite.heads.attributes.data import AttributeData, AttributeLabels

    labels = AttributeLabels(said["attributes"])
    data = AttributeData(packer, encoder, labels, said["input_names"])
    return data, AttributeAnswers(labels, said.get("returns_logits", False))


HEAD = Head(
    task="AttributeClassifier",
    make_parts=make_parts,
    settings=("attributes",),
    columns="keras_bert_suite.serving.answer_columns:AttributeColumns",
)
