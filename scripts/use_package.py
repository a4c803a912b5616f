"""Uses the installed package: tokenize, fit, predict, save and load. TensorFlow may be absent.

Run in an empty folder by scripts/try_wheel.py and tests/test_import.py.
"""

import keras
import numpy as np

import keras_bert_suite as kbs

pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "bad", "film", "##s"]
tokenizer = kbs.WordPieceTokenizer(pieces)
assert list(tokenizer.tokenize("Good films")) == [6, 8, 9]

backbone = kbs.BertBackbone(
    vocabulary_size=len(pieces),
    num_layers=1,
    num_heads=2,
    hidden_dim=8,
    intermediate_dim=16,
    max_sequence_length=16,
)
packer = kbs.SegmentPacker(tokenizer, sequence_length=16)
classifier = kbs.TextClassifier(backbone=backbone, preprocessor=packer, num_classes=2)
classifier.compile()
texts = ["a good film", "a bad film", "good films", "bad"]
classifier.fit(texts, [1, 0, 1, 0], batch_size=4, verbose=0)
expected = classifier.predict(texts, verbose=0)
assert expected.shape == (4, 2)

classifier.save("classifier.keras")
loaded = keras.saving.load_model("classifier.keras")
np.testing.assert_allclose(loaded.predict(texts, verbose=0), expected, atol=1e-6)

classifier.save_to_preset("preset")
loaded = kbs.TextClassifier.from_preset("preset")
np.testing.assert_allclose(loaded.predict(texts, verbose=0), expected, atol=1e-6)
