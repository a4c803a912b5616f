"""Learns the tokens and merges of a byte-pair tokenizer from raw text."""

import json
from collections.abc import Iterable

from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.tokenizers.byte_pair.byte_pair_vocabulary import byte_characters
from keras_bert_suite.tokenizers.text_inputs import check_several

#: In the order of RoBERTa's vocabulary, with the mask token beside them instead of at the end.
SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


def train_byte_pairs(
    texts: Iterable[str], size: int = 30522, min_frequency: int = 2
) -> tuple[dict[str, int], list[str]]:
    """Learns the tokens and merges for a `BytePairTokenizer`, for a RoBERTa of your own.

    ```python
    with open("corpus.txt", encoding="utf-8") as lines:
        tokenizer = BytePairTokenizer(*train_byte_pairs(lines, size=8000))
    ```

    The trainer of the Rust library `tokenizers` learns them. The texts are read once, and only a
    count of each different word is kept. All 256 bytes are tokens, so no text is unknown.

    Args:
        texts: iterable of str, such as lines.
        size: int, the maximum number of tokens, at least 261. There are fewer if the texts do not
            have so many.
        min_frequency: int, the least number of times that a learned token occurs in the texts.

    Returns:
        (dict of token -> id: five special tokens, the bytes, the learned tokens, most frequent
        first; list of the merges, each "left right").
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    check_several(texts)
    check_integer("size", size, at_least=len(SPECIAL_TOKENS) + 256)
    check_integer("min_frequency", min_frequency, at_least=1)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(byte_characters()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [" ".join(merge) for merge in model["merges"]]
