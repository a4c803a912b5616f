"""A class, a set of labels, or numbers for each text."""

from keras_bert_suite.heads.base.head import Head


def make_parts(said, packer, encoder):
    """The parts of a `TextClassifier`."""
    from keras_bert_suite.heads.base.frame_data import FrameData
    from keras_bert_suite.heads.base.text_data import TextData

    data_cls = TextData if encoder.frame_dim is None else FrameData
    return make_classifier_parts(said, packer, encoder, data_cls)


def make_classifier_parts(said, packer, encoder, data_cls, **settings):
    """The parts of a classifier whose data are of a class, made with further settings."""
    from keras_bert_suite.heads.texts.problem_types import find_problem_type

    problem = find_problem_type(said["problem_type"])
    labels = problem.labels_cls(said["labels"])
    features = said.get("features")
    data = data_cls(packer, encoder, labels, said["input_names"], features=features, **settings)
    are_logits = said.get("returns_logits", False)
    return data, problem.make_answers(labels, are_logits, said.get("thresholds"))


SETTINGS = ("problem_type", "thresholds", "features")
HEAD = Head(
    task="TextClassifier",
    make_parts=make_parts,
    settings=SETTINGS,
    columns="keras_bert_suite.serving.answer_columns:open_problem",
    takes_frames=True,
    takes_condition=True,
)
