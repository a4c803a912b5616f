"""Spans of words, which may lie within each other."""

from keras_bert_suite.heads.base.head import Head


def make_parts(said, packer, encoder):
    """The parts of an `EntitySpanClassifier`."""
    from keras_bert_suite.heads.spans.answers import EntitySpanAnswers
    from keras_bert_suite.heads.spans.data import EntitySpanData
    from keras_bert_suite.heads.spans.labels import EntitySpans

    labels = EntitySpans(said["labels"])
    data = EntitySpanData(packer, encoder, labels, said["input_names"], said.get("word_cutting"))
    return data, EntitySpanAnswers(labels)


HEAD = Head(
    task="EntitySpanClassifier",
    make_parts=make_parts,
    settings=("word_cutting",),
    served="keras_bert_suite.heads.spans.served:ServedEntitySpans",
    columns="keras_bert_suite.serving.answer_columns:EntityColumns",
    takes_condition=True,
)
