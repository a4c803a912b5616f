"""Copies a task with another vocabulary, with fewer layers, or with smaller layers."""

from collections.abc import Sequence
from typing import Any, Self

import keras

from keras_bert_suite.annotations import Inputs, Labels
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.heads.base.part_importance import choose_parts
from keras_bert_suite.models import TextEncoder
from keras_bert_suite.models.pruned_encoder import HEADS, UNITS
from keras_bert_suite.models.resized_encoder import check_unconverted
from keras_bert_suite.models.weight_copies import copy_weight
from keras_bert_suite.preprocessing import SegmentPacker


class ResizedTask:
    """The methods of a task that copy it on an encoder of another size."""

    backbone: Any
    preprocessor: Any
    compiled: bool
    get_config: Any
    from_config: Any

    def resize_vocabulary(self, vocabulary_size: int, seed: int | None = None) -> Self:
        """Makes a copy of this task for a tokenizer to which tokens were added.

        ```python
        model = MaskedLM.from_preset("path/to/checkpoint")
        model.preprocessor.tokenizer.add_tokens(["covid-19"])
        model = model.resize_vocabulary(model.preprocessor.tokenizer.vocabulary_size(), seed=0)
        model.compile()
        ```

        All weights are copied, heads included. The rows of new tokens are drawn, see
        `TextEncoder.resize_vocabulary`. Their output biases are 0, as transformers makes them.

        Args:
            vocabulary_size, seed: as for `TextEncoder.resize_vocabulary`.

        Returns:
            the new task, which is not compiled. It has the preprocessor of this task.

        Raises:
            ValueError: as for `TextEncoder.resize_vocabulary`; if the encoder is not of this
                package; if a head has LoRA.
        """
        return self._resize("resize_vocabulary", vocabulary_size=vocabulary_size, seed=seed)

    def keep_tokens(self, tokens: Any) -> Self:
        """Makes a copy of this task for some tokens of its vocabulary alone.

        ```python
        tokens = kbs.trim_vocabulary(writer.preprocessor.tokenizer, [*articles, *titles])
        writer = writer.keep_tokens(tokens)
        ```

        All weights of these tokens are copied, heads included. A text whose tokens are all kept has
        the outputs that it had before. Other words become the unknown token.

        Args:
            tokens: list of str, or a tokenizer that has them. The special tokens and the added
                tokens always stay.

        Returns:
            the new task, which is not compiled. It has a preprocessor with the fewer tokens.

        Raises:
            ValueError: if a token is not in the vocabulary; for a tokenizer other than WordPiece;
                if there is no `SegmentPacker`; or as for `resize_vocabulary`.
        """
        packer = self.preprocessor
        if not isinstance(packer, SegmentPacker):
            raise ValueError(
                "keep_tokens needs a SegmentPacker with the tokenizer of the backbone, got the "
                f"preprocessor {packer!r}. Set `preprocessor`."
            )
        old = packer.tokenizer
        kept = old.keep_tokens(getattr(tokens, "get_vocabulary", lambda: tokens)())
        token_ids = [old.token_to_id(token) for token in kept.get_vocabulary()]
        packer = type(packer).from_config({**packer.get_config(), "tokenizer": kept})
        return self._resize("take_tokens", packer, token_ids=token_ids)

    def keep_layers(self, layers: Sequence[int]) -> Self:
        """Makes a copy of this task with some of the layers of its encoder.

        ```python
        student = teacher.keep_layers([0, 2, 4])
        student.compile(technique=kbs.Distillation(teacher))
        ```

        All other weights are copied, the head included. Train the copy: its layers get other
        states than before.

        Args:
            layers: list of int, the layers that stay, in their order; 0 is the first.

        Returns:
            the new task, which is not compiled. It has the preprocessor of this task.

        Raises:
            ValueError: as for `TextEncoder.keep_layers`; if the encoder is not of this package; or
                if the head has a value for each layer.
        """
        return self._resize("keep_layers", layers=layers)

    def prune_heads(
        self,
        x: Inputs,
        y: Labels = None,
        *,
        share: float,
        step: float = 0.1,
        batch_size: int = 32,
    ) -> Self:
        """Makes a copy of this task without the attention heads that its loss needs least.

        The importance of a head is the mean over the rows of the absolute derivative of the loss by
        a factor of the head's output, divided by the norm of a layer's importances. The least
        important heads of all layers go, a step at a time, and the importance is measured again
        after each step. Each layer keeps a head. The layers of the copy have no weights for the
        heads that are gone.

        ```python
        small = classifier.prune_heads(texts, labels, share=0.3)
        small.backbone.heads_by_layer  # [9, 12, 7, ...]
        ```

        Fine-tune the copy, or a teacher and the copy as its student. Files of transformers have the
        same heads in each layer: write `small.to_full_size()`.

        Args:
            x, y: rows in memory, as for `evaluate`: some hundreds, of the training data. A task
                that makes labels of texts needs no `y`.
            share: float from 0 to 1, the heads that go.
            step: float, over 0 and at most 1, the share of all heads that goes at a time.
            batch_size: int.

        Returns:
            the new task, which is not compiled. It has the preprocessor of this task.

        Raises:
            ValueError: as for `TextEncoder.keep_heads`; if a share is out of its range; if the task
                is not compiled.

        Source: Michel et al., 2019 (https://arxiv.org/abs/1905.10650), equation 2 and section 4.
        """
        chosen = self._choose_parts(HEADS, x, y, share, step, True, batch_size)
        return self._resize("keep_heads", heads=chosen)

    def prune_feed_forward(
        self,
        x: Inputs,
        y: Labels = None,
        *,
        share: float,
        step: float = 0.1,
        by_layer: bool = False,
        batch_size: int = 32,
    ) -> Self:
        """Makes a copy of this task without the feed-forward units that its loss needs least.

        A unit is a column of the first matrix of a feed-forward network, with the row of the second
        matrix that reads it. Its importance is the first-order Taylor term: the mean over the rows
        of |sum over the tokens of activation times derivative of the loss by it|. It is
        measured and normed as the importance of heads, see `prune_heads`.

        Args:
            x, y, share, step, batch_size: as for `prune_heads`.
            by_layer: bool, whether layers may lose different numbers of units. Without, each layer
                loses the share, and the copy is a model with a smaller `intermediate_dim`, which
                other libraries open.

        Returns, Raises: as for `prune_heads`.

        Source: Molchanov et al., 2017 (https://arxiv.org/abs/1611.06440), section 2.2.
        """
        chosen = self._choose_parts(UNITS, x, y, share, step, by_layer, batch_size)
        return self._resize("keep_units", units=chosen)

    def _choose_parts(self, kind: str, *arguments: Any) -> list[list[int]]:
        self._check_encoder("parts of layers")
        if not self.compiled:
            raise ValueError(
                "The importance of parts is about a loss: call `compile` first, which takes the "
                "usual loss of the task by default."
            )
        return choose_parts(self, kind, *arguments)

    def factorize_embeddings(self, rank: int) -> Self:
        """Makes a copy of this task whose table of tokens is a product of two small matrices.

        See `TextEncoder.factorize_embeddings`. Of a vocabulary of 30,522 tokens and a width of 384,
        rank 128 leaves a third of the table. Heads for masked tokens score with the product.

        Args:
            rank: int.

        Returns:
            the new task, which is not compiled. It has the preprocessor of this task.

        Raises:
            ValueError: as for `TextEncoder.factorize_embeddings`.
        """
        return self._resize("factorize_embeddings", rank=rank)

    def to_full_size(self) -> Self:
        """Makes a copy of this task whose layers and table of tokens are whole again.

        It has zeros in the place of removed heads and units, and the same outputs. Use it to write
        a pruned task for another library, whose models have one size for all layers:
        `save_hugging_face(small.to_full_size(), path)`.

        Returns:
            the new task, which is not compiled. It has the preprocessor of this task.

        Raises:
            ValueError: as for `TextEncoder.to_full_size`.
        """
        return self._resize("to_full_size")

    def _check_encoder(self, needed: str) -> None:
        if not isinstance(self.backbone, TextEncoder):
            raise ValueError(
                f"{needed} are for encoders of this package, got "
                f"{with_article(self.backbone)}. Leave them out, or build the task on a backbone "
                "of this package."
            )

    def _resize(self, method: str, preprocessor: Any = None, **sizes: Any) -> Self:
        """A copy of this task on the backbone that a method of its backbone makes.

        Without `preprocessor` it shares the preprocessor of this task.
        """
        self._check_encoder(", ".join(sizes) or "Sizes")
        check_unconverted(self)
        backbone = getattr(self.backbone, method)(**sizes)
        parts = {"backbone": backbone, "preprocessor": preprocessor or self.preprocessor}
        config = {name: _drop_shapes(value) for name, value in self.get_config().items()}
        resized = type(self).from_config({**config, **parts})
        token_ids = sizes.get("token_ids")
        for old, new in zip(_head_weights(self), _head_weights(resized), strict=True):
            if token_ids is not None and old.shape != new.shape:
                differs = [held != kept for held, kept in zip(old.shape, new.shape, strict=True)]
                new.assign(keras.ops.take(old, token_ids, axis=differs.index(True)))
                continue
            room = [(0, more - held) for more, held in zip(new.shape, old.shape, strict=True)]
            if any(added < 0 for _, added in room):
                raise ValueError(
                    f"{old.path} has a value for each layer, shape {tuple(old.shape)}, of which a "
                    f"task with fewer layers needs {tuple(new.shape)}. Build the task anew: "
                    f"{type(self).__name__}({type(backbone).__name__}.from_preset(preset, "
                    f"num_layers={backbone.num_layers}), ...) with a new layer of this kind."
                )
            copy_weight(new, keras.ops.pad(old, room) if room else old)
        resized.drop_scores()
        return resized


def _drop_shapes(value):
    """A configuration without the shapes for which its layers were built, to build them anew."""
    if isinstance(value, dict):
        return {key: _drop_shapes(part) for key, part in value.items() if key != "build_config"}
    return [_drop_shapes(part) for part in value] if isinstance(value, list) else value


def _head_weights(task):
    """The weights of a task that its backbone does not have."""
    encoder = {id(weight) for weight in task.backbone.weights}
    return [weight for weight in task.weights if id(weight) not in encoder]
