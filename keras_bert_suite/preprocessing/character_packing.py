"""Packs tokens that are rows of characters."""

import dataclasses

from keras_bert_suite.preprocessing.packing import pack_segments


def pack_characters(xp, segments, tokenizer, template, **settings):
    """Packs S segments a row, as `pack_segments` does, of tokens that are rows of characters.

    Args:
        xp, segments, template, **settings: as for `pack_segments`, with `ids` int32 (T, W).
        tokenizer: `CharacterTokenizer`.

    Returns:
        dict of `character_ids` int32 (B, L, W) instead of `token_ids`, and the other arrays.
    """
    table = [xp.asarray(tokenizer.special_rows)]
    begin, numbered = 3, []
    for ids, starts, lengths in segments:
        size = xp.shape(ids)[0]
        numbered.append((xp.cast(xp.arange(size)) + begin, starts, lengths))
        table.append(ids)
        begin = begin + size
    # The numbers of the rows of the table are packed, and then looked up.
    template = dataclasses.replace(template, start_token_id=0, end_token_id=1, pad_token_id=2)
    packed = pack_segments(xp, numbered, template=template, **settings)
    numbers = packed.pop("token_ids")
    return {"character_ids": xp.take(xp.concat(table), numbers, axis=0), **packed}
