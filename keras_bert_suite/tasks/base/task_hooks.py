"""What a task says of its rows, its labels and its outputs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras

from keras_bert_suite.annotations import Inputs, Labels, Tensor
from keras_bert_suite.data.input_dataset import unpack_batch
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.tasks.base.batch_sources import read_samples
from keras_bert_suite.tasks.base.input_checks import check_segments, default_names, order_columns
from keras_bert_suite.tasks.base.text_packing import pack_texts
from keras_bert_suite.training import AdamW, LinearWarmupDecay, read_loss, take_class_ids


class TaskHooks:
    """The hooks by which tasks differ. A task overrides those in which it differs from the others.

    `PresetTask` has the hooks about the heads of a checkpoint. Each task that is served has
    `serving_outputs(outputs, packed)`, which turns outputs of the model into the answers of a
    server.
    """

    backbone: Any

    input_names: Sequence[str] | None = None

    #: Whether `fit` and `evaluate` need labels.
    needs_labels = True

    #: Whether the labels of two batches differ only in the number of rows.
    has_fixed_labels = False

    #: Whether `cut_windows` and `preprocess` take tensors in graphs of TensorFlow.
    preprocesses_in_graphs = True

    #: The ranks of the texts of a batch, if they are not all 1.
    text_ranks: tuple[int, ...] | None = None

    #: Whether the task must know where in a text each token was.
    needs_segment_packer = False

    #: The peak of the learning rate.
    default_rate = 5e-5

    #: The share of the steps in which the learning rate rises.
    warmup_ratio = 0.1

    def make_optimizer(self) -> keras.optimizers.Optimizer:
        return AdamW(LinearWarmupDecay(self.default_rate, warmup_ratio=self.warmup_ratio))

    def make_loss(self) -> Any:
        raise NotImplementedError

    def make_metrics(self) -> dict[str, Any]:
        """dict of further arguments of `compile`."""
        return {}

    @property
    def returns_logits(self) -> bool:
        """bool, whether outputs are logits, and not probabilities."""
        return True

    def read_loss(self, loss: Any) -> Any:
        """Makes a loss, as users write it, fit the labels and the outputs of the model."""
        return take_class_ids(read_loss(loss, self.returns_logits))

    def read_rows(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Rows:
        """Reads rows in memory, the arguments of `fit`."""
        return Rows.read(x, y, sample_weight)

    def unpack_batch(self, batch: Any) -> tuple[Any, Any, Any]:
        """The (x, y, sample_weight) of an element of a dataset that `predict` takes."""
        return unpack_batch(batch)

    def read_batch(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Rows:
        """Reads one batch of a dataset, which may be tensors in a graph of TensorFlow."""
        return Rows.read_batch(x, y, sample_weight)

    def arrange_columns(
        self, inputs: tuple[Any, ...], names: tuple[str, ...] | None, labelled: bool
    ) -> tuple[Any, ...]:
        """Checks the text columns of rows, and puts them into the order of `input_names`.

        Args:
            inputs: tuple of text columns, arrays or tensors.
            names: tuple of their names, or None.
            labelled: bool, whether the rows are for `fit` or `evaluate`. The first such rows set
                `input_names`.

        Returns:
            tuple of text columns.
        """
        check_segments(len(inputs), self.backbone, self.input_names)
        if labelled and self.input_names is None:
            self.input_names = names or default_names(len(inputs))
        return order_columns(inputs, names, self.input_names)

    def encode_labels(self, labels: Labels) -> Labels:
        """Turns labels, as users write them, into labels for the loss."""
        return labels

    def class_weighting(self, class_weight: Mapping[Any, float]) -> Callable[[Tensor], Tensor]:
        """The function from encoded labels to the weights of their classes."""
        raise ValueError(f"{type(self).__name__} has no classes, so class_weight must be None.")

    def cut_windows(self, rows: Rows) -> Rows:
        """Turns rows into the rows that the model sees, such as windows over long texts.

        Args:
            rows: `Rows` with encoded labels.

        Returns:
            `Rows`: `rows` itself, or new rows. `decode` gets them with the outputs.
        """
        return rows

    def decode(self, outputs: Any, rows: Rows | None) -> Any:
        """Turns outputs into the answers that `predict` returns.

        Args:
            outputs: the arrays of `keras.Model.predict`, in the order of the rows. If
                `cut_windows` has made new rows, `outputs` is a list with an array for each new row.
                The lengths of these arrays differ.
            rows: `Rows` from `cut_windows`. It is None for a dataset, unless an output of the
                model has an open length.
        """
        return outputs

    def preprocess_samples(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        """Turns a batch of a dataset into inputs of the model, also in a graph of TensorFlow."""
        return self.preprocess(
            *self.cut_windows(read_samples(self, x, y, sample_weight)).as_batch()
        )

    def preprocess_training_samples(
        self, x: Inputs, y: Labels = None, sample_weight: Labels = None
    ) -> Any:
        """Turns a batch of a dataset for `fit` or `evaluate` into inputs, labels and weights."""
        return self.preprocess_training(
            *self.cut_windows(read_samples(self, x, y, sample_weight)).as_batch()
        )

    def preprocess_training(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        """Turns a batch of `fit` or `evaluate` into inputs, labels and weights.

        By default it calls `preprocess`. Args, Returns: as for `preprocess`.
        """
        return self.preprocess(x, y, sample_weight)

    def preprocess(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        """Turns a batch with encoded labels into inputs of the model.

        Args:
            x: tuple of text columns, which are packed; or dict of packed arrays, which stay as
                they are.
            y, sample_weight: labels and weights for the loss, or None.

        Returns:
            dict of packed arrays; with labels a tuple (packed arrays, labels), with weights
            (packed arrays, labels, weights).
        """
        if isinstance(x, tuple):
            x = self.pack_texts(x)
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def pack_texts(self, texts: Sequence[Any]) -> dict[str, Tensor]:
        """Turns texts into the inputs of the backbone, by the preprocessor of this task.

        Args:
            texts: tuple with one entry for each segment: B strings as a list or an array, or a
                TensorFlow string tensor (B,), also in a graph.

        Returns:
            dict of NumPy arrays (B, L), or of TensorFlow tensors for tensors.

        Raises:
            ValueError: if there is no preprocessor, or the task was trained on another number of
                texts in a row.
        """
        return pack_texts(self, texts)
