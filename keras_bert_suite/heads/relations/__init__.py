"""The relation of two entities that are marked in a text."""

from keras_bert_suite.heads.base.head import Head


def make_parts(said, packer, encoder):
    """The parts of a `RelationClassifier`."""
    from keras_bert_suite.heads.base.labels import Classes
    from keras_bert_suite.heads.relations.answers import RelationAnswers
    from keras_bert_suite.heads.relations.data import RelationData

    labels = Classes(said["labels"])
    data = RelationData(packer, encoder, labels, said["input_names"], said["markers"])
    return data, RelationAnswers(labels, said.get("returns_logits", False))


HEAD = Head(
    task="RelationClassifier",
    make_parts=make_parts,
    settings=("markers",),
    served="keras_bert_suite.heads.relations.served:ServedRelations",
    columns="keras_bert_suite.serving.answer_columns:ClassColumns",
)
