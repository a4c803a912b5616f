"""A text written from a text, such as a title from an article."""

from keras_bert_suite.heads.base.head import Head


def make_parts(said, packer, encoder):
    """The parts of a `Seq2Seq`. They need its backbone, so a runtime does not make them."""
    from keras_bert_suite.heads.targets.answers import TargetAnswers
    from keras_bert_suite.heads.targets.data import FrameTargetData, TargetData

    names = ("backbone", "joins_source", "starts_with_end", "max_target_length", "plain_marks")
    arguments = {name: said[name] for name in names}
    data_cls = TargetData if encoder.frame_dim is None else FrameTargetData
    return data_cls(packer, encoder, said["input_names"], **arguments), TargetAnswers()


HEAD = Head(
    task="Seq2Seq",
    make_parts=make_parts,
    served="keras_bert_suite.heads.targets.served:ServedTargets",
    columns="keras_bert_suite.serving.answer_columns:WrittenColumns",
    learning_rate=2e-5,
    sequence_length=256,
    takes_frames=True,
    takes_condition=True,
)
