"""A label of each of several attributes."""

import numpy as np
from cli.kind_case import KindCase, Learning
from cli.small_kinds import write_attributes

TRAINED = "--task=attributes --attribute_columns=label"


def check_attributes(scores, printed, table, answers, dev):
    assert scores["accuracy"] > 0.75 and "tone" in printed
    rows = {name: part["rows"] for name, part in scores["attributes"].items()}
    assert rows == {"tone": 9, "what": 12} and table[0] == "tone\twhat"
    found = [line.split("\t") for line in table[1:]]
    labels = [line.split("\t")[1:] for line in dev.read_text().splitlines()[1:]]
    pairs = [pair for row in zip(labels, found, strict=True) for pair in zip(*row, strict=True)]
    right = [label == answer for label, answer in pairs if label]
    assert sum(right) / len(right) == scores["accuracy"]
    first = answers[0]
    assert first["text"] == "good film" and first["attributes"]["what"]["label"] == found[0][1]
    assert first["attributes"]["tone"]["probability"] >= 0.5


CASE = KindCase(
    model=("AttributeClassifier", {"attributes": {"label": ["no", "yes"]}}),
    trained=(TRAINED,),
    flags={
        f"--attribute_weights=label=2 {TRAINED}": {"from_preset.attribute_weights": {"label": 2.0}}
    },
    export={"head": "AttributeClassifier", "attributes": {"size": ["no", "yes"]}},
    # The more probable class need not be the answer.
    outputs={
        "size": np.array([b"yes", b"no"]),
        "size_probabilities": np.float32([[0.75, 0.25], [0.75, 0.25]]),
    },
    answers=[
        {"attributes": {"size": {"label": "yes", "probability": 0.25}}},
        {"attributes": {"size": {"label": "no", "probability": 0.75}}},
    ],
    table=["size", "yes", "no"],
    learning=Learning(
        write_attributes,
        ".tsv",
        (17, 3),
        "--epochs=16 --attribute_columns=tone,what --attribute_weights=tone=2 "
        "--learning_rate=1e-2 --batch_size=16",
        check_attributes,
    ),
)
