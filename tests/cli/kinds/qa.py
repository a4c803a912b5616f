"""The part of a context that answers a question."""

import json

import numpy as np
from cli.kind_case import KindCase, Learning
from cli.small_kinds import write_squad

TRAINED = "--task=qa --train=squad.json"


def check_questions(scores, printed, table, answers, dev):
    assert scores["questions"] == 24 and scores["f1"] > 80
    assert f"f1 {scores['f1']:.4f}" in printed and "no_answer" in printed
    assert scores["has_answer"]["exact_match"] > 0 and len(table) == 25
    for answer, article in zip(answers, json.loads(dev.read_text())["data"], strict=True):
        assert list(answer) == ["id", "question", "answer", "start", "end", "score", "null_odds"]
        context = article["paragraphs"][0]["context"]
        assert not answer["answer"] or context[answer["start"] : answer["end"]] == answer["answer"]


CASE = KindCase(
    model=("QuestionAnswerer", {"input_names": ("question", "context")}),
    trained=(TRAINED,),
    labelled="--input=squad.json",
    asked="--input=squad.json",
    flags={
        f"--head_layers=convolution:7 {TRAINED}": {"from_preset.head_layers.0.config.filters": 7},
        f"--characters=cmrc2018 {TRAINED} --dev=squad.json --test=squad.json": (
            "AnswerF1.characters tune_threshold.characters score.characters"
        ),
    },
    export={"head": "QuestionAnswerer"},
    outputs={
        "answers": np.array([b"good", b""]),
        "starts": np.int32([2, -1]),
        "ends": np.int32([6, -1]),
        "byte_starts": np.int32([2, -1]),
        "byte_ends": np.int32([6, -1]),
        "scores": np.float32([0.75, 0.5]),
        "null_odds": np.float32([-1.5, np.inf]),
    },
    answers=[
        {"answer": "good", "start": 2, "end": 6, "score": 0.75, "null_odds": -1.5},
        {"answer": "", "start": -1, "end": -1, "score": 0.5, "null_odds": None},
    ],
    table=["answer\tscore", "good\t0.750000", "\t0.500000"],
    rows=("q.tsv", "question\tcontext\nwas it\ta good film\nwhy\tit was bad\n"),
    learning=Learning(
        write_squad,
        ".json",
        (96, 24),
        "--epochs=6 --batch_size=16 --learning_rate=5e-3 --sequence_length=80",
        check_questions,
    ),
)
