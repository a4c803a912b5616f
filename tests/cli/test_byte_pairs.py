"""`prepare`, `pretrain` and `fill-mask` with RoBERTa's tokenizer."""

import pytest
from small_byte_pairs import MERGES, make_vocabulary
from small_texts import make_reviews

import keras_bert_suite as kbs


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kbs.BytePairTokenizer(make_vocabulary(), MERGES).save_assets(tmp_path)
    documents = [make_reviews(6, seed)[0] for seed in range(20)]
    texts = "\n\n".join("\n".join(document) for document in documents)
    (tmp_path / "corpus.txt").write_text(texts + "\n")
    return tmp_path


PREPARE = ("prepare", "--input=corpus.txt", "--vocab=vocab.json", "--output=shards", "--workers=1")


def test_a_corpus_and_a_pretraining(run, workshop):
    status, out, err = run(*PREPARE)
    assert (status, err) == (0, "") and "20 documents, 120 sentences" in out
    for name in ("vocab.json", "merges.txt"):
        assert (workshop / "shards" / name).read_bytes() == (workshop / name).read_bytes()

    arguments = ("--corpus=shards", "--output=run", "--size=tiny", "--mode=full_sentences")
    sizes = ("--batch_size=4", "--sequence_length=32", "--max_predictions=5")
    steps = ("--steps=2", "--report_every=1", "--checkpoint_every=2", "--evaluation_batches=1")
    status, out, err = run("pretrain", *arguments, *sizes, *steps)
    assert (status, err) == (0, "")
    pretrainer = kbs.Pretrainer.from_preset("run/model")
    assert type(pretrainer.backbone) is kbs.RobertaBackbone
    assert not pretrainer.next_sentence

    arguments = ("--model=run/model", "--text=the <mask> film", "--top_k=2")
    status, out, err = run("fill-mask", *arguments)
    assert (status, err) == (0, "")
    text, guesses = out.splitlines()
    assert text == "the <mask> film" and len(guesses.split("  ")) == 3
    status, _, err = run("fill-mask", "--model=run/model", "--text=the [MASK] film")
    assert status == 1 and "<mask>" in err


def test_what_is_missing_is_named(run, workshop):
    status, _, err = run(*PREPARE, "--nolowercase")
    assert status == 2 and "--lowercase is for a vocab.txt" in err
    (workshop / "merges.txt").unlink()
    status, _, err = run(*PREPARE)
    assert status == 1 and "vocab.json has no merges.txt beside it" in err
    assert not (workshop / "shards").exists()
