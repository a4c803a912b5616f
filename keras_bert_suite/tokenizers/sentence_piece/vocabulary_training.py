"""Learns a SentencePiece model of unigrams from raw text."""

import io
from collections.abc import Iterable
from typing import Any

from keras_bert_suite.argument_checks import check_choice, check_integer
from keras_bert_suite.tokenizers.sentence_piece.albert_rules import QUOTES, AlbertCharacters
from keras_bert_suite.tokenizers.text_inputs import check_several

#: Always whole tokens, as in the released models.
_DEFINED = list('()".-£€–')
#: model -> (whether its released models lowercase, its options of SentencePiece).
_MODELS: dict[str, tuple[bool, dict[str, Any]]] = {
    "albert": (
        True,
        {
            **{"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1},
            "control_symbols": ["[CLS]", "[SEP]", "[MASK]"],
            "user_defined_symbols": _DEFINED,
        },
    ),
    "xlnet": (
        False,
        {
            **{"unk_id": 0, "bos_id": 1, "eos_id": 2},
            "control_symbols": ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"],
            "user_defined_symbols": ["<eop>", ",", *_DEFINED],
        },
    ),
}
#: More sentences would not fit in memory. A random sample of this size is taken.
MOST_SENTENCES = 10_000_000


def train_sentence_pieces(
    texts: Iterable[str],
    size: int = 30000,
    lowercase: bool | None = None,
    strip_accents: bool = True,
    character_coverage: float = 0.9995,
    model_type: str = "albert",
) -> bytes:
    """Learns the unigrams for an `AlbertTokenizer` or an `XLNetTokenizer`, for a model of your own.

    ```python
    with open("corpus.txt", encoding="utf-8") as lines:
        model = train_sentence_pieces(lines, size=8000)
    pathlib.Path("spiece.model").write_bytes(model)
    tokenizer = AlbertTokenizer("spiece.model")
    ```

    The library SentencePiece learns them, with the options of
    https://github.com/google-research/albert or https://github.com/zihangdai/xlnet. Up to ten
    million texts are kept in memory; of more, a random sample.

    Args:
        texts: iterable of str, such as lines or sentences.
        size: int, the maximum number of tokens. There are fewer if the texts do not have so many.
        lowercase, strip_accents: as for the tokenizer, which must get the same values. `lowercase`
            None is its default: True for ALBERT, False for XLNet.
        character_coverage: float from 0.98 to 1, the share of the texts' characters that are
            tokens. The rarest others are unknown.
        model_type: "albert" or "xlnet", whose special tokens the model has.

    Returns:
        bytes, the content of a `spiece.model`.

    Raises:
        ValueError: if the texts are empty, or their characters alone are more than `size`; or for
            another `model_type`.
    """
    from sentencepiece import SentencePieceTrainer, set_random_generator_seed

    check_several(texts)
    check_integer("size", size, at_least=1)
    check_choice("model_type", model_type, tuple(_MODELS))
    lowers, options = _MODELS[model_type]
    characters = AlbertCharacters(lowers if lowercase is None else lowercase, strip_accents)
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
            **options,
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
    """Yields the texts with the rules of both for characters, without empty texts."""
    for text in texts:
        for marks, mark in QUOTES.items():
            text = text.replace(marks, mark)
        text = text.translate(characters).strip()
        if text:
            yield text
