"""Labels words: named entities, parts of speech."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import keras_hub
import numpy as np

from keras_bert_suite.annotations import Inputs, Labels, Tensor
from keras_bert_suite.data.class_weights import read_class_weights
from keras_bert_suite.data.entity_scores import score_entities
from keras_bert_suite.data.label_encoding import check_token_labels, encode_tags, weigh_token_labels
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.data.tag_schemes import OUTSIDE
from keras_bert_suite.layers.heads.crf import NO_LABEL
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.tasks.base.idle_weights import encode_tokens, find_idle, transform_tokens
from keras_bert_suite.tasks.base.input_checks import check_in_memory, check_input_names
from keras_bert_suite.tasks.base.labelled_task import (
    make_head,
    resolve_label_names,
    serve_classes,
)
from keras_bert_suite.tasks.base.predicting import predict, softmax
from keras_bert_suite.tasks.base.word_task import WordTask
from keras_bert_suite.tasks.entities import read_entities
from keras_bert_suite.tasks.word_windows import WordWindows, cut_tag_windows, join_windows
from keras_bert_suite.training import TokenAccuracy

#: For a word without a token, the logit of every label except "O".
MISSING = -1e4


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TokenClassifier(WordTask, keras_hub.models.Task):
    """A text encoder with a classification layer on each token.

    A row is a list of words. In Chinese a word is a character. The labels of a row are a list with
    a label for each word: a name in `label_names`, or a label id. The first token of a word has the
    label of the word. The other tokens of the word are ignored in the loss. A text that is longer
    than the packer's `sequence_length` goes through the model as overlapping windows. Each word
    gets its label from the window that sees the most context around it. A word without a token,
    such as a control character, is "O", or the first label if there is no "O".

    `predict` returns entities. It reads the tags of all the usual schemes (IOB1, BIO, BIOES, BMES)
    as seqeval does. It also takes rows that are texts. The tokenizer then finds the words.

    `fit` and `evaluate` also take packed arrays, a dict of `token_ids`, `segment_ids` and
    `padding_mask`, with integer labels (B, L), negative on tokens without a label. For packed
    arrays `predict` returns logits. Datasets have batches of such rows or arrays. In a `tf.data`
    dataset the words of a batch are a `tf.RaggedTensor` (B, None), and so are their labels.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder with a sequence output.
        num_classes: int C, at least 2. Defaults to the number of `label_names`.
        label_names: list of C strings, such as ["O", "B-PER", "I-PER"]. Defaults to the label ids
            as strings.
        preprocessor: `SegmentPacker`, or None for packed arrays only.
        dropout: float, dropout rate of the sequence output.
        input_names: the name of the texts in an export, ("text",) by default.

    Outputs of the model: float32 (B, L, C), logits.

    Example:
    ```python
    tagger = TokenClassifier.from_preset("path/to/checkpoint", label_names=["O", "B-PER", "I-PER"])
    tagger.fit([["Ada", "Lovelace", "wrote"]], [["B-PER", "I-PER", "O"]], epochs=3)
    tagger.predict(["Ada Lovelace wrote"])     # [[Entity("PER", "Ada Lovelace", 0, 12, 0.98)]]
    ```

    Source: Devlin et al., 2018 (https://arxiv.org/abs/1810.04805), section 5.3.
    """

    backbone_cls = BertBackbone
    preprocessor_cls = SegmentPacker
    head_name = "token_classifier"

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        num_classes: int | None = None,
        *,
        label_names: Sequence[str] | None = None,
        preprocessor: keras.layers.Layer | None = None,
        dropout: float = 0.1,
        input_names: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        label_names = resolve_label_names(type(self).__name__, num_classes, label_names)

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.classifier_dropout, self.token_classifier = make_head(
            backbone, len(label_names), dropout, self.head_name
        )
        # === Functional Model ===
        inputs = backbone.input
        encoded = transform_tokens(backbone, encode_tokens(backbone))
        logits = self.token_classifier(self.classifier_dropout(encoded))
        outputs = self.make_outputs(logits, label_names)
        self.idle_paths = find_idle(backbone, transformed=True)
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.label_names = label_names
        self.dropout = dropout
        self.input_names = check_input_names(input_names)

    def make_outputs(self, logits: Tensor, label_names: Sequence[str]) -> Tensor:
        """The outputs of the model, by a layer that computes in float32 under every policy.

        Args:
            logits: float (B, L, C), symbolic.
            label_names: list of C str.
        """
        self.output_activation = keras.layers.Activation(None, dtype="float32", name="predictions")
        return self.output_activation(logits)

    def make_loss(self) -> keras.losses.Loss:
        """Sparse categorical cross-entropy, the mean over the labelled tokens."""
        return keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction="mean_with_sample_weight"
        )

    def make_metrics(self) -> dict[str, Any]:
        """The accuracy over the labelled tokens."""
        return {"weighted_metrics": [TokenAccuracy()]}

    def predict_tags(
        self, x: Inputs, batch_size: int | None = None, steps: int | None = None, **kwargs: Any
    ) -> list[list[str]]:
        """The tag of each word.

        Args:
            x, batch_size, steps, **kwargs: as for `predict`.

        Returns:
            list with a list of str for each row, a tag for each word. The tokenizer finds the words
            of a text. In packed arrays every token counts as a word.
        """
        return predict(self, x, batch_size, steps, self._decode_tags, **kwargs)

    def predict_probabilities(
        self, x: Inputs, batch_size: int | None = None, steps: int | None = None, **kwargs: Any
    ) -> list[np.ndarray]:
        """The probability of each label for each word.

        Args:
            x, batch_size, steps, **kwargs: as for `predict`.

        Returns:
            list of float32 (words, C), one for each row; for packed arrays float32 (N, L, C).
        """
        return predict(self, x, batch_size, steps, self._decode_probabilities, **kwargs)

    def score(self, rows: Inputs, labels: Labels, batch_size: int | None = None) -> dict[str, Any]:
        """Precision, recall and F1 of the entities, as seqeval counts them.

        Args:
            rows, labels: as for `fit`, in memory.
            batch_size: int, 32 by default.

        Returns:
            dict, see `score_entities`.
        """
        check_in_memory(rows)
        read = self.read_rows(rows, labels)
        labels = self.encode_labels(read.labels)
        if isinstance(read.inputs, dict):
            counts = labels >= 0  # A negative label marks a token that does not count.
            logits = self.predict(rows, batch_size, verbose=0)
            labels, lengths = [row[row >= 0] for row in labels], counts.sum(axis=1)
            tags = self._name_labels(self.choose_labels(logits[counts], lengths), lengths)
        else:
            tags = self.predict_tags(rows, batch_size, verbose=0)
        true_tags = [[self.label_names[label] for label in row] for row in labels]
        return score_entities(true_tags, tags)

    def encode_labels(self, labels: Labels) -> Labels:
        """Turns label names or ids of words into label ids."""
        if labels.dtype == object:
            return encode_tags(labels, self.label_names)
        return check_token_labels(labels, self.label_names)

    def class_weighting(self, class_weight: Mapping[Any, float]) -> Callable[[Tensor], Tensor]:
        """The function from labels to the weights of their classes, by label name or id."""
        weights = read_class_weights(class_weight, self.label_names)
        return lambda labels: weights[np.asarray(labels)]

    def cut_windows(self, rows: Rows) -> Rows:
        return rows if isinstance(rows.inputs, dict) else cut_tag_windows(self.word_packer(), rows)

    def preprocess(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        if not isinstance(x, dict):
            x, places = self.pack_windows(*x)
            # Special tokens and padding have the position -1, so they take the label at the end.
            y = None if y is None else np.concatenate([*y, [NO_LABEL]])[places]
        if y is None:
            return keras.utils.pack_x_y_sample_weight(x)
        return keras.utils.pack_x_y_sample_weight(x, *self.weigh_labels(y, sample_weight))

    def weigh_labels(self, labels: np.ndarray, sample_weight: Labels) -> tuple[Any, Any]:
        """The labels and weights for the loss.

        Args:
            labels: int (B, L), negative on tokens that do not count.
            sample_weight: float (B,) for rows, (B, L) for tokens, or None.
        """
        return weigh_token_labels(labels, sample_weight)

    def choose_labels(self, logits: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """The label of each word.

        Args:
            logits: float32 (W, C), for the words of all rows.
            lengths: int (B,), how many words each row has.

        Returns:
            int (W,).
        """
        return logits.argmax(axis=-1)

    def find_probabilities(self, logits: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """float32 (W, C), the probability of each label. Args: as for `choose_labels`."""
        return softmax(logits)

    def decode(self, outputs: Any, rows: Rows | None) -> Any:
        """Turns outputs for windows into a list of `Entity` for each row."""
        if not isinstance(rows, WordWindows):
            return outputs
        logits, lengths = self._join(outputs, rows)
        labels = self.choose_labels(logits, lengths)
        probabilities = self.find_probabilities(logits, lengths)
        scores = np.take_along_axis(probabilities, labels[:, None], axis=1)[:, 0]
        tags = self._name_labels(labels, lengths)
        return read_entities(rows.texts, rows.tokenized, tags, _split(scores, lengths))

    def _decode_tags(self, outputs, rows):
        flat, lengths = self._join(outputs, rows)
        return self._name_labels(self.choose_labels(flat, lengths), lengths)

    def _decode_probabilities(self, outputs, rows):
        flat, lengths = self._join(outputs, rows)
        probabilities = self.find_probabilities(flat, lengths)
        if not isinstance(rows, WordWindows):
            return probabilities.reshape(outputs.shape)
        return _split(probabilities, lengths)

    def _join(self, outputs, rows):
        """(logits (W, C), lengths (B,)) of the words of rows, or of all tokens of arrays."""
        if not isinstance(rows, WordWindows):
            return outputs.reshape(-1, self.num_classes), np.full(len(outputs), outputs.shape[1])
        missing = np.full(self.num_classes, MISSING, "float32")
        missing[self.label_names.index(OUTSIDE) if OUTSIDE in self.label_names else 0] = 0
        lengths = np.fromiter(map(len, rows.tokenized.words), "int64", len(rows.texts))
        return join_windows(outputs, rows, missing), lengths

    def _name_labels(self, labels, lengths):
        names = np.array([*self.label_names], object)
        return [row.tolist() for row in _split(names[labels], lengths)]

    def serving_outputs(self, outputs: Tensor, packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The answers for tokens: `probabilities` float32 (B, L, C), `label_ids` int32 (B, L)."""
        return serve_classes(outputs, from_logits=True)


def _split(flat, lengths):
    """Splits a column of all words into rows."""
    return np.split(flat, np.cumsum(lengths)[:-1]) if len(lengths) else []
