import itertools

import pytest
from tokenizer_checks import list_edges

from keras_bert_suite.tokenizers import unicode14
from keras_bert_suite.tokenizers.unicode_rules import (
    CJK,
    DELETED,
    SPACE,
    CharacterMap,
    lowercase_map,
    membership,
)
from keras_bert_suite.tokenizers.word_piece.normalizer_model import build_normalizer_model

tensorflow_text = pytest.importorskip("tensorflow_text")

UNASSIGNED = "\ue000"
CASES = list(itertools.product([True, False], repeat=2))


def normalize(lowercase, strip_accents, texts, replacements=None):
    """What the op makes of n byte strings under our model."""
    import numpy as np
    import tensorflow as tf

    model = build_normalizer_model(lowercase, strip_accents, UNASSIGNED, replacements or {})
    model = tf.constant(np.frombuffer(model, dtype=np.uint8))
    op = tensorflow_text.FastBertNormalizer(model_buffer=model)
    return [text.decode("utf-8") for text in op.normalize(tf.constant(texts)).numpy()]


@pytest.mark.parametrize(
    ("lowercase", "strip_accents", "step"),
    [
        (True, True, 37),
        (False, False, 37),
        *(pytest.param(*case, 1, marks=pytest.mark.long("texts")) for case in CASES),
    ],
)
def test_every_code_point_becomes_what_the_map_says(lowercase, strip_accents, step):
    characters = CharacterMap(lowercase, strip_accents)
    hidden = membership(unicode14.UNASSIGNED) & ~membership(CJK)
    edges = list_edges(SPACE, DELETED, CJK, unicode14.UNASSIGNED, unicode14.NONSPACING)
    codes = {*range(0, 0x110000, step), *edges, *lowercase_map()}
    codes = [code for code in sorted(codes) if not 0xD800 <= code < 0xE000]
    outputs = normalize(lowercase, strip_accents, [f"<{chr(code)}>".encode() for code in codes])
    wrong = [
        hex(code)
        for code, output in zip(codes, outputs, strict=True)
        if output != f"<{UNASSIGNED if hidden[code] else characters[code]}>"
    ]
    assert not wrong


def test_what_is_not_utf8_is_dropped_as_by_python():
    leads = [0x80, 0xBF, 0xC0, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF]
    trails = [0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xE2, 0xF0]
    texts = [bytes([lead, *rest]) for lead in leads for rest in itertools.product(trails, repeat=3)]
    characters = CharacterMap(True, True)
    hidden = membership(unicode14.UNASSIGNED) & ~membership(CJK)
    for text, output in zip(texts, normalize(True, True, texts), strict=True):
        decoded = text.decode("utf-8", "ignore")
        expected = (UNASSIGNED if hidden[ord(c)] else characters[ord(c)] for c in decoded)
        assert output == "".join(expected), text


def test_replacements_override_the_map():
    replacements = {ord("Σ"): "Σ", 0x1B4E: "\ue001", ord("b"): ""}
    assert normalize(True, True, ["AΣb\u1b4e\u1b4f".encode()], replacements) == ["aΣ\ue001\ue000"]
