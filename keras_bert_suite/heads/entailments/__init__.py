"""Classes without training: which of several statements a text entails."""

from keras_bert_suite.heads.base.head import Head


def make_parts(said, packer, encoder):
    """The parts of a `ZeroShotClassifier`."""
    from keras_bert_suite.heads.base.labels import Classes, LabelSets
    from keras_bert_suite.heads.entailments.answers import EntailedClasses, EntailedSets
    from keras_bert_suite.heads.entailments.data import EntailmentData

    labels_cls, answers_cls = (
        (LabelSets, EntailedSets) if said.get("multi_label") else (Classes, EntailedClasses)
    )
    labels = labels_cls(said["labels"])
    data = EntailmentData(packer, encoder, labels, said["input_names"], said["template"])
    return data, answers_cls(labels, said.get("returns_logits", False))


HEAD = Head(
    task="ZeroShotClassifier",
    make_parts=make_parts,
    settings=("template", "multi_label"),
    served="keras_bert_suite.heads.entailments.served:ServedEntailments",
    learning_rate=2e-5,
    batch_size=8,
)
