"""A tag for each word."""

import numpy as np
from cli.kind_case import KindCase

TRAINED = "--task=ner --train=words.txt"


CASE = KindCase(
    model=("TokenClassifier", {"label_names": ["O", "B-X", "I-X", "B-Y"]}),
    trained=(
        f"{TRAINED} --head=softmax",
        f"{TRAINED} --head=global_pointer",
        f"{TRAINED} --head=crf --tag_scheme=BIO",
        f"{TRAINED} --head_layers=bilstm:7",
    ),
    labelled="--input=words.txt",
    asked="--format=jsonl",
    flags={
        "--tag_scheme=BIOES --task=ner --train=spans.json": "read_annotations.scheme",
        f"--entity_mode=strict {TRAINED} --test=words.txt": {"score.mode": "strict"},
        f"--head=global_pointer {TRAINED}": {"fit.self.__class__.__name__": "EntitySpanClassifier"},
        f"--head_layers=last:2,bilstm:7 {TRAINED}": {
            "from_preset.head_layers.0.config.num_layers": 2,
            "from_preset.head_layers.1.config.layer.config.units": 7,
        },
    },
    export={"head": "CrfTokenClassifier", "labels": ["O", "B-X"]},
    outputs={
        "labels": np.array([[b"X", b"Y"], [b"", b""]]),
        "starts": np.int32([[2, 7], [-1, -1]]),
        "ends": np.int32([[6, 11], [-1, -1]]),
        "byte_starts": np.int32([[2, 7], [-1, -1]]),
        "byte_ends": np.int32([[6, 11], [-1, -1]]),
        "scores": np.float32([[0.5, 0.25], [0, 0]]),
        "num_entities": np.int32([2, 0]),
    },
    answers=[
        {
            "entities": [
                {"label": "X", "text": "good", "start": 2, "end": 6, "score": 0.5},
                {"label": "Y", "text": "film", "start": 7, "end": 11, "score": 0.25},
            ]
        },
        {"entities": []},
    ],
    table=None,
)
