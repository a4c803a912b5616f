"""The segments of UniLM's mixture of language models, and backbones with another pattern."""

import keras

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.layers.attention.attention_patterns import SEGMENTS_READ
from keras_bert_suite.models.bert_backbone import BertBackbone

#: The segments that the two texts of a row have in the mixture, by the attention pattern of the
#: row. Source: microsoft/unilm, unilm-v1, seq2seq_loader.py and modeling.py.
MIXTURE_SEGMENTS = {
    "bidirectional": (0, 1),
    "left_to_right": (2, 2),
    "right_to_left": (3, 3),
    "seq2seq": (4, 5),
}

#: The row of a BERT's table with which each row of the mixture's table begins, as in modeling.py.
_FIRST_ROWS = (0, 1, 0, 0, 0, 1)


def change_pattern(backbone: BertBackbone, attention_pattern: str) -> BertBackbone:
    """Copies a backbone, with another attention pattern and the same weights.

    A copy with "unilm" has six segments. They begin as copies of the two segments of the backbone,
    unless the backbone has six, as after a mixture. A copy of a backbone with "unilm" has the two
    segments of its pattern's rows in the mixture. So a `Seq2Seq` takes over the mixture's segments
    of sources and targets.

    ```python
    bert = BertBackbone.from_preset("path/to/checkpoint")
    mixture = change_pattern(bert, "unilm")          # to be pretrained
    writer = change_pattern(mixture, "seq2seq")      # to be fine-tuned
    ```

    Args:
        backbone: `BertBackbone`, or a subclass with segments if a pattern needs them.
        attention_pattern: str, see `BertBackbone`.

    Returns:
        a backbone of the same class.

    Raises:
        ValueError: if there is no such pattern, or the backbone has none, or too few segments for
            it.
    """
    if not isinstance(backbone, BertBackbone):
        raise ValueError(
            f"{with_article(backbone, 'A')} has no attention patterns. Pass a BertBackbone, or a "
            "subclass of it."
        )
    rows = _choose_rows(backbone, attention_pattern)
    if rows is not None and backbone.num_segments < 2:
        raise ValueError(
            f"The mixture of 'unilm' has rows of two segments, and {backbone.name} has "
            f"num_segments={backbone.num_segments}. Use a backbone with two segments."
        )
    return _copy(backbone, attention_pattern, rows)


def holds_mixture(backbone: BertBackbone) -> bool:
    """Whether a backbone has the segments of a mixture of language models.

    A checkpoint of another library has the segments, but it does not name the pattern.
    """
    return backbone.num_segments == SEGMENTS_READ["unilm"]


def leave_mixture(backbone: BertBackbone) -> BertBackbone:
    """Copies a backbone with the segments of a mixture, and keeps only its pattern's segments."""
    pattern = backbone.attention_pattern
    return _copy(backbone, pattern, MIXTURE_SEGMENTS[pattern])


def _copy(backbone: BertBackbone, pattern: str, rows: tuple[int, ...] | None) -> BertBackbone:
    """A copy with another pattern, and with these rows of the table of segments, None for all."""
    config = {**backbone.get_config(), "attention_pattern": pattern}
    if rows is not None:
        config["num_segments"] = len(rows)
    copy = type(backbone).from_config(config)
    values = {v.path: keras.ops.convert_to_numpy(v) for v in backbone.weights}
    if rows is not None:
        table = backbone.embeddings.segment_embedding.embeddings.path
        values[table] = values[table][list(rows)]
    copy.set_weights(list(values.values()))
    return copy


def _choose_rows(backbone: BertBackbone, pattern: str) -> tuple[int, ...] | None:
    """The rows of the old table that make the new table of segments, or None for all."""
    if pattern == backbone.attention_pattern:
        return None
    if pattern == "unilm":
        return None if holds_mixture(backbone) else _FIRST_ROWS
    # An unknown pattern is reported by the constructor.
    return MIXTURE_SEGMENTS.get(pattern) if holds_mixture(backbone) else None
