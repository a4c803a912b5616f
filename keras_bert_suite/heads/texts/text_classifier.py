"""Classifies texts or pairs of texts: a class, a set of labels, or a number for each."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import keras
import keras_hub

from keras_bert_suite.annotations import Activation, Config, Inputs, Labels, Tensor
from keras_bert_suite.heads import texts
from keras_bert_suite.heads.base.answers import ClassAnswers
from keras_bert_suite.heads.base.feature_columns import FEATURES
from keras_bert_suite.heads.base.feature_training import find_pooled_features, fit_on_features
from keras_bert_suite.heads.base.features import Features
from keras_bert_suite.heads.base.head import HEAD_LAYERS_RATE
from keras_bert_suite.heads.base.input_checks import EncoderInputs, check_in_memory
from keras_bert_suite.heads.base.inspection import inspect_rows
from keras_bert_suite.heads.base.labelled_task import (
    FEATURE_LAYER,
    FEATURE_RATE,
    LabelledTask,
    make_feature_layer,
    make_head,
    resolve_label_names,
)
from keras_bert_suite.heads.base.part_checks import check_summary_place
from keras_bert_suite.heads.base.poolings import (
    find_pooled_summary,
    list_missing_poolers,
    open_new_pooling,
    pool_hidden_states,
)
from keras_bert_suite.heads.base.predicted_probabilities import predict_probabilities
from keras_bert_suite.heads.base.split_models import split_at
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.heads.entailments.zero_shot_classifier import (
    TEMPLATE,
    ZeroShotClassifier,
    make_zero_shot,
)
from keras_bert_suite.heads.texts.problem_types import MultiLabel, SingleLabel, find_problem_type
from keras_bert_suite.layers.poolings.pooling import get_pooling
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.runs.batches import learn_rows
from keras_bert_suite.training.weight_rates import set_head_rate, warn_of_slow_layer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TextClassifier(LabelledTask, keras_hub.models.TextClassifier):
    """A text encoder with a classification layer on its pooled output, or on another pooling.

    `fit`, `evaluate` and `predict` take raw strings: a list, an array or a pandas Series. Pairs
    are a tuple of two such columns, a DataFrame, or a dict of text columns. They also take packed
    arrays (a dict of `token_ids`, `segment_ids` and `padding_mask`), and datasets of batches with
    labels: `tf.data`, Grain, `keras.utils.PyDataset`, a PyTorch `DataLoader` or a generator.

    `problem_type` names the kind of labels, with the values of transformers:

    - "single_label_classification": one class for each row. Labels are class ids, or the names in
      `label_names`; or a matrix (N, C) of one-hot or soft labels.
    - "multi_label_classification": a set of labels for each row. Labels are a list of names or ids
      for each row, or a matrix (N, C) of 0 and 1.
    - "regression": a number for each row, or C numbers. Labels are floats (N,), or (N, C).

    For sets of labels, an array of numbers is always a matrix of 0 and 1, never ids. So are lists
    with C numbers each. To avoid doubt, pass names instead of ids. The columns of a DataFrame of
    labels are read by their names.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder.
        num_classes: int C, at least 2, or at least 1 for sets of labels and for numbers. Defaults
            to the number of `label_names`.
        label_names: list of C strings. Defaults to the class ids as strings.
        problem_type: str, see above. With `from_preset`, a layer that is loaded keeps the type of
            the checkpoint. A new layer is for sets of labels if the layer of the checkpoint was,
            otherwise for classes.
        pooling: None for the pooled output of the backbone; or a layer that makes one vector (B, P)
            of the hidden states. It is called with the sequence output (B, L, H) and the padding
            mask (B, L). The mask is passed by its name if `call` of the layer has an argument
            `mask`, as with `keras.layers.LSTM`. A layer whose attribute `takes_hidden_states` is
            true gets a list of (B, L, H) instead of the sequence output: the embeddings, and the
            output of each transformer layer. The names of poolings for `TextEmbedder` are taken,
            too.
        preprocessor: `SegmentPacker`, a KerasHub preprocessor, or None for packed arrays only.
        dropout: float, dropout rate of the pooled output.
        activation: None for logits. For probabilities, "softmax" for classes, and "sigmoid" for
            sets of labels. A regression has no activation.
        thresholds: for sets of labels, C floats. A row has a label if its probability is above the
            threshold, 0.5 by default. For two classes, 2 floats whose sum is 1: the second class is
            the answer if its probability is above its threshold, by default if it is the higher.
            `tune_thresholds` chooses them.
        features: dict of the name of a column beside the texts -> its kind, or None: "number",
            "boolean", "category", or the list of its categories. `fit` takes the mean and the
            standard deviation of numbers, and the categories, from its training rows, if the
            classifier does not have them; `features` then has them. Rows are a DataFrame or a dict
            of columns. None, NaN and the NA of pandas are missing values. See `docs/features.md`.
        input_names: names of the texts of a row, such as ("premise", "hypothesis"). If it is
            None, the first `fit` sets it to the names of the columns of a DataFrame or dict, or
            to ("text",) or ("text_a", "text_b"). After that, rows with another number of texts
            are an error. The inputs of exports have these names.

    Outputs, of the model and of `predict`: float32 (B, C).

    Example:
    ```python
    classifier = TextClassifier.from_preset("path/to/checkpoint", num_classes=2)
    classifier.fit(texts, labels, validation_data=(dev_texts, dev_labels), epochs=3)
    classifier.predict(["a gripping, funny film"])
    ```

    Source: Devlin et al., 2018 (https://arxiv.org/abs/1810.04805), section 4.1.
    """

    # `fit` and `evaluate` are in `Task`, `predict` and `predict_with` in `PredictingModel`, and
    # `from_preset` is in `PresetTask`.
    data: TextData
    answers: ClassAnswers
    HEAD = texts.HEAD
    head_name = "classifier"
    head_defaults = {
        "input_names": None,
        "features": None,
        "problem_type": SingleLabel.name,
        "activation": None,
        "thresholds": None,
        "pooling": None,
    }

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        num_classes: int | None = None,
        *,
        label_names: Sequence[str] | None = None,
        problem_type: str = SingleLabel.name,
        pooling: str | Mapping[str, Any] | keras.layers.Layer | None = None,
        preprocessor: keras.layers.Layer | None = None,
        dropout: float = 0.1,
        activation: Activation | None = None,
        thresholds: Sequence[float] | None = None,
        features: Mapping[str, str | Sequence[Any] | Mapping[str, Any]] | None = None,
        input_names: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        problem = find_problem_type(problem_type)
        label_names = resolve_label_names(
            type(self).__name__, num_classes, label_names, problem.fewest_labels
        )
        activation = problem.check_activation(activation)

        # === Layers ===
        self.backbone = backbone
        if pooling is not None:
            dtype = backbone.dtype_policy.name
            summary_place = Encoder.of(backbone).summary_place
            pooling = get_pooling(pooling, summary_place, dtype=dtype, name="pooling")
        self.pooling = pooling
        self.classifier_dropout, self.classifier = make_head(
            backbone, len(label_names), dropout, self.head_name
        )
        columns = Features.of(features)
        self.feature_layer: keras.layers.Dense | None = None
        # The loss is computed in float32 under every policy.
        self.output_activation = keras.layers.Activation(
            activation, dtype="float32", name="predictions"
        )

        # === Functional Model ===
        inputs = self.make_inputs()
        vectors = self.classifier_dropout(self.encode_rows(inputs))
        if columns is not None:
            self.feature_layer = make_feature_layer(backbone)
            row = keras.Input((columns.size,), dtype="float32", name=FEATURES)
            inputs = {**inputs, FEATURES: row}
            vectors = keras.ops.concatenate([vectors, self.feature_layer(row)], axis=-1)
        outputs = self.output_activation(self.classifier(vectors))

        # === Data and Answers ===
        self.problem = problem
        self.make_parts(
            preprocessor,
            EncoderInputs.of(backbone, find_pooled_summary(backbone, pooling)),
            labels=label_names,
            problem_type=problem_type,
            thresholds=thresholds,
            features=features,
            input_names=input_names,
        )
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.dropout = dropout

    def make_inputs(self) -> dict[str, Tensor]:
        """The inputs of the encoder, by name: symbolic int32 (B, L)."""
        return self.backbone.input

    def encode_rows(self, inputs: dict[str, Tensor]) -> Tensor:
        """The vectors that are classified, symbolic (B, P).

        Args:
            inputs: dict of symbolic tensors, from `make_inputs`.
        """
        check_summary_place(self.backbone, find_pooled_summary(self.backbone, self.pooling))
        if self.pooling is None:
            # The last block of a BERT then computes the first token alone.
            return Encoder.of(self.backbone).encode_summary(inputs)
        pooled, self.unused_paths = pool_hidden_states(self.backbone, self.pooling, inputs)
        return pooled

    @property
    def pooling_layers(self) -> tuple[keras.layers.Layer, ...]:
        """The layers between the outputs of the backbone and the vectors that are classified."""
        return () if self.pooling is None else (self.pooling,)

    @property
    def features(self) -> dict[str, Any] | None:
        """dict of the columns beside the texts, with what was learned of their rows; or None."""
        return self.data.features and self.data.features.describe()

    def learn_features(self, x: Inputs) -> None:
        """Learns the means, standard deviations and categories of columns beside the texts.

        `fit` does so itself with rows in memory. Call it before a `fit` on a dataset. What is
        known already stays.

        Args:
            x: rows in memory, as for `fit`.

        Raises:
            ValueError: as `fit`; or if the classifier has no `features`.
        """
        check_in_memory(x)
        if self.data.features is None:
            raise ValueError(
                f"This {type(self).__name__} has no columns beside the texts. Make one with "
                "`features`."
            )
        learn_rows(self, self.data.read(x), verbose=1)

    @property
    def head_learning_rate(self) -> float | None:
        # At the rate of an encoder, a few columns would hardly change the logits.
        return HEAD_LAYERS_RATE if self.feature_layer else super().head_learning_rate

    def set_head_rates(self, optimizer: Any, rate: float) -> None:
        if self.feature_layer is not None:
            fast = self.feature_layer.trainable_variables
            set_head_rate(optimizer, fast, FEATURE_RATE * rate)
        super().set_head_rates(optimizer, rate)

    def compile(
        self,
        optimizer: str | keras.optimizers.Optimizer = "auto",
        loss: Any = "auto",
        **kwargs: Any,
    ) -> None:
        """Configures training; see `Task.compile`.

        With `features`, the layer that reads the columns learns at ten times `head_learning_rate`.

        Warns:
            UserWarning: if an `optimizer` has no rate for this layer. At the rate of the encoder
                its weights hardly move.
        """
        super().compile(optimizer, loss, **kwargs)
        if self.feature_layer is not None:
            remedy = f"compile(optimizer, head_learning_rate={HEAD_LAYERS_RATE})"
            warn_of_slow_layer(
                self.optimizer, self.feature_layer, "columns beside the texts", remedy
            )

    @property
    def encoder_features(self) -> Any:
        """What `fit_on_features` trains on, symbolic; see `find_pooled_features`."""
        found = find_pooled_features(self.pooling_layers, self.classifier_dropout)
        if self.feature_layer is None:
            return found
        return [*keras.tree.flatten(found), self.feature_layer.input]

    def split_at_vectors(self) -> tuple[keras.Model, keras.Model]:
        vectors = self.classifier_dropout.input
        if self.feature_layer is None:
            return split_at(self, vectors)
        return split_at(self, [vectors, self.feature_layer.input])

    @property
    def thresholds(self) -> list[float] | None:
        """list of C floats, for sets of labels and tuned pairs of classes; otherwise None."""
        return self.answers.thresholds

    @thresholds.setter
    def thresholds(self, thresholds: Sequence[float] | None) -> None:
        labels, are_logits = self.data.labels, self.returns_logits
        self.answers = self.problem.make_answers(labels, are_logits, thresholds)

    @property
    def problem_type(self) -> str:
        """Hugging Face's name of the kind of answers."""
        return self.problem.name

    @property
    def activation(self) -> Callable[[Tensor], Tensor]:
        """The function from logits to outputs."""
        return self.output_activation.activation

    @property
    def returns_logits(self) -> bool:
        """bool, whether outputs are logits, and not probabilities."""
        return self.activation is keras.activations.linear

    @classmethod
    def replace_head(cls, old_head: Config, arguments: dict[str, Any]) -> dict[str, Any]:
        # New labels are taken to be of the same kind. But a regression has no labels.
        keeps = old_head.get("problem_type") == MultiLabel.name
        return {"problem_type": MultiLabel.name if keeps else SingleLabel.name, **arguments}

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        _check_new_head(arguments, cls.has_new_head(arguments))
        arguments, new_parts = super().arguments_of(checkpoint, arguments)
        if arguments.get("pooling") is not None:
            new_parts += list_missing_poolers(checkpoint)
        if arguments.get("features") is not None:
            new_parts.append(f"{FEATURE_LAYER}/.*")
        return arguments, [*new_parts, *open_new_pooling(arguments, "pooling")]

    @classmethod
    def load_keras_preset(cls, loader: Any, load_weights: bool, **arguments: Any) -> Self:
        _check_new_head(arguments, cls.has_new_head(arguments))
        return super().load_keras_preset(loader, load_weights, **arguments)

    def make_loss(self) -> keras.losses.Loss:
        """Cross-entropy for classes, binary for sets of labels; the squared error for numbers.

        For classes, the categorical and sparse categorical cross-entropies of Keras take the same
        labels, also soft labels.
        """
        return self.problem.make_loss(self.returns_logits)

    def make_metrics(self) -> dict[str, Any]:
        """Accuracy; micro and macro F1 at a threshold of 0.5; or the mean absolute error."""
        return {"metrics": self.problem.make_metrics(self.returns_logits)}

    fit_on_features = fit_on_features

    def predict_labels(
        self, x: Inputs, batch_size: int | None = None, steps: int | None = None, **kwargs: Any
    ) -> Any:
        """The answer for each row.

        Args:
            x, batch_size, steps, **kwargs: as for `predict`.

        Returns:
            for classes a list of N names; for sets of labels a list of N lists of names, by the
            `thresholds`; for numbers float32 (N,), or (N, C) if there are several for a row.
        """
        return self.predict_with(self.answers.name, x, batch_size, steps, **kwargs)

    predict_probabilities = predict_probabilities

    def score(self, x: Inputs, y: Labels, batch_size: int | None = None) -> dict[str, Any]:
        """Scores the answers for rows.

        Args:
            x, y: as for `fit`, in memory.
            batch_size: int, 32 by default.

        Returns:
            dict of floats. For classes `accuracy`, `macro_f1` and `matthews`; for sets of labels
            `micro_f1`, `micro_precision`, `micro_recall`, `macro_f1` and `exact_match`, by the
            `thresholds`; for numbers `pearson`, `spearman`, `mean_squared_error` and
            `mean_absolute_error`. For labels there is also `classes`, a dict of label name ->
            dict of `precision`, `recall`, `f1` and `rows`.

        Raises:
            ValueError: as `fit`, or if `x` is a dataset.
        """
        return self.score_with(self.answers.score, x, y, batch_size)

    inspect = inspect_rows

    def tune_thresholds(
        self, x: Inputs, y: Labels, batch_size: int | None = None, *, label: str | None = None
    ) -> dict[str, float]:
        """Sets the threshold of each label of a set, or of one of two classes, by its F1.

        The threshold of a label is the one with the highest F1. Tune on rows that were not trained
        on. A label that no row has gets the threshold 0.5. The thresholds are saved with the
        classifier. `predict_labels`, `score` and exports made afterwards use them. The metrics of
        `compile` do not: their threshold is 0.5.

        Args:
            x, y: as for `fit`, in memory.
            batch_size: int, 32 by default.
            label: str, of two classes the one whose F1 counts; None for the second.

        Returns:
            dict of label name -> threshold. Those of two classes have the sum 1.

        Raises:
            ValueError: as `score`; for three or more classes and for numbers; or for a `label` that
                is no class, or beside sets of labels.
        """
        names = self.label_names
        if not self.problem.has_thresholds(len(names)):
            raise ValueError(
                f"A classifier with problem_type={self.problem_type!r} and {len(names)} labels has "
                f"no thresholds. They are for two classes, and for problem_type='{MultiLabel.name}'"
                "."
            )
        tune = self.answers.tune_thresholds
        if label is not None:
            if self.problem_type != SingleLabel.name or label not in names:
                raise ValueError(
                    f"label must be one of two classes, got {label!r} with "
                    f"problem_type={self.problem_type!r} and the labels {', '.join(names[:20])}."
                )
            tune = functools.partial(tune, place=names.index(label))
        self.score_with(tune, x, y, batch_size)
        return dict(zip(names, self.thresholds or (), strict=True))

    def zero_shot(
        self, label_names: Sequence[str], template: str = TEMPLATE, multi_label: bool = False
    ) -> ZeroShotClassifier:
        """Classifies texts by labels without training, if this classifier knows entailment.

        ```python
        nli = TextClassifier.from_preset("path/to/nli/checkpoint")
        topics = nli.zero_shot(["politics", "sports"], template="This text is about {}.")
        topics.predict(["The coach praised her team."])
        ```

        Args:
            label_names, template, multi_label: as for `ZeroShotClassifier`.

        Returns:
            `ZeroShotClassifier` on the encoder of this classifier, with a copy of its layer.

        Raises:
            ValueError: if the labels of this classifier name no entailment, or it does not
                classify pairs of texts by the pooled output of its backbone.
        """
        return make_zero_shot(self, label_names, template, multi_label)

    @classmethod
    def from_config(cls, config: Config) -> Self:
        # For a new head KerasHub's loader adds `num_classes` to the saved configuration.
        if config.get("num_classes") not in (None, len(config.get("thresholds") or ())):
            config = {**config, "thresholds": None}
        return super().from_config(config)


def _check_new_head(arguments, is_new):
    for name in ("pooling", "features"):
        if arguments.get(name) is not None and not is_new:
            raise ValueError(
                f"The classification layer of a checkpoint is for the {name} that it was trained "
                f"with. With `{name}`, pass `num_classes` or `label_names` to get a new layer."
            )
