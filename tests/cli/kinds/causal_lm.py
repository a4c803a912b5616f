"""What follows a text."""

import keras
import numpy as np
from cli.kind_case import KindCase, Learning
from small_texts import make_reviews


def write_texts(path, num_rows, seed):
    """A review in each line, the first one after an empty line if it is for training."""
    lines = make_reviews(num_rows, seed)[0]
    path.write_text("\n" * (seed == 1) + "\n".join(lines) + "\n", encoding="utf-8")


def check_continuations(scores, printed, table, answers, dev):
    model = keras.saving.load_model(dev.parent / "model.keras", compile=False)
    assert (model.input_names, model.max_length, model.sampler.num_beams) == (("text",), 4, 2)
    texts = dev.read_text().splitlines()
    assert scores == {**model.score(texts), "rows": 6}
    # Of the 28 tokens of the vocabulary, alike, the perplexity would be 28.
    assert printed.startswith("rows 6, perplexity ") and scores["perplexity"] < 24
    assert [answer["text"] for answer in answers] == texts
    assert [answer["continuation"] for answer in answers] == model.predict(texts)
    assert table[0] == "continuation" and len(table) == 7


CASE = KindCase(
    model=("CausalLM", {"max_length": 2}),
    trained=("--task=causal_lm",),
    batches="choose_size.batch_size",
    flags={"--max_length=7 --task=causal_lm": "fit.self.max_length"},
    export={"head": "CausalLM"},
    outputs={"texts": np.array([" fine é".encode(), b""])},
    answers=[{"continuation": " fine é"}, {"continuation": ""}],
    table=["continuation", "fine é", ""],
    learning=Learning(
        write_texts,
        ".txt",
        (64, 6),
        "--epochs=3 --max_length=4 --num_beams=2 --sequence_length=32 --learning_rate=1e-2 "
        "--batch_size=16",
        check_continuations,
    ),
)
