"""A service with FastAPI: classes of texts, by an ONNX export of a classifier.

    pip install '.[onnx]' fastapi uvicorn
    keras-bert export --model demo_output/sentiment.keras --format onnx --output sentiment_onnx
    MODEL=sentiment_onnx uvicorn --app-dir examples/serving api:app

    curl -H 'Content-Type: application/json' -d '{"texts": ["A gripping, funny film."]}' \\
        http://localhost:8000/classify
"""

import os
from typing import Annotated

from fastapi import FastAPI
from pydantic import BaseModel, Field

import keras_bert_suite as kbs

#: The texts of a request and the characters of a text. A longer request is refused (422).
MOST_TEXTS, MOST_CHARACTERS = 64, 20_000

app = FastAPI(title="keras-bert-suite")
model = kbs.open_runtime(os.environ.get("MODEL", "sentiment_onnx"))


class Texts(BaseModel):
    texts: list[Annotated[str, Field(max_length=MOST_CHARACTERS)]] = Field(max_length=MOST_TEXTS)


class Answer(BaseModel):
    label: str
    probabilities: dict[str, float]


@app.get("/health")
def health() -> dict[str, str]:
    return {"status": "ok", "task": model.description["task"]}


# Not `async`: FastAPI then calls it in a thread. Several threads may ask the model.
@app.post("/classify")
def classify(request: Texts) -> list[Answer]:
    names = model.label_names
    return [
        Answer(
            label=names[row.argmax()],
            probabilities=dict(zip(names, row.tolist(), strict=True)),
        )
        for row in model.predict(request.texts)
    ]
