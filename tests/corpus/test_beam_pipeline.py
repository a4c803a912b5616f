"""Apache Beam makes the same bytes."""

import importlib.util

import pytest
from corpus.small_corpus import make_documents, make_tokenizer, read_folder, write_jsonl

from keras_bert_suite.corpus.beam_pipeline import prepare_corpus_with_beam
from keras_bert_suite.corpus.preparation import prepare_corpus

HAS_BEAM = importlib.util.find_spec("apache_beam") is not None


@pytest.mark.long("faults")
@pytest.mark.skipif(not HAS_BEAM, reason="no Apache Beam; pip install apache-beam")
def test_same_bytes(tmp_path):
    corpus, ours, theirs = tmp_path / "a.jsonl", tmp_path / "ours", tmp_path / "theirs"
    write_jsonl(corpus, make_documents(60), key="body")
    options = {"slice_bytes": 900, "text_key": "body"}
    manifest = prepare_corpus(corpus, make_tokenizer(), ours, **options)
    assert len(manifest["shards"]) > 5
    assert prepare_corpus_with_beam(corpus, make_tokenizer(), theirs, **options) == manifest
    assert read_folder(theirs) == read_folder(ours)

    # It goes on with what is there.
    (theirs / "manifest.json").unlink()
    (theirs / "shard-00001.json").unlink()
    kept = (theirs / "shard-00000.array_record").stat().st_mtime_ns
    prepare_corpus_with_beam(corpus, make_tokenizer(), theirs, **options)
    assert read_folder(theirs) == read_folder(ours)
    assert (theirs / "shard-00000.array_record").stat().st_mtime_ns == kept


@pytest.mark.skipif(HAS_BEAM, reason="Apache Beam is there")
def test_without_beam(tmp_path):
    with pytest.raises(ImportError, match=r"pip install 'keras-bert-suite\[beam\]'"):
        prepare_corpus_with_beam(tmp_path, make_tokenizer(), tmp_path / "out")
    assert not (tmp_path / "out").exists()
