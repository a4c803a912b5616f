"""examples/pretrain_corpus.py, on a corpus of a few kilobytes."""

import runpy

import pytest

import keras_bert_suite as kbs


@pytest.mark.long("examples")
def test_script(examples, monkeypatch, capsys):
    monkeypatch.chdir(examples)
    script = examples / "pretrain_corpus.py"
    source = script.read_text(encoding="utf-8")
    assert source.count("epochs=40") == 1
    script.write_text(source.replace("epochs=40", "epochs=2"), encoding="utf-8")
    names = runpy.run_path(str(script))
    answers = capsys.readouterr().out.splitlines()[-2:]
    for text, answer in zip(names["texts"], answers, strict=True):
        assert answer.startswith(f"{text} ") and answer.count(", ") == text.count(", ") + 4
    classifier = kbs.TextClassifier.from_preset("pretrained_inaugural/model", num_classes=2)
    assert classifier.backbone.vocabulary_size == len(names["vocabulary"])

    runpy.run_path(str(script))  # What is done is not done again.
    again = capsys.readouterr().out.splitlines()
    assert again[-2:] == answers and not any("Epoch" in line for line in again)
