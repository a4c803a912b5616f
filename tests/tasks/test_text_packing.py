import numpy as np
from kerashub_models import make_bert
from small_texts import ONE_LAYER, VOCABULARY

from keras_bert_suite import BertBackbone, SegmentPacker, TextClassifier, WordPieceTokenizer
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.heads.base import text_data as texts_module
from keras_bert_suite.heads.base.input_checks import EncoderInputs
from keras_bert_suite.heads.base.text_data import TextData

#: Texts of 8, 4 and 2 tokens, the longer the fewer.
TEXTS = ["!!!!!!!!", "film was bad ,", "acting awful" + " " * 30]


def measure(packer, rows):
    return TextData(packer, EncoderInputs(("token_ids",)), None).lengths(rows)


def test_rows_are_measured_in_tokens(monkeypatch):
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 16)
    pairs = Rows.read((TEXTS, ["good", "good plot .", ""]))
    tokens = Rows.read(TEXTS[:2])
    tokens.inputs[0][:] = [np.ones(3, "int32"), np.ones(7, "int32")]
    characters = [len(text) for text in TEXTS]
    assert measure(packer, Rows.read(TEXTS)).tolist() == [8, 4, 2]
    assert measure(packer, Rows.read([text.encode() for text in TEXTS])).tolist() == [8, 4, 2]
    assert measure(packer, pairs).tolist() == [9, 7, 2]
    assert measure(packer, tokens).tolist() == [3, 7]
    assert measure(packer, Rows.read([])).tolist() == []
    assert measure(packer, Rows.read({"token_ids": np.ones((2, 3))})) is None
    assert measure(None, Rows.read(TEXTS)).tolist() == characters
    assert measure(make_bert()[1], Rows.read(TEXTS)).tolist() == characters
    monkeypatch.setattr(texts_module, "_MOST_CHARACTERS", 10)
    assert measure(packer, Rows.read(TEXTS)).tolist() == characters


def test_batches_of_similar_length():
    """Every batch of `fit`, `evaluate` and `predict` has texts of one number of tokens."""
    texts = [text for i in range(8) for text in TEXTS[: 2 + i % 2]] * 2
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 16, padding_lengths=(4, 6, 10))
    classifier = TextClassifier(BertBackbone(**ONE_LAYER), num_classes=2, preprocessor=packer)
    shapes = []
    pack = classifier.preprocessor.pack

    def note(*segments):
        packed = pack(*segments)
        shapes.append((len(set(segments[0])), packed["token_ids"].shape[1]))
        return packed

    packer.pack = note
    classifier.compile("sgd")
    counts = {length: texts.count(text) for length, text in zip((10, 6, 4), TEXTS, strict=True)}
    assert set(counts.values()) == {16, 8}
    classifier.fit(texts, np.arange(len(texts)) % 2, batch_size=8, verbose=0)
    classifier.evaluate(texts, np.arange(len(texts)) % 2, batch_size=8, verbose=0)
    classifier.predict(texts, batch_size=8, verbose=0)
    assert {different for different, _ in shapes} == {1}
    assert {length for _, length in shapes} == {4, 6, 10}
