"""`keras-bert adapt`."""

import json
import re

import pytest
from cli.small_files import save_tiny_checkpoint
from small_texts import VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_cli import adapt, pretrain
from keras_bert_suite.checkpoints import save_hugging_face

RECIPE = "--text_column=sentence --epochs=1 --learning_rate=1e-3 --sequence_length=16"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A file of reviews, one a line."""
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("\n".join(make_reviews(60, seed=5)[0]) + "\n", encoding="utf-8")
    return path


def flags_of(workshop, texts, output):
    small = ("--sequence_length=16", "--batch_size=4", "--held_out=0.2", "--epochs=1")
    return ("--checkpoint", workshop / "checkpoint", "--texts", texts, "--output", output, *small)


@pytest.mark.parametrize(
    "all_of_it", [False, pytest.param(True, marks=pytest.mark.long("combinations"))]
)
def test_texts_to_scores(run, workshop, texts, tmp_path, all_of_it):
    files = f"--train {workshop / 'train.tsv'} --test {workshop / 'dev.tsv'} {RECIPE}"
    output, mask = tmp_path / "adapted", "the [MASK] was good"
    arguments = (*flags_of(workshop, texts, output), f"--text={mask}", f"--finetune={files}")
    status, out, err = run("adapt", *arguments, "--seeds=1")
    assert status == 0 and "checkpoint has no weights for masked_lm" in err
    assert "checkpoint has no head that guesses masked tokens" in out and mask in out
    assert (output / "scores.png").read_bytes().startswith(b"\x89PNG")
    settings = json.loads((output / "run" / "settings.json").read_text())
    assert (settings["unit"], settings["mode"]) == ("word", "full_sentences")
    # The scores are those of keras-bert finetune itself.
    scores = json.loads((output / "scores.json").read_text())
    models = {"adapted": output / "run" / "model", "checkpoint": workshop / "checkpoint"}
    for name, path in list(models.items())[: None if all_of_it else 1]:
        single = ["--checkpoint", path, *files.split(), "--output", tmp_path / f"{name}.keras"]
        printed = run("finetune", *single)[1]
        accuracy = re.search(r"^test .*?accuracy ([\d.]+)", printed, re.MULTILINE)[1]
        assert f"{scores[name][0]['accuracy']:.4f}" == accuracy

    # More seeds go on.
    status, out, err = run("adapt", *arguments, "--seeds=2")
    assert (status, err) == (0, "") and "is finished" in out and "seed 0" not in out
    after = json.loads((output / "scores.json").read_text())
    assert after["adapted"][0] == scores["adapted"][0] and len(after["adapted"]) == 2
    if not all_of_it:
        return
    # With the head that is there now, the guesses and the perplexity before are shown, too. Another
    # recipe begins anew.
    again = arguments[:-1] + (f"--finetune={files} --batch_size=8",)
    assert "seed 0, adapted" in run("adapt", *again, "--seeds=1")[1]
    second = flags_of(output / "run" / "none", texts, tmp_path / "second")
    second = ("--checkpoint", output / "run" / "model", *second[2:], f"--text={mask}")
    status, out, err = run("adapt", *second)
    assert (
        (status, err) == (0, "")
        and out.count(mask) == 2
        and "  val_mlm_loss " in out.split("step 0/")[1].split("\n")[0]
    )
    assert kbs.TextClassifier.from_preset(str(tmp_path / "second/run/model"), num_classes=2)


@pytest.mark.parametrize(
    ("finetune", "message"),
    [
        ("--train a.tsv", "--finetune needs --test"),
        ("--train a.tsv --test b.tsv --seed 3", "--finetune has --seed"),
        ("--train a.tsv --test b.tsv --errors c.csv", "--finetune has --errors"),
        ("--train a.tsv --test b.tsv --epoch 3", "--epoch"),
        ("--train a.json --test b.json --task qa --sequence_length auto", "auto is not for"),
    ],
)
def test_a_wrong_recipe(run, workshop, texts, tmp_path, finetune, message):
    arguments = flags_of(workshop, texts, tmp_path / "adapted")
    status, out, err = run("adapt", *arguments, f"--finetune={finetune}")
    assert (status, out) == (2, "") and message in err
    assert not (tmp_path / "adapted").exists()


@pytest.mark.parametrize(
    ("text", "flags", "segmenter"),
    [
        ("这部电影很好看", [], "jieba"),
        ("这部电影很好看", ["--unit=token"], None),
        ("这部电影很好看", ["--word_segmenter=none"], "none"),
        ("a good film", [], None),
    ],
)
def test_chinese_words(run, tmp_path, monkeypatch, text, flags, segmenter):
    """Whole words are those of jieba, unless other words are asked for."""
    seen = []
    monkeypatch.setattr(pretrain, "run", lambda stage: seen.append(stage) or 143)
    monkeypatch.setattr(adapt, "show_checkpoint", lambda *arguments: None)
    save_tiny_checkpoint(tmp_path / "bert")
    tokenizer = kbs.WordPieceTokenizer([*VOCABULARY, *"这部电影很好看"])
    backbone = kbs.BertBackbone.from_size("tiny", tokenizer.vocabulary_size())
    save_hugging_face(backbone, tmp_path / "chinese", tokenizer=tokenizer)
    # A table beside a file of lines.
    (tmp_path / "a.tsv").write_text(f"id\tbody\n1\t{text}\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text(f"{text}\n", encoding="utf-8")
    files = f"{tmp_path / 'a.tsv'},{tmp_path / 'b.txt'}"
    arguments = ["--checkpoint", tmp_path / "chinese", "--texts", files, "--text_column=body"]
    status, out, err = run("adapt", *arguments, "--output", tmp_path / "out", *flags)
    assert (status, err) == (143, "") and "2 texts" in out
    assert seen[0].word_segmenter == segmenter
