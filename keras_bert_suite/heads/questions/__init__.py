"""Questions about a context: the answer is a span of it, or there is none.

`data` reads rows, `windows` cuts their contexts, the task scores the tokens of each window, and
`answers` finds the best span. `served` is the same in a graph of TensorFlow.
"""

from keras_bert_suite.heads.base.head import Head

WINDOWS = ("stride", "query_length", "no_answer_threshold")


def make_parts(said, packer, encoder):
    """The parts of a `QuestionAnswerer`."""
    from keras_bert_suite.heads.questions.answers import QuestionAnswers
    from keras_bert_suite.heads.questions.data import QuestionData

    settings = {name: said.get(name) for name in WINDOWS}
    data = QuestionData(packer, encoder, said["input_names"], **settings)
    return data, QuestionAnswers(data, said["max_answer_length"])


HEAD = Head(
    task="QuestionAnswerer",
    make_parts=make_parts,
    settings=(*WINDOWS, "max_answer_length"),
    served="keras_bert_suite.heads.questions.served:ServedSpans",
    columns="keras_bert_suite.serving.answer_columns:SpanColumns",
    learning_rate=3e-5,
    sequence_length=384,
)
