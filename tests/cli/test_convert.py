"""`keras-bert convert`."""

import keras
import numpy as np
import pytest
from cli.small_files import list_files
from peer_weights import to_numpy

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import open_checkpoint


def test_backbone_there_and_back(run, workshop, tmp_path):
    checkpoint, preset, back = workshop / "checkpoint", tmp_path / "preset", tmp_path / "back"
    assert run("convert", "--input", checkpoint, "--to=preset", "--output", preset)[::2] == (0, "")
    assert run("convert", "--input", preset, "--to=huggingface", "--output", back)[::2] == (0, "")
    for file in checkpoint.iterdir():
        assert (back / file.name).read_bytes() == file.read_bytes(), file.name
    # Whole as it is: `finetune` takes it.
    assert kbs.TextClassifier.from_preset(str(preset), num_classes=2).preprocessor is not None


def test_classifier_to_hugging_face(run, finetuned, tmp_path):
    import transformers

    model = finetuned / "model.keras"
    arguments = ["convert", "--input", model, "--to=huggingface", "--output", tmp_path / "hf"]
    assert run(*arguments)[::2] == (0, "")
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "hf")
    assert theirs.config.id2label == {0: "no", 1: "yes"}
    text = tmp_path / "text.txt"
    text.write_text("a good film")
    answers = {run("predict", "--model", m, "--input", text)[1] for m in (model, tmp_path / "hf")}
    assert len(answers) == 1


def test_backbone_to_google_and_back(run, workshop, tmp_path):
    checkpoint, google, back = workshop / "checkpoint", tmp_path / "google", tmp_path / "back"
    assert run("convert", "--input", checkpoint, "--to=google_tf1", "--output", google)[0] == 0
    assert list_files(google) == [
        *("bert_config.json", "bert_model.ckpt.data-00000-of-00001", "bert_model.ckpt.index"),
        "vocab.txt",
    ]
    assert run("convert", "--input", google, "--to=huggingface", "--output", back)[::2] == (0, "")
    for file in checkpoint.iterdir():
        assert (back / file.name).read_bytes() == file.read_bytes(), file.name


def test_classifier_to_google(run, finetuned, tmp_path):
    model, output = finetuned / "model.keras", tmp_path / "google"
    arguments = ["convert", "--input", model, "--to=google_tf1", "--output", output]
    assert run(*arguments)[::2] == (0, "")
    kernel = keras.saving.load_model(model).classifier.kernel
    tensor = open_checkpoint(output).tensor("output_weights")
    np.testing.assert_array_equal(tensor.T, to_numpy(kernel))


@pytest.mark.backend_free
def test_bad_input(run, workshop, tmp_path):
    before = list_files(tmp_path)
    output = ["--to=huggingface", "--output", tmp_path / "out"]
    for path, message in (
        (workshop, "holds no checkpoint"),
        (workshop / "absent", "absent does not exist"),
        (workshop / "train.tsv", "train.tsv is a single file"),
    ):
        status, out, err = run("convert", "--input", path, *output)
        assert (status, out) == (1, "") and message in err
    checkpoint = workshop / "checkpoint"
    arguments = ["convert", "--input", checkpoint, "--to=preset", "--output", tmp_path]
    assert "exists already" in run(*arguments)[2]
    assert list_files(tmp_path) == before
