"""A model as the trainer wants it: its replicas share each batch."""

from collections.abc import Mapping
from typing import Any

import keras

from keras_bert_suite.annotations import Inputs, Labels, Tensor
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.layers.layer_order import order_layers
from keras_bert_suite.replicas import (
    count_replicas,
    find_local_replicas,
    in_scope_of_model,
    split_rows,
    take_first_share,
    whole_batches,
)
from keras_bert_suite.replicas.processes import summed_variables
from keras_bert_suite.runs.batches import pack_batch
from keras_bert_suite.runs.joint_start import copy_weights, share_batch
from keras_bert_suite.runs.shown_average import put_weights_back, show_average
from keras_bert_suite.runs.split_step import split_step, takes_two_programs
from keras_bert_suite.runs.step_lists import StepLists, use_step_lists
from keras_bert_suite.runs.technique_step import check_memory, has_movable_embeddings, take_step
from keras_bert_suite.runs.trained_weights import follow_weights
from keras_bert_suite.training import open_schedule_end

#: The parts of the state of a step under JAX, in Keras' order.
_JAX_KINDS = (
    *("trainable_variables", "non_trainable_variables"),
    *("optimizer_variables", "metrics_variables"),
)


class TrainedModel:
    """A `keras.Model` whose replicas share each batch, and which leaves unused weights alone.

    Its trainable and non-trainable variables, the state of a step, include the technique's. Its
    weights do not.

    Its steps take whole batches and split them among the devices of a `keras.distribution`; see
    `replicas/whole_batches.py`. The arguments of a step end with the batch. Under JAX, the state
    comes before it.
    """

    #: The `Technique` of `compile`, or None.
    technique: Any = None

    #: The `TechniqueState` of the technique, or None.
    technique_state: Any = None

    #: Whether `train_on_batch` has given all processes the weights of the first.
    _has_common_weights = False

    #: The `StepLists` of a step under PyTorch, within it.
    step_lists: StepLists | None = None

    #: The paths of weights that no output depends on, such as the pooler's. They have no gradient,
    #: of which Keras warns. Under JAX it is 0, so weight decay would still change them. So they are
    #: not trained.
    unused_paths: frozenset[str] = frozenset()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        order_layers(self)

    @property
    def splits_batches(self) -> str | None:
        """The argument by which the encoder sees only some rows of a batch at once, or None."""
        return None

    @property
    def has_movable_embeddings(self) -> bool:
        """Whether techniques such as `FGM` can move the embeddings of tokens."""
        return has_movable_embeddings(self)

    @property
    def trainable_variables(self) -> list[keras.Variable]:
        own = [v for v in super().trainable_variables if v.path not in self.unused_paths]
        return own if self.technique_state is None else own + self.technique_state.trained

    @property
    def trainable_weights(self) -> list[keras.Variable]:
        if self.step_lists is not None:
            return list(self.step_lists.trained)
        return [v for v in super().trainable_weights if v.path not in self.unused_paths]

    @property
    def metrics(self) -> list[keras.Metric]:
        return super().metrics if self.step_lists is None else list(self.step_lists.metrics)

    @property
    def losses(self) -> list[Tensor]:
        if self.step_lists is None or self.step_lists.have_losses():
            return super().losses
        return []

    def _flatten_layers(self, include_self: bool = True, recursive: bool = True) -> Any:
        if self.step_lists is None or not recursive:
            return super()._flatten_layers(include_self, recursive)
        return self.step_lists.layers[0 if include_self else 1 :]

    @property
    def non_trainable_variables(self) -> list[keras.Variable]:
        trainable = set(map(id, self.trainable_variables))
        own = [variable for variable in self.variables if id(variable) not in trainable]
        return own if self.technique_state is None else own + self.technique_state.kept

    @property
    def non_trainable_weights(self) -> list[keras.Variable]:
        trainable = set(map(id, self.trainable_weights))
        return [variable for variable in self.weights if id(variable) not in trainable]

    def _get_jax_state(self, **kinds: bool) -> Any:
        """Keras' state of a step under JAX. Notes from which variables it was taken.

        Keras notes the state after a step. If the first step fails, and the variables have given
        their values away, `jax_state_sync` finds the values here.
        """
        taken = {
            kind: self.optimizer.variables if kind == "optimizer_variables" else getattr(self, kind)
            for kind in _JAX_KINDS
            if kinds.get(kind)
        }
        # `setattr` of Keras would take all of them for weights of the model.
        vars(self)["jax_variables"] = taken
        state = super()._get_jax_state(**kinds)
        if kinds.get("purge_model_variables"):
            vars(self)["_jax_state"] = dict(zip(taken, state, strict=True))
        return state

    def jax_state_sync(self) -> None:
        """Gives the state of a step under JAX back to the variables that it was taken from.

        Keras would look for them among the variables that are trained now.
        """
        state: Any = getattr(self, "_jax_state", None)
        if not state or self._jax_state_synced:
            return
        for kind, values in state.items():
            variables = vars(self)["jax_variables"][kind]
            for variable, value in zip(variables, values or (), strict=False):
                if not value.is_deleted():  # A step that failed may have taken the array over.
                    variable.assign(value)
        self._jax_state_synced: bool = True

    def train_step(self, *arguments: Any) -> Any:
        """See `keras.Model.train_step`."""
        *state, batch = arguments
        batch = split_rows(batch)
        if self.technique is not None:
            return take_step(self, *state, batch)
        check_memory(self, keras.utils.unpack_x_y_sample_weight(batch)[0])
        if keras.config.backend() != "torch" or self.jit_compile:
            return super().train_step(*state, batch)
        with use_step_lists(self):
            return super().train_step(batch)

    def make_train_function(self, force: bool = False) -> None:
        """Keras' `train_function`; under JAX on a CPU one that compiles in less time.

        The `train_step` of a subclass is called by Keras' function alone.
        """
        force = self._has_changed("train") or force
        is_new = force or self.train_function is None
        super().make_train_function(force)
        has_own_step = type(self).train_step is not TrainedModel.train_step
        if is_new and not has_own_step and takes_two_programs(self):
            self.train_function: Any = split_step(self)

    def make_test_function(self, force: bool = False) -> None:
        """Keras' `test_function`, made anew if the model has changed."""
        super().make_test_function(self._has_changed("test") or force)

    def make_predict_function(self, force: bool = False) -> Any:
        """Keras' `predict_function`, made anew if the model has changed."""
        return super().make_predict_function(self._has_changed("predict") or force)

    def _has_changed(self, kind):
        """Whether the model has changed since its function of a kind was made.

        A compiled function has read the arguments that may be set, see `FixedArguments`. Under JAX
        it takes the weights that are trained in one list, and the others in another.
        """
        if keras.config.backend() == "torch":
            return False
        now = [
            getattr(layer, name)
            for layer in self._flatten_layers()
            for name in getattr(layer, "changeable", ())
        ]
        if keras.config.backend() == "jax":
            now += map(id, self.trainable_variables)
        before = self.__dict__.setdefault("read_by_functions", {})  # Keras would track a dict.
        has_changed = before.get(kind, now) != now
        before[kind] = now
        return has_changed

    def test_step(self, *arguments: Any) -> Any:
        """See `keras.Model.test_step`."""
        *state, batch = arguments
        return super().test_step(*state, split_rows(batch))

    @whole_batches()
    @in_scope_of_model
    def train_on_batch(
        self,
        x: Inputs,
        y: Labels = None,
        sample_weight: Labels = None,
        class_weight: Mapping[Any, float] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Trains on one batch of rows, as for `fit`; see `keras.Model.train_on_batch`.

        Processes that share the batch all pass the whole batch. They begin with the weights of the
        first process.

        Raises:
            ValueError: as for `fit`; and in all processes, if they have different batches.
        """
        weigh = self._weigh_classes(class_weight)
        batch = pack_batch(self, x, y, sample_weight, labelled=True, weigh=weigh)
        self.drop_scores()
        put_weights_back(self)
        open_schedule_end(self)
        batch = share_batch("train_on_batch", batch)
        follow_weights(self)
        if not self._has_common_weights:
            copy_weights(self)
            self._has_common_weights = True
        return keras.Model.train_on_batch(self, *batch, **kwargs)

    @whole_batches()
    @in_scope_of_model
    def test_on_batch(
        self, x: Inputs, y: Labels = None, sample_weight: Labels = None, **kwargs: Any
    ) -> Any:
        """Evaluates one batch of rows, as for `fit`; see `keras.Model.test_on_batch`.

        Processes share the batch as in `train_on_batch`.
        """
        batch = pack_batch(self, x, y, sample_weight, labelled=True)
        batch = share_batch("test_on_batch", batch)
        with show_average(self):
            return keras.Model.test_on_batch(self, *batch, **kwargs)

    def _weigh_classes(self, class_weight, given=None):
        """The function from encoded labels to the weights of their classes, or None.

        "balanced" counts the labels of `given`, the `Rows` of a training.
        """
        if class_weight is None:
            return None
        if isinstance(class_weight, str) and class_weight == "balanced":
            if not isinstance(given, Rows):
                raise ValueError(
                    "class_weight='balanced' counts the labels of all rows, so they must be in "
                    "memory. For batches, pass class_weight=task.balance_classes(labels)."
                )
            class_weight = self.data.labels.balance(given.labels)
        return self.data.labels.class_weighting(class_weight, self.loss)

    def relabel(self, x: Any, y: Any, y_pred: Any, sample_weight: Any) -> tuple[Any, ...]:
        """Changes the input of the loss and the metrics, where labels are made within the step."""
        return y, y_pred, sample_weight

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Tensor:
        """See `keras.Model.compute_loss`."""
        changed = self.relabel(x, y, y_pred, sample_weight)
        return super().compute_loss(x, *changed, training=training)

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Tensor]:
        """See `keras.Model.compute_metrics`."""
        return super().compute_metrics(x, *self.relabel(x, y, y_pred, sample_weight))

    def get_metrics_result(self) -> dict[str, Tensor]:
        """dict of the metrics, over the rows of all replicas."""
        if hasattr(self, "ddp_model"):  # Keras 3.16 sums over the processes of PyTorch itself.
            return super().get_metrics_result()
        with summed_variables(self.metrics_variables):
            return super().get_metrics_result()

    def _initialize_ddp(self):
        """Keeps Keras 3.16 from summing the gradients of the processes of PyTorch a second time.

        It would also wait for all processes in a `predict` of one.
        """

    def _aggregate_additional_loss(self, loss):
        """Each replica adds its part of a layer's addition to the loss of a batch."""
        loss = super()._aggregate_additional_loss(loss)
        # Keras does so under TensorFlow. Under JAX a step is one program.
        return loss / count_replicas() if keras.config.backend() == "torch" else loss

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Builds losses and metrics under a strategy of TensorFlow, for shares of any sizes.

        Keras would take the mean of the shares of all replicas as a batch.
        """
        if iterator is not None and len(find_local_replicas()) > 1:
            for _, _, batches in iterator:
                data_batch = take_first_share(next(batches))
                break
            iterator = None
        super()._maybe_symbolic_build(iterator, data_batch)
