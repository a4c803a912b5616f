"""`keras-bert vocab`."""

import json

import pytest
from cli.small_files import list_files

import keras_bert_suite as kbs

TEXTS = {"a.txt": "Low lowing\nlowing ÉTÉ\r\n", "b.txt": "lowing 我能吞\n\n", "c/d.txt": "low été"}


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        path = tmp_path / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    return tmp_path


def test_writes_what_the_function_returns(run, corpus):
    status, out, err = run("vocab", "--input=corpus/**", "--output=out/vocab.txt")
    assert (status, err) == (0, "")
    assert "3 files: 10 words, 6 different ones of 11 different characters" in out
    # lowing, low and ete are a piece each: nothing is left to split.
    assert "of 30,522), 1.000 to a word; 100.00% of the words are one piece, 0.00% are" in out
    assert out.endswith("wrote out/vocab.txt\n")
    lines = (corpus / "out" / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert lines == kbs.train_vocabulary(TEXTS.values())
    tokenizer = kbs.WordPieceTokenizer(corpus / "out" / "vocab.txt")
    assert tokenizer.detokenize(tokenizer("Lowing été 能")) == "lowing ete能"
    assert list_files(corpus / "out") == ["vocab.txt"]


def test_it_reads_what_prepare_reads(run, corpus):
    """Not the syntax of JSON: a line feed is no letter n."""
    text = "low\nlowing été"
    (corpus / "a.jsonl").write_text(json.dumps({"body": text, "title": "no"}) + "\n")
    arguments = ["--input=a.jsonl", "--text_key=body", "--output=vocab.txt", "--min_frequency=1"]
    assert run("vocab", *arguments)[::2] == (0, "")
    lines = (corpus / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert lines == kbs.train_vocabulary([text], min_frequency=1)


def test_what_cannot_be_read(run, corpus):
    (corpus / "corpus" / "a.txt").write_bytes("low\n\nlowing été\n".encode("cp1252"))
    (corpus / "corpus" / "e.jsonl").write_text('{"text": "low"}\n[]\n')
    arguments = ["vocab", "--input=corpus/*", "--output=vocab.txt", "--min_frequency=1"]
    status, out, err = run(*arguments)
    assert (status, out) == (1, "") and not (corpus / "vocab.txt").exists()
    faults = [
        f"{corpus}/corpus/a.txt, line 3 is not UTF-8: byte 0xe9 at offset 12, invalid "
        "continuation byte.",
        f"{corpus}/corpus/e.jsonl, line 2: wanted an object with a string under 'text', "
        "got a list.",
    ]
    assert err.startswith("\n".join(["keras-bert: 2 places of the input cannot be read:", *faults]))

    # A library that learns from the texts before the fault would find too few.
    status, _, other = run(*arguments[:2], "--kind=unigram", "--output=spiece.model")
    assert (status, other) == (1, err)

    status, out, err = run(*arguments, "--on_error=skip")
    assert (status, err) == (0, "")
    assert "\n".join(["\n2 documents were left out:", *faults]) in out
    lines = (corpus / "vocab.txt").read_text(encoding="utf-8").splitlines()
    texts = ["low", TEXTS["b.txt"], TEXTS["c/d.txt"], "low"]
    assert lines == kbs.train_vocabulary(texts, min_frequency=1)

    arguments = ["vocab", "--input=corpus/a.txt", "--output=vocab.txt", "--min_frequency=1"]
    status, out, err = run(*arguments, "--encoding=latin1", "--overwrite")
    assert (status, err) == (0, "") and "left out" not in out
    lines = (corpus / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert lines == kbs.train_vocabulary(["low", "lowing été"], min_frequency=1)
    status, out, err = run(*arguments, "--errors=replace", "--overwrite")
    assert (status, err) == (0, "") and "U+FFFD was read for bytes of 1 lines or files" in out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"input": "corpus/*.tsv"}, "No file matches 'corpus/*.tsv'"),
        ({"input": "latin1.txt"}, "latin1.txt, line 2 is not UTF-8: byte 0xe9"),
        ({"input": "corpus/a.txt", "format": "jsonl"}, "a.txt, line 1 is not JSON"),
        ({"input": "empty.txt"}, "The texts hold no word"),
        ({"size": "110"}, "size=110 is less than the 104 special pieces"),
        ({"output": "latin1.txt"}, "latin1.txt exists already"),
    ],
)
def test_bad_input(run, corpus, flags, message):
    (corpus / "latin1.txt").write_bytes("low\n1\xe9".encode("latin-1"))
    (corpus / "empty.txt").write_bytes(b"")
    before = list_files(corpus)
    flags = {"input": "corpus/*", "output": "vocab.txt", **flags}
    status, out, err = run("vocab", *(f"--{name}={value}" for name, value in flags.items()))
    assert status == 1
    assert err.startswith("keras-bert: ") and message in err
    assert list_files(corpus) == before


@pytest.mark.parametrize(
    ("kind", "output", "cls"),
    [
        ("byte_pair", "pairs", "BytePairTokenizer"),
        ("unigram", "spiece.model", "AlbertTokenizer"),
        ("xlnet", "spiece.model", "XLNetTokenizer"),
    ],
)
def test_other_kinds(run, corpus, kind, output, cls):
    """prepare takes what vocab writes."""
    arguments = ("vocab", f"--kind={kind}", "--input=corpus/**", f"--output={output}", "--size=300")
    status, out, err = run(*arguments)
    assert (status, err) == (0, "") and "(the texts give no more, of 300)" in out
    tokenizer = kbs.open_tokenizer(corpus / output)
    assert type(tokenizer).__name__ == cls
    assert tokenizer.detokenize(tokenizer.tokenize("lowing low")) == "lowing low"
    # Of an uncased ALBERT and of an XLNet, the accents are stripped. The XLNet is cased.
    letters = {*"".join(piece for piece in tokenizer.get_vocabulary() if piece[0] not in "[<")}
    assert ("é" in letters) == (kind == "byte_pair")
    assert ("L" in letters) == (kind != "unigram")
    assert run("prepare", "--input=corpus/**", f"--vocab={output}", "--output=shards")[0] == 0
    assert f"{output} exists already" in run(*arguments)[2]
    assert run(*arguments, "--overwrite")[::2] == (0, "")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--kind=byte_pair", "--nolowercase"],
            "--lowercase is for --kind word_piece or unigram",
        ),
        (["--kind=unigram", "--num_unused=1"], "--num_unused is for --kind word_piece, not"),
        (["--character_coverage=1"], "is for --kind unigram or xlnet, not for --kind word_piece"),
        (["--kind=unigram"], "--output=vocab.txt must end in .model"),
    ],
)
def test_flags_of_other_kinds(run, corpus, flags, message):
    status, out, err = run("vocab", "--input=corpus/**", "--output=vocab.txt", *flags)
    assert (status, out) == (2, "") and message in err
