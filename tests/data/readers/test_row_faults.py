"""Rows that cannot be read: one message, or left out. The oracle is the file without them."""

import dataclasses
import json

import pytest

import keras_bert_suite as kbs

CLASSES, SETS, TAGS = (
    "single_label_classification",
    "multi_label_classification",
    "token_classification",
)
HEAD = "text\tlabel\n"
SWAG = "sent1,sent2,ending0,ending1,ending2,ending3,label\n"


def read_features(path, text, **options):
    return kbs.read_table(path, text, features={"label": "number"}, **options)


#: (reader, arguments, name of the file, lines before the rows, rows, numbers of the faulty rows,
#: parts of the message). A row is a text of whole lines.
CASES = {
    "table": (
        *(kbs.read_table, ("text", "label"), "a.tsv", [HEAD]),
        ["a\tx\n", "\tx\n", "b\t\n", " \t\n", "c\n", "\n", HEAD, "d\ty\n"],
        [1, 2, 3, 4, 5, 6],
        [
            "line 3: the text in the column 'text' is missing, also in line 5;",
            "line 4: the label in the column 'label' is missing, also in line 5",
            *("line 6: wanted", "line 8: the line of names"),
            "6 of 8 rows have such faults. Correct it.",
        ],
    ),
    "records": (
        *(kbs.read_table, ("text", "label"), "a.jsonl", []),
        ['{"text": "a", "label": 1}\n', '["a"]\n', "{\n", '{"text": {}, "label": 1}\n',
         '{"text": "b"}\n'],
        [1, 2, 3, 4],
        ["line 2: wanted", "line 3: Expecting", "line 4: the value of 'text': dict", "line 5: "],
    ),
    "numbers": (
        *(kbs.read_table, ("text", "label", "regression"), "a.tsv", [HEAD]),
        *(["a\t1\n", "b\tx\n", "\tnan\n"], [1, 2]),
        ["line 4: the text", "line 3: the label in the column 'label' is 'x'", "is 'nan'"],
    ),
    "features": (
        *(read_features, ("text",), "a.tsv", [HEAD]),
        *(["a\t1\n", "b\tx\n", "c\t\n", "d\tinf\n"], [1, 3]),
        ["line 3: the feature 'label' is a number, got 'x'", "line 5: the feature"],
    ),
    "sets": (
        *(kbs.read_table, ("text", "label", SETS), "a.tsv", [HEAD]),
        *(["a\tx, y\n", "b\t['x', 'y\"]\n", "c\t[0, 0, 1]\n", "d\t[0, 0]\n", "e\t\n"], [1, 2, 3]),
        ["line 3: the labels .* seem to be a list", r"line 4: the labels are \['0'", "line 5"],
    ),
    "tags": (
        *(kbs.read_table, ("text", "label", TAGS), "a.tsv", [HEAD]),
        *(["['a']\t['O']\n", "b\t['O']\n", "['a']\tO\n", "['a']\t['O', 'O']\n"], [1, 2, 3]),
        ["line 3: the words", "line 4: the tags", "line 5: got 1 words and 2 tags"],
    ),
    "rankings": (
        *(kbs.read_rankings, (), "a.tsv", ["query\ttext\tlabel\n"]),
        *(["a\tb\t1\n", "a\tc\t-1\n"], [1]),
        ["line 3: the label is -1, wanted a relevance"],
    ),
    "swag": (
        *(kbs.read_swag, (), "a.csv", [SWAG]),
        *(["a,b,c,d,e,f,0\n", "a,b,c,d,e,f,4\n", "a,b,c\n"], [1, 2]),
        ["line 3: the label is '4'", "line 4: wanted the 7 fields"],
    ),
    "semeval": (
        *(kbs.read_semeval, (), "a.txt", []),
        ['1\t"a"\nOther\n', "2 b\nOther\n", '3\t"c"\n', "4\td\nOther\n", '5\t"e"\nOther\n'],
        [1, 2, 3],
        ["line 3: got '2 b'", "line 6: got", "line 5: the sentence has no relation"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_all_faults_are_named_or_left_out(tmp_path, case):
    reader, arguments, name, head, rows, faulty, parts = CASES[case]
    path = tmp_path / name
    path.write_text("".join([*head, *rows]))
    with pytest.raises(ValueError, match="errors=.skip., on the command line") as raised:
        reader(path, *arguments)
    for part in parts:
        assert raised.match(part)
    read = reader(path, *arguments, errors="skip")
    left_out = [line for lines in read.left_out.values() for line in lines]
    counts = [len(head) + sum(row.count("\n") for row in rows[:place]) for place in faulty]
    assert sorted(left_out) == [count + 1 for count in counts]
    path.write_text("".join([*head, *(row for i, row in enumerate(rows) if i not in faulty)]))
    whole = reader(path, *arguments)
    assert dataclasses.replace(read, lines=None, left_out={}) == dataclasses.replace(
        whole, lines=None
    )
    path.write_text("".join([*head, *(rows[place] for place in faulty)]))
    with pytest.raises(ValueError, match="No other row is left"):
        reader(path, *arguments, errors="skip")


def test_a_dev_file_with_the_labels_of_its_training(tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_text(f"{HEAD}a\tgood\nb\tBad\n\tbad\nd\tgood\n")
    names = ["good", "bad", "soso"]
    with pytest.raises(ValueError, match="line 3: the label .* is Bad, which is none of good, bad"):
        kbs.read_table(path, "text", "label", label_names=names)
    read = kbs.read_table(path, "text", "label", label_names=names, errors="skip")
    assert (read.x, read.y, read.label_names) == (["a", "d"], ["good", "good"], names)
    rows = [{"text": "a", "label": [1, 0, 1]}, {"text": "b", "label": [0, 0, 1]}]
    bits = kbs.read_rows(rows, "text", "label", SETS)
    assert kbs.read_rows(rows, "text", "label", SETS, label_names=bits.label_names) == bits
    rows = json.loads(json.dumps(rows).replace("1", '"x"').replace("0", '"y"'))
    with pytest.raises(ValueError, match="row 0: the label .* is x, which is none of y"):
        kbs.read_rows(rows, "text", "label", SETS, label_names=["y"])
    with pytest.raises(ValueError, match="label_names are for a label_column of classes"):
        kbs.read_table(path, "text", "label", "regression", label_names=names)
    with pytest.raises(ValueError, match="errors must be 'raise' or 'skip', got 'ignore'"):
        kbs.read_table(path, "text", "label", errors="ignore")
