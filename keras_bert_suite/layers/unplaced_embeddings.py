"""Token and segment embeddings of an encoder whose attention layers know the positions."""

import keras

from keras_bert_suite.layers.bert_embeddings import BertEmbeddings


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class UnplacedEmbeddings(BertEmbeddings):
    """`BertEmbeddings` without a table of positions.

    Args: as for `BertEmbeddings`. Rows may still have no more than `max_sequence_length` tokens.
    """

    def make_position_embedding(self) -> None:
        """There is no such table."""
