"""Tokens that are found in a text before it is split: domain words, markers, runs of spaces.

transformers finds them by the Rust library `tokenizers`, whose rules hold here, too. Tokens that
are not `normalized` are found in the text as it is. The others are then found in the rest, after it
was normalized (lowered, for example). At each position the longest token counts.
"""

import dataclasses
import re

import numpy as np

from keras_bert_suite.tokenizers.engines import drop_surrogates, place_characters

#: The one word of the model that finds tokens. It stands for the text between them.
_TEXT = "text"

#: The characters that Rust's `\\s` matches.
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B)))
WHITE_SPACE += "\u2028\u2029\u202f\u205f\u3000"


@dataclasses.dataclass(frozen=True)
class AddedToken:
    """A token that is found in a text before the text is split.

    Attributes:
        content: str.
        special: bool, whether it is a marker such as [E1]. No text is written with it, and no token
            is replaced by it in pretraining.
        single_word: bool, whether it is not found inside of a word.
        lstrip, rstrip: bool, whether it takes the spaces before it, or after it.
        normalized: bool, whether it is found after the text was normalized. So an uncased tokenizer
            finds "covid-19" in "COVID-19". None is the opposite of `special`.
        id: int, the id that the token must have, or None for any.
    """

    content: str
    special: bool = False
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool | None = None
    id: int | None = None

    def __post_init__(self):
        if not isinstance(self.content, str) or not self.content:
            raise ValueError(
                f"An added token is a str of one character or more, got {self.content!r}."
            )
        if self.normalized is None:
            object.__setattr__(self, "normalized", not self.special)

    @classmethod
    def read(cls, token):
        """Reads a str, a dict of the attributes, or an `AddedToken`."""
        if isinstance(token, cls):
            return token
        return cls(**token) if isinstance(token, dict) else cls(token)

    def flags(self):
        """dict of the attributes that the Rust library has."""
        return {name: value for name, value in dataclasses.asdict(self).items() if name != "id"}

    def describe(self):
        """What `read` takes: a str, or a dict of the attributes that differ from their defaults."""
        usual = AddedToken(self.content, self.special)
        fields = {"content": self.content}
        if self.special:
            fields["special"] = True
        for name in ("single_word", "lstrip", "rstrip", "normalized"):
            if getattr(self, name) != getattr(usual, name):
                fields[name] = getattr(self, name)
        return fields if len(fields) > 1 else self.content


def read_added_tokens(tokens, control):
    """Reads the argument `added_tokens` of a tokenizer: a tuple of `AddedToken`.

    A token that is there twice, or is one of the special tokens `control`, is a ValueError.
    """
    if isinstance(tokens, str):
        raise ValueError(f"Added tokens are a list of str, got the str {tokens!r}.")
    tokens = tuple(map(AddedToken.read, tokens))
    contents = [token.content for token in tokens]
    twice = sorted({content for content in contents if contents.count(content) > 1})
    if twice:
        raise ValueError(f"Added tokens must be distinct, got {twice[:5]} more than once.")
    wrong = [content for content in contents if content in control]
    if wrong:
        raise ValueError(
            f"No text may hold a special token of the tokenizer, got the added tokens {wrong}. "
            "Leave them out."
        )
    return tokens


def check_ids(tokens, ids):
    """Raises a ValueError if an added token has another id than a file gives it."""
    for token in tokens if ids else ():
        if token.id not in (None, ids[token.content]):
            raise ValueError(
                f"The added token {token.content!r} has the id {token.id}, but its place is "
                f"{ids[token.content]}: the ids of added tokens follow those of the vocabulary. "
                "Use the tokenizer files that came with the weights."
            )


def add_tokens(fast, tokens):
    """Adds `AddedToken`s to a tokenizer of the library `tokenizers`, in their order."""
    from tokenizers import AddedToken as RustToken

    for token in tokens:
        add = fast.add_special_tokens if token.special else fast.add_tokens
        add([RustToken(**token.flags())])


class EagerAddedTokens:
    """An eager engine for texts with added tokens. Several threads may call one engine.

    The Rust library finds the tokens, and another engine tokenizes the text between them. `ids` is
    a dict of content -> id, and the normalizer is of the library `tokenizers`, or None.
    """

    def __init__(self, engine, tokens, ids, normalizer):
        from tokenizers import Tokenizer
        from tokenizers.models import WordLevel

        self._engine = engine
        self._finder = Tokenizer(WordLevel({_TEXT: 0}, unk_token=_TEXT))
        # Most texts have no marker, which is found out much faster than by the library.
        self._verbatim = None
        if not any(token.normalized for token in tokens):
            self._verbatim = re.compile("|".join(re.escape(token.content) for token in tokens))
        elif normalizer is not None:
            self._finder.normalizer = normalizer
        add_tokens(self._finder, tokens)
        numbers = {self._finder.token_to_id(token.content): token for token in tokens}
        self._ids = {number: ids[token.content] for number, token in numbers.items()}
        self._is_normalized = {number: token.normalized for number, token in numbers.items()}

    def tokenize(self, text):
        """str -> list of int."""
        return self.tokenize_flat([text])[0].tolist()

    def tokenize_flat(self, texts):
        """n str -> (ids of all texts in a row, int32; number of ids of each, int64 of n)."""
        rows = [(text, self._split(text)) for text in map(drop_surrogates, texts)]
        parts = [(text[start:end], id) for text, spans in rows for start, end, id in spans]
        ids, lengths = self._engine.tokenize_flat(
            ["" if id is not None else text for text, id in parts]
        )
        places = [place for place, (_, id) in enumerate(parts) if id is not None]
        if places:
            added = np.array([parts[place][1] for place in places], ids.dtype)
            ids = np.insert(ids, (np.cumsum(lengths) - lengths)[places], added)
            lengths = lengths + np.bincount(places, minlength=len(lengths))
        ends = np.cumsum([len(spans) for _, spans in rows], dtype=np.int64)
        return ids, np.diff(np.append(0, np.cumsum(lengths))[np.append(0, ends)])

    def tokenize_with_offsets(self, text):
        """str -> (ids, offsets, word_starts), as `TextTokenizer.tokenize_with_offsets`."""
        clean, places = place_characters(text)
        places.append(len(text))
        ids, offsets, word_starts = [], [], []
        for first, last, id in self._split(clean):
            if id is None:
                found = self._engine.tokenize_with_offsets(clean[first:last])
            else:
                found = [id], [(0, last - first)], [True]
            ids += found[0]
            offsets += [(places[first + start], places[first + end]) for start, end in found[1]]
            word_starts += found[2]
        return ids, offsets, word_starts

    def _split(self, text):
        """str -> list of (start, end, id of a token or None for text).

        Spaces that a token takes are left out.
        """
        if self._verbatim is not None and not self._verbatim.search(text):
            return [(0, len(text), None)]
        encoding = self._finder.encode(text, add_special_tokens=False)
        found = list(zip(encoding.ids, encoding.offsets, strict=True))
        # The library may leave out the marks of the last character of a part.
        ends = [*(start for _, (start, _) in found[1:]), len(text)][: len(found)]
        spans = []
        for (number, (start, end)), after in zip(found, ends, strict=True):
            if number == 0:
                spans.append((start, after, None))
                continue
            # Deleted characters belong to the token before them.
            end = after if self._is_normalized[number] else end
            content = text[start:end]
            first = start + len(content) - len(content.lstrip(WHITE_SPACE))
            last = end - len(content) + len(content.rstrip(WHITE_SPACE))
            spans.append((*((first, last) if first < last else (start, end)), self._ids[number]))
        return spans
