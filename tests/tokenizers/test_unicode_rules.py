import hashlib
import importlib.util
import unicodedata
from pathlib import Path

import pytest

from keras_bert_suite.tokenizers import unicode14
from keras_bert_suite.tokenizers.unicode_rules import (
    DELETED,
    FINAL_SIGMA,
    CharacterMap,
    membership,
    strip_nonspacing,
)

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def full_map():
    characters = CharacterMap(lowercase=True, strip_accents=True)
    for code in range(0x110000):
        characters[code]
    return characters


def test_no_character_moves_with_the_version_of_python(full_map):
    """The digest was taken under Python 3.11, Unicode 14."""
    texts = "\n".join(full_map[code] for code in range(0x110000))
    digest = hashlib.sha256(texts.encode("utf-8")).hexdigest()
    assert digest == "f4b9fb03be058ecbf6b66fb20425fcf723d470f0cb50ece9d8d208a36d645b4d"


@pytest.mark.skipif(unicodedata.unidata_version != "14.0.0", reason="needs Python 3.11")
def test_tables_are_what_the_script_writes(tmp_path):
    spec = importlib.util.spec_from_file_location(
        "freeze_unicode", REPOSITORY / "scripts" / "freeze_unicode.py"
    )
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    shipped = script.OUTPUT.read_text(encoding="utf-8")
    script.OUTPUT = tmp_path / "unicode14.txt"
    script.main()
    assert script.OUTPUT.read_text(encoding="utf-8") == shipped


@pytest.mark.parametrize(
    ("code", "lowercase", "strip_accents", "expected"),
    [
        (0x00, False, False, ""),
        (0x200B, False, False, ""),
        (0xFFFD, False, False, ""),
        (0xD800, False, False, ""),
        (0x0A, False, False, " "),
        (0x3000, False, False, " "),
        (0xC9, False, False, "É"),
        (0xC9, True, False, "é"),
        (0xC9, False, True, "E"),
        (0xC9, True, True, "e"),
        (0x0301, True, True, ""),
        (0x130, True, False, "i\u0307"),
        (0xDF, True, True, "ß"),
        (0xAC01, True, True, "\u1100\u1161\u11a8"),
        # Upper case of Unicode 16 and a letter of Unicode 15, unassigned here.
        (0xA7CB, True, True, "\ua7cb"),
        (0x1E030, True, True, "\U0001e030"),
    ],
)
def test_what_becomes_of_a_character(code, lowercase, strip_accents, expected):
    assert CharacterMap(lowercase, strip_accents)[code] == expected


@pytest.mark.parametrize(
    "text", ["ΟΔΟΣ", "Σ", "ΣΣ", "aΣ", "Σa", "ΟΔΟΣ.", "ΟΔΟΣ'Α", "ʰΣ", "aΣ\u0345", "Σ.ΣΣ", "1Σ", "Σ1"]
)
def test_final_sigma_is_that_of_python(text):
    lowered = FINAL_SIGMA.apply(text)
    assert len(lowered) == len(text)
    assert [c for c in lowered if c in "σς"] == [c for c in text.lower() if c in "σς"]


def test_final_sigma_looks_past_what_is_deleted():
    assert FINAL_SIGMA.apply("a\x01Σ\x01b") == "a\x01σ\x01b"
    assert FINAL_SIGMA.apply("a\x01Σ\x01") == "a\x01ς\x01"


def test_normalization_keeps_the_neighbours_of_a_sigma(full_map):
    """Hence the TensorFlow engine may look for them in normalized text."""
    cased = membership(unicode14.CASED)
    passed_over = membership(unicode14.CASE_IGNORABLE) | membership(DELETED)

    def first_neighbour(text):
        seen = (c for c in text if not passed_over[ord(c)])
        neighbour = next(seen, None)
        return neighbour if neighbour is None else bool(cased[ord(neighbour)])

    for code, text in full_map.items():
        if text != chr(code) and chr(code) != "Σ":
            before = first_neighbour(chr(code))
            assert first_neighbour(text) == before, hex(code)
            assert first_neighbour(text[::-1]) == before, hex(code)


@pytest.mark.skipif(unicodedata.unidata_version != "14.0.0", reason="needs Python 3.11")
@pytest.mark.parametrize(
    "text",
    [
        "a\U0001d16d\U0001d165",  # Classes 226 and 216.
        "a\U0001d16d\u0301\U0001d165\U00016ff0",  # An accent of class 230 between.
        "a\u302e\u0488\U00016ff0",  # A mark of class 0 between.
        "\U0001d15f\U00016ff0b\u302e",  # A character that decomposes to a mark.
    ],
)
def test_marks_are_put_in_canonical_order(text):
    normalized, origins = CharacterMap(True, True).normalize_in_order(text)
    assert normalized == strip_nonspacing(unicodedata.normalize("NFD", text.lower()))
    assert len(origins) == len(normalized)
    assert origins == sorted(origins)
