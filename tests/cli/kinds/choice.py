"""The right ending among several."""

import csv

import numpy as np
from cli.kind_case import KindCase, Learning
from cli.small_kinds import write_swag


def check_choices(scores, printed, table, answers, dev):
    assert scores["rows"] == 16 and scores["accuracy"] > 0.8 and "accuracy" in printed
    with open(dev, encoding="utf-8") as file:
        right = [int(row["label"]) for row in csv.DictReader(file)]
    matches = sum(a["choice"] == b for a, b in zip(answers, right, strict=True))
    assert matches / 16 == scores["accuracy"]
    assert table[0] == "choice\tprobability" and len(table) == 17


CASE = KindCase(
    model=("MultipleChoice", {"input_names": ("prompt", "endings")}),
    trained=("--task=choice --train=swag.csv",),
    labelled="--input=swag.csv",
    asked="--input=swag.csv",
    export={"head": "MultipleChoice"},
    outputs={
        "choices": np.int32([3, 0]),
        "ranking": np.int32([[3, 0, 1, 2], [0, 1, 2, 3]]),
        "probabilities": np.float32([[0.25, 0.125, 0.125, 0.5], [0.75, 0.25, 0, 0]]),
    },
    answers=[
        {"choice": 3, "ending": "x d", "probabilities": [0.25, 0.125, 0.125, 0.5]},
        {"choice": 0, "ending": "x e", "probabilities": [0.75, 0.25, 0.0, 0.0]},
    ],
    table=["choice\tprobability", "3\t0.500000", "0\t0.750000"],
    rows=(
        "endings.csv",
        "sent1,sent2,ending0,ending1,ending2,ending3,label\n1,x,a,b,c,d,3\n2,x,e,f,g,h,1\n",
    ),
    learning=Learning(
        write_swag,
        ".csv",
        (48, 16),
        "--epochs=6 --batch_size=8 --learning_rate=5e-3 --sequence_length=32",
        check_choices,
    ),
)
