"""Writes tokenizer.json, which servers that use the library `tokenizers` alone read."""

from keras_bert_suite.checkpoints.tokenizer_files.settings import FAST_FILE


def write_fast_tokenizer(tokenizer, max_length, directory):
    """Writes the tokenizer.json of a `WordPieceTokenizer`.

    It cuts texts to `max_length` tokens; None for no cut.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers
    from tokenizers.models import WordPiece
    from tokenizers.processors import TemplateProcessing

    pieces, added = tokenizer.get_vocabulary(), {t.content for t in tokenizer.added_tokens}
    while pieces[-1] in added:  # The library numbers them again, from here on.
        pieces.pop()
    fast = Tokenizer(
        WordPiece(
            {piece: id for id, piece in enumerate(pieces)},
            unk_token=tokenizer.unknown_token,
            max_input_chars_per_word=tokenizer.max_word_length,
        )
    )
    fast.normalizer = normalizers.BertNormalizer(
        lowercase=tokenizer.lowercase, strip_accents=tokenizer.strip_accents
    )
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.decoder = decoders.WordPiece()
    first, last = tokenizer.start_token, tokenizer.end_token
    fast.post_processor = TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} $B:1 {last}:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (first, last)],
    )
    fast.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in tokenizer.special_tokens]
    )
    for token in tokenizer.added_tokens:
        add = fast.add_special_tokens if token.special else fast.add_tokens
        add([AddedToken(**token.flags())])
    if max_length is not None:
        fast.enable_truncation(max_length)
    fast.save(str(directory / FAST_FILE))
