"""The vector of each text."""

from keras_bert_suite.heads.base.answers import RowAnswers
from keras_bert_suite.heads.base.averages import VECTORS


class VectorAnswers(RowAnswers):
    """Vectors (N, H)."""

    exported = {"embedding": ("width",)}
    mean_forms = (VECTORS,)
    are_of_training_rows = False

    def serve(self, ops, outputs, packed):
        """`embedding` float32 (B, H)."""
        return {"embedding": outputs}
