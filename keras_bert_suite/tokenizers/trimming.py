"""Chooses the tokens that texts need."""

from collections.abc import Sequence

import numpy as np

from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.tokenizers.plain_marks import find_plain_marks
from keras_bert_suite.tokenizers.text_tokenizer import TextTokenizer


def trim_vocabulary(
    tokenizer: TextTokenizer, texts: Sequence[str], min_count: int = 1
) -> list[str]:
    """Lists the tokens of a vocabulary that texts need, to keep them alone.

    ```python
    tokenizer = kbs.WordPieceTokenizer.from_preset("bert-base-chinese")
    tokens = kbs.trim_vocabulary(tokenizer, [*articles, *titles])
    writer = kbs.Seq2Seq.from_preset("bert-base-chinese", keep_tokens=tokens)
    ```

    With these tokens alone, the texts have the tokens that they had before, unless `min_count`
    leaves some out. Words of other texts may become the unknown token.

    Args:
        tokenizer: a tokenizer of this package.
        texts: list, tuple or array of str.
        min_count: int, how often a token must be in the texts.

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
    for plain in find_plain_marks(tokenizer).values():
        kept.update(tokenizer.tokenize(plain))
    return [tokenizer.id_to_token(id) for id in sorted(kept)]
