"""A vector for each text, from pairs."""

import numpy as np
from cli.kind_case import KindCase

TRAINED = "--task=embed --text_pair_column=second"


CASE = KindCase(
    model=("TextEmbedder", {}),
    trained=(TRAINED,),
    labelled="--text_column=text --text_pair_column=second",
    asked="--format=jsonl",
    flags={
        f"--label_column=number {TRAINED}": {"fit.self.loss.__class__.__name__": "CoSENT"},
        f"--left_out_labels=3 {TRAINED} --label_column=number": "read_table.left_out_labels",
    },
    export={"head": "TextEmbedder"},
    outputs={"embedding": np.float32([[0.5, -0.5], [1, 0]])},
    answers=[{"embedding": [0.5, -0.5]}, {"embedding": [1.0, 0.0]}],
    table=None,
)
