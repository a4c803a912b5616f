"""The relation of two marked entities."""

import numpy as np
from cli.kind_case import EXPORTED, LABELS, KindCase, Learning
from cli.small_kinds import RELATIONS, write_semeval

TRAINED = "--task=relation --train=semeval.txt"


def check_relations(scores, printed, table, answers, dev):
    assert scores["macro_f1"] > 0.9 and scores["relations"]["Same"]["rows"] > 10
    assert "macro_f1" in printed and "Same" in printed and scores["label_names"] == RELATIONS
    labels = dev.read_text().splitlines()[1::4]
    found = [line.split("\t")[0] for line in table[1:]]
    assert sum(a == b for a, b in zip(found, labels, strict=True)) / 32 == scores["accuracy"]
    assert [answer["label"] for answer in answers] == found


CASE = KindCase(
    model=("RelationClassifier", LABELS),
    trained=(TRAINED,),
    labelled="--input=semeval.txt",
    asked="--input=semeval.txt",
    flags={
        f"--entity_states=averages {TRAINED}": "fit.self.entity_states",
        f"--other_label=no {TRAINED} --test=semeval.txt": {"score.other": "no"},
    },
    export={"head": "RelationClassifier", **EXPORTED},
    outputs={
        "label_ids": np.int32([0, 1]),
        "probabilities": np.float32([[0.25, 0.75], [0.125, 0.875]]),
    },
    answers=[{"label": "no", "probability": 0.25}, {"label": "yes", "probability": 0.875}],
    table=["label\tprobability", "no\t0.250000", "yes\t0.875000"],
    learning=Learning(
        write_semeval,
        ".txt",
        (256, 32),
        "--epochs=12 --entity_states=averages --learning_rate=5e-3 --sequence_length=32",
        check_relations,
    ),
)
