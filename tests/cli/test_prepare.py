"""`keras-bert prepare`."""

import pytest
from cli.small_files import list_files
from corpus.small_corpus import (
    check_same_corpus,
    make_documents,
    make_tokenizer,
    read_folder,
    tokenize_in_memory,
    write_jsonl,
    write_sentences,
)

from keras_bert_suite.corpus.preparation import prepare_corpus
from keras_bert_suite.corpus.shard_reader import open_corpus

DOCUMENTS = make_documents(40)


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_tokenizer().save_assets(tmp_path)
    (tmp_path / "corpus").mkdir()
    write_sentences(tmp_path / "corpus" / "a.txt", DOCUMENTS[:20])
    write_jsonl(tmp_path / "corpus" / "b.jsonl", DOCUMENTS[20:], key="body")
    return tmp_path


ARGUMENTS = ["prepare", "--input=corpus/*", "--vocab=vocab.txt", "--output=out/shards"]
OPTIONS = ["--text_key=body", "--slice_mb=0.001"]


def test_writes_what_the_function_writes(run, workshop):
    status, out, err = run(*ARGUMENTS, *OPTIONS, "--workers=1")
    assert (status, err) == (0, "")
    prepare_corpus("corpus", make_tokenizer(), "ours", slice_bytes=1049, text_key="body")
    assert read_folder(workshop / "out" / "shards") == read_folder(workshop / "ours")
    corpus = open_corpus("out/shards")
    check_same_corpus(corpus, tokenize_in_memory(DOCUMENTS, make_tokenizer()))

    counts = f"40 documents, {sum(map(len, DOCUMENTS))} sentences, {corpus.manifest['tokens']:,} "
    assert f"{counts}tokens, 0.00% of them unknown\n" in out
    shards = len(corpus.manifest["shards"])
    assert f"\n{shards} shards, " in out and " bytes a token\n" in out
    assert out.endswith("wrote out/shards\n")

    status, out, err = run(*ARGUMENTS, *OPTIONS, "--workers=1")
    assert (status, err) == (0, "") and f"{shards} shards" in out
    assert read_folder(workshop / "out" / "shards") == read_folder(workshop / "ours")


@pytest.mark.parametrize(
    "changes, status, message",
    [
        (["--input=absent/*"], 1, "No file matches 'absent/*'"),
        (["--vocab=absent.txt"], 1, "absent.txt: No such file"),
        (["--text_key=txt"], 1, "b.jsonl, line 1: wanted an object with a string under 'txt'"),
        (["--output=corpus"], 1, "corpus holds files already"),
        (["--workers=0"], 2, "--workers: wanted a number from 1"),
        (["--format=xml"], 2, "--format: invalid choice: 'xml'"),
        (["--slice_mb=-1"], 2, "--slice_mb: wanted a number from 1e-06"),
        (["--encoding=utf-16"], 1, "Convert other files to UTF-8, for example with iconv"),
        (["--errors=ignore"], 2, "--errors: invalid choice"),
        (["--on_error=warn"], 2, "--on_error: invalid choice"),
    ],
)
def test_bad_arguments(run, workshop, changes, status, message):
    before = list_files(workshop / "corpus")
    result, out, err = run(*ARGUMENTS, *OPTIONS, "--workers=1", *changes)
    assert (result, out) == (status, "") and message in err
    assert list_files(workshop / "corpus") == before


def test_what_cannot_be_read(run, workshop):
    """All of it at once, nothing written; then left out, replaced, or read as it was meant."""
    text = workshop / "corpus" / "c.txt"
    text.write_bytes("good film\n\nun déjà vu\n".encode("cp1252"))
    (workshop / "corpus" / "d.jsonl").write_text("{\n")
    status, out, err = run(*ARGUMENTS, *OPTIONS, "--workers=1")
    assert (status, out) == (1, "")
    faults = [
        f"{text}, line 3 is not UTF-8: byte 0xe9 at offset 15, invalid continuation byte.",
        f"{workshop}/corpus/d.jsonl, line 1 is not JSON: Expecting property name enclosed in double"
        " quotes (character 2).",
    ]
    assert err.startswith("\n".join(["keras-bert: 2 places of the input cannot be read:", *faults]))
    assert list_files(workshop / "out") == ["shards"]

    status, out, err = run(*ARGUMENTS, *OPTIONS, "--workers=1", "--on_error=skip")
    assert (status, err) == (0, "") and out.startswith("41 documents")
    assert "\n".join(["\n2 documents were left out:", *faults, "wrote out/shards"]) in out

    (workshop / "corpus" / "d.jsonl").unlink()
    arguments = [*ARGUMENTS[:-1], *OPTIONS, "--workers=1"]
    status, out, err = run(*arguments, "--output=replaced", "--errors=replace")
    assert (status, err) == (0, "")
    assert out.startswith("42 documents")
    assert "U+FFFD was read for bytes of 1 lines or files\nwrote replaced" in out
    status, out, err = run(*arguments, "--output=meant", "--encoding=windows-1252")
    assert (status, err) == (0, "") and out.startswith("42 documents") and "U+FFFD" not in out
    assert open_corpus("meant").manifest["encoding"] == "cp1252"


def test_other_flags_on_the_same_folder(run, workshop):
    assert run(*ARGUMENTS, *OPTIONS, "--workers=1")[0] == 0
    status, out, err = run(*ARGUMENTS, *OPTIONS, "--workers=1", "--nolowercase")
    assert (status, out) == (1, "") and "holds a corpus made wi" in err
