"""Packs rows of frames: vectors of audio, of parts of an image, or of another model."""

from collections.abc import Sequence
from typing import Any, Literal

import keras
import keras_hub
import numpy as np

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Config
from keras_bert_suite.argument_checks import check_foreign_arguments, check_integer, with_article
from keras_bert_suite.preprocessing.padding_lengths import list_lengths
from keras_bert_suite.preprocessing.preset_packer import DEFAULT_LENGTH
from keras_bert_suite.tokenizers.text_tokenizer import TextTokenizer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class FramePacker(checkpoints.SealedPreset, keras_hub.models.Preprocessor):
    """Pads rows of frames to a batch, for an encoder with `frame_dim`.

    A row is an array (n, D) of n frames. No special frame stands around them. The padding, on the
    right, is 0. A batch is padded to its longest row, see `padding_lengths`.

    Args:
        frame_dim: int D, the width of a frame.
        sequence_length: int, the maximum number of frames in a row. A longer row is an error: only
            the user knows where a recording may be cut.
        padding_lengths: as for `SegmentPacker`.
        tokenizer: the tokenizer of the texts that a `Seq2Seq` writes of rows of frames. None for
            tasks that write no text.

    Example:
    ```python
    packer = FramePacker(frame_dim=40, sequence_length=400)
    packer([audio_1, audio_2])  # dict of frames (2, L, 40), segment_ids and padding_mask (2, L)
    ```
    """

    def __init__(
        self,
        frame_dim: int,
        sequence_length: int = DEFAULT_LENGTH,
        padding_lengths: Literal["auto"] | Sequence[int] | None = "auto",
        tokenizer: TextTokenizer | None = None,
        **kwargs: Any,
    ) -> None:
        check_foreign_arguments(type(self), kwargs)
        if tokenizer is not None and not isinstance(tokenizer, TextTokenizer):
            raise ValueError(
                f"tokenizer must be a tokenizer of this package, got {with_article(tokenizer)}. "
                "`open_tokenizer` opens the one of a checkpoint."
            )
        check_integer("frame_dim", frame_dim, at_least=1)
        check_integer("sequence_length", sequence_length, at_least=1)
        super().__init__(**kwargs)
        self.built = True
        self.frame_dim = frame_dim
        self.sequence_length = sequence_length
        self.padding_lengths = padding_lengths
        self.tokenizer = tokenizer
        self.run_lengths: tuple[int, ...] | None = None  # As in `SegmentPacker`.

    def __call__(self, x: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Packs a batch of rows. Labels and sample weights pass through, as in KerasHub."""
        # Keras' own `__call__` would convert the arrays to tensors of the backend.
        return keras.utils.pack_x_y_sample_weight(self.pack(x), y, sample_weight)

    def pack(self, rows: Sequence[Any]) -> dict[str, np.ndarray]:
        """Packs a batch of rows.

        Args:
            rows: B arrays float (n, D), as `read_rows` takes them.

        Returns:
            dict of `frames` float32 (B, L, D), `segment_ids` int32 (B, L), all 0, and
            `padding_mask` int32 (B, L), 1 on frames and 0 on padding.

        Raises:
            ValueError: as `read_rows`.
        """
        column = self.read_rows(rows)
        lengths = np.fromiter(map(len, column), "int64", len(column))
        longest, allowed = lengths.max(initial=1), self.allowed_lengths()
        length = longest if allowed is None else next(n for n in allowed if n >= longest)
        frames = np.zeros((len(column), length, self.frame_dim), "float32")
        for row, array in zip(frames, column, strict=True):
            row[: len(array)] = array
        mask = (np.arange(length) < lengths[:, None]).astype("int32")
        return {"frames": frames, "segment_ids": np.zeros_like(mask), "padding_mask": mask}

    def read_rows(self, rows: Any) -> np.ndarray:
        """Reads rows of frames as an object array (N,) of float32 (n, D), and checks them.

        Args:
            rows: list of N arrays or tensors (n, D), or one array (N, n, D) of equally long rows.

        Raises:
            ValueError: if a row has another number of axes or another width, has no frames or more
                than `sequence_length`, or a number that is complex or not finite. It names the row.
        """
        column = read_frame_rows(
            rows,
            self.frame_dim,
            "Build the encoder and its FramePacker with the frame_dim of your frames, or reshape "
            "the row.",
        )
        for number, row in enumerate(column):
            if not 0 < len(row) <= self.sequence_length:
                raise ValueError(
                    f"Row {number} has {len(row)} frames, wanted 1 to sequence_length="
                    f"{self.sequence_length}. Leave out empty rows, cut long rows, or set a larger "
                    "sequence_length, up to the positions of the encoder."
                )
        return column

    def allowed_lengths(self) -> tuple[int, ...] | None:
        """The lengths to which a batch may be padded, ascending; None allows any length."""
        return self.run_lengths or list_lengths(self.sequence_length, self.padding_lengths)

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "frame_dim": self.frame_dim,
            "sequence_length": self.sequence_length,
            "padding_lengths": self.padding_lengths,
        }


def read_frame_rows(
    rows: Any, frame_dim: int | None, advice: str, dtype: str = "float32"
) -> np.ndarray:
    """Reads rows of frames as an object array (N,) of arrays (n, D).

    Args:
        rows: as for `FramePacker.read_rows`.
        frame_dim: int, D; None for the width of the first row.
        advice: str, the end of the error about a row of another width.
        dtype: str, the type of the arrays.

    Raises:
        ValueError: if a row has another number of axes or another width, or a number that is
            complex or not finite. It names the row.
    """
    if hasattr(rows, "shape") and len(rows.shape) not in (1, 3):
        width = "D" if frame_dim is None else frame_dim
        raise ValueError(
            f"Rows of frames are a list of arrays (n, {width}), or one array (N, n, {width}), got "
            f"an array of shape {tuple(rows.shape)}. Put a single row in a list: [row]."
        )
    rows = rows if hasattr(rows, "__len__") else list(rows)
    column = np.empty(len(rows), dtype=object)
    for number, row in enumerate(rows):
        column[number] = _read_row(number, row, frame_dim, advice, dtype)
        frame_dim = column[number].shape[1]
    return column


def _read_row(number, row, frame_dim, advice, dtype):
    width = "D" if frame_dim is None else frame_dim
    wanted = f"Row {number} must be an array (n, {width}) of n frames"
    if hasattr(row, "detach"):
        row = row.detach().cpu()
    try:
        given = np.asarray(row)
        array = given if np.iscomplexobj(given) else given.astype(dtype, copy=False)
    except (TypeError, ValueError):
        raise ValueError(f"{wanted}, got {str(row)[:40]!r} ({type(row).__name__}).") from None
    if np.iscomplexobj(array):
        raise ValueError(
            f"{wanted}, real numbers, got {array.dtype}. Take np.abs of the numbers of a spectrum."
        )
    if array.ndim != 2 or frame_dim not in (None, array.shape[1]):
        raise ValueError(f"{wanted}, got the shape {array.shape}. {advice}")
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        frame, place = wrong[0]
        raise ValueError(
            f"Row {number} has the number {array[frame, place]} in frame {frame}. Frames must "
            "be finite: look for silence under a logarithm, or a division by a deviation of 0."
        )
    return array
