"""A label for each text."""

import numpy as np
from cli.kind_case import EXPORTED, LABELS, KindCase

CASE = KindCase(
    model=("TextClassifier", LABELS),
    trained=("--task=classify", "--window_pooling=mean"),
    export={"head": "TextClassifier", "problem_type": "single_label_classification", **EXPORTED},
    outputs={
        "labels": np.array([b"no", b"yes"]),
        "label_ids": np.int32([0, 1]),
        "probabilities": np.float32([[0.75, 0.25], [0.125, 0.875]]),
    },
    answers=[
        {"label": "no", "probability": 0.75, "probabilities": {"no": 0.75, "yes": 0.25}},
        {"label": "yes", "probability": 0.875, "probabilities": {"no": 0.125, "yes": 0.875}},
    ],
    table=["label\tprobability", "no\t0.750000", "yes\t0.875000"],
)
