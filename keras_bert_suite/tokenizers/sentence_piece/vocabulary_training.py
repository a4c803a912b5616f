"""Learns a SentencePiece model of unigrams from raw text."""

import io
from collections.abc import Iterable

from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.tokenizers.sentence_piece.albert_rules import QUOTES, AlbertCharacters
from keras_bert_suite.tokenizers.text_inputs import check_several

SPECIAL_TOKENS = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
#: Always whole tokens, as in ALBERT's models.
DEFINED_TOKENS = tuple('()".-£€–')
#: More sentences would not fit in memory. A random sample of this size is taken.
MOST_SENTENCES = 10_000_000


def train_sentence_pieces(
    texts: Iterable[str],
    size: int = 30000,
    lowercase: bool = True,
    strip_accents: bool = True,
    character_coverage: float = 0.9995,
) -> bytes:
    """Learns the unigrams for an `AlbertTokenizer`, for an ALBERT of your own.

    ```python
    with open("corpus.txt", encoding="utf-8") as lines:
        model = train_sentence_pieces(lines, size=8000)
    pathlib.Path("spiece.model").write_bytes(model)
    tokenizer = AlbertTokenizer("spiece.model")
    ```

    The library SentencePiece learns them, with the options of
    https://github.com/google-research/albert. Up to ten million texts are kept in memory; of more,
    a random sample.

    Args:
        texts: iterable of str, such as lines or sentences.
        size: int, the maximum number of tokens. There are fewer if the texts do not have so many.
        lowercase, strip_accents: as for the `AlbertTokenizer`, which must get the same values.
        character_coverage: float from 0.98 to 1, the share of the texts' characters that are
            tokens. The rarest others are unknown.

    Returns:
        bytes, the content of a `spiece.model`.

    Raises:
        ValueError: if the texts are empty, or their characters alone are more than `size`.
    """
    from sentencepiece import SentencePieceTrainer, set_random_generator_seed

    check_several(texts)
    check_integer("size", size, at_least=1)
    characters = AlbertCharacters(lowercase, strip_accents)
    model = io.BytesIO()
    set_random_generator_seed(0)
    try:
        SentencePieceTrainer.train(
            sentence_iterator=_normalize(texts, characters),
            model_writer=model,
            model_type="unigram",
            vocab_size=size,
            hard_vocab_limit=False,
            character_coverage=character_coverage,
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            control_symbols=list(SPECIAL_TOKENS[2:]),
            user_defined_symbols=list(DEFINED_TOKENS),
            input_sentence_size=MOST_SENTENCES,
            shuffle_input_sentence=True,
            max_sentence_length=1 << 20,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise ValueError(
            f"SentencePiece could not learn {size} tokens: {error} Pass more texts, or another "
            "`size` or `character_coverage`."
        ) from error
    return model.getvalue()


def _normalize(texts, characters):
    """Yields the texts with ALBERT's rules for characters, without empty texts."""
    for text in texts:
        for marks, mark in QUOTES.items():
            text = text.replace(marks, mark)
        text = text.translate(characters).strip()
        if text:
            yield text
