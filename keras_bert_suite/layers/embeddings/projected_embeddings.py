"""Embeddings that are always projected to the width of the hidden states."""

import keras

from keras_bert_suite.layers.embeddings.bert_embeddings import BertEmbeddings


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ProjectedEmbeddings(BertEmbeddings):
    """`BertEmbeddings` with a projection, also if `embedding_dim` is `hidden_dim`.

    Args: as for `BertEmbeddings`.

    Source: Lan et al., 2019 (https://arxiv.org/abs/1909.11942), section 3.1.
    """

    @property
    def is_projected(self) -> bool:
        """bool, whether a dense layer follows the dropout. It always does."""
        return True
