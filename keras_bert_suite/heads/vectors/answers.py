"""The vector of each text."""

from keras_bert_suite.heads.base.answers import RowAnswers


class VectorAnswers(RowAnswers):
    """Vectors (N, H)."""

    exported = {"embedding": ("width",)}

    def serve(self, ops, outputs, packed):
        """`embedding` float32 (B, H)."""
        return {"embedding": outputs}
