"""The base of all backbones: checkpoints, sequence packing, recomputed blocks."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import keras
import keras_hub

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Config, PathLike, Patterns
from keras_bert_suite.argument_checks import check_choice, with_article
from keras_bert_suite.fixed_arguments import FixedArguments, show_value
from keras_bert_suite.layers import NormCondition, PackedSequences
from keras_bert_suite.layers.configured_layer import read_arguments
from keras_bert_suite.layers.layer_order import order_layers
from keras_bert_suite.models.adaptations.adapted_encoder import AdaptedEncoder
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.models.encoder_inputs import (
    add_condition,
    copy_for_frames,
    resize_vocabulary,
    take_tokens,
)
from keras_bert_suite.models.keras_lora import WithoutKerasLora
from keras_bert_suite.models.layer_policies import collect_policies, separate_policies
from keras_bert_suite.models.model_parallel import MODEL, WEIGHT_LAYOUTS
from keras_bert_suite.models.pruned_encoder import (
    factorize_embeddings,
    keep_heads,
    keep_units,
    to_full_size,
)
from keras_bert_suite.models.resized_encoder import keep_layers, resize_encoder
from keras_bert_suite.models.torch_module import TorchModule
from keras_bert_suite.models.trainability import read_trainability, restore_trainability

#: The arguments of `TextEncoder.resize`, which `from_preset` takes, too.
RESIZED = ("num_layers", "max_sequence_length", "hierarchical_positions")


#: The weights of the layer `part_embeddings`, which no other library has.
PARTS = "embeddings/part_embeddings/.*"


class TextEncoder(
    FixedArguments,
    AdaptedEncoder,
    WithoutKerasLora,
    TorchModule,
    PackedSequences,
    checkpoints.SealedPreset,
    Encoder,
    keras_hub.models.Backbone,
):
    """A backbone that is read from checkpoints, takes packed rows, and may recompute its blocks.

    A subclass builds a functional model, and answers the questions of `Encoder`. Its
    `transformer_layers`, if any, are blocks with an attribute `remat`.
    """

    #: The named sizes, each with the arguments of the constructor.
    sizes: ClassVar[dict[str, Config]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        order_layers(self)
        # Under PyTorch, KerasHub does not hand `trainable` down to the layers. Setting it does.
        self.trainable = super().trainable

    def is_fixed(self, name: str, value: Any) -> bool:
        if name == "token_embedding":  # A property of KerasHub, whose setter keeps any value.
            own = self.token_embedding
            return own is not None and own is not value
        return super().is_fixed(name, value)

    def _say_how_to_change(self, name: str, value: Any) -> str:
        if name == "vocabulary_size":
            return f"Make another: `new = old.resize_vocabulary({show_value(value)})`."
        if name in RESIZED:
            return f"Make another: `new = old.resize({name}={show_value(value)})`."
        if isinstance(getattr(self, name), (keras.layers.Layer, list)):
            return "Make another encoder, by the arguments of its constructor."
        value = show_value(value)
        return (
            f"Pass {name}={value} to `from_preset`; or build another: `new = type(old).from_config("
            f"{{**old.get_config(), {name!r}: {value}}})` and `new.set_weights(old.get_weights())`."
        )

    @property
    def remat(self) -> bool:
        """bool, whether a training step computes each block a second time for its gradient."""
        blocks = self.transformer_layers
        return bool(blocks) and all(block.remat for block in blocks)

    @remat.setter
    def remat(self, value: bool) -> None:
        if value and not self.transformer_layers:
            raise ValueError(f"{with_article(self, 'A')} has no blocks to compute a second time.")
        for block in self.transformer_layers:
            block.remat = value

    @staticmethod
    def get_layout_map(
        device_mesh: keras.distribution.DeviceMesh,
        model_parallel_dim_name: str = "model",
        data_parallel_dim_name: str = "batch",
    ) -> keras.distribution.LayoutMap:
        """The layout of the weights of this model, and of every task on it, for `ModelParallel`.

        Attention and feed-forward networks are split as in Megatron, and the token embedding by
        rows of the vocabulary. Norms, other embeddings and heads are whole on each device. The
        optimizer state is split like the weights.

        A rule for a single path goes before the others:
        `layout_map["embeddings/token_embedding/embeddings"] = (None, "model")`.

        Args:
            device_mesh: `keras.distribution.DeviceMesh`.
            model_parallel_dim_name: str, the axis of the mesh over which weights are split.
            data_parallel_dim_name: str, of which KerasHub's layouts have nothing either.

        Returns:
            `keras.distribution.LayoutMap`, to which rules may be added for layers of your own.

        Raises:
            ValueError: if the mesh lacks the axis of the weights.

        Source: Shoeybi et al., 2019 (https://arxiv.org/abs/1909.08053). Name and arguments are from
            KerasHub's backbones.
        """
        layout_map = keras.distribution.LayoutMap(device_mesh)
        for pattern, axes in WEIGHT_LAYOUTS:
            named = (model_parallel_dim_name if axis == MODEL else axis for axis in axes)
            layout_map[pattern] = tuple(named)
        return layout_map

    @classmethod
    def from_size(cls, size: str, vocabulary_size: int | None = None, **kwargs: Any) -> Self:
        """Builds one of the released sizes, randomly initialised.

        Args:
            size: a key of `sizes`. Google's sizes of BERT are "tiny", "mini", "small", "medium",
                "base" and "large". With the uncased vocabulary of 30,522 they have 4.4, 11.2,
                28.8, 41.4, 109.5 and 335.1 million parameters.
            vocabulary_size: int V; None with `frame_dim`.
            **kwargs: any other argument of the constructor.
        """
        check_choice("size", size, tuple(cls.sizes))
        return cls(vocabulary_size=vocabulary_size, **cls.sizes[size], **kwargs)

    @classmethod
    def from_preset(
        cls,
        preset: PathLike,
        load_weights: bool = True,
        skip: Patterns = (),
        rename: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Builds the encoder of a checkpoint.

        Args:
            preset: directory of a preset saved by `save_to_preset` of this class or of
                KerasHub's class of this kind, of a Hugging Face checkpoint, or of an original
                Google TF1 checkpoint; `hf://owner/name`; or `kaggle://...` for a preset
                there.
            load_weights: bool, whether to load weights or only the configuration.
            skip: regular expression, or several, of whole paths of weights that keep their
                initial values, and of whole names of tensors that are left out; see
                `checkpoints.load_weights`.
            rename: dict of the beginning of names of tensors -> another beginning, for a module
                with names of its own, such as {"encoder.": ""}; see `open_checkpoint`.
            **kwargs: arguments of the constructor that override the checkpoint's, and of `resize`:
                `num_layers`, `max_sequence_length` and `hierarchical_positions`. With a
                `norm_condition` the encoder is a copy by `add_condition`.

        Raises:
            ValueError: if `preset` is no checkpoint, or if the checkpoint lacks a tensor, has a
                tensor that the model does not have, or a tensor of another shape.

        Warns:
            UserWarning: if the checkpoint has a head that this package does not know, or no
                pooler.
        """
        if (norm_condition := kwargs.pop("norm_condition", None)) is not None:
            encoder = cls.from_preset(preset, load_weights, skip, rename, **kwargs)
            return encoder.add_condition(norm_condition)
        sizes = {name: kwargs.pop(name) for name in RESIZED if name in kwargs}
        sizes = {name: value for name, value in sizes.items() if value is not None}
        if sizes and (load_weights or "hierarchical_positions" in sizes):
            return cls.from_preset(preset, load_weights, skip, rename, **kwargs).resize(**sizes)
        kwargs.update(sizes)
        checkpoint = checkpoints.open_checkpoint(preset, rename)
        if checkpoint is None:
            if skip:
                raise ValueError(
                    f"{preset} is a preset of Keras, which is loaded whole: `skip` must be empty, "
                    f"got {skip!r}."
                )
            if kwargs.get("part_embeddings") is not None:
                raise ValueError(
                    f"{preset} is a preset of Keras, which is loaded whole, so that new "
                    "`part_embeddings` have no place in it. Write its encoder by "
                    "`save_hugging_face`, and open that folder with them."
                )
            preset = checkpoints.preset_name(preset)
            if os.path.isfile(os.path.join(preset, "task.weights.h5")):
                checkpoints.log_left_out(preset, ["of its task"])
            return super().from_preset(preset, load_weights=load_weights, **kwargs)
        checkpoints.check_backbone(checkpoint, cls)
        if kwargs.get("frame_dim") is not None:
            raise ValueError(
                f"{preset} has a table of tokens, got frame_dim={kwargs['frame_dim']}. Open it "
                f"without, and copy it: {cls.__name__}.from_preset(...).for_frames("
                f"frame_dim={kwargs['frame_dim']})."
            )
        if kwargs.get("part_embeddings") is not None:
            skip = [*([skip] if isinstance(skip, str) else skip), PARTS]
        backbone = cls(**{**checkpoint.backbone_config, **kwargs})
        if load_weights:
            checkpoints.load_weights(backbone, checkpoint, skip=skip)
        return backbone

    def resize(
        self,
        num_layers: int | None = None,
        max_sequence_length: int | None = None,
        hierarchical_positions: bool | float = False,
    ) -> Self:
        """Makes a copy of this encoder with its first layers only, or with other positions.

        ```python
        small = BertBackbone.from_preset("path/to/checkpoint", num_layers=6)
        long = small.resize(max_sequence_length=2048, hierarchical_positions=True)
        ```

        Args:
            num_layers: int, how many layers are kept, from the first on. None keeps all.
            max_sequence_length: int, the positions of the copy. The first rows of a table of
                positions are kept. None keeps all.
            hierarchical_positions: the number alpha between 0 and 1, or True for 0.4, with which
                rows beyond a table of n rows p are made: with u_i = (p_i - alpha p_0) / (1 -
                alpha), the row i n + j is alpha u_i + (1 - alpha) u_j. The first n rows stay.

        Returns:
            the new backbone. This one stays as it is.

        Raises:
            ValueError: if there are fewer layers; if more positions are wanted without
                `hierarchical_positions`, or more than n squared; if the encoder is quantized, has
                LoRA, or is an ALBERT of several groups that is to lose layers.

        Source of the positions: Su, 2020 (https://kexue.fm/archives/7947), as in bert4keras.
        """
        return resize_encoder(self, num_layers, max_sequence_length, hierarchical_positions)

    def keep_layers(self, layers: Sequence[int]) -> Self:
        """Makes a copy of this encoder with some of its layers.

        A student of a `Distillation` begins so, with every other layer of its teacher, say. All
        other weights are copied.

        ```python
        small = BertBackbone.from_preset("path/to/checkpoint").keep_layers([0, 2, 4, 7, 9, 11])
        ```

        Args:
            layers: list of int, the layers that stay, in their order; 0 is the first.

        Returns:
            the new backbone. This one stays as it is.

        Raises:
            ValueError: if a layer is not there, or comes twice or out of order; if the encoder is
                quantized, has LoRA or another adapter, or is an ALBERT of several groups.

        Source: Sanh et al., 2019, DistilBERT (https://arxiv.org/abs/1910.01108), section 3.
        """
        return keep_layers(self, layers)

    def keep_heads(self, heads: Sequence[Sequence[int]]) -> Self:
        """Makes a copy of this encoder with some of its attention heads.

        The matrices of the other heads are gone: `heads_by_layer` says how many a layer has. The
        outputs are those of this encoder with zeros as outputs of the other heads. A task has
        `prune_heads`, which chooses them.

        ```python
        small = backbone.keep_heads([[0, 1, 3], [2]])
        ```

        Args:
            heads: list of lists of int, the heads that stay of each layer, at least one; 0 is the
                first.

        Returns:
            the new backbone. This one stays as it is.

        Raises:
            ValueError: if a head is not there or comes twice; if a layer keeps none; if the encoder
                is an ALBERT, BART, ELMo, Longformer, ModernBERT or XLNet, hashes its tokens, is
                quantized, or has LoRA or another adapter.

        Source: Michel et al., 2019 (https://arxiv.org/abs/1905.10650).
        """
        return keep_heads(self, heads)

    def keep_units(self, units: Sequence[Sequence[int]]) -> Self:
        """Makes a copy of this encoder with some of the units of its feed-forward networks.

        The outputs are those of this encoder with zeros in the place of the activations of the
        other units. If all layers keep as many units, the copy is a model with a smaller
        `intermediate_dim`. Otherwise `intermediate_by_layer` says how many a layer has. A task has
        `prune_feed_forward`, which chooses them.

        Args:
            units: list of lists of int, the units that stay of each layer, at least one.

        Returns:
            the new backbone. This one stays as it is.

        Raises:
            ValueError: as for `keep_heads`. A Longformer and an XLNet can lose units.
        """
        return keep_units(self, units)

    def factorize_embeddings(self, rank: int) -> Self:
        """Makes a copy of this encoder whose table of tokens is a product of two small matrices.

        They are the first `rank` terms of the singular value decomposition of the table, so the
        product is the nearest table of this rank. V x E numbers become `rank` x (V + E). Positions,
        segments and the norm stay. A head for masked tokens scores the tokens with the product.

        Args:
            rank: int, at most the smaller size of the table.

        Returns:
            the new backbone. This one stays as it is.

        Raises:
            ValueError: if the rank is larger; if there is no table of tokens, or if it is
                factorised already; if the encoder is a BART, an ELMo or a ModernBERT, is quantized,
                or has LoRA or another adapter.
        """
        return factorize_embeddings(self, rank)

    def to_full_size(self) -> Self:
        """Makes a copy of this encoder with layers of one size and with a whole table of tokens.

        Removed heads and units come back as zeros, and factors of a table are multiplied. So the
        outputs stay, for formats of other libraries whose models have one size for all layers.

        Returns:
            the new backbone. This one stays as it is.

        Raises:
            ValueError: if the encoder is quantized, or has LoRA or another adapter.
        """
        return to_full_size(self)

    def resize_vocabulary(self, vocabulary_size: int, seed: int | None = None) -> Self:
        """Makes a copy of this encoder with embeddings for more tokens.

        The new rows are drawn as in a new model. All other weights are copied.

        ```python
        tokenizer.add_tokens(["[E1]", "[/E1]"], special=True)
        backbone = backbone.resize_vocabulary(tokenizer.vocabulary_size(), seed=0)
        classifier = TextClassifier(backbone, SegmentPacker(tokenizer, 128), num_classes=5)
        ```

        Args:
            vocabulary_size: int, at least this encoder's.
            seed: int, for the new rows. None draws others each time.

        Returns:
            the new backbone. This one stays as it is.

        Raises:
            ValueError: if there would be fewer rows, or if the encoder is quantized or has LoRA.
        """
        return resize_vocabulary(self, vocabulary_size, seed)

    def take_tokens(self, token_ids: Sequence[int]) -> Self:
        """Makes a copy of this encoder with the embeddings of some tokens alone.

        Token i of the new encoder is token `token_ids[i]` of this one. All other weights are
        copied. A task has `keep_tokens`, which also takes the tokens of its tokenizer and heads.

        Args:
            token_ids: list of int.

        Raises:
            ValueError: if the encoder is quantized or has LoRA.
        """
        return take_tokens(self, token_ids)

    def for_frames(self, frame_dim: int | None = None) -> Self:
        """Makes a copy of this encoder that reads frames, vectors in the place of token ids.

        All weights are copied, but those of tokens: their table, and `part_embeddings`. The copy of
        a `BartBackbone` keeps its table, because its decoder still writes tokens.
        `new.for_frames()` takes vectors as wide as the rows of this table in the place of the rows,
        as `inputs_embeds` of transformers.

        ```python
        encoder = BertBackbone.from_preset("path/to/checkpoint").for_frames(frame_dim=80)
        ```

        Args:
            frame_dim: int D, the width of the frames; None for the width of the table of tokens.
                Frames of another width go through a projection, which is new.

        Returns:
            the new backbone. This one stays as it is.

        Raises:
            ValueError: if the encoder has no table of tokens, is quantized or has LoRA, or if it is
                a `BertEncoderDecoder`.
        """
        return copy_for_frames(self, frame_dim)

    def add_condition(self, norm_condition: NormCondition) -> Self:
        """Makes a copy of this encoder whose norms depend on a further input `condition`.

        The copy has the outputs of this encoder, whatever the condition is, until it is trained.

        ```python
        encoder = BertBackbone.from_preset("path/to/checkpoint").add_condition(NormCondition(2))
        classifier = TextClassifier(encoder, num_classes=2, preprocessor=packer)
        classifier.fit({"text": texts, "condition": [[0, 1], ...]}, labels)
        ```

        Args:
            norm_condition: `NormCondition`.

        Returns:
            the new backbone. This one stays as it is.

        Raises:
            ValueError: if the encoder has a condition, is quantized, or has LoRA or another
                adapter, or if its norms take none.
        """
        return add_condition(self, norm_condition)

    @classmethod
    def from_config(cls, config: Config) -> Self:
        config = dict(config)
        trainability = config.pop("trainability", {})
        adapters = config.pop("adapters", {})
        if isinstance(config.get("part_embeddings"), dict):
            parts = keras.saving.deserialize_keras_object(config["part_embeddings"])
            config["part_embeddings"] = parts
        backbone = super().from_config(config)
        separate_policies(backbone)
        backbone.restore_adapters(adapters)
        restore_trainability(backbone, trainability)
        if backbone.adapter is not None:  # Layers have been thawed as a whole.
            backbone.train_adapter(backbone.adapter)
        return backbone

    def get_config(self) -> Config:
        trainability = read_trainability(self)
        # Not KerasHub's method, which would change the policies of quantized layers.
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(collect_policies(self)),
            **({"trainability": trainability} if trainability else {}),
            **self.describe_adapters(),
            **read_arguments(self, type(self)),
        }
