# %% [markdown]
"""
# What a token sees in ELMo, GPT and BERT

    python examples/see_directions.py

ELMo has LSTMs that read a text forwards, and others that read it backwards; they meet in no layer.
In GPT a token sees the tokens before it. Both guess the next token. In BERT all tokens see each
other, so a token would see what it must guess: a mask hides it.

The script changes each token of a row in turn, and looks which states change with it. Models with
random weights are enough. A run takes a few seconds.
"""

# %%
import keras
import numpy as np

import keras_bert_suite as kbs
from keras_bert_cli.plots import plot_heat_map

keras.utils.set_random_seed(0)
text = "we the people of the united states"
tokenizer = kbs.WordPieceTokenizer(kbs.train_vocabulary([text], min_frequency=1))
row = kbs.SegmentPacker(tokenizer).pack([text])
number = row["token_ids"].size
rows = {name: np.repeat(array, number + 1, axis=0) for name, array in row.items()}
rows["token_ids"][range(number), range(number)] = tokenizer.unknown_token_id  # the last row stays

size = {"vocabulary_size": tokenizer.vocabulary_size(), "initializer_range": 0.05}
encoders = {
    "ELMo": kbs.ElmoBackbone.from_size("tiny", **size),
    "GPT": kbs.BertBackbone.from_size("tiny", **size, attention_pattern="left_to_right"),
    "BERT": kbs.BertBackbone.from_size("tiny", **size),
}
changes = {}
for name, encoder in encoders.items():
    inputs = {key: rows[key] for key in encoder.input}
    states = encoder.predict(inputs, verbose=0)["sequence_output"]
    print(f"{name}: the states of {number} rows and a row that stays, {states.shape}")
    changes[name] = np.abs(states[:-1] - states[-1])
forwards, backwards = np.split(changes.pop("ELMo"), 2, axis=-1)
changes = {"ELMo, forwards": forwards, "ELMo, backwards": backwards, **changes}

# %% [markdown]
"""
A row of a picture is a token. Its dark columns are the tokens of which its state is made. The two
halves of ELMo see all tokens together, but no layer joins them. So GPT and ELMo can learn from
each token of a text, and BERT from the masked tokens alone. For that, a state of BERT knows both
sides of its token. [`compare_directions.py`](compare_directions.py) trains all three for the same
time, and probes what they have learned.
"""

# %%
seen = [(change.max(axis=-1) > 1e-5).T for change in changes.values()]
tokens = [tokenizer.id_to_token(id) for id in row["token_ids"][0]]
plot_heat_map(np.array(seen, float), tokens, tokens, list(changes), "directions.png")
