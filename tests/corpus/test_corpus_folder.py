"""Corpora in remote file systems: one in memory, and S3 on this machine."""

import os
import pickle
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import fsspec
import numpy as np
import pytest
from corpus.small_corpus import (
    check_same_corpus,
    make_documents,
    make_tokenizer,
    prepare_three_shards,
    tokenize_in_memory,
)

from keras_bert_suite import TokenMasker
from keras_bert_suite.corpus import (
    hold_out,
    open_corpus,
    prepare_corpus,
    read_tokenizer,
    shard_reader,
)
from keras_bert_suite.pretraining import PretrainingBatches

DOCUMENTS = make_documents(60)
EXPECTED = tokenize_in_memory(DOCUMENTS, make_tokenizer())


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Folder of three shards."""
    return prepare_three_shards(tmp_path_factory.mktemp("prepared"), DOCUMENTS)


def upload(prepared, files, root):
    files.makedirs(root, exist_ok=True)
    for path in prepared.iterdir():
        files.pipe_file(f"{root}/{path.name}", path.read_bytes())


@pytest.fixture
def remote(prepared, tmp_path, monkeypatch):
    """(file system, its folder, URL). Copies of shards go to `tmp_path`."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files = fsspec.filesystem("memory")
    root = f"/{tmp_path.name}/shards"
    upload(prepared, files, root)
    yield files, root, f"memory:/{root}"
    files.rm(root, recursive=True)


def check_remote(url, prepared):
    """Checks all that reads a corpus."""
    corpus = open_corpus(url)
    check_same_corpus(corpus, EXPECTED)
    check_same_corpus(pickle.loads(pickle.dumps(corpus)), EXPECTED)
    tokenizer = read_tokenizer(url + "/")
    assert tokenizer.asset_contents() == read_tokenizer(prepared).asset_contents()
    masker = TokenMasker(tokenizer, max_predictions=3)
    batches, wanted = (
        PretrainingBatches(hold_out(open_corpus(path), 0.2)[0], masker, 24, batch_size=4)
        for path in (url, prepared)
    )
    assert len(batches) == len(wanted)
    for index in (0, len(wanted) + 1):
        np.testing.assert_equal(batches[index], wanted[index])


def test_a_remote_corpus_is_that_of_this_machine(remote, prepared, tmp_path):
    check_remote(remote[2], prepared)
    assert list(tmp_path.iterdir()) == []


def test_threads_share_remote_shards(remote, monkeypatch):
    monkeypatch.setattr(shard_reader, "MAX_OPEN_SHARDS", 1)
    corpus = open_corpus(remote[2])
    order = np.random.default_rng(0).integers(0, 60, 200)
    with ThreadPoolExecutor(8) as threads:
        for document, tokens in zip(order, threads.map(corpus.tokens, order), strict=True):
            assert tokens.tolist() == EXPECTED.tokens(document).tolist()


def test_damaged_remote_files(remote, tmp_path):
    files, root, url = remote
    corpus = open_corpus(url)
    content = bytearray(files.cat_file(f"{root}/shard-00001.array_record"))
    content[-1] ^= 1  # Where no record is.
    files.pipe_file(f"{root}/shard-00001.array_record", bytes(content))
    with pytest.raises(ValueError, match="memory:/.*shard-00001.array_record is damaged: its"):
        corpus.tokens(30)
    files.pipe_file(f"{root}/shard-00001.array_record", bytes(content[:-1]))
    with pytest.raises(ValueError, match="shard-00001.array_record is damaged: it has .* bytes"):
        open_corpus(url)
    files.rm_file(f"{root}/shard-00001.array_record")
    with pytest.raises(ValueError, match="shard-00001.array_record is damaged: it has no bytes"):
        open_corpus(url)
    assert list(tmp_path.iterdir()) == []


def test_no_remote_corpus(remote):
    with pytest.raises(FileNotFoundError, match="memory:/.*none holds no prepared corpus"):
        open_corpus(remote[2] + "/none")
    with pytest.raises(ValueError, match="Protocol not known: nowhere"):
        open_corpus("nowhere://shards")


def test_a_corpus_is_prepared_on_this_machine(tmp_path):
    with pytest.raises(ValueError, match="to a folder of this machine, got memory://shards"):
        prepare_corpus(tmp_path / "a.txt", make_tokenizer(), "memory://shards")


@pytest.mark.long("faults")
def test_s3(prepared, tmp_path, monkeypatch):
    """A server of S3 in a process of its own."""
    pytest.importorskip("s3fs")
    pytest.importorskip("moto.server")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = (
        "import time; from moto.server import ThreadedMotoServer; "
        "server = ThreadedMotoServer('127.0.0.1', 0); server.start(); "
        "print(server.get_host_and_port()[1], flush=True); time.sleep(600)"
    )
    server = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        port = next(line for line in server.stdout if line.strip().isdigit()).strip()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        files = fsspec.filesystem("s3")
        files.mkdir("corpora")
        upload(prepared, files, "corpora/shards")
        check_remote("s3://corpora/shards", prepared)
        assert os.listdir(tmp_path) == []
    finally:
        server.kill()
        server.wait()
