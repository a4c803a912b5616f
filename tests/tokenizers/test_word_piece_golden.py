"""Every golden id of the original tokenizer, in both engines."""

import functools
import gzip
import json

import pytest
from tokenizer_checks import SAMPLES

from keras_bert_suite import WordPieceTokenizer

#: key in the golden files -> (folder of the vocabulary, whether it lower-cases).
VOCABULARIES = {
    "uncased": ("bert-base-uncased", True),
    "cased": ("bert-base-cased", False),
    "chinese": ("bert-base-chinese", True),
    "multi_cased": ("bert-base-multilingual-cased", False),
}


@pytest.fixture(scope="module")
def build_tokenizer(shared_data):
    @functools.cache
    def build(name):
        folder, lowercase = VOCABULARIES[name]
        path = shared_data / "vocab" / folder / "vocab.txt"
        return WordPieceTokenizer(path, lowercase=lowercase)

    return build


def read_lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def assert_equal_rows(ids, expected, texts):
    assert len(ids) == len(expected)
    wrong = [row for row in zip(texts, ids, expected, strict=True) if row[1] != row[2]]
    assert not wrong, f"{len(wrong)} of {len(texts)}, the first: {wrong[0]}"


@pytest.mark.parametrize("step", SAMPLES)
@pytest.mark.parametrize("name", ["uncased", "cased"])
def test_every_assigned_character(name, build_tokenizer, run_engine, shared_data, step):
    lines = read_lines(shared_data / "golden" / f"unicode_{name}.jsonl.gz")
    assert len(lines) == 144_761
    codes, expected = zip(*lines[::step], strict=True)
    texts = [f"a{chr(int(code, 16))}b" for code in codes]
    assert_equal_rows(run_engine(build_tokenizer(name), texts), list(expected), texts)


@pytest.mark.parametrize("step", SAMPLES)
@pytest.mark.parametrize("name", VOCABULARIES)
def test_hostile_strings(name, build_tokenizer, run_engine, shared_data, step):
    lines = read_lines(shared_data / "golden" / "wild.jsonl.gz")[::step]
    texts = [line["text"] for line in lines]
    expected = [line[name] for line in lines]
    assert_equal_rows(run_engine(build_tokenizer(name), texts), expected, texts)
