"""The relevance of texts for a query, from a vector of each: two towers with a learned score."""

from keras_bert_suite.heads.base.head import HEAD_LAYERS_RATE, Head


def make_parts(said, packer, encoder):
    """The parts of a `TwoTowerRanker`."""
    from keras_bert_suite.heads.towers.answers import TowerAnswers
    from keras_bert_suite.heads.towers.data import TowerData

    return TowerData(packer, encoder, said["input_names"]), TowerAnswers()


HEAD = Head(
    task="TwoTowerRanker",
    make_parts=make_parts,
    served="keras_bert_suite.heads.towers.served:ServedTowers",
    columns="keras_bert_suite.serving.answer_columns:RelevanceColumns",
    learning_rate=2e-5,
    head_learning_rate=HEAD_LAYERS_RATE,
)
