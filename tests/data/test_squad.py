import copy
import json
from pathlib import Path

import pytest

from keras_bert_suite.data.squad import (
    has_unanswerable,
    read_squad,
    write_null_odds,
    write_predictions,
)
from keras_bert_suite.tasks.answers import Answer

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
    assert read.questions == ["Who?", "Where?", "Où ?"]
    assert read.contexts == [CONTEXT, CONTEXT, "Nîmes"]
    assert read.answers == [
        {"text": ["Ada Lovelace", "Ada"], "answer_start": [0, 31]},
        {"text": [], "answer_start": []},
        {"text": ["mes"], "answer_start": [2]},
    ]
    assert has_unanswerable(read.answers) and not has_unanswerable(read.answers[::2])
    first = read_squad(tmp_path / "train.json", limit=1)
    assert (first.ids, first.answers) == (["1"], read.answers[:1])
    assert (first.questions, first.contexts) == (["Who?"], [CONTEXT])


def test_questions_without_answers(tmp_path):
    content = copy.deepcopy(CONTENT)
    for entry in content["data"][0]["paragraphs"][0]["qas"]:
        del entry["answers"]
    path = write(tmp_path / "test.json", content)
    assert read_squad(path, labelled=False).answers is None
    with pytest.raises(ValueError, match=r"question 1 \(1\): wanted a list at 'answers', which is"):
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
PLACE = r"train.json, article 1 \('Ada'\), paragraph 1"


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ((*QAS, 0, "answers", 0, "answer_start"), 1, PLACE + r", question 1 \(1\): the answer "
         "'Ada Lovelace' is not at character 1, where 'da Lovelace ' stands. .* has it at 0"),
        ((*QAS, 0, "answers", 1, "text"), "Bob", "'Bob' is not at .* nowhere in the context"),
        ((*QAS, 0, "answers", 1, "answer_start"), 99, "character 99, where '' stands. .* "
         "has it at 0: correct"),
        ((*QAS, 0, "answers", 1, "text"), "", "an answer is the empty string"),
        ((*QAS, 0, "answers", 1, "answer_start"), "0", "an integer at 'answer_start', got '0'"),
        ((*QAS, 1, "id"), "1", PLACE + r", question 2 \(1\) has the same id as .* question 1"),
        (("data", 1, "paragraphs", 0, "qas", 0, "id"), "1", "article 2, paragraph 1, .* same id"),
        ((*QAS, 1, "is_impossible"), False, r'question 2 \(2\) has no answers. .*"is_impossible'),
        ((*QAS, 0, "is_impossible"), True, "marked is_impossible and has 2 answers"),
        ((*QAS, 0, "question"), None, PLACE + ", question 1: wanted a string at 'question'"),
        (("data", 0, "paragraphs", 0, "context"), 7, PLACE + ": wanted a string at 'context'"),
        (("data", 0, "paragraphs"), None, r"article 1 \('Ada'\): wanted a list at 'paragraphs'"),
        (("data", 0), "x", "article 1: wanted a list at 'paragraphs'"),
        (("data",), [], "train.json holds no questions"),
        (("data",), {}, "train.json: wanted a list at 'data', got '{}'. The form of SQuAD"),
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
    with pytest.raises(ValueError, match="wanted a list at 'data'"):
        read_squad(tmp_path / "c.json")
    with pytest.raises(FileNotFoundError):
        read_squad(tmp_path / "d.json")


def test_files_of_answers(tmp_path):
    answers = [Answer("Ada", 0, 3, 0.5, -1.5), Answer("", -1, -1, 0.5, 2.0)]
    write_predictions(tmp_path / "predictions.json", ["1", "2"], answers)
    write_null_odds(tmp_path / "null_odds.json", ["1", "2"], answers)
    read = [json.loads(Path(tmp_path, name).read_text("utf-8")) for name in
            ("predictions.json", "null_odds.json")]  # fmt: skip
    assert read == [{"1": "Ada", "2": ""}, {"1": -1.5, "2": 2.0}]
    with pytest.raises(ValueError, match="2 answers have 1 different ids"):
        write_predictions(tmp_path / "p.json", ["1", "1"], ["a", "b"])
