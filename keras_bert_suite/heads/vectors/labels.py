"""Scores of pairs of texts, or none."""

import numpy as np

from keras_bert_suite.heads.base.label_encoding import encode_targets
from keras_bert_suite.heads.base.labels import Labels
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor


class Scores(Labels):
    """A score for each row, or none, as the loss takes it.

    Attributes:
        loss: `EmbeddingLoss` of a compiled task; None for a loss of the user.
    """

    loss = None

    @property
    def are_needed(self):
        """bool, whether `fit` and `evaluate` need scores."""
        return self.loss is not None and self.loss.takes_scores

    def encode(self, labels):
        """float32 (N,)."""
        if is_tf_tensor(labels):
            return encode_targets(labels, 1)[:, 0] if _holds_numbers(labels) else _refuse(labels)
        scores = np.asarray(labels)
        if scores.dtype.kind not in "biuf":
            return _refuse(labels)
        scores = scores.astype("float32")
        if scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores[:, 0]
        if scores.ndim != 1 or not np.isfinite(scores).all():
            got = f"an array of shape {scores.shape}"
            if scores.ndim == 1:
                row = int(np.argmin(np.isfinite(scores)))
                got = f"{scores[row]} at row {row}"
            raise ValueError(
                f"The scores of a TextEmbedder must be one finite number for each row, got {got}."
            )
        if self.loss is not None:
            self.loss.check_scores(scores)
        return scores


def _holds_numbers(tensor):
    return tensor.dtype.is_floating or tensor.dtype.is_integer


def _refuse(labels):
    raise ValueError(
        "The labels of a TextEmbedder are scores, got labels of type "
        f"{getattr(labels, 'dtype', type(labels).__name__)}. If they are numbers in texts, "
        'read_table(..., problem_type="regression") reads them. If they are texts: a tuple of two '
        "is read as (x, y). Pass columns of texts as x=(first_texts, second_texts), in datasets as "
        "a dict, and in `validation_data` as ((first_texts, second_texts), None)."
    )
