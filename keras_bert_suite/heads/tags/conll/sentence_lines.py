"""Reads files with a sentence in each line, its words before its tags."""

#: The separator of the words and the tags of a line.
_BETWEEN = ("\t", "|||")

#: The separator of words, and of tags, in files of PaddleNLP.
_MARK = "\x02"


def read_sentence_lines(lines, faults):
    """Splits lines such as `Ada lives here<TAB>B-PER O O` into words with a tag each.

    Between the words and the tags is a tab or `|||`. Between words, and between tags, are spaces or
    the character U+0002. The words may also be the characters of a text.

    Args:
        lines: list of `(line number, line)`, without blank lines.
        faults: `RowFaults`, for lines with another number of words than of tags.

    Returns:
        list of sentences, lists of `(line number, [word, tag])`; None if most lines have a single
        tag, so that a line is a word.
    """
    between = next((mark for mark in _BETWEEN if lines and _divides(mark, lines)), None)
    if between is None:
        return None
    rows = [(number, *line.split(between)) for number, line in lines]
    mark = _MARK if any(_MARK in tags for _, _, tags in rows) else " "
    rows = [(number, text, _split(tags, mark)) for number, text, tags in rows]
    if 2 * sum(len(tags) > 1 for _, _, tags in rows) < len(rows):
        return None
    long = [(text, len(tags)) for _, text, tags in rows if len(tags) > 1]
    split = max(_SPLITS, key=lambda split: sum(len(split(text, mark)) == n for text, n in long))
    sentences = []
    for number, text, tags in rows:
        words = split(text, mark)
        if len(words) != len(tags):
            faults.add_line(
                number,
                "another number of words than of tags",
                f"got {len(words)} words and {len(tags)} tags",
                f"Other lines have {_SPLITS[split]}, and then a tag for each. Correct the line.",
            )
            continue
        sentences.append([(number, list(pair)) for pair in zip(words, tags, strict=True)])
    return sentences


def _divides(between, lines):
    return all(line.count(between) == 1 for _, line in lines)


def _split(text, mark):
    return [word for word in text.split(mark) if word or mark == _MARK]


#: How the words of a line may be written.
_SPLITS = {
    _split: "words with spaces between",
    lambda text, mark: list(text): "a text, whose words are its characters",
    lambda text, mark: list(text.strip(" ")): "a text, whose words are its characters",
}
