"""The right one of several endings of a prompt."""

from keras_bert_suite.heads.base.head import Head


def make_parts(said, packer, encoder):
    """The parts of a `MultipleChoice`."""
    from keras_bert_suite.heads.choices.answers import ChoiceAnswers
    from keras_bert_suite.heads.choices.data import ChoiceData

    return ChoiceData(packer, encoder, said["input_names"]), ChoiceAnswers()


HEAD = Head(
    task="MultipleChoice",
    make_parts=make_parts,
    columns="keras_bert_suite.serving.answer_columns:ChoiceColumns",
    learning_rate=2e-5,
)
