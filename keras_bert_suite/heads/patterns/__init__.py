"""A class for each text by the word that a masked language model writes beside it."""

from keras_bert_suite.heads.base.head import Head


def make_parts(said, packer, encoder):
    """The parts of a `PatternClassifier`."""
    from keras_bert_suite.heads.base.answers import ClassAnswers
    from keras_bert_suite.heads.base.labels import Classes
    from keras_bert_suite.heads.patterns.data import PatternData

    labels = Classes(said["verbalizers"])
    data = PatternData(packer, encoder, labels, said["pattern"], said["verbalizers"])
    return data, ClassAnswers(labels, said.get("returns_logits", False))


HEAD = Head(
    task="PatternClassifier",
    make_parts=make_parts,
    settings=("pattern", "verbalizers"),
    served="keras_bert_suite.heads.patterns.served:ServedPatterns",
    columns="keras_bert_suite.serving.answer_columns:ClassColumns",
    learning_rate=1e-5,
    batch_size=4,
)
