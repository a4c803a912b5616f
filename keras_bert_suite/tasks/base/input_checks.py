"""Checks that the parts of a task fit each other, and that texts fit the task."""

import numpy as np

from keras_bert_suite.data.input_dataset import is_dataset
from keras_bert_suite.layers import GLOBAL_ARGUMENT
from keras_bert_suite.layers.attention.global_tokens import check_global_tokens


def check_preprocessor(preprocessor, backbone):
    """Checks that a preprocessor makes the inputs of a backbone, with ids that have a place."""
    tokenizer = getattr(preprocessor, "tokenizer", None)
    size = _vocabulary_size(tokenizer)
    available = getattr(backbone, "vocabulary_size", None)
    if size and available and size > available:
        raise ValueError(
            f"The tokenizer's vocabulary has {size} tokens, and the backbone's embedding has rows "
            f"for {available} tokens. Use the vocabulary that the backbone was trained with."
        )
    if not getattr(tokenizer, "has_segment_ids", True) and "segment_ids" in backbone.input:
        raise ValueError(
            f"The backbone tells texts apart by segment_ids, which a {type(tokenizer).__name__} "
            "does not make. Use the tokenizer that the backbone was trained with, or a backbone "
            f"without segment_ids, such as a {tokenizer.backbone_cls.__name__}."
        )
    check_separator(tokenizer, backbone)
    length = getattr(preprocessor, "sequence_length", None)
    positions = getattr(backbone, "max_sequence_length", None)
    if length and positions and length > positions:
        raise ValueError(
            f"The preprocessor packs up to sequence_length={length} tokens, but the backbone has "
            f"positions for {positions}. Pass a sequence_length of at most {positions}."
        )


def check_separator(tokenizer, backbone):
    """Checks that a Longformer knows the separator by which it finds the texts of a row."""
    finds_texts = getattr(backbone, "global_tokens", None) in ("first_text", "later_texts")
    separator_id = getattr(tokenizer, "end_token_id", None)
    if separator_id is not None and finds_texts and backbone.separator_id != separator_id:
        raise ValueError(
            f"The backbone finds the texts of a row by separator_id={backbone.separator_id}, and "
            f"the separator of the tokenizer has the id {separator_id}. Build the backbone with "
            f"separator_id={separator_id}."
        )


def check_first_token(backbone):
    """Checks that the first token of a row sees the others, before a task pools it."""
    if getattr(backbone, "attention_pattern", None) == "left_to_right":
        raise ValueError(
            "The first token of a left_to_right backbone sees only itself, so its vector is the "
            "same for every text. Pass pooling=keras_bert_suite.MeanPooling() where the task has "
            "a pooling, or keras_bert_suite.change_pattern(backbone, 'bidirectional')."
        )


def check_pairs(backbone):
    """Checks that the first token of a pair sees the second text, before a task pools it."""
    if getattr(backbone, "attention_pattern", None) == "seq2seq":
        raise ValueError(
            "The first token of a pair does not see the second text in a seq2seq backbone, so it "
            "is the same for every second text. Build the task on "
            "keras_bert_suite.change_pattern(backbone, 'bidirectional')."
        )


def check_segments(num_segments, backbone, input_names):
    """Checks the number of texts in a row. `input_names` are those of the task, or None."""
    if input_names is not None and num_segments != len(input_names):
        wanted = "single texts" if len(input_names) == 1 else f"rows of {len(input_names)} texts"
        raise ValueError(
            f"This task was trained on {wanted}, {', '.join(input_names)}; got rows of "
            f"{num_segments}. Pass pairs as a tuple of two lists, (first_texts, second_texts)."
        )
    available = getattr(backbone, "num_segments", None)
    if available and num_segments > available and "segment_ids" in backbone.input:
        raise ValueError(
            f"The backbone has embeddings for {available} segments, got rows of {num_segments} "
            "texts. Join some texts, or build the backbone with more `num_segments`."
        )


def check_packed(arrays, backbone):
    """Checks that packed arrays have one shape, and ids with a row in the backbone's embeddings.

    Tensors of TensorFlow are not checked, because they may be in a graph.
    """
    token_ids = arrays.get("token_ids")
    for name in ("segment_ids", "padding_mask"):
        array = arrays.get(name)
        if (
            isinstance(array, np.ndarray)
            and isinstance(token_ids, np.ndarray)
            and array.shape != token_ids.shape
        ):  # A column (B, 1) would be taken for every token of its row.
            raise ValueError(
                f"{name} must have the shape of token_ids, {token_ids.shape}, got {array.shape}."
            )
    mask = arrays.get("padding_mask")
    if isinstance(mask, np.ndarray) and mask.size and mask.max() > 1:
        raise ValueError(
            f"padding_mask must be 1 on tokens and 0 on padding, got {mask.max()}. Give "
            "each sequence a row of its own; fit(..., sequence_packing=True) packs the rows."
        )
    if GLOBAL_ARGUMENT in arrays and hasattr(backbone, "max_global_tokens"):
        marked = arrays[GLOBAL_ARGUMENT]
        if isinstance(marked, np.ndarray):
            check_global_tokens(marked, backbone.max_global_tokens)
    for name, attribute in (("token_ids", "vocabulary_size"), ("segment_ids", "num_segments")):
        ids, size = arrays.get(name), getattr(backbone, attribute, None)
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


def check_input_names(input_names):
    """The argument `input_names` as a tuple, or None."""
    if input_names is None:
        return None
    return (input_names,) if isinstance(input_names, str) else tuple(input_names)


def default_names(num_segments):
    """Names for columns without names: ("text",), or ("text_a", "text_b") and so on."""
    if num_segments == 1:
        return ("text",)
    return tuple(f"text_{chr(ord('a') + i)}" for i in range(num_segments))


def check_in_memory(x):
    """Raises a ValueError if rows to score are a dataset."""
    if is_dataset(x):
        raise ValueError(
            f"Wanted rows in memory, got a {type(x).__name__}. Pass texts and their labels, or "
            "call `evaluate` for a dataset."
        )


def check_held_out(validation_data, needs_labels):
    """Checks that rows to validate on are `(x, y)` or `(x, y, sample_weight)`."""
    sizes = (2, 3) if needs_labels else (1, 2, 3)
    if len(validation_data) not in sizes or isinstance(validation_data[0], (str, bytes)):
        alone = "" if needs_labels else "(x,), "
        raise ValueError(
            f"validation_data must be {alone}(x, y) or (x, y, sample_weight), or a dataset, got a "
            f"{type(validation_data).__name__} of {len(validation_data)}."
        )


def order_columns(inputs, names, input_names):
    """Puts a tuple of named text columns into the order of `input_names`.

    It is `inputs` if the columns or the task have no names. Other names than `input_names` are an
    error.
    """
    if names is None or input_names is None or len(names) < 2 or len(names) != len(input_names):
        return inputs
    if set(names) != set(input_names):
        if input_names == default_names(len(input_names)):
            return inputs  # The task was trained on columns without names.
        raise ValueError(
            f"The columns are named {', '.join(names)}, and the task was trained on "
            f"{', '.join(input_names)}. Rename the columns, or pass a tuple of columns in this "
            "order."
        )
    return tuple(inputs[names.index(name)] for name in input_names)


def _vocabulary_size(tokenizer):
    try:
        return tokenizer.vocabulary_size() if tokenizer is not None else None
    except ValueError:
        return None  # A tokenizer that is being loaded gets its vocabulary later.
