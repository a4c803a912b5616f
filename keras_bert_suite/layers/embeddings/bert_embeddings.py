"""Token, position and segment embeddings, summed and normalised."""

from typing import Any, ClassVar

import keras
from keras import ops

from keras_bert_suite.annotations import Shape, Tensor
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.layers.adapters.adaptable import Adaptable
from keras_bert_suite.layers.adapters.prompt_vectors import PROMPT, find_prompt_length, make_room
from keras_bert_suite.layers.attention.sequence_layout import Layout
from keras_bert_suite.layers.companions import LAYOUT_ARGUMENT, SHIFT_ARGUMENT, CompanionReader
from keras_bert_suite.layers.configured_layer import ConfiguredLayer
from keras_bert_suite.layers.dropout import Dropout
from keras_bert_suite.layers.embeddings.factorized_embedding import FactorizedEmbedding
from keras_bert_suite.layers.inner_call import call_inner
from keras_bert_suite.layers.norm_condition import NormCondition
from keras_bert_suite.layers.norms import call_norm, make_norm


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class BertEmbeddings(Adaptable, CompanionReader, ConfiguredLayer):
    """Sum of token, position and segment embeddings, normalised, with dropout.

    Args:
        vocabulary_size: int V, rows of the token embedding; None for frames.
        hidden_dim: int H, width of the output.
        max_sequence_length: int, the maximum sequence length. Embeddings without a table of
            positions may have None, for rows of any length.
        num_segments: int, rows of the segment embedding; 0 for no such table, as in DistilBERT.
        embedding_dim: int, width of the tables. If it is not `hidden_dim`, a
            linear projection follows the dropout, as in ALBERT and ELECTRA.
            Defaults to `hidden_dim`.
        dropout: float, rate of the dropout after the norm.
        layer_norm_epsilon: float, added to the variance.
        initializer_range: float, standard deviation of the truncated normal.
        position_offset: int, how many rows the position embedding has before the row of the first
            token (RoBERTa has two). In all it has `position_offset + max_sequence_length` rows.
        frame_dim: int D, the width of vectors that come in the place of token ids. If it is not
            `embedding_dim`, a linear projection takes the place of the token embedding. Otherwise
            the vectors are the token embeddings, as `inputs_embeds` of transformers. None for token
            ids.
        part_embeddings: layer from token ids int32 (B, L) and embeddings of tokens float (B, L, E)
            to other embeddings (B, L, E), such as `PartEmbeddings`; or None.
        embedding_rank: int, the rank of the table of tokens, see `FactorizedEmbedding`; None for a
            whole table.
        norm_condition: `NormCondition`, of the vectors on which the norm depends; None for none.

    Source: Devlin et al., 2018 (https://arxiv.org/abs/1810.04805), figure 2.
    """

    companions = (LAYOUT_ARGUMENT, SHIFT_ARGUMENT)
    #: Whether there is a table of positions.
    has_positions: ClassVar[bool] = True
    #: Whether a dense layer follows the dropout also where it changes no width.
    always_projects: ClassVar[bool] = False
    #: Whether there is a norm. XLNet has none here.
    has_norm: ClassVar[bool] = True
    #: The type of the norm, a key of `NORM_TYPES`, and whether it has a bias.
    norm_type: str = "layer_norm"
    norm_bias: bool = True

    def __init__(
        self,
        vocabulary_size: int | None,
        hidden_dim: int,
        max_sequence_length: int | None = 512,
        num_segments: int = 2,
        embedding_dim: int | None = None,
        dropout: float = 0.1,
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        position_offset: int = 0,
        frame_dim: int | None = None,
        part_embeddings: keras.layers.Layer | None = None,
        embedding_rank: int | None = None,
        norm_condition: NormCondition | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.embedding_dim = embedding_dim or hidden_dim
        self.dropout = dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.position_offset = position_offset
        self.frame_dim = frame_dim
        self.part_embeddings = part_embeddings
        self.embedding_rank = embedding_rank
        if embedding_rank is not None:
            _check_rank(embedding_rank, vocabulary_size)
        self.norm_condition = norm_condition
        _check_parts(part_embeddings, vocabulary_size)

        initializer = keras.initializers.TruncatedNormal(stddev=initializer_range)
        self.token_embedding: Any = None
        self.frame_projection: Any = None
        if embedding_rank is not None or frame_dim is None:
            self.token_embedding = self._make_token_embedding(initializer)
        else:
            self.frame_projection = make_frame_projection(
                frame_dim, self.embedding_dim, initializer, self.dtype_policy
            )
        self.position_embedding = self.segment_embedding = None
        if self.has_positions:
            self.position_embedding = self._make_position_embedding()
        if num_segments:
            self.segment_embedding = self.make_table(num_segments, "segment_embedding")
        self.layer_norm = None
        if self.has_norm:
            self.layer_norm = make_norm(
                self,
                "layer_norm",
                layer_norm_epsilon,
                self.norm_type,
                self.norm_bias,
                norm_condition,
            )
        self.embeddings_dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.projection = None
        if self.always_projects or self.embedding_dim != hidden_dim:
            self.projection = keras.layers.Dense(
                hidden_dim,
                kernel_initializer=initializer.clone(),
                dtype=self.dtype_policy,
                name="projection",
            )

    def _make_token_embedding(self, initializer: Any) -> keras.layers.Layer:
        """The table of tokens, or its factors, which have initialisers of their own."""
        if self.embedding_rank is not None:
            assert self.vocabulary_size is not None  # `_check_rank` has refused it.
            return FactorizedEmbedding(
                self.vocabulary_size,
                self.embedding_dim,
                self.embedding_rank,
                self.initializer_range,
                dtype=self.dtype_policy,
                name="token_embedding",
            )
        return keras.layers.ReversibleEmbedding(
            self.vocabulary_size,
            self.embedding_dim,
            embeddings_initializer=initializer,
            # Within another layer Keras would compute the product with the matrix in float32.
            reverse_dtype=self.compute_dtype,
            dtype=self.dtype_policy,
            name="token_embedding",
        )

    def _make_position_embedding(self) -> keras.layers.Embedding:
        if self.max_sequence_length is None:
            raise ValueError(
                "A table of positions has a row for each position, got max_sequence_length=None. "
                "Pass an int. Only models without such a table take None."
            )
        num_rows = self.max_sequence_length + self.position_offset
        return self.make_table(num_rows, "position_embedding")

    def make_table(self, num_rows: int, name: str) -> keras.layers.Embedding:
        """Makes a table of `num_rows` vectors that are added to the token embeddings."""
        initializer = keras.initializers.TruncatedNormal(stddev=self.initializer_range)
        return keras.layers.Embedding(
            num_rows,
            self.embedding_dim,
            embeddings_initializer=initializer,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, token_ids_shape: Shape, *_: Shape | None) -> None:
        for table in (self.token_embedding, self.position_embedding, self.segment_embedding):
            if table is not None:
                table.build()
        if self.frame_projection is not None:
            self.frame_projection.build((*token_ids_shape[:2], self.frame_dim))
        embedded_shape = (*token_ids_shape[:2], self.embedding_dim)
        if self.part_embeddings is not None and not self.part_embeddings.built:
            self.part_embeddings.build(token_ids_shape, embedded_shape)
        if self.layer_norm is not None:
            self.layer_norm.build(embedded_shape)
        if self.projection is not None:
            self.projection.build(embedded_shape)

    def call(
        self,
        token_ids: Tensor,
        segment_ids: Tensor | None = None,
        positions: Tensor | None = None,
        training: bool | None = None,
        sequence_layout: Layout | None = None,
        embedding_shift: Tensor | None = None,
        condition: Tensor | None = None,
    ) -> Tensor:
        """Embeds a batch of packed token ids.

        Args:
            token_ids: int32 (B, L), in [0, V); or frames, float (B, L, D).
            segment_ids: int32 (B, L), in [0, num_segments); None for 0 everywhere. Without a
                segment embedding they are not used.
            positions: int32 (B, L), rows of the position embedding; None for consecutive rows
                from `position_offset` on.
            training: bool, whether dropout is active.
            sequence_layout: `SequenceLayout`, `BucketedLayout` or None.
            embedding_shift: float (..., L, E) for B rows, added to the rows of the token embedding,
                before the norm. Techniques such as `FGM` take gradients by it. None for 0.
            condition: float (B, C), on which the norm depends, with `norm_condition`.

        Returns:
            float (B, L, H) in the compute dtype; with a layout (R, W, H), with buckets (1, N, H).
            With P prompts there are P + L places in the place of L.

        Raises:
            ValueError: if a static L exceeds `max_sequence_length`.
        """
        x = self.embed_tokens(
            token_ids,
            segment_ids,
            positions,
            training,
            sequence_layout,
            embedding_shift,
            condition,
        )
        return x if self.projection is None else call_inner(self.projection, x)

    def embed_tokens(
        self,
        token_ids: Tensor,
        segment_ids: Tensor | None = None,
        positions: Tensor | None = None,
        training: bool | None = None,
        sequence_layout: Layout | None = None,
        embedding_shift: Tensor | None = None,
        condition: Tensor | None = None,
    ) -> Tensor:
        """The embeddings before the projection, float (B, L, E); with a layout (R, W, E).

        Args, Raises: as for `call`.
        """
        prompts = find_prompt_length()
        self._check_length(token_ids.shape[1], prompts)
        if embedding_shift is not None:  # Windows of documents are rows here.
            shape = (*ops.shape(token_ids)[:2], self.embedding_dim)
            embedding_shift = make_room(ops.reshape(embedding_shift, shape))
        if prompts:
            segment_ids = None if segment_ids is None else make_room(segment_ids)
            positions = self._place_prompts(positions, token_ids, prompts)
        elif sequence_layout is not None:
            if positions is None:
                positions = sequence_layout.positions + self.position_offset
            else:
                positions = sequence_layout.pack(positions)
            token_ids = sequence_layout.pack(token_ids)
            if segment_ids is not None:
                segment_ids = sequence_layout.pack(segment_ids)
            if embedding_shift is not None:
                embedding_shift = sequence_layout.pack(embedding_shift)
        elif positions is None:
            positions = ops.arange(ops.shape(token_ids)[1], dtype="int32") + self.position_offset
        if segment_ids is None:
            segment_ids = ops.zeros((1, 1), "int32")
        x = self.sum_tables(token_ids, segment_ids, positions)
        if embedding_shift is not None:
            x = x + ops.cast(embedding_shift, x.dtype)
        if prompts and sequence_layout is not None:  # Only now does each row have its prompts.
            x = sequence_layout.pack(x)
        if self.layer_norm is not None:
            x = call_norm(self.layer_norm, x, condition)
        return call_inner(self.embeddings_dropout, x, training=training)

    def _check_length(self, length: int | None, prompts: int) -> None:
        longest = self.max_sequence_length
        if length is None or longest is None or length + prompts <= longest:
            return
        before = f" with {prompts} prompts before them" if prompts else ""
        raise ValueError(
            f"The rows have length {length}{before}, but this model has positions "
            f"for {longest} tokens. Shorten the input: set `sequence_length` of the "
            f"preprocessor to at most {longest - prompts}."
        )

    def _place_prompts(self, positions: Tensor | None, token_ids: Tensor, prompts: int) -> Tensor:
        """int (P + L,) or (B, P + L), rows of the position embedding: prompts come first."""
        places = ops.shape(token_ids)[1] if positions is None else 0
        first = ops.arange(prompts + places, dtype="int32") + self.position_offset
        if positions is None:
            return first
        rows = ops.broadcast_to(first[None], (ops.shape(positions)[0], prompts))
        return ops.concatenate([rows, ops.cast(positions, "int32") + prompts], axis=1)

    def sum_tables(self, token_ids: Tensor, segment_ids: Tensor, positions: Tensor) -> Tensor:
        """The sum of the rows of all tables, float (B, L, E).

        Args:
            token_ids: int32 (B, L), or frames, float (B, L, D).
            segment_ids: int32 (B, L) or (1, 1). With P prompts (B, P + L), as the result.
            positions: int32 (B, L) or (L,), with P + L places, too.
        """
        table = self.token_embedding if self.frame_dim is None else self.frame_projection
        x = token_ids if table is None else call_inner(table, token_ids)
        if self.part_embeddings is not None:
            x = ops.cast(self.part_embeddings(token_ids, x), x.dtype)
        if find_prompt_length():
            x = call_inner(self.find_adapter(PROMPT), x)
        if self.segment_embedding is not None:
            x = x + call_inner(self.segment_embedding, segment_ids)
        if self.position_embedding is not None:
            x = x + call_inner(self.position_embedding, positions)
        return x

    def compute_output_shape(self, token_ids_shape: Shape, *_: Shape | None) -> Shape:
        return (*token_ids_shape[:2], self.hidden_dim)


def _check_rank(embedding_rank: Any, vocabulary_size: int | None) -> None:
    check_integer("embedding_rank", embedding_rank, at_least=1)
    if vocabulary_size is None:
        raise ValueError(
            f"embedding_rank={embedding_rank} is of a table of tokens, and the encoder reads "
            "frames. Leave it out."
        )


def _check_parts(part_embeddings: Any, vocabulary_size: int | None) -> None:
    if part_embeddings is None:
        return
    if vocabulary_size is None:
        raise ValueError(
            "part_embeddings are about the parts of tokens, and the encoder reads frames. Leave "
            "them out."
        )
    if not isinstance(part_embeddings, keras.layers.Layer):
        raise ValueError(
            f"part_embeddings must be a layer, such as PartEmbeddings, got {part_embeddings!r:.60}."
        )
    known = getattr(part_embeddings, "vocabulary_size", vocabulary_size)
    if known != vocabulary_size:
        raise ValueError(
            f"part_embeddings have the parts of {known} tokens, and the vocabulary has "
            f"{vocabulary_size}. Make them with the tokenizer of the encoder."
        )


def make_frame_projection(
    frame_dim: int, embedding_dim: int, initializer: Any, dtype: Any
) -> keras.layers.Dense | None:
    """The layer from frames (B, L, D) to embeddings (B, L, E); None if D is E."""
    if frame_dim == embedding_dim:
        return None
    return keras.layers.Dense(
        embedding_dim, kernel_initializer=initializer.clone(), dtype=dtype, name="frame_projection"
    )


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ProjectedEmbeddings(BertEmbeddings):
    """`BertEmbeddings` with a projection, also if `embedding_dim` is `hidden_dim`.

    Source: Lan et al., 2019 (https://arxiv.org/abs/1909.11942), section 3.1.
    """

    always_projects = True
