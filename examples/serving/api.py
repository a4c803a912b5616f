"""A service with FastAPI: classes of texts, by an ONNX export of a classifier.

    pip install '.[onnx]' fastapi uvicorn
    keras-bert export --model demo_output/sentiment.keras --format onnx --output sentiment_onnx
    MODEL=sentiment_onnx uvicorn --app-dir examples/serving api:app

    curl -H 'Content-Type: application/json' -d '{"texts": ["A gripping, funny film."]}' \\
        http://localhost:8000/classify

Columns beside the texts: {"texts": ["It fits"], "columns": {"price": [29.0], "shop": [null]}}.
"""

import os
from typing import Annotated

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

import keras_bert_suite as kbs

#: The texts of a request and the characters of a text. A longer request is refused (422).
MOST_TEXTS, MOST_CHARACTERS = 64, 20_000

app = FastAPI(title="keras-bert-suite")
model = kbs.open_runtime(os.environ.get("MODEL", "sentiment_onnx"))


class Rows(BaseModel):
    """Texts, and the columns beside them that a model with `features` reads."""

    texts: list[Annotated[str, Field(max_length=MOST_CHARACTERS)]] = Field(max_length=MOST_TEXTS)
    columns: dict[str, list[str | int | float | bool | None]] = {}


class Answer(BaseModel):
    """A label is a list of labels for a model of sets of labels."""

    label: str | list[str]
    probabilities: dict[str, float]


@app.get("/health")
def health() -> dict[str, str]:
    return {"status": "ok", "task": model.description["task"]}


# Not `async`: FastAPI then calls it in a thread. Several threads may ask the model.
@app.post("/classify")
def classify(request: Rows) -> list[Answer]:
    rows = request.texts
    if request.columns:
        (name,) = model.input_names or ["text"]
        if name in request.columns:  # It would take the place of the texts, and of their bounds.
            raise HTTPException(422, f"{name} is the column of the texts. Leave it out of columns.")
        rows = {name: request.texts, **request.columns}
    try:
        probabilities = model.predict_probabilities(rows)
    except ValueError as error:  # such as columns that are missing
        raise HTTPException(422, str(error)) from None
    # The labels of `predict_labels`, by its thresholds: not always the most probable class.
    labels = model.answers.name(probabilities, None)
    return [
        Answer(label=label, probabilities=dict(zip(model.label_names, row.tolist(), strict=True)))
        for label, row in zip(labels, probabilities, strict=True)
    ]
