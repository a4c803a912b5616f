"""Puts examples into groups, whose scores a picture shows side by side."""

import bisect
import collections
import statistics

#: The most characters of the name of a group.
LONGEST_NAME = 20


def group_by_first_word(texts, most=8):
    """Groups texts by their first word, in lower case.

    Args:
        texts: list of N str.
        most: int, the maximum number of groups. The last one is then "other".

    Returns:
        dict of the name of a group -> list of rows, the largest group first and "other" last.
    """
    # Without spaces, as in Chinese, the first word is the whole text.
    words = [(text.lower().split() or [""])[0][:LONGEST_NAME] for text in texts]
    counts = collections.Counter(words).most_common()
    kept = [word for word, _ in counts[: most if len(counts) <= most else most - 1]]
    groups = {word: [] for word in kept}
    for row, word in enumerate(words):
        groups.setdefault(word if word in kept else "other", []).append(row)
    return groups


def group_by_number(numbers, ends, style="{:,.0f}"):
    """Groups examples by a number, such as the length of a text.

    Args:
        numbers: list of N int or float.
        ends: list of numbers, ascending: the greatest number of each group. The last one is not
            less than any number.
        style: str, the format of an end in the name of a group.

    Returns:
        dict of the name of a group -> list of rows, without empty groups.
    """
    groups = {f"up to {style.format(end)}": [] for end in ends}
    names = list(groups)
    for row, number in enumerate(numbers):
        groups[names[bisect.bisect_left(ends, number)]].append(row)
    return {name: rows for name, rows in groups.items() if rows}


def group_by_length(texts):
    """Groups texts by the quarters of their numbers of characters, as `group_by_number` does."""
    lengths = [len(text) for text in texts]
    quarters = statistics.quantiles(lengths, n=4) if len(lengths) > 1 else []
    return group_by_number(lengths, sorted({*map(int, quarters), max(lengths)}))
