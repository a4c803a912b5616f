"""Reads the files of SemEval 2010 task 8: sentences with two marked entities, and their relation.

Source: Hendrickx et al., 2010 (https://aclanthology.org/S10-1006).
"""

import dataclasses
import os
import re

from keras_bert_suite.data.readers.examples import Examples
from keras_bert_suite.data.readers.row_faults import RowFaults
from keras_bert_suite.data.readers.text_files import read_text, split_lines

#: The line of a sentence: its number, a tab or spaces, and the sentence in quotation marks.
SENTENCE = re.compile(r'(\d+)\s+"(.*)"')

_SENTENCE = (
    "a number, a tab and a sentence in quotation marks, such as "
    '1\\t"The <e1>child</e1> was in the <e2>cradle</e2>."'
)


def read_semeval(
    path: str | os.PathLike[str],
    labelled: bool = True,
    encoding: str = "utf-8",
    errors: str = "raise",
) -> Examples:
    """Reads sentences in which `<e1>...</e1>` and `<e2>...</e2>` mark two entities.

    A sentence is a line with its number and the sentence in quotation marks. The next line is its
    relation, such as `Cause-Effect(e1,e2)` or `Other`. A line that begins with "Comment:" and blank
    lines are left out.

    Args:
        path: str or path, such as TRAIN_FILE.TXT or TEST_FILE_FULL.TXT.
        labelled: bool, whether to read the relations. TEST_FILE.TXT has none.
        encoding: str, the encoding of the file.
        errors: what becomes of lines that are no sentence, and of sentences without a relation, as
            for `read_table`: "raise", or "skip" to leave them out.

    Returns:
        `Examples` of at least one sentence, for `RelationClassifier`. `x`: the sentences, with
        their markers. `y`: the relations. `label_names`: the relations, sorted. `ids`: the numbers.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if lines cannot be read, see `errors`; or if there are no sentences.
    """
    faults = RowFaults(str(path), errors)
    rows: list[tuple[int, str, str]] = []
    relations: dict[int, str] = {}
    follows_fault = False
    for number, line in enumerate(map(str.strip, split_lines(read_text(path, encoding))), 1):
        if not line or line.startswith("Comment:"):
            continue
        if sentence := SENTENCE.fullmatch(line):
            rows.append((number, sentence[1], sentence[2]))
            follows_fault = False
        elif follows_fault and not re.match(r"\d+\s", line):
            continue  # The relation of a line that is no sentence.
        elif len(rows) - 1 in relations or not rows or re.match(r"\d+\s", line):
            faults.add_line(
                *(number, "no sentence", f"got {line[:60]!r}, wanted {_SENTENCE}"),
                "Correct the line, or read a table of texts and labels with read_table.",
            )
            follows_fault = True
        else:
            relations[len(rows) - 1] = line
    if not rows:
        faults.keep([])
        raise ValueError(f"{path} has no sentences, wanted the format of SemEval 2010 task 8.")
    lines, ids, x = map(list, zip(*rows, strict=True))
    examples = Examples(str(path), x, lines=lines, ids=ids)
    if not labelled:
        return faults.leave_out(examples)
    for row in range(len(rows)):
        if row not in relations:
            faults.add(
                *(
                    examples,
                    row,
                    "no relation",
                    "the sentence has no relation in the line after it",
                ),
                "Read TEST_FILE_FULL.TXT, or the sentences alone with labelled=False.",
            )
    y = [relations.get(row) for row in range(len(rows))]
    examples = faults.leave_out(dataclasses.replace(examples, y=y))
    return dataclasses.replace(examples, label_names=sorted(set(examples.y or [])))
