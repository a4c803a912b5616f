"""Shards read at random, by threads and processes, and damaged ones."""

import ast
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np
import pytest
from corpus.small_corpus import (
    check_same_corpus,
    make_documents,
    make_tokenizer,
    prepare_three_shards,
    tokenize_in_memory,
)

from keras_bert_suite.corpus import shard_reader
from keras_bert_suite.corpus.shard_reader import open_corpus, read_tokenizer

DOCUMENTS = make_documents(100)
EXPECTED = tokenize_in_memory(DOCUMENTS, make_tokenizer())


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Folder of three shards. Not to be written to."""
    return prepare_three_shards(tmp_path_factory.mktemp("prepared"), DOCUMENTS)


@pytest.fixture
def copy(prepared, tmp_path):
    """A copy to be damaged."""
    return shutil.copytree(prepared, tmp_path / "copy")


def test_threads_share_a_corpus(prepared, monkeypatch):
    # Less than there are shards, so that they are closed and opened while others read.
    monkeypatch.setattr(shard_reader, "MAX_OPEN_SHARDS", 1)
    corpus = open_corpus(prepared)
    order = np.random.default_rng(0).integers(0, 100, 2000)
    with ThreadPoolExecutor(8) as threads:
        for document, tokens in zip(order, threads.map(corpus.tokens, order), strict=True):
            assert tokens.tolist() == EXPECTED.tokens(document).tolist()


def test_another_thread_parses_at_the_same_moment(prepared, monkeypatch):
    # As Python 3.11.7 does at times: https://github.com/python/cpython/issues/106905.
    error = SystemError("AST constructor recursion depth mismatch (before=48, after=45)")
    headers = mock.Mock(wraps=ast.literal_eval, side_effect=[error, mock.DEFAULT, mock.DEFAULT])
    monkeypatch.setattr(ast, "literal_eval", headers)
    lengths, counts = open_corpus(prepared).read_lengths(0)
    assert headers.call_count == 3 and counts.sum() == len(lengths) > 0


def test_pickled_it_is_opened_anew(prepared):
    corpus = open_corpus(prepared)
    corpus.tokens(0)
    data = pickle.dumps(corpus)
    assert len(data) < 1000
    check_same_corpus(pickle.loads(data), EXPECTED)


def test_grain_reads_it(prepared):
    import grain

    corpus = open_corpus(prepared)
    dataset = grain.MapDataset.range(100).map(_TokensOf(corpus)).to_iter_dataset()
    assert [tokens.tolist() for tokens in dataset] == [
        EXPECTED.tokens(i).tolist() for i in range(100)
    ]


class _TokensOf:
    def __init__(self, corpus):
        self.corpus = corpus

    def __call__(self, document):
        return self.corpus.tokens(document)


@pytest.mark.parametrize("document", [-1, 100])
def test_no_such_document(prepared, document):
    with pytest.raises(IndexError, match="of a corpus of 100"):
        open_corpus(prepared).tokens(document)


@pytest.mark.parametrize("kept", [0, 1000, -1])
def test_truncated_shard(copy, kept):
    shard = copy / "shard-00001.array_record"
    shard.write_bytes(shard.read_bytes()[:kept])
    with pytest.raises(ValueError, match="shard-00001.array_record is damaged: i"):
        open_corpus(copy)


def test_links_to_files(copy, tmp_path):
    """Data version control, and the cache of Hugging Face, keep links in place of files."""
    (tmp_path / "links").mkdir()
    for file in copy.iterdir():
        (tmp_path / "links" / file.name).symlink_to(file)
    check_some(open_corpus(tmp_path / "links"), 0)


def test_missing_shard(copy):
    corpus = open_corpus(copy)
    (copy / "shard-00002.array_record").unlink()
    # The manifest is not blamed.
    with pytest.raises(
        ValueError, match=r"^\S*shard-00002\.array_record is damaged: it has no bytes"
    ):
        open_corpus(copy)
    # It was there a moment ago.
    with pytest.raises(ValueError, match="shard-00002.array_record is damaged: it has 0 documents"):
        corpus.tokens(99)
    check_some(corpus, 0)


def test_flipped_bits(copy):
    rng = np.random.default_rng(0)
    readers = {
        "shard-00001.npz": lambda folder: open_corpus(folder).read_lengths(1),
        "vocab.txt": read_tokenizer,
    }
    for name, read in readers.items():
        content = (copy / name).read_bytes()
        for place in rng.integers(0, len(content), 20):
            flipped = bytearray(content)
            flipped[place] ^= 1 << rng.integers(8)
            (copy / name).write_bytes(flipped)
            with pytest.raises(ValueError, match=f"{name} is damaged: its size or SHA-256"):
                read(copy)
        (copy / name).write_bytes(content)
        read(copy)


def test_flipped_bits_of_tokens_are_found_when_read(copy):
    shard = copy / "shard-00000.array_record"
    content = bytearray(shard.read_bytes())
    # The first record's bytes lie after the two headers of the file.
    content[150] ^= 1
    shard.write_bytes(content)
    corpus = open_corpus(copy)
    with pytest.raises(ValueError, match="shard-00000.array_record is damaged: "):
        corpus.tokens(0)
    check_some(corpus, 99)


def test_lengths_are_always_checked(copy):
    other = (copy / "shard-00000.npz").read_bytes()
    (copy / "shard-00001.npz").write_bytes(other)
    with pytest.raises(ValueError, match="shard-00001.npz is damaged"):
        open_corpus(copy)


def test_wrong_vocabulary(copy):
    (copy / "vocab.txt").write_text("\n".join(make_tokenizer().get_vocabulary()[::-1]))
    with pytest.raises(ValueError, match="vocab.txt is damaged: its size or SHA-256 is not"):
        read_tokenizer(copy)


def test_no_corpus(copy, tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no prepared corpus.*prepare_corpus"):
        open_corpus(tmp_path)
    (copy / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="manifest.json is damaged: "):
        open_corpus(copy)


def check_some(corpus, document):
    assert corpus.tokens(document).tolist() == EXPECTED.tokens(document).tolist()
