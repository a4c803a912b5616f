"""The task of giving each word a label: named entities, parts of speech."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import keras_hub
import numpy as np

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Inputs, Labels, Tensor
from keras_bert_suite.data.class_weights import read_class_weights
from keras_bert_suite.data.entity_scores import score_entities
from keras_bert_suite.data.label_encoding import check_token_labels, encode_tags, weigh_token_labels
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.data.tag_schemes import OUTSIDE
from keras_bert_suite.data.word_rows import read_word_rows
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.tasks.entities import read_entities
from keras_bert_suite.tasks.idle_weights import IdleWeights, find_idle
from keras_bert_suite.tasks.input_checks import check_input_names
from keras_bert_suite.tasks.labelled_task import (
    LabelledTask,
    make_head,
    resolve_label_names,
    serve_classes,
)
from keras_bert_suite.tasks.predicting import predict, softmax
from keras_bert_suite.tasks.text_packing import check_can_pack
from keras_bert_suite.tasks.word_windows import WordWindows, cut_word_windows, join_windows
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor
from keras_bert_suite.training import AdamW, LinearWarmupDecay, TokenAccuracy


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TokenClassifier(IdleWeights, LabelledTask, keras_hub.models.Task):
    """A text encoder with a classification layer on each token.

    A row is a list of words. In Chinese a word is a character. The labels of a row are a list with
    a label for each word: a name in `label_names`, or a label id. The first token of a word has its
    label. The other tokens of the word do not count. A text that is longer than the packer's
    `sequence_length` goes through the model as overlapping windows. Each word gets its label from
    the window that sees the most context around it. A word without a token, such as a control
    character, is "O".

    `predict` returns entities. It reads the tags of all the usual schemes (IOB1, BIO, BIOES, BMES)
    as seqeval does. It also takes rows that are texts; the tokenizer then finds the words.

    `fit` and `evaluate` also take packed arrays, a dict of `token_ids`, `segment_ids` and
    `padding_mask`, with integer labels (B, L), negative on tokens without a label. For packed
    arrays `predict` returns logits. Datasets have batches of such rows or arrays. In a `tf.data`
    dataset the words of a batch are a `tf.RaggedTensor` (B, None), and so are their labels.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder with a sequence output.
        num_classes: int C, at least 2. Defaults to the number of `label_names`.
        label_names: list of C strings, such as ["O", "B-PER", "I-PER"]. Defaults to the label ids
            as strings.
        preprocessor: `SegmentPacker`, or None if inputs come packed.
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
    # Words are cut into windows in Python.
    preprocesses_in_graphs = False

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
        label_names = resolve_label_names(type(self).__name__, num_classes, label_names)

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.classifier_dropout, self.token_classifier = make_head(
            backbone, len(label_names), dropout, self.head_name
        )
        # The loss is computed in float32 under every policy.
        self.output_activation = keras.layers.Activation(None, dtype="float32", name="predictions")

        # === Functional Model ===
        inputs = backbone.input
        encoded = backbone(inputs)
        if isinstance(encoded, dict):
            encoded = encoded["sequence_output"]
        outputs = self.output_activation(self.token_classifier(self.classifier_dropout(encoded)))
        self._idle_paths = find_idle(backbone)
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.label_names = label_names
        self.dropout = dropout
        self.input_names = check_input_names(input_names)

    @classmethod
    def head_arguments(cls, checkpoint: Any) -> dict[str, Any]:
        return checkpoints.token_classifier_arguments(checkpoint)

    @classmethod
    def arguments_of(
        cls, checkpoint: Any, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        arguments, new_parts = super().arguments_of(checkpoint, arguments)
        if not checkpoints.has_part(checkpoint, "pooler"):
            # No output depends on the pooler, so there is no need to warn.
            new_parts = [*new_parts, "pooler/.*"]
        return arguments, new_parts

    def compile(
        self,
        optimizer: str | keras.optimizers.Optimizer = "auto",
        loss: Any = "auto",
        *,
        weighted_metrics: Any = "auto",
        **kwargs: Any,
    ) -> None:
        """Configures training, by default as BERT is fine-tuned.

        Args:
            optimizer: "auto" is `AdamW` at 5e-5 with linear warm-up over the first
                tenth of the steps that `fit` takes, and linear decay over the rest.
            loss: "auto" is sparse categorical cross-entropy, the mean over the labelled tokens.
            weighted_metrics: "auto" is the accuracy over the labelled tokens.
            **kwargs: see `keras.Model.compile`.
        """
        if isinstance(optimizer, str) and optimizer == "auto":
            optimizer = AdamW(LinearWarmupDecay(5e-5))
        if isinstance(loss, str) and loss == "auto":
            loss = keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight"
            )
        if isinstance(weighted_metrics, str) and weighted_metrics == "auto":
            weighted_metrics = [TokenAccuracy()]
        super().compile(optimizer=optimizer, loss=loss, weighted_metrics=weighted_metrics, **kwargs)

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
        read = self.read_rows(rows, labels)
        labels = self.encode_labels(read.labels)
        tags = self.predict_tags(rows, batch_size, verbose=0)
        if isinstance(read.inputs, dict):  # A negative label marks a token that does not count.
            tags = [np.array(row)[ids >= 0] for row, ids in zip(tags, labels, strict=True)]
            labels = [ids[ids >= 0] for ids in labels]
        true_tags = [[self.label_names[label] for label in row] for row in labels]
        return score_entities(true_tags, tags)

    def read_rows(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Rows:
        return read_word_rows(x, y, sample_weight)

    def read_batch(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Rows:
        # `fit` hands over eager tensors. Within `dataset.map` they are symbolic.
        tensors = [column for column in keras.tree.flatten(x) if is_tf_tensor(column)]
        if tensors and not sys.modules["tensorflow"].executing_eagerly():
            raise ValueError(
                f"A {type(self).__name__} reads words outside of graphs of TensorFlow. Pass the "
                "tf.data dataset itself to `fit`, without mapping `preprocess_samples` over it."
            )
        if isinstance(x, list) and x and isinstance(x[0], tuple):
            raise ValueError(
                "A row of a batch must be a list of words, got a tuple. The `default_collate` of "
                "PyTorch makes such tuples, of the first words of all rows and so on. Pass the "
                "DataLoader a `collate_fn` that returns a list of rows and a list of their labels."
            )
        return read_word_rows(x, y, sample_weight)

    def unpack_batch(self, batch: Any) -> tuple[Any, Any, Any]:
        # A list of rows of words is a batch, as a list of texts is for other tasks.
        rows = isinstance(batch, list) and all(
            isinstance(row, list) and all(isinstance(word, (str, bytes)) for word in row)
            for row in batch
        )
        return (batch, None, None) if rows else super().unpack_batch(batch)

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
        if isinstance(rows.inputs, dict):
            return rows
        check_can_pack(self)
        if not isinstance(self.preprocessor, SegmentPacker):
            raise ValueError(
                f"{self.name} has a {type(self.preprocessor).__name__}, which does not say which "
                "token belongs to which word. Set `preprocessor` to a SegmentPacker."
            )
        return cut_word_windows(self.preprocessor, rows)

    def preprocess(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        if isinstance(x, dict):
            if y is not None:
                y, sample_weight = weigh_token_labels(y, sample_weight)
            return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)
        (windows,) = x
        lengths = np.array([len(window) for window in windows], "int32")
        starts = np.cumsum(lengths, dtype="int32") - lengths
        tokens = np.concatenate([np.zeros(0, "int32"), *windows])
        packed = self.preprocessor.pack_tokens(tokens, starts, lengths)
        x = {name: packed[name] for name in self.backbone.input}
        if y is None:
            return keras.utils.pack_x_y_sample_weight(x)
        places = packed["token_indices"]

        def spread(column):
            # The place -1 of special tokens and padding is the zero at the end.
            values = np.concatenate([*column, np.zeros(1, column[0].dtype)])
            return values[places]

        weights = (
            np.ones(places.shape, "float32") if sample_weight is None else spread(sample_weight)
        )
        return x, spread(y), weights

    def decode(self, outputs: Any, rows: Rows | None) -> Any:
        """Turns outputs for windows into a list of `Entity` for each row."""
        if not isinstance(rows, WordWindows):
            return outputs
        probabilities = self._decode_probabilities(outputs, rows)
        scores = [row.max(axis=-1) for row in probabilities]
        return read_entities(rows.texts, rows.tokenized, self._name_labels(probabilities), scores)

    def _decode_tags(self, outputs, rows):
        return self._name_labels(self._decode_probabilities(outputs, rows))

    def _decode_probabilities(self, outputs, rows):
        if not isinstance(rows, WordWindows):
            return softmax(outputs)
        missing = np.full(self.num_classes, -np.inf, "float32")
        missing[self.label_names.index(OUTSIDE) if OUTSIDE in self.label_names else 0] = 0
        probabilities = softmax(join_windows(outputs, rows, missing))
        ends = np.cumsum([len(words) for words in rows.tokenized.words])
        return np.split(probabilities, ends[:-1]) if len(ends) else []

    def _name_labels(self, probabilities):
        """The most probable label of each word of each row."""
        return [[self.label_names[i] for i in row.argmax(axis=-1)] for row in probabilities]

    def serving_outputs(self, outputs: Tensor, packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The answers for tokens: `probabilities` float32 (B, L, C), `label_ids` int32 (B, L)."""
        return serve_classes(outputs, from_logits=True)
