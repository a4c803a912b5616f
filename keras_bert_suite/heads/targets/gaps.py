"""Fills the gaps of texts: a decoder writes the whole text again, and the gaps are found in it."""

import numpy as np

from keras_bert_suite.argument_checks import check_integer, with_article
from keras_bert_suite.heads.masks.data import pack_masked_texts
from keras_bert_suite.heads.targets.decoding import write_ids
from keras_bert_suite.heads.targets.writing_rules import find_rules
from keras_bert_suite.runs.batches import choose_size


def fill_gaps(task, texts, batch_size, max_gap_length):
    """list of N lists of str or None, the gaps of N texts; see `Seq2Seq.fill_mask`."""
    check_integer("max_gap_length", max_gap_length, at_least=1)
    if not task.decoder.starts_with_end:
        raise ValueError(
            f"{with_article(task.backbone, 'A')} has not learned to write a text with its gaps "
            "filled. Open a BART, or guess single tokens with a MaskedLM."
        )
    if task.data.encoder.frame_dim is not None:
        raise ValueError(
            f"The {type(task.backbone).__name__} reads frames, and a gap is in a text. Build the "
            "task on a backbone of tokens."
        )
    task.data.check_can_pack()
    packer, size = task.preprocessor, choose_size(batch_size)
    filled = []
    for start in range(0, len(texts), size):
        batch = texts[start : start + size]
        packed = pack_masked_texts(packer, task.data.encoder, (batch,))
        num_masks = packed.pop("mask_positions").shape[1]
        room = packed["token_ids"].shape[1] + num_masks * (max_gap_length - 1)
        length = min(room, task.target_rows.max_decoder_length)
        # The source says how long the text is, and what it says twice.
        _, rules = find_rules(
            task, max_target_length=length, min_target_length=0, no_repeat_ngram_size=0
        )
        sources, targets = packed["token_ids"], write_ids(task, packed, length, rules)[:, 1:]
        filled += [find_gaps(packer.tokenizer, *row) for row in zip(sources, targets, strict=True)]
    return filled


def find_gaps(tokenizer, source, target):
    """The texts that stand in a target, int (T,), in place of the masks of a source, int (L,).

    Each known part of the source is looked for behind the part before it, and the last part at the
    end. If one is not there, each gap is None.
    """
    source, target = (_take_text(tokenizer, row) for row in (source, target))
    cuts = np.flatnonzero(source == tokenizer.mask_token_id)
    first, *parts = (part[part != tokenizer.mask_token_id] for part in np.split(source, cuts))
    missing = [None] * len(cuts)
    if not _stands_at(first, target, 0):
        return missing
    gaps, begin = [], len(first)
    for number, part in enumerate(parts):
        last = len(target) - len(part)
        places = [last] if number == len(cuts) - 1 else range(begin, last + 1)
        end = next((i for i in places if i >= begin and _stands_at(part, target, i)), None)
        if end is None:
            return missing
        gaps.append(tokenizer.detokenize(target[begin:end].tolist()).strip())
        begin = end + len(part)
    return gaps


def _take_text(tokenizer, row):
    """The tokens of a row between its first and its end token."""
    row = row[row != tokenizer.pad_token_id]
    starts = tokenizer.start_token_id, tokenizer.target_template.start_token_id
    row = row[1:] if len(row) and row[0] in starts else row
    ends = np.flatnonzero(row == tokenizer.end_token_id)
    return row[: ends[0]] if len(ends) else row


def _stands_at(part, target, place):
    return np.array_equal(target[place : place + len(part)], part)
