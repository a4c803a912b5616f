"""Checks that the preprocessor and the head of a task fit its backbone."""

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.heads.base.head import read_heads
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.preprocessing.frame_packer import FramePacker
from keras_bert_suite.tokenizers import CharacterTokenizer


def check_encoder(task, backbone):
    """Checks that a backbone is an encoder, and no encoder-decoder."""
    outputs = getattr(backbone, "output", None)
    if isinstance(outputs, dict) and "sequence_output" not in outputs:
        raise ValueError(
            f"{with_article(task, 'A')} reads the sequence_output of an encoder, and "
            f"{with_article(backbone)} has {', '.join(outputs)}. Pretrain an encoder-decoder "
            "with a Seq2SeqPretrainer on PretrainingBatches of a Corruption, and fine-tune it with "
            "a Seq2Seq."
        )


def check_preprocessor(preprocessor, backbone):
    """Checks that a preprocessor makes the inputs of a backbone, with ids that have embeddings."""
    _check_frames(preprocessor, Encoder.of(backbone).frame_dim, type(backbone).__name__)
    tokenizer = getattr(preprocessor, "tokenizer", None)
    size = _vocabulary_size(tokenizer)
    available = Encoder.of(backbone).vocabulary_size
    if size and available and size > available:
        room = f", or make room for added tokens by `backbone.resize_vocabulary({size}, seed=0)`"
        raise ValueError(
            f"The tokenizer's vocabulary has {size} tokens, and the backbone's embedding has rows "
            f"for {available} tokens. Use the vocabulary that the backbone was trained with"
            f"{room if hasattr(backbone, 'resize_vocabulary') else ''}."
        )
    makes_characters = isinstance(tokenizer, CharacterTokenizer)
    if tokenizer is not None and makes_characters != ("character_ids" in backbone.input):
        raise ValueError(
            f"{with_article(backbone, 'A')} that reads {', '.join(backbone.input)} has no use for "
            f"{with_article(tokenizer)}. An ElmoBackbone with `characters` takes a "
            "CharacterTokenizer, and other encoders take other tokenizers."
        )
    if not getattr(tokenizer, "has_segment_ids", True) and "segment_ids" in backbone.input:
        raise ValueError(
            f"The backbone tells texts apart by segment_ids, which {with_article(tokenizer)} "
            "does not make. Use the tokenizer that the backbone was trained with, or a backbone "
            f"without segment_ids, such as a {tokenizer.backbone_cls.__name__}."
        )
    check_separator(tokenizer, backbone)
    _check_template(preprocessor, tokenizer, backbone)
    length = getattr(preprocessor, "sequence_length", None)
    positions = Encoder.of(backbone).max_sequence_length
    if length and positions and length > positions:
        raise ValueError(
            f"The preprocessor packs up to sequence_length={length} tokens, but the backbone has "
            f"positions for {positions}. Pass a sequence_length of at most {positions}."
        )


def check_takes_frames(task, backbone):
    """Checks that a head does not need texts, if its backbone reads frames."""
    frame_dim, head = Encoder.of(backbone).frame_dim, getattr(task, "HEAD", None)
    if frame_dim is None or head is None or head.takes_frames:
        return
    reading = sorted(name for name, head in read_heads().items() if head.takes_frames)
    raise ValueError(
        f"{with_article(task, 'A')} needs texts, and its backbone reads frames (frame_dim="
        f"{frame_dim}). Heads on frames are {', '.join(reading)}."
    )


def check_takes_condition(task, backbone):
    """Checks that a head hands on the condition, if the norms of its backbone depend on one."""
    encoder, head = Encoder.of(backbone), getattr(task, "HEAD", None)
    if encoder.norm_condition is None or head is None:
        return
    if encoder.frame_dim is not None:
        raise ValueError(
            f"{with_article(task, 'A')} takes no condition beside frames, and the norms of its "
            f"backbone depend on one, {encoder.norm_condition}. Put the condition into each frame."
        )
    if head.takes_condition:
        return
    reading = sorted(name for name, head in read_heads().items() if head.takes_condition)
    raise ValueError(
        f"{with_article(task, 'A')} reads no condition, and the norms of its backbone depend on "
        f"one, {encoder.norm_condition}. Heads that read it are {', '.join(reading)}."
    )


def _check_frames(preprocessor, frame_dim, name):
    """Checks that a preprocessor makes frames of the width that a backbone reads, or none."""
    if preprocessor is None:
        return
    made = preprocessor.frame_dim if isinstance(preprocessor, FramePacker) else None
    if made == frame_dim:
        return
    wanted = "token ids" if frame_dim is None else f"frames of width {frame_dim}"
    remedy = f"a FramePacker({frame_dim})" if frame_dim else "the preprocessor of its tokenizer"
    raise ValueError(
        f"{with_article(preprocessor, 'A')} makes "
        f"{'token ids' if made is None else f'frames of width {made}'}, and the {name} reads "
        f"{wanted}. Pass {remedy}."
    )


def _check_template(preprocessor, tokenizer, backbone):
    """Checks that the summary token of packed rows stands where a backbone reads it."""
    encoder = Encoder.of(backbone)
    ours, theirs = getattr(tokenizer, "summary_place", "first"), encoder.summary_place
    if tokenizer is not None and theirs not in (None, ours):
        raise ValueError(
            f"{with_article(tokenizer, 'A')} puts the token that stands for a row {ours}, and "
            f"{with_article(backbone)} reads it {theirs}. Set `summary_place` of both classes."
        )
    if theirs is not None and not getattr(preprocessor, "add_special_tokens", True):
        raise ValueError(
            f"{with_article(backbone, 'A')} reads the token that stands for a row, got "
            f"{with_article(preprocessor)} with add_special_tokens=False. Pass "
            "add_special_tokens=True."
        )
    has_positions = getattr(encoder.embeddings, "position_embedding", None) is not None
    if has_positions and getattr(tokenizer, "padding_side", "right") == "left":
        raise ValueError(
            f"{with_article(tokenizer, 'A')} pads rows on the left, and the table of positions of "
            f"{with_article(backbone)} counts from the first token of a row. Use a tokenizer "
            "with padding_side='right'."
        )


def check_separator(tokenizer, backbone):
    """Checks that a Longformer knows the separator by which it finds the texts of a row."""
    finds_texts = Encoder.of(backbone).global_tokens in ("first_text", "later_texts")
    separator_id = getattr(tokenizer, "end_token_id", None)
    if separator_id is not None and finds_texts and backbone.separator_id != separator_id:
        raise ValueError(
            f"The backbone finds the texts of a row by separator_id={backbone.separator_id}, and "
            f"the separator of the tokenizer has the id {separator_id}. Build the backbone with "
            f"separator_id={separator_id}."
        )


def check_summary_place(backbone, summary_place):
    """Checks that the token of a row which a task reads, "first" or "last", sees the others."""
    pattern = Encoder.of(backbone).attention_pattern
    if (summary_place, pattern) in (("first", "left_to_right"), ("last", "right_to_left")):
        raise ValueError(
            f"The {summary_place} token of a {pattern} backbone sees only itself, so its vector is "
            "the same for every text. Pass pooling=keras_bert_suite.MeanPooling() where the task "
            "has a pooling, or keras_bert_suite.change_pattern(backbone, 'bidirectional')."
        )


def find_direction(backbone):
    """str, the attention pattern of a backbone that reads in one direction; otherwise None."""
    pattern = Encoder.of(backbone).attention_pattern
    return pattern if pattern in ("left_to_right", "right_to_left") else None


def _vocabulary_size(tokenizer):
    try:
        return tokenizer.vocabulary_size() if tokenizer is not None else None
    except ValueError:
        return None  # A tokenizer that is being loaded gets its vocabulary later.
