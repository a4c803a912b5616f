"""The relevance of texts for a query: a cross-encoder, or reranker."""

from keras_bert_suite.heads.base.head import Head


def make_parts(said, packer, encoder):
    """The parts of a `TextRanker`."""
    from keras_bert_suite.heads.rankings.answers import RelevanceAnswers
    from keras_bert_suite.heads.rankings.data import RankingData

    return RankingData(packer, encoder, said["input_names"]), RelevanceAnswers()


HEAD = Head(
    task="TextRanker",
    make_parts=make_parts,
    served="keras_bert_suite.heads.rankings.served:ServedRanker",
    columns="keras_bert_suite.serving.answer_columns:RelevanceColumns",
    learning_rate=2e-5,
)
