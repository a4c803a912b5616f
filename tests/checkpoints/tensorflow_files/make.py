"""Writes the fixtures of this folder: models as transformers' classes for TensorFlow saved them.

    TF_USE_LEGACY_KERAS=1 python make.py FOLDER

was run once, in an environment of its own with transformers 4.49, TensorFlow 2.16 and tf-keras
2.16. transformers 5 has no such classes. Each zip holds config.json, tf_model.h5, and outputs.npz
with the token ids and padding masks of two rows and the outputs of the model.
"""

import sys
import zipfile
from pathlib import Path

import numpy as np
import tensorflow as tf
import transformers

SIZES = {
    **dict(vocab_size=24, hidden_size=8, num_hidden_layers=2, num_attention_heads=2),
    **dict(intermediate_size=16, max_position_embeddings=18, initializer_range=0.3),
}
DISTIL_BERT = {
    **dict(vocab_size=24, dim=8, n_layers=2, n_heads=2, hidden_dim=16),
    **dict(max_position_embeddings=18, initializer_range=0.3),
}
MODELS = {
    "bert_pretraining": (transformers.TFBertForPreTraining, transformers.BertConfig(**SIZES)),
    "roberta_tags": (
        transformers.TFRobertaForTokenClassification,
        transformers.RobertaConfig(**SIZES, type_vocab_size=1, num_labels=3),
    ),
    "distil_bert_classes": (
        transformers.TFDistilBertForSequenceClassification,
        transformers.DistilBertConfig(**DISTIL_BERT, num_labels=3),
    ),
    "albert_classes": (
        transformers.TFAlbertForSequenceClassification,
        transformers.AlbertConfig(**SIZES, embedding_size=6, num_labels=3),
    ),
    "electra_tags": (
        transformers.TFElectraForTokenClassification,
        transformers.ElectraConfig(**SIZES, embedding_size=6, num_labels=3),
    ),
}


def main(folder):
    rng = np.random.default_rng(0)
    ids = rng.integers(5, 24, (2, 7))
    mask = np.array([[1] * 7, [1] * 5 + [0] * 2])
    for name, (cls, config) in MODELS.items():
        tf.keras.utils.set_random_seed(1)
        model = cls(config)
        model({"input_ids": ids, "attention_mask": mask})
        for weight in model.weights:
            # Biases and norms begin alike. Two biases of one head stay equal.
            if weight.shape.rank == 1 and "predictions" not in weight.name:
                weight.assign_add(rng.normal(size=weight.shape, scale=0.1))
        outputs = model({"input_ids": ids, "attention_mask": mask}, training=False)
        path = folder / name
        model.save_pretrained(path)
        arrays = {key: value.numpy() for key, value in outputs.items() if hasattr(value, "numpy")}
        np.savez(path / "outputs.npz", token_ids=ids, padding_mask=mask, **arrays)
        with zipfile.ZipFile(folder / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(path.iterdir()):
                archive.write(file, file.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
