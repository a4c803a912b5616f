"""A set of labels for each text."""

import numpy as np
from cli.kind_case import EXPORTED, KindCase

CASE = KindCase(
    model=(
        "TextClassifier",
        {"label_names": ["no", "yes", "no;yes"], "problem_type": "multi_label_classification"},
    ),
    trained=("--task=multilabel --train=sets.tsv --label_separator=;",),
    labelled="--input=sets.tsv",
    export={"head": "TextClassifier", "problem_type": "multi_label_classification", **EXPORTED},
    outputs={
        "labels": np.array([[b"no", b"yes"], [b"", b""]]),
        "num_labels": np.int32([2, 0]),
        "is_label": np.array([[True, True], [False, False]]),
        "probabilities": np.float32([[0.75, 0.5], [0.25, 0.125]]),
    },
    answers=[
        {"labels": ["no", "yes"], "probabilities": {"no": 0.75, "yes": 0.5}},
        {"labels": [], "probabilities": {"no": 0.25, "yes": 0.125}},
    ],
    table=["labels\tprobabilities", "no,yes\t0.750000,0.500000", "\t"],
)
