"""Learns from rows of words how a corpus cuts texts, for `WordCutting`."""

import collections
import functools
import itertools

from keras_bert_suite.heads.tags.word_parts import (
    ATTACHED,
    BLANK,
    CLASSES,
    IDEOGRAPH,
    NEGATION,
    find_alone,
    find_kinds,
    find_marks,
    list_keys,
    list_segments,
)
from keras_bert_suite.tokenizers.joining import CLOSING
from keras_bert_suite.tokenizers.text_inputs import decode_text

#: A mark within a word stood beside its letters. A mark that is a word may have stood between
#: spaces, so it says less of texts without them.
CERTAIN = 10

#: The share of words not found in texts that is worth a warning.
NOTABLE = 0.01


def learn_cutting(rows):
    """The arguments of the `WordCutting` of rows, lists of str. Rows that are texts do not count.

    Rows do not say where the text had spaces. A comma had none before it and one behind it. Another
    mark that is a word may have stood close to the words beside it, or apart from them, and counts
    for both.
    """
    rows = [[part for word in row for part in clean(word)] for row in rows if _is_list(row)]
    characters = _find_characters(rows)
    alone = find_alone(characters)
    counts = collections.Counter(word.lower() for row in rows for word in row if "t" in word[-1:])
    negation_apart = sum(n for w, n in counts.items() if NEGATION.fullmatch(w)) > sum(
        n for w, n in counts.items() if len(w) > 3 and NEGATION.fullmatch(w[-3:])
    )
    rules = _learn_rules(_gather(rows, alone), alone)
    return {"characters": characters, "rules": rules, "negation_apart": negation_apart}


@functools.lru_cache(1 << 16)
def clean(word):
    """The parts of a word between white space, tuple of str, without attached characters."""
    word = decode_text(word)
    kept = zip(word, find_kinds(word), strict=True)
    return tuple("".join(" " if k == BLANK else c for c, k in kept if k != ATTACHED).split())


def _is_list(row):
    return not isinstance(row, (str, bytes))


def _find_characters(rows):
    """The names of the classes whose characters are words."""
    counts = collections.Counter(word for row in rows for word in row)
    single = {word: find_kinds(word)[0] for word in counts if len(word) == 1}
    apart, together = collections.Counter(), collections.Counter()
    for word in counts.keys() - single.keys():
        kinds = find_kinds(word)
        for before, kind in zip(kinds, kinds[1:], strict=False):
            together[kind] += counts[word] * (kind == before)
    for row in rows:
        kinds = [single.get(word) for word in row]
        for before, kind in zip(kinds, kinds[1:], strict=False):
            apart[kind] += kind == before
    are_single = len(single) == len(counts) and IDEOGRAPH in single.values()
    return [
        name
        for name, (kind, *_) in CLASSES.items()
        if apart[kind] > together[kind] or (are_single and not together[kind])
    ]


def _gather(rows, alone):
    """dict of (left, marks, right) -> Counter of the ways in which the marks are cut.

    A way is (cuts, whether it is known that the marks stood beside these words).
    """

    @functools.cache
    def read(word):
        """(the first and the last part of a word, "" for punctuation; its marks)."""
        segments = list_segments(word, alone, runs=True)
        first, last = (
            "" if is_mark else word[start:end]
            for start, end, is_mark in (segments[0], segments[-1])
        )
        marks = [
            (word[slice(*left)], word[start:end], word[slice(*right)], start == 0, end == len(word))
            for left, (start, end, _), right in find_marks(segments)
        ]
        return first, last, marks

    evidence = collections.defaultdict(collections.Counter)
    for row in rows:
        for number, word in enumerate(row):
            for left, marks, right, begins, ends in read(word)[2]:
                cuts = [
                    "|" if begins or _is_ideograph(left[-1:]) else "+",
                    *"+" * (len(marks) - 1),
                    "|" if ends or _is_ideograph(right[:1]) else "+",
                ]
                lefts, rights = {left: True}, {right: True}
                if begins:
                    before = read(row[number - 1])[1] if number else ""
                    lefts = {"": False, before: _closes(marks)}
                if ends:
                    after = read(row[number + 1])[0] if number + 1 < len(row) else ""
                    rights = {"": True} if _closes(marks) else {"": False, after: False}
                for left, left_known in lefts.items():
                    for right, right_known in rights.items():
                        is_known = left_known and right_known
                        evidence[left, marks, right]["".join(cuts), is_known] += 1
    return evidence


def _closes(marks):
    """Whether marks are written close to the word before them, and apart from the word behind."""
    return not marks.strip(CLOSING)


def _is_ideograph(character):
    return find_kinds(character) == [IDEOGRAPH]


def _learn_rules(evidence, alone):
    """The rules for the evidence that no more general rule explains."""
    found = {where: _cut_by_default(*where, alone) for where in evidence}
    groups = [collections.defaultdict(list) for _ in range(4)]
    for where in evidence:
        for group, key in zip(groups, list_keys(*where), strict=True):
            group[key].append(where)
    exact, by_left, by_right, general = groups

    rules = {}
    for key, places in general.items():
        scores = _count_neighbours(places, evidence)
        best = _find_best(scores)
        if scores[best] > scores[found[places[0]]]:
            rules[key] = best
            found.update(dict.fromkeys(places, best))

    # What explains most comes first: `'s` before each name that it follows, `l'` before each noun.
    taken = set()
    keys = [(key, part) for part in (by_left, by_right) for key in part if key not in general]
    keys.sort(key=lambda item: (-_gain(item[1][item[0]], evidence, found)[0], len(item[0])))
    for key, part in [*keys, *((key, exact) for key in exact)]:
        # Of two rules, the rule of the left word wins.
        places = [place for place in part[key] if part is not by_right or place not in taken]
        gain, best = _gain(places, evidence, found)
        if gain > 0 and key not in rules:
            rules[key] = best
            found.update(dict.fromkeys(places, best))
            if part is by_left:
                taken.update(places)
    return rules


def _gain(places, evidence, found):
    """(how much more of the evidence one rule for all places explains, its cuts)."""
    scores = _count(places, evidence)
    best = _find_best(scores)
    return scores[best] - sum(_count([place], evidence)[found[place]] for place in places), best


def _find_best(scores):
    """The cuts with the highest score; of equal scores, the most cuts."""
    return max(scores, key=lambda cuts: (scores[cuts], -cuts.count("+"), cuts), default="")


def _cut_by_default(left, marks, right, alone):
    """The cuts of marks without a rule."""
    before, *inner, after = (
        [alone[kind] for kind in find_kinds(part)] or [True]
        for part in (left[-1:], *marks, right[:1])
    )
    stand = [*before, *(flag for part in inner for flag in part), *after]
    return "".join("|" if a or b else "+" for a, b in zip(stand, stand[1:], strict=False))


def _count(places, evidence):
    """Counter of cuts, how often each is seen."""
    counts = collections.Counter()
    for place in places:
        for (cuts, is_known), number in evidence[place].items():
            counts[cuts] += number * (CERTAIN if is_known else 1)
    return counts


def _count_neighbours(places, evidence):
    """Counter of cuts, beside how many different words each is seen, on the poorer side.

    A rule for all words must hold for new ones. `'s` follows thousands of names, but all of it is
    one word on the right. `O'Neill` is rare, but `O'` and `D'` stand before many.
    """
    sides = collections.defaultdict(lambda: (set(), set()))
    totals = collections.Counter()
    for left, marks, right in places:
        for way, number in evidence[left, marks, right].items():
            sides[way][0].add(left)
            sides[way][1].add(right)
            totals[way] += number
    counts = collections.Counter()
    for way, words in sides.items():
        sizes = [len(side) for side in words if side != {""}]
        counts[way[0]] += min(sizes, default=totals[way]) * (CERTAIN if way[1] else 1)
    return counts


def describe_cutting(cutting, rows, is_new):
    """A hint about the words of texts after a `fit` on rows of words, str or None.

    `is_new` says whether the `WordCutting` was learned from these rows.
    """
    counts = collections.Counter(part for row in rows for word in row for part in clean(word))
    torn, share = _find_torn(cutting, counts)
    said = _describe_new(cutting, counts, set(torn)) if is_new else []
    if share > NOTABLE:
        anew = "."
        if not is_new and _find_torn(type(cutting).learn(rows), counts)[1] < share:
            anew = ", or set `task.word_cutting = None` before `fit` to learn anew."
        said.append(
            f"{share:.0%} of the words of these rows are cut otherwise in a text, such as "
            f"{', '.join(torn[:3])}. For them, pass `predict` lists of words{anew}"
        )
    return " ".join(said) or None


def _describe_new(cutting, counts, torn):
    plain, said = type(cutting)(), []
    if cutting.characters:
        said.append(f"each of the {' and '.join(cutting.characters)} is a word")
    whole = (word for word, _ in counts.most_common() if word not in torn)
    kept = [*itertools.islice((word for word in whole if plain.split(word) != [word]), 3)]
    if kept:
        said.append(f"words such as {', '.join(kept)} stay whole")
    return [f"Texts will be cut into words as these rows are: {'; '.join(said)}."] if said else []


def _find_torn(cutting, counts):
    """(words that are not found in a text, the frequent ones first; their share of all words)."""
    torn = [word for word, _ in counts.most_common() if cutting.split(word) != [word]]
    return torn, sum(counts[word] for word in torn) / max(counts.total(), 1)
