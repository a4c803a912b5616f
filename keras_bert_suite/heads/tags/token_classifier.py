"""Labels words: named entities, parts of speech."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import keras_hub
import numpy as np

from keras_bert_suite.annotations import Inputs, Labels, Tensor
from keras_bert_suite.heads import tags
from keras_bert_suite.heads.base.inspection import inspect_rows
from keras_bert_suite.heads.base.labelled_task import LabelledTask, make_head, resolve_label_names
from keras_bert_suite.heads.tags.word_cutting import WordCutting
from keras_bert_suite.heads.tags.word_task import WordTask
from keras_bert_suite.layers.heads.head_layers import HeadLayers
from keras_bert_suite.training import TokenAccuracy


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TokenClassifier(WordTask, LabelledTask, keras_hub.models.Task):
    """A text encoder with a classification layer on each token.

    A row is a list of words. In Chinese a word is a character. The labels of a row are a list with
    a label for each word: a name in `label_names`, or a label id. The first token of a word has the
    label of the word. The other tokens of the word are ignored in the loss. A text that is longer
    than the packer's `sequence_length` goes through the model as overlapping windows. Each word
    gets its label from the window that sees the most context around it. A word without a token,
    such as a space of no width, continues the entity around it, or is outside of entities.

    `predict` returns entities. It reads the tags of all the usual schemes (IOB1, BIO, BIOES, BMES)
    as seqeval does. It also takes rows that are texts. They are cut into words as the rows of the
    first `fit` are, see `word_cutting`.

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
        head_layers: a Keras layer between the encoder and the head, or a list of layers. Each
            makes states (B, L, P') of states (B, L, P), such as
            `keras.layers.Bidirectional(keras.layers.LSTM(128, return_sequences=True))`. The layer
            gets the padding mask, bool (B, L), if its `call` has an argument `mask`,
            `padding_mask` or `attention_mask`. Otherwise it sees 0 on padding. The first layer may
            take the hidden states of all layers, as `ScalarMix(pooling=None)` does. With
            `from_preset` they need a new head.
        dropout: float, dropout rate of the head's input.
        input_names: the name of the texts in an export, ("text",) by default.
        word_cutting: `WordCutting`, how a row that is a text is cut into words. None is the cutting
            of the rows of the first `fit`, and as the tokenizer cuts them before.

    Outputs of the model: float32 (B, L, C), logits.

    Example:
    ```python
    tagger = TokenClassifier.from_preset("path/to/checkpoint", label_names=["O", "B-PER", "I-PER"])
    tagger.fit([["Ada", "Lovelace", "wrote"]], [["B-PER", "I-PER", "O"]], epochs=3)
    tagger.predict(["Ada Lovelace wrote"])     # [[Entity("PER", "Ada Lovelace", 0, 12, 0.98)]]
    ```

    Source: Devlin et al., 2018 (https://arxiv.org/abs/1810.04805), section 5.3.
    """

    HEAD = tags.HEAD
    head_name = "token_classifier"
    global_tokens = "none"
    are_tokens = True

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        num_classes: int | None = None,
        *,
        label_names: Sequence[str] | None = None,
        preprocessor: keras.layers.Layer | None = None,
        head_layers: HeadLayers = None,
        dropout: float = 0.1,
        input_names: str | Sequence[str] | None = None,
        word_cutting: WordCutting | Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        label_names = resolve_label_names(type(self).__name__, num_classes, label_names)

        # === Layers ===
        self.backbone = backbone
        self.classifier_dropout, self.token_classifier = make_head(
            backbone, len(label_names), dropout, self.head_name
        )
        # === Functional Model ===
        inputs = backbone.input
        encoded = self.encode_for_head(head_layers, transformed=True)
        logits = self.token_classifier(self.classifier_dropout(encoded))
        outputs = self.make_outputs(logits, label_names)

        # === Data and Answers ===
        self.make_parts(
            preprocessor,
            labels=label_names,
            word_cutting=word_cutting,
            input_names=input_names,
        )
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.dropout = dropout

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
            list with a list of str for each row, a tag for each word. `word_cutting` cuts a text
            into words. In packed arrays every token counts as a word.
        """
        return self.predict_with(self.answers.decode_tags, x, batch_size, steps, **kwargs)

    def predict_probabilities(
        self, x: Inputs, batch_size: int | None = None, steps: int | None = None, **kwargs: Any
    ) -> list[np.ndarray]:
        """The probability of each label for each word.

        Args:
            x, batch_size, steps, **kwargs: as for `predict`.

        Returns:
            list of float32 (words, C), one for each row; for packed arrays float32 (N, L, C).
        """
        return self.predict_with(self.answers.decode_probabilities, x, batch_size, steps, **kwargs)

    def score(
        self,
        rows: Inputs,
        labels: Labels,
        batch_size: int | None = None,
        *,
        mode: str = "lenient",
    ) -> dict[str, Any]:
        """Precision, recall and F1 of the entities, as seqeval counts them.

        A word without a token does not count, as in run_ner of Hugging Face.

        Args:
            rows, labels: as for `fit`, in memory.
            batch_size: int, 32 by default.
            mode: "lenient", as conlleval and seqeval's default, which read an I-PER after O as the
                beginning of an entity; or "strict", as seqeval's mode="strict", which leaves out
                entities that break the rules of BIO, BIOES or BMES.

        Returns:
            dict, see `score_entities`.
        """
        score = functools.partial(self.answers.score, mode=mode)
        return self.score_with(score, rows, labels, batch_size, may_be_empty=True)

    inspect = inspect_rows
