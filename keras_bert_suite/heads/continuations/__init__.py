"""A text that goes on, token by token, from left to right."""

from keras_bert_suite.heads.base.head import Head


def make_parts(said, packer, encoder):
    """The parts of a `CausalLM`. They need its backbone, so a runtime does not make them."""
    from keras_bert_suite.heads.continuations.answers import ContinuationAnswers
    from keras_bert_suite.heads.continuations.data import ContinuationData

    arguments = {name: said[name] for name in ("backbone", "max_length")}
    data = ContinuationData(packer, encoder, said["input_names"], **arguments)
    return data, ContinuationAnswers()


HEAD = Head(
    task="CausalLM",
    make_parts=make_parts,
    served="keras_bert_suite.heads.continuations.served:ServedContinuations",
    columns="keras_bert_suite.serving.answer_columns:WrittenColumns",
    takes_condition=True,
)
