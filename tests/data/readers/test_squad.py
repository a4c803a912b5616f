import copy
import json

import pytest

from keras_bert_suite import read_squad

CONTEXT = "Ada Lovelace wrote it in 1843. Ada saw far."
CONTENT = {
    "version": "v2.0",
    "data": [
        {
            "title": "Ada",
            "paragraphs": [
                {
                    "context": CONTEXT,
                    "qas": [
                        {
                            "id": "1",
                            "question": "Who?",
                            "answers": [
                                {"text": "Ada Lovelace", "answer_start": 0},
                                {"text": "Ada", "answer_start": 31},
                            ],
                        },
                        {
                            "id": "2",
                            "question": "Where?",
                            "is_impossible": True,
                            "answers": [],
                            "plausible_answers": [{"text": "far", "answer_start": 0}],
                        },
                    ],
                }
            ],
        },
        {
            "paragraphs": [
                {
                    "context": "Nîmes",
                    "qas": [
                        {
                            "id": "3",
                            "question": "Où ?",
                            "answers": [{"text": "mes", "answer_start": 2}],
                        }
                    ],
                }
            ]
        },
    ],
}


def write(path, content):
    path.write_text(json.dumps(content), "utf-8")
    return path


def test_questions_in_their_order(tmp_path):
    read = read_squad(write(tmp_path / "train.json", CONTENT))
    assert len(read) == 3 and read.ids == ["1", "2", "3"]
    assert read.x == (["Who?", "Where?", "Où ?"], [CONTEXT, CONTEXT, "Nîmes"])
    assert read.y == [
        {"text": ["Ada Lovelace", "Ada"], "answer_start": [0, 31]},
        {"text": [], "answer_start": []},
        {"text": ["mes"], "answer_start": [2]},
    ]
    first = read.take(1)
    assert (first.ids, first.x, first.y) == (["1"], (["Who?"], [CONTEXT]), read.y[:1])
    assert read.locate(1) == f"{tmp_path / 'train.json'}, id 2"


def test_questions_without_answers(tmp_path):
    content = copy.deepcopy(CONTENT)
    for entry in content["data"][0]["paragraphs"][0]["qas"]:
        del entry["answers"]
    path = write(tmp_path / "test.json", content)
    assert read_squad(path, labelled=False).y is None
    with pytest.raises(ValueError, match="form at or after question 1: KeyError: 'answers'"):
        read_squad(path)


def change(content, path, value):
    content = copy.deepcopy(content)
    *path, last = path
    record = content
    for key in path:
        record = record[key]
    record[last] = value
    return content


QAS = ("data", 0, "paragraphs", 0, "qas")


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ((*QAS, 0, "answers", 0, "answer_start"), 1, "train.json, question 1: the answer "
         "'Ada Lovelace' is not at character 1 of the context, but at 0"),
        ((*QAS, 0, "answers", 1, "text"), "Bob", "'Bob' is not at .* but at -1"),
        ((*QAS, 0, "answers", 1, "answer_start"), -40, "not at character -40"),
        ((*QAS, 0, "answers", 1, "text"), "", "an answer is the empty string"),
        ((*QAS, 0, "answers", 1, "answer_start"), "0", "SQuAD's form at or after question 1"),
        ((*QAS, 1, "id"), "1", "two questions have the same id"),
        ((*QAS, 1, "is_impossible"), False, 'question 2 has 0 answers. .*"is_impossible'),
        ((*QAS, 0, "is_impossible"), True, "question 1 has 2 answers"),
        ((*QAS, 0, "question"), None, "form at or after question 1: .*must be strings"),
        (("data", 0, "paragraphs", 0, "context"), 7, "must be strings"),
        (("data", 0, "paragraphs"), None, "train.json is not JSON of SQuAD's form: TypeError"),
        (("data", 0), "x", "SQuAD's form: TypeError"),
        (("data",), [], "train.json holds no questions"),
        (("data",), 3, "SQuAD's form: TypeError"),
    ],
)  # fmt: skip
def test_wrong_files(path, value, error, tmp_path):
    with pytest.raises(ValueError, match=error):
        read_squad(write(tmp_path / "train.json", change(CONTENT, path, value)))


def test_files_that_are_not_json(tmp_path):
    (tmp_path / "a.json").write_text('{\n  "data": [,]}')
    with pytest.raises(ValueError, match="a.json is not JSON of SQuAD's form: .* line 2 column 12"):
        read_squad(tmp_path / "a.json")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="b.json is not JSON of SQuAD's form: .*utf-8.* 0xff"):
        read_squad(tmp_path / "b.json")
    (tmp_path / "c.json").write_text("[]")
    with pytest.raises(ValueError, match="SQuAD's form: TypeError"):
        read_squad(tmp_path / "c.json")
    with pytest.raises(FileNotFoundError):
        read_squad(tmp_path / "d.json")
