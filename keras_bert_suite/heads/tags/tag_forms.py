"""Splits tags into a letter and a type, in the forms in which public files write them.

| form | an entity of two words |
| --- | --- |
| prefix | B-PER I-PER |
| suffix, seqeval's `suffix=True` | PER-B PER-I |
| with another sign | B_PER I_PER, PER_B PER_I, B/PER I/PER, B:PER I:PER |
| in lower case | b-per i-per, outside is o |

The letters: see `tag_schemes`. A form is a property of all tags of a file or of a model, because a
single tag such as VITAMIN-E may be a whole type. Tags have another form than the first if there are
two or more tags, and all have this form.

This module needs only the standard library.
"""

import re
import warnings

OUTSIDE = "O"

#: The letters of all schemes.
_LETTERS = "BIMELSU"

#: Labels of special tokens, which some models and files have. They are outside of entities.
_SPECIAL = {"[CLS]", "[SEP]", "[PAD]", "<s>", "</s>", "<pad>", "<PAD>"}

#: The label of further pieces of a word in files of word pieces. In tags of parts of speech it is
#: a class.
_PIECE = "X"

#: The type of a letter without a type.
_NO_KIND = "_"

_NO_FORM = re.compile("(?!)")
_PREFIX = re.compile(rf"(?P<letter>[{_LETTERS}])(-(?P<kind>.*))?", re.DOTALL)

#: The other forms: the letter first or last, and a sign between it and the type.
_PLACES = ("(?P<letter>[{0}]){1}(?P<kind>.+)", "(?P<kind>.+){1}(?P<letter>[{0}])")

#: The letters of a form, and its tag outside of entities beside "O".
_CASES = ((_LETTERS, OUTSIDE), (_LETTERS.lower(), OUTSIDE.lower()))


def split_tags(names):
    """Splits the different tags of a file or of a model by the form that they have in common.

    >>> split_tags(["O", "PER-B", "PER-I"])
    {'O': ('O', None), 'PER-B': ('B', 'PER'), 'PER-I': ('I', 'PER')}

    The letter is one of "BIMELSU", or "O" outside of entities. A tag without a letter, such as
    NOUN, is a type with the letter None. A letter without a type has the type "_".
    """
    names = list(dict.fromkeys(names))
    form, outside = _find_form(names)
    return {name: _split(name, form, outside) for name in names}


def find_strangers(names):
    """Finds tags that are in another form than most tags, or have no type, and how they are read.

    >>> find_strangers(["O", "B-PER", "I_PER", "X"])
    {'I_PER': "the type 'I_PER'", 'X': 'outside of entities'}

    It is empty for tags without letters, such as parts of speech.
    """
    split = split_tags(names)
    read = {name: f"the type {name!r}" for name, (letter, _) in split.items() if letter is None}
    if not any(letter not in (None, OUTSIDE) for letter, _ in split.values()):
        # A single tag, or tags of several forms, may be whole types.
        in_other_form = [
            any(form.fullmatch(name) for form, _ in _list_other_forms([name])) for name in read
        ]
        return read if all(in_other_form) else {}
    # B- beside B-PER, and I-O for O, are mistakes of a file.
    kinds = {kind for letter, kind in split.values() if letter not in (None, OUTSIDE)}
    if any(len(kind) > 1 for kind in kinds):
        for name, (_, kind) in split.items():
            if kind in (OUTSIDE, _NO_KIND):
                read[name] = f"the type {kind!r}"
    return read | {name: "outside of entities" for name in split if name == _PIECE}


def warn_of_strangers(names, where):
    """Warns once of tags in another form than most tags. `where` says whose tags they are."""
    strangers = find_strangers(names)
    if strangers:
        read = ", ".join(f"{name!r} as {meaning}" for name, meaning in sorted(strangers.items()))
        warnings.warn(
            f"{where}: some tags are in another form than most, and are read so: {read}. Write "
            "all tags in one form, such as B-PER and I-PER, and O outside of entities.",
            stacklevel=3,
        )


def _find_form(names):
    """(the pattern of the tags, the tags outside of entities)."""
    outside = {OUTSIDE, *_SPECIAL}
    tags = [name for name in names if name not in outside]
    first_form = [name for name in tags if _PREFIX.fullmatch(name)]
    # Entities have a B, an I or an S, and E-mail is a type.
    has_types = any("-" in name and name[0] in "BISU" for name in first_form)
    if has_types or (first_form and {*tags} <= {*first_form, _PIECE}):
        return _PREFIX, outside | {_PIECE}
    for form, lone in _list_other_forms(tags):
        inside = [name for name in tags if name not in (lone, _PIECE)]
        if len(inside) > 1 and all(map(form.fullmatch, inside)):
            return form, outside | {lone, _PIECE}
    return _NO_FORM, outside


def _list_other_forms(tags):
    """The forms beside the first that a tag may be in: patterns, and what is outside beside "O"."""
    forms = {}
    for letters, outside in _CASES:
        for tag in tags:
            for place, sign in zip(_PLACES, (tag[1:2], tag[-2:-1]), strict=True):
                if sign and not sign.isalnum() and not sign.isspace():
                    forms[re.compile(place.format(letters, re.escape(sign)), re.DOTALL)] = outside
    return forms.items()


def _split(name, form, outside):
    if name in outside:
        return OUTSIDE, None
    match = form.fullmatch(name)
    if match is None:
        return None, name
    return match["letter"].upper(), match["kind"] or _NO_KIND
