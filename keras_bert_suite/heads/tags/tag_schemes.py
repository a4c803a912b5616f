"""Reads entities from tags on words, in any of the usual schemes, and writes them as tags.

| scheme | an entity of three words | an entity of one word |
| --- | --- | --- |
| IOB1 | I-PER I-PER I-PER; B-PER where an entity of the same type ends just before | I-PER |
| BIO (IOB2) | B-PER I-PER I-PER | B-PER |
| BIOES (BILOU) | B-PER I-PER E-PER (L) | S-PER (U) |
| BMES | B-PER M-PER E-PER | S-PER |

One rule reads all schemes, the rule of conlleval.pl and of seqeval, so nobody has to name the
scheme. Neighbouring words with the same label without a prefix, such as a part of speech, are one
entity.

The letters may also stand in other places, see `tag_forms`. This module needs only the standard
library.
"""

from keras_bert_suite.heads.tags.tag_forms import OUTSIDE, split_tags

SCHEMES = ("IOB1", "BIO", "BIOES", "BMES")

#: The letters of all schemes, and their letters in BIOES. A tag without a letter continues an
#: entity of the same type.
_BIOES = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S", "O": "O", None: "I"}


def parse_tags(names):
    """Splits tags into their letter, one of "B", "I", "E", "S" and "O", and their type.

    >>> parse_tags(["M-ORG", "O"]), parse_tags(["NOUN"])
    ({'M-ORG': ('I', 'ORG'), 'O': ('O', None)}, {'NOUN': ('I', 'NOUN')})

    All tags of a file or of a model say in which form they are, see `split_tags`.
    """
    return {name: (_BIOES[letter], kind) for name, (letter, kind) in split_tags(names).items()}


def starts_entity(before, tag):
    """Whether an entity begins at `tag`, which follows `before`. Both are parsed tags."""
    return tag[0] != OUTSIDE and (tag[0] in "BS" or before[0] in "ESO" or before[1] != tag[1])


def ends_entity(tag, after):
    """Whether an entity ends at `tag`, which `after` follows. Both are parsed tags."""
    return tag[0] != OUTSIDE and (tag[0] in "ES" or after[0] in "BSO" or after[1] != tag[1])


def entity_tables(label_names):
    """Makes tables that say where entities begin and end, by the ids of two neighbouring labels.

    The id C stands for the beginning or the end of a sentence.

    Returns:
        `(starts, ends, types)`. `starts`: C + 1 lists of C + 1 bools; `starts[a][b]` says whether
        an entity begins at label b after label a. `ends`, of the same size: `ends[a][b]` says
        whether an entity ends at label a before label b. `types`: list of C str, the type of each
        label, "" for labels outside of entities.
    """
    parsed = _parse_labels(label_names)
    starts = [[starts_entity(before, tag) for tag in parsed] for before in parsed]
    ends = [[ends_entity(tag, after) for after in parsed] for tag in parsed]
    return starts, ends, [kind or "" for _, kind in parsed[:-1]]


def find_middle_labels(label_names):
    """Finds the label of a word without a label by the labels beside it.

    >>> find_middle_labels(["O", "B-PER", "I-PER"])[1]
    [0, 0, 2, 0]

    `middle[a][b]` belongs between the labels a and b; the id C is the border of a sentence. If they
    are of one entity, the label continues it. Otherwise it is outside of entities or, if no label
    is, the label a, or b at the beginning.
    """
    names, parsed = list(label_names), _parse_labels(label_names)
    border, outside = len(names), [tag[0] == OUTSIDE for tag in parsed[:-1]]
    continuing = {tag[1]: label for label, tag in enumerate(parsed[:-1]) if tag[0] == "I"}
    if OUTSIDE in names:
        default = names.index(OUTSIDE)
    else:
        default = outside.index(True) if any(outside) else None

    def choose(before, after):
        is_inside = parsed[before][0] != OUTSIDE and not ends_entity(parsed[before], parsed[after])
        if is_inside and parsed[before][1] in continuing:
            return continuing[parsed[before][1]]
        if default is not None:
            return default
        return before if before != border else after % border

    return [[choose(before, after) for after in range(border + 1)] for before in range(border + 1)]


def find_entities(tags, parsed=None):
    """The entities of a sentence, as `(type, first word, word after the last)`.

    >>> find_entities(["B-PER", "I-PER", "O", "I-LOC"])
    [('PER', 0, 2), ('LOC', 3, 4)]

    `parsed` is from `parse_tags` of all tags of the file or model; None takes these tags.
    """
    parsed = parse_tags(tags) if parsed is None else parsed
    outside = (OUTSIDE, None)
    chain = [outside, *(parsed[tag] for tag in tags), outside]
    entities, first = [], 0
    for word, tag in enumerate(chain[1:-1]):
        if starts_entity(chain[word], tag):
            first = word
        if ends_entity(tag, chain[word + 2]):
            entities.append((tag[1], first, word + 1))
    return entities


def find_strict_entities(tags, parsed, scheme):
    """As `find_entities`, without entities that break the rules of a scheme.

    In "BIO" an entity begins with B, and goes on over each I of its type. In "BIOES" and "BMES" it
    is one S, or begins with B, goes on over I (M), and ends with E. Other tags are outside.

    >>> find_strict_entities(["I-PER", "B-LOC", "I-LOC"], parse_tags(["I-PER", "B-LOC", "I-LOC"]),
    ...                      "BIO")
    [('LOC', 1, 3)]
    """
    chain = [*(parsed[tag] for tag in tags), (OUTSIDE, None)]
    entities, first = [], None
    for word, (letter, kind) in enumerate(chain):
        if first is not None:
            before = chain[word - 1][0]
            if letter in "IE" and before in "BI" and kind == chain[first][1]:
                continue
            if scheme == "BIO" or before in "ES":
                entities.append((chain[first][1], first, word))
        first = word if letter in "BS" else None
    return entities


def infer_scheme(label_names):
    """The scheme that the names of labels belong to: "BIO", "BIOES", "BMES", or None.

    Labels with the prefixes B and I alone may also be IOB1. They count as BIO, as labels with the
    prefix B alone do.

    >>> infer_scheme(["O", "B-PER", "I-PER"]), infer_scheme(["NOUN", "VERB"])
    ('BIO', None)
    """
    prefixes = {letter for letter, _ in split_tags(label_names).values()} - {OUTSIDE}
    if "B" in prefixes and prefixes <= {"B", "I"}:
        return "BIO"
    if "B" in prefixes and prefixes <= {*"BMES"} and prefixes & {*"MES"}:
        return "BMES"
    if "B" in prefixes and prefixes <= {*"BIESLU"} and prefixes & {*"ESLU"}:
        return "BIOES"
    return None


def allowed_neighbours(label_names, scheme):
    """Says which label may follow which in a scheme: `allowed[a][b]`, C + 1 lists of C + 1 bools.

    In BIO an I follows a B or an I of its type. In BIOES and BMES an entity that has begun
    continues until its E, and only B, S and O come between entities. The id C is the border of a
    sentence.
    """
    prefixes = {"BIO": "BI", "BIOES": "BIESLU", "BMES": "BMES"}
    if scheme not in prefixes:
        raise ValueError(f"scheme must be one of {', '.join(prefixes)}, got {scheme!r}.")
    letters = {letter for letter, _ in split_tags(label_names).values()} - {OUTSIDE}
    if not letters <= {*prefixes[scheme]} or infer_scheme(label_names) is None:
        raise ValueError(
            f"The labels {list(label_names)[:12]} are not of the scheme {scheme}. Correct "
            "`label_names`, or pass scheme=None, which allows every label after every other."
        )
    parsed = _parse_labels(label_names)

    def may_follow(before, tag):
        goes_on = tag[0] in ("I", "E")
        is_open = before[0] in ("B", "I")
        if scheme == "BIO":
            return not goes_on or (is_open and before[1] == tag[1])
        return goes_on == is_open and (not goes_on or before[1] == tag[1])

    return [[may_follow(before, tag) for tag in parsed] for before in parsed]


def write_tags(entities, num_words, scheme):
    """Writes the entities of a sentence as tags of a scheme, one of `SCHEMES`.

    >>> write_tags([("PER", 0, 2), ("LOC", 3, 4)], 4, "BIOES")
    ['B-PER', 'E-PER', 'O', 'S-LOC']
    """
    if scheme not in SCHEMES:
        raise ValueError(f"scheme must be one of {', '.join(SCHEMES)}, got {scheme!r}.")
    tags = [OUTSIDE] * num_words
    before = (None, 0, 0)
    for kind, first, end in entities:
        prefixes = ["I"] * (end - first)
        if scheme == "BMES":
            prefixes = ["M"] * (end - first)
        touches = before[0] == kind and before[2] == first
        if scheme != "IOB1" or touches:
            prefixes[0] = "B"
        if scheme in ("BIOES", "BMES"):
            prefixes[-1] = "E" if end - first > 1 else "S"
        tags[first:end] = [f"{prefix}-{kind}" for prefix in prefixes]
        before = (kind, first, end)
    return tags


def convert_tags(tags, scheme):
    """Turns the tags of a sentence, or of rows of sentences, into another scheme.

    >>> from keras_bert_suite.heads.tags.tag_schemes import convert_tags
    >>> convert_tags(["I-PER", "I-PER", "O"], "BIO")
    ['B-PER', 'I-PER', 'O']

    Args:
        tags: list of str, or list of lists of str, in any scheme and form.
        scheme: one of `SCHEMES`.

    Returns:
        the same with tags in the form B-PER.
    """
    if len(tags) and not isinstance(tags[0], str):
        parsed = parse_tags({tag for row in tags for tag in row})
        return [write_tags(find_entities(row, parsed), len(row), scheme) for row in tags]
    return write_tags(find_entities(tags), len(tags), scheme)


def detect_scheme(sentences):
    """The scheme in which most sentences are tagged, "BIO" without entities. Data has mistakes.

    >>> detect_scheme([["I-PER", "I-PER", "O"]])
    'IOB1'
    """
    agreeing = find_agreeing(sentences, ("BIO", "IOB1", "BIOES", "BMES"))
    return max(agreeing, key=lambda scheme: sum(agreeing[scheme]))


def find_agreeing(sentences, schemes):
    """Says which sentences are tagged in a scheme, as dict of scheme -> list of bool.

    >>> find_agreeing([["B-PER", "O"], ["S-PER"]], ["BIO", "BIOES"])
    {'BIO': [True, False], 'BIOES': [False, True]}
    """
    split = split_tags({tag for tags in sentences for tag in tags})
    plain = {
        tag: OUTSIDE if letter == OUTSIDE else f"{letter}-{kind}"
        for tag, (letter, kind) in split.items()
    }
    sentences = [[plain[tag] for tag in tags] for tags in sentences]
    return {
        scheme: list(map(list.__eq__, convert_tags(sentences, scheme), sentences))
        for scheme in schemes
    }


def list_tags(sentences):
    """The different tags of sentences, those outside first, then the others sorted by type.

    >>> list_tags([["B-PER", "O"], ["I-PER", "B-LOC"]])
    ['O', 'B-LOC', 'B-PER', 'I-PER']
    """
    split = split_tags({tag for sentence in sentences for tag in sentence})

    def order(tag):
        letter, kind = split[tag]
        return letter != "O", "" if letter in ("O", None) else kind, tag

    return sorted(split, key=order)


def _parse_labels(label_names):
    """list of C + 1 parsed tags; the last stands for the border of a sentence."""
    parsed = parse_tags(label_names)
    return [*(parsed[name] for name in label_names), (OUTSIDE, None)]
