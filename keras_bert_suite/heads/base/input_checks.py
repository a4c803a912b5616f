"""Checks that the columns of rows, and packed arrays, fit the model."""

import dataclasses

import numpy as np

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.data.input_dataset import is_dataset
from keras_bert_suite.layers import GLOBAL_ARGUMENT
from keras_bert_suite.layers.attention.global_tokens import check_global_tokens
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.models.frame_inputs import CONDITION, FRAMES


@dataclasses.dataclass(frozen=True)
class EncoderInputs:
    """What an encoder takes: the names of its arrays, and the sizes of its embeddings.

    Attributes:
        names: tuple of str, such as ("token_ids", "segment_ids", "padding_mask"), what a packer
            makes.
        vocabulary_size, num_segments: int, the rows of two embeddings, or None.
        max_global_tokens: int, the global tokens that a row of a Longformer may have, or None.
        hides_second_text: bool, whether the vector of a row does not depend on its second text.
        memory_shape: tuple of int, the layers and the width of a memory of earlier rows, or None.
        frame_dim: int, the width of the vectors that an encoder of frames reads, or None.
        condition_dim: int, the width of the vector on which its norms depend, or None.
        num_character_ids: int, the ids of an encoder of characters, 0 for padding among them; or
            None.
        has_copy_for_texts: bool, whether the encoder has `for_texts`, as an `XLNetBackbone` has.
    """

    names: tuple
    vocabulary_size: int | None = None
    num_segments: int | None = None
    max_global_tokens: int | None = None
    hides_second_text: bool = False
    memory_shape: tuple | None = None
    frame_dim: int | None = None
    condition_dim: int | None = None
    has_copy_for_texts: bool = False
    num_character_ids: int | None = None

    @classmethod
    def of(cls, backbone, summary_place=None):
        """The inputs of an encoder.

        `summary_place` says which token of a row a task reads, "first" or "last"; None for several.
        """
        encoder, memory = Encoder.of(backbone), backbone.input.get("memory")
        characters = getattr(encoder.embeddings, "num_characters", None)
        return cls(
            tuple(name for name in backbone.input if name != CONDITION),
            encoder.vocabulary_size,
            encoder.num_segments,
            encoder.max_global_tokens,
            encoder.attention_pattern == "seq2seq" and summary_place == "first",
            None if memory is None else (memory.shape[1], memory.shape[3]),
            encoder.frame_dim,
            encoder.norm_condition and encoder.norm_condition.dim,
            hasattr(backbone, "for_texts"),
            None if characters is None else characters + 1,
        )

    def check_pairs(self):
        """Raises a ValueError if the vector of a pair does not depend on its second text."""
        if self.hides_second_text:
            raise ValueError(
                "The first token of a pair does not see the second text in a seq2seq backbone, so "
                "it is the same for every second text. Build the task on "
                "keras_bert_suite.change_pattern(backbone, 'bidirectional')."
            )

    def select(self, arrays):
        """dict of the arrays that the encoder takes. A missing one is a ValueError."""
        try:
            return {name: arrays[name] for name in self.names}
        except KeyError as error:
            copy = "keras_bert_suite.change_pattern(backbone, 'bidirectional')"
            if self.has_copy_for_texts:
                copy = "backbone.for_texts()"
            raise ValueError(
                f"The backbone has the input {error}, which is not made of texts. Pass packed "
                f"arrays. For texts, build the task on a copy without the input: {copy}."
            ) from None


def check_num_texts(num_segments, encoder, input_names, packer=None):
    """Checks the number of texts in a row. `input_names` belong to the task, or are None."""
    if input_names is not None and num_segments != len(input_names):
        wanted = "single texts" if len(input_names) == 1 else f"rows of {len(input_names)} texts"
        raise ValueError(
            f"This task was trained on {wanted}, {', '.join(input_names)}; got rows of "
            f"{num_segments}. Pass pairs as a tuple of two lists, (first_texts, second_texts)."
        )
    available = encoder.num_segments
    segments = getattr(packer, "segment_ids", None) or range(num_segments)
    if available and max(segments) >= available and "segment_ids" in encoder.names:
        raise ValueError(
            f"The backbone has embeddings for {available} segments, got rows of {num_segments} "
            f"texts in the segments {', '.join(map(str, segments))}. Set `segment_ids` of the "
            f"SegmentPacker, such as {(0, *[1] * (num_segments - 1))}, join some texts, or build "
            "the backbone with more `num_segments`."
        )
    if num_segments > 1:
        encoder.check_pairs()


def check_packed(arrays, encoder, kinds_of_axes):
    """Checks that packed arrays have one shape, and ids with a row in the backbone's embeddings.

    Of tensors of TensorFlow, which may be in a graph, only the number of axes is checked.
    `kinds_of_axes` is `TextData.packed_axes`. Further arrays of a backbone may have other axes.
    """
    check_frames(arrays, encoder)
    for name in ("token_ids", "segment_ids", "padding_mask", "mask_positions"):
        shape = getattr(arrays.get(name), "shape", None)
        if shape is None or getattr(shape, "rank", 0) is None:
            continue
        if len(shape) not in map(len, kinds_of_axes):
            wanted = " or ".join(f"({', '.join(axes)})" for axes in kinds_of_axes)
            raise ValueError(
                f"Packed arrays of this task have the axes {wanted}, got {name} of the shape "
                f"{tuple(shape)}. Pass the texts, or pack them by `task.preprocess_samples(x)`."
            )
    of, shape = _find_token_shape(arrays)
    for name in ("segment_ids", "padding_mask"):
        array = arrays.get(name)
        # A column (B, 1) would be taken for every token of its row.
        if isinstance(array, np.ndarray) and shape not in (None, array.shape):
            raise ValueError(f"{name} must have the shape of {of}, {shape}, got {array.shape}.")
    mask = arrays.get("padding_mask")
    if isinstance(mask, np.ndarray) and mask.size and mask.max() > 1:
        raise ValueError(
            f"padding_mask must be 1 on tokens and 0 on padding, got {mask.max()}. Give "
            "each sequence a row of its own; fit(..., sequence_packing=True) packs the rows."
        )
    marked = arrays.get(GLOBAL_ARGUMENT)
    if encoder.max_global_tokens is not None and isinstance(marked, np.ndarray):
        check_global_tokens(marked, encoder.max_global_tokens)
    for name, attribute in (
        ("token_ids", "vocabulary_size"),
        ("segment_ids", "num_segments"),
        ("character_ids", "num_character_ids"),
    ):
        ids, size = arrays.get(name), getattr(encoder, attribute)
        if (
            size
            and isinstance(ids, np.ndarray)
            and ids.size
            and not 0 <= ids.min() <= ids.max() < size
        ):
            raise ValueError(
                f"{name} must be in [0, {size}), the backbone's {attribute}, got "
                f"{ids.min()} to {ids.max()}. Pack the texts with the backbone's own preprocessor."
            )


def _find_token_shape(arrays):
    """(what has tokens, the shape of these). The shape is None if they are tensors, or missing."""
    for name, of, axes in (
        ("token_ids", "token_ids", None),
        ("character_ids", "the words of character_ids", -1),
    ):
        if isinstance(arrays.get(name), np.ndarray):
            return of, arrays[name].shape[:axes]
    return "token_ids", None


def check_frames(arrays, encoder):
    """Checks that packed arrays have frames if the encoder reads frames, and token ids if not."""
    frames, width = arrays.get(FRAMES), encoder.frame_dim
    if width is None:
        if frames is not None:
            raise ValueError(
                "The backbone reads token ids, got frames. Build it with frame_dim, or take "
                "`backbone.for_frames(frame_dim)`, a copy that reads vectors."
            )
        return
    if "token_ids" in arrays or frames is None or "padding_mask" not in arrays:
        raise ValueError(
            f"The backbone reads frames (N, L, {width}) and their padding_mask (N, L), got "
            f"{', '.join(arrays)}. Frames come in the place of token_ids, not beside them."
        )
    if frames.ndim != 3 or frames.shape[2] != width:
        raise ValueError(
            f"frames must have the shape (N, L, {width}), got {frames.shape}. The backbone has "
            f"frame_dim={width}."
        )
    if "complex" in str(frames.dtype):
        raise ValueError(
            f"frames must be real numbers, got {frames.dtype}. Take np.abs of the numbers of a "
            "spectrum."
        )
    mask = arrays["padding_mask"]
    if mask.shape != frames.shape[:2]:
        raise ValueError(
            f"padding_mask must have the shape {frames.shape[:2]} of the frames, got {mask.shape}."
        )
    wrong = np.argwhere(~np.isfinite(frames))
    if len(wrong):
        row, frame, _ = wrong[0]
        raise ValueError(
            f"Frames must be finite numbers, got {frames[tuple(wrong[0])]} in row {row}, frame "
            f"{frame}. The padding must be finite, too."
        )
    empty = np.flatnonzero(~mask.any(axis=1))
    if len(empty):
        raise ValueError(
            f"Row {empty[0]} has no frames: its padding_mask is 0 everywhere. Leave out empty rows."
        )


def check_inputs(arrays, names):
    """Raises a ValueError if packed arrays lack an input of the model, by its name."""
    missing = [name for name in names if name not in arrays]
    if missing:
        raise ValueError(
            f"The model reads {', '.join(missing)}, and the batches have {', '.join(arrays)}. A "
            "packer makes token_ids, padding_mask and, for most tokenizers, segment_ids; the "
            "masker or the corruption of PretrainingBatches makes all others, by these names. Pass "
            f"one that makes {', '.join(missing)}, or give its arrays these names by "
            "`batches.map(...)`."
        )


def read_names(names):
    """The argument `input_names` of a task as a tuple, or None."""
    if names is None:
        return None
    return (names,) if isinstance(names, str) else tuple(names)


def default_names(num_segments):
    """Names for columns without names: ("text",), or ("text_a", "text_b") and so on."""
    if num_segments == 1:
        return ("text",)
    return tuple(f"text_{chr(ord('a') + i)}" for i in range(num_segments))


def check_in_memory(x):
    """Raises a ValueError if rows to score are a dataset."""
    if is_dataset(x):
        raise ValueError(
            f"Wanted rows in memory, got {with_article(x)}. Pass texts and their labels, or "
            "call `evaluate` for a dataset."
        )


def order_columns(num_columns, names, input_names):
    """The order in which text columns with some names come in `input_names`.

    It is a range if the columns or the task have no names. Other names than `input_names` are an
    error.
    """
    order = range(num_columns)
    if names is None or input_names is None or len(names) < 2 or len(names) != len(input_names):
        return order
    if set(names) != set(input_names):
        if input_names == default_names(len(input_names)):
            return order  # The task was trained on columns without names.
        raise ValueError(
            f"The columns are named {', '.join(names)}, and the task was trained on "
            f"{', '.join(input_names)}. Rename the columns, or pass a tuple of columns in this "
            "order."
        )
    return [names.index(name) for name in input_names]
