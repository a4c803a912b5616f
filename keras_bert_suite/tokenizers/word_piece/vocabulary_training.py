"""Learns a WordPiece vocabulary from raw text.

The trainer of the Rust library `tokenizers` learns the tokens. It starts from single characters,
and makes a token of the most frequent pair of neighbours, again and again. It is given exactly the
words that `WordPieceTokenizer` will see. By itself, the trainer would give another vocabulary in
each run: it numbers the characters in the order of a hash table, and breaks ties by number. Here
every character has its number beforehand.
"""

from collections.abc import Iterable, Mapping

from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.tokenizers.unicode_rules import find_lone
from keras_bert_suite.tokenizers.word_piece.vocabulary import CONTINUATION_PREFIX
from keras_bert_suite.tokenizers.word_piece.word_counts import count_characters, count_words

PAD_TOKEN = "[PAD]"
# They follow the unused tokens, as in Google's vocabularies.
SPECIAL_TOKENS = ("[UNK]", "[CLS]", "[SEP]", "[MASK]")
# How many words go to the Rust library at a time.
WORDS_PER_BLOCK = 1024


def train_vocabulary(
    texts: Iterable[str],
    size: int = 30522,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    min_frequency: int = 2,
    num_unused: int = 99,
    limit_alphabet: int | None = None,
) -> list[str]:
    """Learns the tokens for a `WordPieceTokenizer` from a corpus.

    ```python
    with open("corpus.txt", encoding="utf-8") as lines:
        vocabulary = train_vocabulary(lines, size=8000)
    tokenizer = WordPieceTokenizer(vocabulary)
    ```

    The texts are read once, one after the other. Only a count of each different word is kept. The
    order of the tokens is Google's: `[PAD]`, `[unused0]` and so on, `[UNK]`, `[CLS]`, `[SEP]`,
    `[MASK]` (100 to 103 with 99 unused tokens), the characters, then the learned tokens, most
    frequent first. The same texts, in any order, give the same vocabulary.

    Every character of the corpus is a token. It is also a `##` token, unless it is always a word
    (punctuation, CJK). So no word of up to 200 of these characters is unknown.

    Args:
        texts: iterable of str or bytes, such as lines. No word may continue from a text to the
            next.
        size: int, the maximum number of tokens. There are fewer if the corpus does not have so
            many.
        lowercase, strip_accents: as for the `WordPieceTokenizer`.
        min_frequency: int, the least number of times that a learned token occurs in the corpus.
        num_unused: int, how many tokens to set aside for words of later tasks.
        limit_alphabet: int, how many different characters to keep. The most frequent characters
            are kept, and words with another character are unknown. None keeps all. Texts from the
            web have thousands of characters that occur a few times each. About 1,000 characters are
            enough for English, 6,000 to 8,000 for Chinese.

    Returns:
        list of str.

    Raises:
        ValueError: if the corpus holds no word, or its characters alone are more than `size`.
    """
    check_integer("size", size, at_least=1)
    check_integer("min_frequency", min_frequency, at_least=1)
    check_integer("num_unused", num_unused)
    if limit_alphabet is not None:
        check_integer("limit_alphabet", limit_alphabet, at_least=1)
    word_counts = count_words(texts, lowercase, strip_accents)
    return learn_pieces(word_counts, size, min_frequency, num_unused, limit_alphabet)


def learn_pieces(
    word_counts: Mapping[str, int],
    size: int = 30522,
    min_frequency: int = 2,
    num_unused: int = 99,
    limit_alphabet: int | None = None,
) -> list[str]:
    """Learns the tokens from counted words. Arguments: see `train_vocabulary`."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from tokenizers.trainers import WordPieceTrainer

    if not word_counts:
        raise ValueError("The texts hold no word. Pass texts that are not empty.")
    unused = [f"[unused{i}]" for i in range(num_unused)]
    special = [PAD_TOKEN, *unused, *SPECIAL_TOKENS]
    characters = list(count_characters(word_counts))[:limit_alphabet]
    alphabet = list_alphabet(characters)
    if len(special) + len(alphabet) > size:
        raise ValueError(
            f"size={size} is less than the {len(special)} special pieces (unused ones included) "
            f"and the {len(alphabet)} pieces of {len(characters)} different characters, which are "
            f"{len(special) + len(alphabet)}. Raise `size`, or keep only the most frequent "
            "characters with a lower `limit_alphabet`."
        )

    kept = set(characters)
    # A word of one character has no pair. A word that will be unknown must not teach any tokens.
    lessons = [(word, word_counts[word]) for word in word_counts if len(word) > 1]
    lessons = [(word, count) for word, count in lessons if kept.issuperset(word)]
    tokenizer = Tokenizer(
        WordPiece(unk_token="[UNK]", continuing_subword_prefix=CONTINUATION_PREFIX)
    )
    tokenizer.pre_tokenizer = WhitespaceSplit()
    trainer = WordPieceTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        show_progress=False,
        # These get the first ids in this order, the characters too: see the module's docstring.
        special_tokens=special + alphabet,
        continuing_subword_prefix=CONTINUATION_PREFIX,
    )
    tokenizer.train_from_iterator(_repeat_words(lessons), trainer)
    ids: dict[str, int] = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def list_alphabet(characters: Iterable[str]) -> list[str]:
    """The tokens of one character.

    >>> list_alphabet("b!a")
    ['!', 'a', 'b', '##a', '##b']
    """
    alone = find_lone()
    characters = sorted(characters)
    inner = [character for character in characters if not alone[ord(character)]]
    return characters + [CONTINUATION_PREFIX + character for character in inner]


def _repeat_words(word_counts):
    """Yields texts that have each word as often as it was counted.

    The library takes texts, and counts the words in them itself: a few million words a second on
    one core.
    """
    block, room = [], WORDS_PER_BLOCK
    for word, count in word_counts:
        while count:
            taken = min(count, room)
            block.append(f"{word} " * taken)
            count -= taken
            room -= taken
            if not room:
                yield "".join(block)
                block, room = [], WORDS_PER_BLOCK
    yield "".join(block)
