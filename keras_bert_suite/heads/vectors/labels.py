"""Scores of texts or pairs of texts, labels of texts, or none."""

import numpy as np

from keras_bert_suite.heads.base.label_encoding import encode_targets
from keras_bert_suite.heads.base.labels import Labels
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor


class Scores(Labels):
    """A score, scores, a vector or a label for each row, or none, as the loss takes them.

    Attributes:
        loss: `EmbeddingLoss` of a compiled task; None for a loss of the user.
        width: int H, the numbers of a vector of a compiled task.
    """

    loss = None
    width = None

    @property
    def are_needed(self):
        """bool, whether `fit` and `evaluate` need scores or labels."""
        loss = self.loss
        return loss is not None and (loss.takes_scores or loss.takes_labels)

    def encode(self, labels):
        """float32 (N,), (N, S - 1) with a score for each text, or vectors (N, H); int32 labels."""
        loss = self.loss
        if loss is not None and loss.takes_labels:
            return _number_labels(labels)
        takes_rows = loss is not None and (loss.scores_texts or loss.takes_vectors)
        if is_tf_tensor(labels):
            if not _holds_numbers(labels):
                return _refuse(labels)
            if not takes_rows:
                return encode_targets(labels, 1)[:, 0]
            if labels.shape.rank not in (None, 2):
                _refuse_rows(f"a tensor of shape {labels.shape}", loss.takes_vectors)
            known = None if labels.shape.rank is None else labels.shape[1]
            if loss.takes_vectors:
                self._check_width(known)
                return encode_targets(labels, self.width)
            if known is None:
                _refuse_rows(f"a tensor of shape {labels.shape}", are_vectors=False)
            return encode_targets(labels, known)
        scores = np.asarray(labels)
        if scores.dtype.kind not in "biuf":
            return _refuse(labels)
        scores = scores.astype("float32", copy=False)  # Vectors on disk stay there.
        if takes_rows:
            scores = _check_score_rows(scores, loss.takes_vectors)
            if loss.takes_vectors:
                self._check_width(scores.shape[1])
            return scores
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

    def _check_width(self, wanted):
        """Raises a ValueError if the vectors to learn have another width, where it is known."""
        if None not in (wanted, self.width) and wanted != self.width:
            raise ValueError(
                f"The vectors to learn have {wanted} numbers, and those of this embedder "
                f"{self.width}. Cut the vectors to fewer numbers, for example by a PCA, or add a "
                f"Dense layer to the embedder: dense_layers=[keras.layers.Dense({wanted})]."
            )


def _check_score_rows(scores, are_vectors):
    """The scores of a teacher, float32 (N, S - 1), or its vectors, (N, H)."""
    if scores.ndim != 2:
        _refuse_rows(f"an array of shape {scores.shape}", are_vectors)
    if not np.isfinite(scores.sum(dtype="float64")):  # Without an array as large as the scores.
        row, column = np.argwhere(~np.isfinite(scores))[0]
        _refuse_rows(f"{scores[row, column]} at row {row}", are_vectors)
    return scores


def _refuse_rows(got, are_vectors):
    if are_vectors:
        raise ValueError(
            "The vectors to learn must be finite numbers, one vector for each row, (N, H), got "
            f"{got}. Pass teacher.predict(texts)."
        )
    raise ValueError(
        "The scores of a teacher must be a finite number for each text after the first of a "
        f"row, (N, S - 1), got {got}. Pass np.stack([ranker.predict((queries, texts)) for "
        "texts in (positives, negatives)], axis=1)."
    )


def _number_labels(labels):
    """int32 (N,), the numbers of labels, equal for equal labels of the column."""
    if is_tf_tensor(labels):
        import tensorflow as tf

        return tf.unique(tf.reshape(labels, [-1])).idx
    labels = np.asarray(labels)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or any(label is None or label != label for label in labels.tolist()):
        got = f"an array of shape {labels.shape}"
        if labels.ndim == 1:
            row = next(i for i, a in enumerate(labels.tolist()) if a is None or a != a)
            got = f"{labels[row]!r} at row {row}"
        raise ValueError(
            f"The labels of an embedder are one name or number for each text, got {got}. Leave "
            "rows without a label out."
        )
    return np.unique(labels.astype(str), return_inverse=True)[1].astype("int32")


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
