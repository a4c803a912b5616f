"""Chooses the tokens that texts need."""

from collections.abc import Sequence

import numpy as np

from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.tokenizers.plain_marks import find_plain_marks
from keras_bert_suite.tokenizers.text_tokenizer import TextTokenizer
from keras_bert_suite.tokenizers.word_piece.vocabulary import CONTINUATION_PREFIX


def trim_vocabulary(
    tokenizer: TextTokenizer,
    texts: Sequence[str],
    min_count: int = 1,
    keep_characters: bool = False,
) -> list[str]:
    """Lists the tokens of a vocabulary that texts need, to keep them alone.

    ```python
    tokenizer = kbs.WordPieceTokenizer.from_preset("bert-base-chinese")
    tokens = kbs.trim_vocabulary(tokenizer, [*articles, *titles])
    writer = kbs.Seq2Seq.from_preset("bert-base-chinese", keep_tokens=tokens)
    ```

    With these tokens alone, the texts have the tokens that they had before, unless `min_count`
    leaves some out. Words of other texts may become the unknown token. With `keep_characters` words
    of known characters never do: they are cut into shorter tokens.

    Args:
        tokenizer: a tokenizer of this package.
        texts: list, tuple or array of str.
        min_count: int, how often a token must be in the texts.
        keep_characters: bool, whether the tokens that are one character also stay, at the start of
            a word and within it.

    Returns:
        list of str, in the order of their ids, with the special tokens, and with the plain marks by
        which `Seq2Seq(plain_marks=True)` replaces marks that the vocabulary lacks.

    Raises:
        ValueError: if `min_count` is below 1.
    """
    check_integer("min_count", min_count, at_least=1)
    ids, _ = tokenizer.tokenize_flat(texts)
    counts = np.bincount(ids, minlength=tokenizer.vocabulary_size())
    kept = {*np.flatnonzero(counts >= min_count).tolist(), *tokenizer.special_token_ids}
    if keep_characters:
        continues = tokenizer.find_continuations()
        kept.update(
            token_id
            for token_id, token in enumerate(tokenizer.get_vocabulary())
            if len(token.removeprefix(CONTINUATION_PREFIX) if continues[token_id] else token) == 1
        )
    for plain in find_plain_marks(tokenizer).values():
        kept.update(tokenizer.tokenize(plain))
    return [tokenizer.id_to_token(id) for id in sorted(kept)]
