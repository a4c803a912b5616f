"""Writes a text from a text, such as a title from an article."""

import itertools
from collections.abc import Sequence
from typing import Any, Self

import keras
import keras_hub
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Config, Inputs, Labels, Tensor
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.data.input_dataset import is_dataset
from keras_bert_suite.data.passes import read_batches
from keras_bert_suite.data.rows import Rows, leave_tensorflow, read_texts
from keras_bert_suite.layers import MaskedLMHead
from keras_bert_suite.models import BertBackbone, change_pattern
from keras_bert_suite.models.mixture_segments import holds_mixture, leave_mixture
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.preprocessing.packing import NUMPY, pack_segments
from keras_bert_suite.preprocessing.target_predictions import find_predictions
from keras_bert_suite.runs.batches import choose_size
from keras_bert_suite.runs.weight_lock import lock_weights
from keras_bert_suite.tasks.base.hooked_task import Hooked
from keras_bert_suite.tasks.base.preset_task import holds_task
from keras_bert_suite.tasks.base.task import Task
from keras_bert_suite.tasks.base.token_states import (
    encode_tokens,
    find_unused,
)
from keras_bert_suite.tasks.masked_lm import MaskedLM
from keras_bert_suite.tasks.pretrainer import Pretrainer
from keras_bert_suite.tasks.pretraining_heads import add_perplexity, make_masked_lm_head
from keras_bert_suite.tasks.target_decoding import (
    check_can_decode,
    count_tokens,
    decode_token,
    encode_sources,
    force_padding,
    get_sampler,
    make_cache,
)
from keras_bert_suite.tokenizers.text_inputs import canonicalize_texts
from keras_bert_suite.training import MaskedLMAccuracy, MaskedLMLoss

#: Tasks whose presets hold the head for masked tokens, with which a `Seq2Seq` begins.
_LANGUAGE_MODELS = (Pretrainer, MaskedLM)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class Seq2Seq(Hooked, Task, keras_hub.models.CausalLM):
    """A text encoder that writes a target from a source, such as a title from an article.

    A row is packed as a pair, [CLS] source [SEP] target [SEP]. The tokens of the source attend to
    each other. A token of the target attends to the source and to the target before it. From the
    first [SEP] on, each token predicts the next token.

    `fit` and `evaluate` take the sources and the targets, two columns of texts or datasets of
    batches of them; or packed arrays, the inputs of the model, with labels int32 (B, P) and sample
    weights float32 (B, P). `predict` takes sources and returns targets.

    Args:
        backbone: `BertBackbone` with `attention_pattern="seq2seq"`.
        preprocessor: `SegmentPacker`, or None for packed arrays only.
        max_target_length: int, the maximum number of tokens that `predict` writes, the last [SEP]
            included.
        sampler: how `predict` and an export choose tokens: a `keras_hub.samplers.Sampler`, or its
            name: "greedy", "beam", "top_k", "top_p" or "random". A beam that has ended keeps its
            score. `compile` may replace it.
        input_names: the name of the sources; see `TextClassifier`.

    Raises:
        ValueError: if `max_target_length` leaves no room for a source in the packer's
            `sequence_length` or the backbone's positions; and as the other tasks.

    Inputs, a dictionary: the inputs of the backbone, int32 (B, L), and `mask_positions`, int32
    (B, P), the tokens that predict a token. Outputs: float (B, P, V), logits.

    Example:
    ```python
    writer = Seq2Seq.from_preset("path/to/checkpoint", sequence_length=256)
    writer.fit(articles, titles, epochs=3)
    writer.compile(sampler=keras_hub.samplers.BeamSampler(num_beams=3))
    writer.predict(["Scientists have found that ..."])   # ["A discovery"]
    ```

    Source: Dong et al., 2019, UniLM (https://arxiv.org/abs/1905.03197). UniLM masks tokens of the
    target and predicts them; here, as in bert4keras, each token predicts the next one, so that all
    tokens of a target are learned in one step.
    """

    backbone_cls = BertBackbone
    preprocessor_cls = SegmentPacker
    backbone_arguments = {"attention_pattern": "seq2seq"}
    default_rate = 2e-5
    # Targets are packed in Python.
    preprocesses_in_graphs = False
    needs_segment_packer = True

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        *,
        preprocessor: keras.layers.Layer | None = None,
        max_target_length: int = 32,
        sampler: Any = "greedy",
        input_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        check_integer("max_target_length", max_target_length, at_least=1)
        check_can_decode(backbone)
        # Within its constructor the base class calls `compile`, which reads the sampler.
        self.sampler = get_sampler(sampler)
        self.generate_function = None  # `compile` sets it, and `predict` needs no `compile`

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.masked_lm: MaskedLMHead = make_masked_lm_head(backbone)

        # === Functional Model ===
        mask_positions = keras.Input(shape=(None,), dtype="int32", name="mask_positions")
        self.unused_paths = find_unused(backbone)
        super().__init__(
            inputs={**backbone.input, "mask_positions": mask_positions},
            outputs=self.masked_lm(encode_tokens(backbone), mask_positions),
            **kwargs,
        )

        # === Config ===
        self.max_target_length = max_target_length
        self.input_names = input_names and tuple(input_names)
        if preprocessor is not None:
            self.data.check_can_pack()
            self._count_room(preprocessor, max_target_length)

    def _count_room(self, packer, max_target_length):
        """int, the maximum number of tokens of a source, so that a target has room after it.

        Raises:
            ValueError: if that is less than [CLS], a token and [SEP].
        """
        positions = self.backbone.max_sequence_length or packer.sequence_length
        room = min(packer.sequence_length, positions) - max_target_length
        if room < 3:
            raise ValueError(
                f"A target of {max_target_length} tokens leaves {room} tokens for its source: "
                f"sequence_length is {packer.sequence_length}, and the backbone has {positions} "
                "positions. Choose a smaller max_target_length, or a larger sequence_length."
            )
        return room

    @classmethod
    def arguments_of(
        cls, checkpoint: Any, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        if checkpoint.model_type.backbone != BertBackbone.__name__:
            raise ValueError(
                f"{checkpoint.path} holds weights of {checkpoint.model_type.title}, and a Seq2Seq "
                "writes with the layers of a BERT. Load a checkpoint of a BERT."
            )
        return super().arguments_of(checkpoint, arguments)

    @classmethod
    def load_checkpoint(cls, checkpoint: Any, load_weights: bool, **arguments: Any) -> Self:
        task = super().load_checkpoint(checkpoint, load_weights, **arguments)
        if not holds_mixture(task.backbone):
            return task
        del arguments["dtype"], arguments["skip"]
        copy = cls(leave_mixture(task.backbone), **arguments)
        copy.masked_lm.set_weights(task.masked_lm.get_weights())
        return copy

    @classmethod
    def preset_classes(cls) -> tuple[type, ...]:
        return cls, *_LANGUAGE_MODELS

    @classmethod
    def load_keras_preset(cls, loader: Any, load_weights: bool, **arguments: Any) -> Self:
        if holds_task(loader.preset, cls):
            return super().load_keras_preset(loader, load_weights, **arguments)
        dtype = arguments.pop("dtype", None)
        for kind in _LANGUAGE_MODELS:
            if holds_task(loader.preset, kind):
                model = kind.load_keras_preset(loader, load_weights, dtype=dtype)
                task = cls(change_pattern(model.backbone, "seq2seq"), **arguments)
                task.masked_lm.set_weights(model.masked_lm.get_weights())
                return task
        backbone = loader.load_backbone(
            BertBackbone, load_weights, **({} if dtype is None else {"dtype": dtype})
        )
        return cls(change_pattern(backbone, "seq2seq"), **arguments)

    def compile(
        self,
        optimizer: str | keras.optimizers.Optimizer = "auto",
        loss: Any = "auto",
        *,
        sampler: Any = None,
        **kwargs: Any,
    ) -> None:
        """Configures training, and how `predict` chooses tokens; see `Task.compile`.

        Args:
            optimizer, loss, **kwargs: as for `Task.compile`.
            sampler: as for the constructor. None keeps the sampler that the task has.
        """
        sampler = self.sampler if sampler is None else get_sampler(sampler)
        super().compile(optimizer, loss, sampler=sampler, **kwargs)

    def make_loss(self) -> keras.losses.Loss:
        """The mean over the tokens of the targets."""
        return MaskedLMLoss()

    def make_metrics(self) -> dict[str, Any]:
        """The accuracy over the tokens of the targets. `perplexity` is always logged."""
        return {"weighted_metrics": [MaskedLMAccuracy(name="accuracy")]}

    def quantize(self, mode: str | None = None, config: Any = None) -> None:
        """Converts the matrices of the encoder to 8-bit integers; see `SavedTask.quantize`."""
        super().quantize(mode, config)
        # TensorFlow would go on writing with the old weights.
        self.generate_function = None

    def get_metrics_result(self) -> dict[str, Tensor]:
        """dict of the metrics, with `perplexity`."""
        return add_perplexity(super().get_metrics_result())

    def arrange_columns(
        self, inputs: tuple[Any, ...], names: tuple[str, ...] | None, labelled: bool
    ) -> tuple[Any, ...]:
        if len(inputs) != 1:
            raise ValueError(
                f"A row of a {type(self).__name__} has one source, got {len(inputs)} columns of "
                "texts. Join the texts of a row. Targets are the labels, `y`."
            )
        return super().arrange_columns(inputs, names, labelled)

    def encode_labels(self, labels: Labels) -> Labels:
        """Targets as an object array of str; labels of packed arrays stay as they are."""
        if getattr(labels, "dtype", None) is not None and labels.dtype.kind in "iu":
            return labels
        if getattr(labels, "ndim", 1) == 2 and labels.shape[1] == 1:  # Of a DataFrame.
            labels = labels[:, 0]
        return read_texts(labels, "target")

    def read_batch(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Rows:
        rows = super().read_batch(x, y, sample_weight)
        inputs, labels, weights = leave_tensorflow((rows.inputs, rows.labels, rows.weights))
        if isinstance(inputs, tuple):
            inputs = tuple(canonicalize_texts(np.asarray(column))[0] for column in inputs)
            labels = labels if labels is None else canonicalize_texts(np.asarray(labels))[0]
        return Rows(inputs, labels, weights, rows.input_names)

    def preprocess(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        """Turns a batch of sources into the inputs that score the first token of each target."""
        if isinstance(x, tuple):
            packed = self._pack_sources(x[0], self.max_target_length)
            last = packed["padding_mask"].sum(axis=1, keepdims=True) - 1
            x = {**packed, "mask_positions": last.astype("int32")}
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def preprocess_training(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        if not isinstance(x, tuple):
            return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)
        self.data.check_can_pack()
        packed = self.preprocessor.pack(*x, list(y))
        positions, labels, weights = find_predictions(
            packed, self.preprocessor.allowed_lengths() is not None
        )
        if sample_weight is not None:
            weights = weights * np.reshape(sample_weight, (-1, 1)).astype("float32")
        return {**packed, "mask_positions": positions}, labels, weights

    def predict(
        self,
        x: Inputs = None,
        batch_size: int | None = None,
        steps: int | None = None,
        *,
        max_target_length: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Writes a target for each source.

        Args:
            x: sources: a list, an array or a pandas Series, a dataset of batches of them, or a
                single str. Or packed arrays by name, with `mask_positions`.
            batch_size, steps: as for `Task.predict`.
            max_target_length: int, the maximum number of tokens of a target, the last [SEP]
                included. A source has the rest of the packer's `sequence_length`, and is cut if it
                is longer. None is the task's `max_target_length`.
            **kwargs: `verbose` and `callbacks` of Keras, for packed arrays only.

        Returns:
            list of str, or str for a single source. For packed arrays the logits, float (N, P, V).

        Raises:
            ValueError: if there is no preprocessor, or source and target have no room in the
                packer's `sequence_length` or the backbone's positions.
        """
        if isinstance(x, str):
            return self.predict([x], max_target_length=max_target_length)[0]
        length = self.max_target_length if max_target_length is None else max_target_length
        check_integer("max_target_length", length, at_least=1)
        if is_dataset(x):
            return self._predict_dataset(itertools.islice(read_batches(x), steps), length)
        rows = self.read(x)
        if isinstance(rows.inputs, dict):
            return super().predict(x, batch_size, steps, **kwargs)
        size = choose_size(batch_size)
        if steps is not None:
            rows = rows.take(slice(steps * size))
        # Sources of similar length share a batch.
        order = np.argsort(-self.data.lengths(rows), kind="stable")
        targets = [""] * len(rows)
        for start in range(0, len(rows), size):
            places = order[start : start + size]
            texts = self._write(rows.take(places).inputs[0], length)
            for place, text in zip(places, texts, strict=True):
                targets[place] = text
        return targets

    def _predict_dataset(self, batches, max_target_length):
        answers = []
        for batch in batches:
            inputs = self.data.read_batch(self.unpack_batch(batch)[0]).inputs
            if isinstance(inputs, dict):
                with lock_weights(self):
                    answers.append(keras.Model.predict_on_batch(self, inputs))
            else:
                answers += self._write(inputs[0], max_target_length)
        is_text = not answers or isinstance(answers[0], str)
        return answers if is_text else np.concatenate(answers)

    def _write(self, sources, max_target_length):
        """list of str, the targets of a batch of sources."""
        packed = self._pack_sources(sources, max_target_length)
        tokenizer = self.preprocessor.tokenizer
        targets = np.full((len(packed["token_ids"]), 1 + max_target_length), tokenizer.pad_token_id)
        targets[:, 0] = tokenizer.end_token_id
        inputs = {"source": packed, "targets": targets.astype("int32")}
        inputs = keras.tree.map_structure(ops.convert_to_tensor, inputs)
        write = self.make_generate_function()
        with lock_weights(self):
            ids = ops.convert_to_numpy(write(inputs, stop_token_ids=(tokenizer.end_token_id,)))
        ids = ids[:, 1:]
        ended = np.cumsum(ids == tokenizer.end_token_id, axis=1) > 0
        kept = [row[~end].tolist() for row, end in zip(ids, ended, strict=True)]
        return [tokenizer.detokenize(row) for row in kept]

    def _pack_sources(self, sources, max_target_length):
        self.data.check_can_pack()
        ids, lengths = self.preprocessor.tokenizer.tokenize_flat(list(sources))
        lengths = lengths.astype("int32")
        return self.pack_sources(
            NUMPY, ids, lengths, max_target_length, self.preprocessor.allowed_lengths()
        )

    def pack_sources(
        self,
        xp: Any,
        ids: Any,
        lengths: Any,
        max_target_length: int,
        allowed_lengths: tuple[int, ...] | None = None,
    ) -> dict[str, Tensor]:
        """Packs tokenized sources so that a target has room after each.

        Args:
            xp: namespace of array functions, of NumPy or TensorFlow.
            ids: int32 (T,), the ids of all sources.
            lengths: int32 (B,), how many each source has.
            max_target_length: int, the maximum number of tokens of a target.
            allowed_lengths: the lengths to which a batch may be padded, or None for any.

        Returns:
            dict of int32 (B, L), the inputs of the backbone.

        Raises:
            ValueError: if a target leaves no room for a source.
        """
        packer = self.preprocessor
        room = self._count_room(packer, max_target_length)
        if allowed_lengths is not None:
            allowed_lengths = (*(n for n in allowed_lengths if n < room), room)
        packed = pack_segments(
            xp,
            [(ids, xp.cumsum(lengths) - lengths, lengths)],
            sequence_length=room,
            template=packer.tokenizer.row_template,
            truncation=packer.truncation,
            head_length=packer.head_length,
            allowed_lengths=allowed_lengths,
        )
        return {name: packed[name] for name in self.backbone.input}

    def generate_step(self, inputs: Any, stop_token_ids: Any = None) -> Tensor:
        """Writes the targets of a batch.

        Args:
            inputs: dict of `source`, packed arrays int32 (B, L), and `targets`, int32 (B, 1 + T),
                whose first column is the last token of each source.
            stop_token_ids: tuple of the int that ends a target.

        Returns:
            int32 (B, 1 + T), `targets` filled in.
        """
        source, targets = inputs["source"], inputs["targets"]
        sources = encode_sources(self.backbone, source)
        first_positions = count_tokens(source["padding_mask"]) - 1
        pad_token_id = self.preprocessor.tokenizer.pad_token_id

        def score_next(targets, cache, index):
            place = index - 1
            newest = ops.take(targets, place, axis=1)
            logits, cache = decode_token(
                self.backbone, self.masked_lm, sources, first_positions, newest, place, cache
            )
            is_written = ops.arange(targets.shape[1]) > 0
            has_ended = ops.any((targets == stop_token_ids[0]) & is_written, axis=1)
            return force_padding(logits, has_ended, pad_token_id), None, cache

        return self.sampler(
            next=score_next,
            prompt=targets,
            cache=make_cache(self.backbone, ops.shape(targets)[0], targets.shape[1] - 1),
            index=1,
            mask=ops.zeros_like(targets) + ops.cast(ops.arange(targets.shape[1]) == 0, "int32"),
            stop_token_ids=stop_token_ids,
            model=self,
        )

    def generate(self, inputs: Inputs, max_length: int | None = None, **kwargs: Any) -> Any:
        """KerasHub's name of `predict`. `max_length` is `max_target_length`."""
        return self.predict(inputs, max_target_length=max_length, **kwargs)

    def serving_outputs(self, outputs: Tensor, packed: Any) -> dict[str, Tensor]:
        """`probabilities` float32 (B, P, V). A SavedModel has the targets themselves."""
        return {"probabilities": ops.softmax(ops.cast(outputs, "float32"))}

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "max_target_length": self.max_target_length,
            "sampler": keras_hub.samplers.serialize(self.sampler),
            "input_names": self.input_names and list(self.input_names),
        }
