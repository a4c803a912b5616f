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
    with pytest.raises(ValueError, match="question 1: KeyError: 'answers'.* labelled=False"):
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
        ((*QAS, 0, "answers", 1, "answer_start"), "x", "SQuAD's form at or after question 1"),
        ((*QAS, 1, "id"), "1", "two questions have the same id"),
        ((*QAS, 1, "is_impossible"), False, 'question 2 has 0 answers. .*"is_impossible'),
        ((*QAS, 0, "is_impossible"), True, "question 1 has 2 answers"),
        ((*QAS, 0, "question"), None, "form at or after question 1: .*must be strings"),
        (("data", 0, "paragraphs", 0, "context"), 7, "must be strings"),
        (("data", 0, "paragraphs"), None, "train.json is not JSON of SQuAD's form: TypeError"),
        (("data", 0), "x", "SQuAD's form: AttributeError"),
        ((*QAS, 0, "id"), True, "form at or after question True: .*and id a string or a number"),
        ((*QAS, 0, "answers", 1, "answer_start"), 1.5, "form at or after question 1: TypeError"),
        ((*QAS, 0, "answers"), {"text": ["Ada Lovelace", "Ada"], "answer_start": [0]},
         "form at or after question 1: ValueError"),
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
    (tmp_path / "c.json").write_text("[7]")
    with pytest.raises(ValueError, match="SQuAD's form: TypeError"):
        read_squad(tmp_path / "c.json")
    with pytest.raises(FileNotFoundError):
        read_squad(tmp_path / "d.json")


def make_rows(content):
    """The rows of a file of SQuAD as `datasets` has them, written out by its definition."""
    return [
        {
            "id": entry["id"],
            "title": article.get("title", ""),
            "context": paragraph["context"],
            "question": entry["question"],
            "answers": {
                name: [answer[name] for answer in entry["answers"]]
                for name in ("text", "answer_start")
            },
        }
        for article in content["data"]
        for paragraph in article["paragraphs"]
        for entry in paragraph["qas"]
    ]


def test_other_forms_of_the_same_data(tmp_path):
    rows = make_rows(CONTENT)
    paragraphs = [part for article in CONTENT["data"] for part in article["paragraphs"]]
    wanted = read_squad(write(tmp_path / "squad.json", CONTENT))
    one_answer = change(rows, (2, "answers"), {"text": "mes", "answer_start": 2})
    number = change(change(CONTENT, (*QAS, 0, "id"), 1), (*QAS, 1, "id"), 2)
    for content in (rows, {"data": rows}, CONTENT["data"], paragraphs, one_answer, number):
        read = read_squad(write(tmp_path / "rows.json", content))
        assert (read.x, read.y, read.ids) == (wanted.x, wanted.y, wanted.ids)
    for parts in (rows, paragraphs, CONTENT["data"]):
        lines = "\n".join(json.dumps(part, ensure_ascii=False) for part in parts)
        (tmp_path / "rows.jsonl").write_text(lines + "\n\n", "utf-8")
        read = read_squad(tmp_path / "rows.jsonl")
        assert (read.x, read.y, read.ids) == (wanted.x, wanted.y, wanted.ids)
    # A byte order mark, as editors on Windows write it.
    (tmp_path / "mark.json").write_text("\ufeff" + json.dumps(CONTENT), "utf-8")
    assert read_squad(tmp_path / "mark.json").y == wanted.y
    (tmp_path / "one.jsonl").write_text(json.dumps(rows[0]))
    assert read_squad(tmp_path / "one.jsonl").ids == ["1"]
    (tmp_path / "bad.jsonl").write_text(json.dumps(rows[0]) + "\n{")
    with pytest.raises(ValueError, match="SQuAD's form: ValueError: line 2: Expecting property"):
        read_squad(tmp_path / "bad.jsonl")


def test_the_first_form_of_cmrc(tmp_path):
    """As ymcui/cmrc2018 first published it: answers are texts, without their places."""
    document = {
        "context_id": "DEV_0",
        "context_text": "海在南，海在北。",
        "qas": [
            {"query_id": "DEV_0_QUERY_0", "query_text": "在哪？", "answers": ["北", "海在"]},
            {"query_id": "DEV_0_QUERY_1", "query_text": "谁？", "answers": ["海"]},
        ],
        "title": "海",
    }
    read = read_squad(write(tmp_path / "cmrc.json", [document]))
    assert read.x == (["在哪？", "谁？"], [document["context_text"]] * 2)
    assert read.ids == ["DEV_0_QUERY_0", "DEV_0_QUERY_1"]
    assert read.y[0] == {"text": ["北", "海在"], "answer_start": [6, 0]}
    wrong = write(tmp_path / "wrong.json", [change(document, ("qas", 1, "answers"), ["湖"])])
    with pytest.raises(ValueError, match="question DEV_0_QUERY_1: the answer '湖' is not"):
        read_squad(wrong)


TWICE = "the sea and the sea"


@pytest.mark.parametrize(
    ("text", "start", "fixed", "skipped"),
    [
        ("the sea", 0, 0, 0),
        ("the sea", 12, 12, 12),
        ("the sea", 1, 0, -1),
        ("the sea", 11, 12, -1),
        ("the sea", 40, 12, -1),
        ("the sea", -1, 0, -1),
        ("and", 10, 8, -1),
        ("lake", 4, -1, -1),
    ],
)
def test_answers_at_a_wrong_place(tmp_path, text, start, fixed, skipped):
    right = {"text": ["sea"], "answer_start": [4]}
    row = {"id": 7, "context": TWICE, "question": "?", "answers": right}
    wrong = {"text": [text, "sea"], "answer_start": [start, 4]}
    path = write(tmp_path / "rows.json", [row, {**row, "id": 8, "answers": wrong}])
    if fixed == start:
        assert read_squad(path).y[1] == wrong
        return
    with pytest.raises(ValueError, match='question 8: the answer .* errors="fix" or errors="skip"'):
        read_squad(path)
    for errors, place in (("fix", fixed), ("skip", skipped)):
        with pytest.warns(UserWarning, match="of 2 questions 1 with an answer that is"):
            read = read_squad(path, errors=errors)
        assert read.y[1] == {"text": [text, "sea"], "answer_start": [place, 4]}
        reason = "nowhere in its context" if fixed < 0 else "elsewhere in its context"
        assert read.corrected == {f"an answer that is {reason}": ["8"]} and not read.left_out
    # No labels are asked for.
    assert read_squad(path, labelled=False).ids == ["7", "8"]


def test_questions_without_a_right_answer_are_left_out(tmp_path):
    content = change(CONTENT, (*QAS, 0, "answers"), [{"text": "Bob", "answer_start": 0}])
    content = change(content, (*QAS, 1, "is_impossible"), False)
    path = write(tmp_path / "train.json", content)
    with pytest.raises(ValueError, match="question 1: .* 2 of 3 questions have such errors"):
        read_squad(path)
    with pytest.warns(UserWarning, match="of 3 questions 1 with .* left out; 1 with .* left out"):
        read = read_squad(path, errors="fix")
    assert (read.ids, read.x) == (["3"], (["Où ?"], ["Nîmes"]))
    assert sorted(read.left_out.values()) == [["1"], ["2"]]
    with pytest.raises(ValueError, match="errors must be one of raise, fix, skip, got 'ignore'"):
        read_squad(path, errors="ignore")


def test_published_files_with_wrong_answers(shared_data):
    """The number of questions of SQuAD 2.0's extract; all of its answers are at their place."""
    read = read_squad(shared_data / "qa" / "squad_v2_dev_subset_5articles.json", errors="fix")
    assert len(read) == 1407 and not read.corrected and not read.left_out


#: Entries as other programs write them -> those of SQuAD.
SQUAD = {"id": "7", "is_impossible": False, "answers": [{"text": "wrote", "answer_start": 13}]}
NONE = {**SQUAD, "is_impossible": True, "answers": []}
OF_OTHER_HANDS = [
    ({"is_impossible": "false"}, SQUAD),
    ({"is_impossible": "False"}, SQUAD),
    ({"is_impossible": "0"}, SQUAD),
    ({"is_impossible": 0}, SQUAD),
    ({"is_impossible": None}, SQUAD),
    ({"is_impossible": "TRUE", "answers": []}, NONE),
    ({"is_impossible": 1.0, "answers": None}, NONE),
    ({"is_impossible": "true", "answers": [{"text": "", "answer_start": "-1"}]}, NONE),
    ({"is_impossible": True, "answers": [{"text": None, "answer_start": None}]}, NONE),
    ({"answers": [{"text": "wrote", "answer_start": "13"}]}, SQUAD),
    ({"answers": [{"text": "wrote", "answer_start": 13.0}]}, SQUAD),
    ({"answers": {"text": "wrote", "answer_start": " 13 "}}, SQUAD),
    ({"answers": {"text": ["wrote"], "answer_start": 13}}, SQUAD),
    ({"answers": "wrote"}, SQUAD),
    ({"id": 7}, SQUAD),
    ({"id": 7.0}, SQUAD),
    (
        {"answers": [{"text": 1843, "answer_start": 25}]},
        {**SQUAD, "answers": [{"text": "1843", "answer_start": 25}]},
    ),
]


def read_entry(path, entry):
    rows = [{"question": "What?", "context": CONTEXT, **entry}]
    read = read_squad(write(path, rows))
    return read.ids, read.x, read.y


@pytest.mark.parametrize(("changes", "wanted"), OF_OTHER_HANDS)
def test_json_of_other_hands(tmp_path, changes, wanted):
    found = read_entry(tmp_path / "found.json", {**SQUAD, **changes})
    assert found == read_entry(tmp_path / "wanted.json", wanted)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"is_impossible": "maybe"}, "is_impossible must be true or false, got 'maybe'"),
        ({"is_impossible": 2}, "is_impossible must be true or false, got 2"),
        ({"answers": None}, "has 0 answers"),
        ({"answers": [{"text": "wrote", "answer_start": 13.5}]}, "whole number, got 13.5"),
        ({"answers": [{"text": "wrote", "answer_start": None}]}, "whole number, got None"),
        ({"answers": [{"text": "wrote", "answer_start": True}]}, "whole number, got True"),
        ({"answers": [{"text": 0.5, "answer_start": 13}]}, "must be a string, got 0.5"),
        ({"id": 7.5}, "id must be a whole number, got 7.5"),
    ],
)
def test_json_that_may_mean_anything_is_named(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        read_entry(tmp_path / "bad.json", {**SQUAD, **changes})
