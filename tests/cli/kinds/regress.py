"""A number for each text."""

import numpy as np
from cli.kind_case import EXPORTED, KindCase

CASE = KindCase(
    model=("TextClassifier", {"label_names": ["x"], "problem_type": "regression"}),
    trained=("--task=regress --label_column=number",),
    labelled="--label_column=number",
    export={"head": "DocumentClassifier", "problem_type": "regression", **EXPORTED},
    outputs={"scores": np.float32([[1.5, -2], [0.25, 0]])},
    answers=[{"scores": {"no": 1.5, "yes": -2.0}}, {"scores": {"no": 0.25, "yes": 0.0}}],
    table=["no\tyes", "1.500000\t-2.000000", "0.250000\t0.000000"],
)
