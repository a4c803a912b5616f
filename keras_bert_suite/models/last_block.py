"""An encoder whose last block computes the tokens alone that a head reads.

It still computes the keys and values of all tokens, so the states are the same. Queries, output
product, norms and feed-forward network are left out for all other tokens.
"""

import dataclasses

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers.attention.read_tokens import ReadPackedTokens, ReadTokens
from keras_bert_suite.models.encoder import EncodedRows, Encoder


@dataclasses.dataclass(frozen=True)
class BlockCall:
    """A symbolic call of a block.

    Attributes:
        states, outputs: float (B, L, H), the input and the output of the block.
        arguments: dict of its further arguments.
    """

    states: Tensor
    arguments: dict[str, Tensor]
    outputs: Tensor


class LastBlockReader(Encoder):
    """The questions of `Encoder` about few tokens, answered by another call of the last block.

    So it is if the tokens see each other, the attention takes a source, and nothing but a pooler
    follows the block.

    Attributes:
        last_call: the call of the last block, which `encode` notes.
        ends_with_block: bool, whether its outputs are the last states of the encoder.
    """

    last_call: BlockCall | None = None
    ends_with_block: bool = False
    pooler: keras.layers.Layer

    def encode_summary(self, inputs: dict[str, Tensor]) -> Tensor:
        if not self.reads_few_tokens() or self.summary_place != "first":
            return super().encode_summary(inputs)
        return self.pooler(self._read_tokens(inputs)[:, 0])

    def trace_summary(self) -> Tensor:
        if not self.reads_few_tokens() or self.summary_place != "first":
            return super().trace_summary()
        return self.pooler(self._call_last_block(None)[:, 0])

    def encode_tokens_at(self, inputs: dict[str, Tensor], positions: Tensor) -> Tensor:
        if not self.reads_few_tokens():
            return super().encode_tokens_at(inputs, positions)
        return self._read_tokens(inputs, positions)

    def encode_rows(
        self, inputs: dict[str, Tensor], positions: Tensor | None = None
    ) -> EncodedRows:
        if positions is None or not self.reads_few_tokens() or self.summary_place != "first":
            return super().encode_rows(inputs, positions)
        positions = ops.pad(positions, [[0, 0], [1, 0]])
        states = self._read_tokens(inputs, positions, starts_with_row=True)
        return EncodedRows(states[:, 1:], self.pooler(states[:, 0]))

    def reads_few_tokens(self) -> bool:
        """Whether another call of the last block answers for few tokens."""
        takes_source = self.list_calls()[-1].self_attention.takes_source
        return self.attention_pattern == "bidirectional" and takes_source and self.ends_with_block

    def _read_tokens(
        self,
        inputs: dict[str, Tensor],
        positions: Tensor | None = None,
        starts_with_row: bool = False,
    ) -> Tensor:
        """The states of the tokens at int32 (B, Q) of each row, symbolic float (B, Q, H).

        Without positions it is the first place of each row. `starts_with_row` is as for
        `ReadTokens`.
        """
        own = {}
        if positions is not None:
            own["read_positions"] = keras.Input((None,), dtype="int32", name="read_positions")
        backbone = self.as_model()
        model = keras.Model(
            {**backbone.input, **own},
            self._call_last_block(own.get("read_positions"), starts_with_row),
            name="read_states",
        )
        # A weight that no output depends on, such as the pooler's, is a weight of the task, too.
        model.backbone = backbone
        return model(inputs if positions is None else {**inputs, "read_positions": positions})

    def _call_last_block(self, positions: Tensor | None, starts_with_row: bool = False) -> Tensor:
        """The last block, called once more, for the tokens that are read alone."""
        block, call = self.list_calls()[-1], self.last_call
        assert call is not None
        arguments = dict(call.arguments)
        options = {"starts_with_row": starts_with_row, "dtype": block.dtype_policy}
        read = ReadTokens(**options, name="read_tokens")
        if "positions" in arguments:
            arguments["source_positions"] = arguments["positions"]
            arguments["positions"] = ReadTokens(**options, name="query_positions")(
                arguments["positions"], positions
            )
        states = block(read(call.states, positions), source=call.states, **arguments)
        unpack = ReadPackedTokens(**options, name="read_packed_tokens")
        return unpack(states, self.as_model().input["padding_mask"], positions)
