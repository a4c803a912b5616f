"""Reads the files of SemEval 2010 task 8: sentences with two marked entities, and their relation.

Source: Hendrickx et al., 2010 (https://aclanthology.org/S10-1006).
"""

import os
import re

from keras_bert_suite.data.readers.examples import Examples
from keras_bert_suite.data.readers.text_files import read_text, split_lines

#: The line of a sentence: its number, a tab or spaces, and the sentence in quotation marks.
SENTENCE = re.compile(r'(\d+)\s+"(.*)"')


def read_semeval(
    path: str | os.PathLike[str], labelled: bool = True, encoding: str = "utf-8"
) -> Examples:
    """Reads sentences in which `<e1>...</e1>` and `<e2>...</e2>` mark two entities.

    A sentence is a line with its number and the sentence in quotation marks. The next line is its
    relation, such as `Cause-Effect(e1,e2)` or `Other`. A line that begins with "Comment:" and blank
    lines are left out.

    Args:
        path: str or path, such as TRAIN_FILE.TXT or TEST_FILE_FULL.TXT.
        labelled: bool, whether to read the relations. TEST_FILE.TXT has none.
        encoding: str, the encoding of the file.

    Returns:
        `Examples` of at least one sentence, for `RelationClassifier`. `x`: the sentences, with
        their markers. `y`: the relations. `label_names`: the relations, sorted. `ids`: the numbers.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if a line is no sentence, or a sentence has no relation, naming the line; or if
            there are no sentences.
    """
    rows: list[tuple[int, str, str]] = []
    relations: dict[int, str] = {}
    for number, line in enumerate(map(str.strip, split_lines(read_text(path, encoding))), 1):
        if not line or line.startswith("Comment:"):
            continue
        if sentence := SENTENCE.fullmatch(line):
            rows.append((number, sentence[1], sentence[2]))
        elif len(rows) - 1 in relations or not rows or re.match(r"\d+\s", line):
            raise ValueError(
                f"{path}, line {number}: got {line[:60]!r}, wanted a number, a tab and a sentence "
                'in quotation marks, such as 1\\t"The <e1>child</e1> was in the <e2>cradle</e2>.". '
                "Correct the line, or read a table of texts and labels with read_table."
            )
        else:
            relations[len(rows) - 1] = line
    if not rows:
        raise ValueError(f"{path} has no sentences, wanted the format of SemEval 2010 task 8.")
    lines, ids, x = map(list, zip(*rows, strict=True))
    if not labelled:
        return Examples(str(path), x, lines=lines, ids=ids)
    missing = [line for row, line in enumerate(lines) if row not in relations]
    if missing:
        raise ValueError(
            f"{path}, line {missing[0]}: the sentence has no relation in the line after it. Read "
            "TEST_FILE_FULL.TXT, or the sentences alone with labelled=False."
        )
    y = list(relations.values())
    return Examples(str(path), x, y, sorted(set(y)), lines, ids)
