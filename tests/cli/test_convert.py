"""`keras-bert convert`."""

import json
import shutil

import keras
import keras_hub
import numpy as np
from cli.small_files import list_files
from peer_weights import randomize, run_transformers, to_numpy
from safetensors.numpy import load_file, save_file
from small_texts import TINY, VOCABULARY

import keras_bert_suite as kbs
from keras_bert_cli.saved_tasks import find_task
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


def save_with_head(source, path, head, **config):
    """Writes a copy of a Hugging Face checkpoint that has two more tensors."""
    shutil.copytree(source, path)
    values = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**values, **config}))
    tensors = load_file(path / "model.safetensors")
    tensors[f"{head}.weight"] = np.ones((2, TINY["hidden_dim"]), "float32")
    tensors[f"{head}.bias"] = np.zeros(2, "float32")
    save_file(tensors, path / "model.safetensors")


def test_heads_that_would_be_lost(run, workshop, tmp_path):
    for head, architecture, message in (
        ("relations", "BertForRelations", "cannot be converted: relations. Pass"),
        ("classifier", "BertForMultipleChoice", "cannot be converted: classifier. Pass"),
        ("cls.seq_relationship", "BertForNextSentencePrediction", "converted: cls.seq_relation"),
    ):
        source = tmp_path / architecture
        save_with_head(workshop / "checkpoint", source, head, architectures=[architecture])
        arguments = ["convert", "--input", source, "--to=huggingface", "--output"]
        status, out, err = run(*arguments, tmp_path / "out")
        assert (status, out) == (1, "") and message in err and "--encoder_only" in err
        assert not (tmp_path / "out").exists()

        output = tmp_path / f"encoder_of_{architecture}"
        assert run(*arguments, output, "--encoder_only")[0] == 0
        for file in (workshop / "checkpoint").iterdir():
            assert (output / file.name).read_bytes() == file.read_bytes(), file.name


def test_a_part_without_its_head_is_refused(run, tmp_path):
    arguments = ["--input", tmp_path, "--to=huggingface", "--output", tmp_path / "out"]
    status, _, err = run("convert", *arguments, "--part=masked_lm", "--encoder_only")
    assert status == 2 and "--encoder_only leaves out the head of --part masked_lm" in err


def test_encoder_of_a_classifier(run, finetuned, tmp_path):
    arguments = ["convert", "--input", finetuned / "model.keras", "--to=huggingface", "--output"]
    assert run(*arguments, tmp_path / "out", "--encoder_only")[::2] == (0, "")
    assert open_checkpoint(tmp_path / "out").label_names is None


def test_preset_of_keras_hub(run, tmp_path):
    """A classifier of KerasHub's BERT becomes one of transformers."""
    import transformers

    peer = keras_hub.models.BertTextClassifier(
        keras_hub.models.BertBackbone(len(VOCABULARY), 1, 2, 16, 32, max_sequence_length=16),
        num_classes=3,
        preprocessor=keras_hub.models.BertTextClassifierPreprocessor(
            keras_hub.models.BertTokenizer(VOCABULARY, lowercase=True), sequence_length=16
        ),
    )
    randomize(peer)
    peer.save_to_preset(str(tmp_path / "preset"))
    output = tmp_path / "out"
    arguments = ["convert", "--input", tmp_path / "preset", "--to=huggingface"]
    assert run(*arguments, "--output", output)[::2] == (0, "")
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(output)
    inputs = peer.preprocessor(["the film was good", "dull plot"])
    expected = run_transformers(theirs, {k: to_numpy(v) for k, v in inputs.items()}).logits
    np.testing.assert_allclose(to_numpy(peer(inputs)), expected.detach().numpy(), atol=1e-5)


def test_classifier_to_keras_hub(run, finetuned, tmp_path):
    model, output = finetuned / "model.keras", tmp_path / "preset"
    arguments = ["convert", "--input", model, "--to=keras_hub", "--output", output]
    status, _, errors = run(*arguments)
    assert status == 0, errors
    peer = keras_hub.models.TextClassifier.from_preset(str(output))
    assert type(peer) is keras_hub.models.BertTextClassifier
    texts = ["the film was good", "dull plot"]
    wanted = keras.saving.load_model(model).predict(texts, verbose=0)
    # The model may have the exact GELU, and KerasHub's has the approximate one.
    np.testing.assert_allclose(peer.predict(texts, verbose=0), wanted, atol=2e-3)
    assert run(*arguments, "--overwrite")[0] == 0


def test_bad_input(run, workshop, tmp_path):
    before = list_files(tmp_path)
    output = ["--to=huggingface", "--output", tmp_path / "out"]
    for path, message in (
        (workshop, "holds no model. Pass the folder"),
        (workshop / "absent", "absent does not exist"),
        (workshop / "train.tsv", "train.tsv is a single file"),
    ):
        status, out, err = run("convert", "--input", path, *output)
        assert (status, out) == (1, "") and message in err
    checkpoint = workshop / "checkpoint"
    arguments = ["convert", "--input", checkpoint, "--to=preset", "--output", tmp_path]
    assert "exists already" in run(*arguments)[2]
    assert list_files(tmp_path) == before


def test_any_classifier_of_keras_hub_is_read_as_ours(tmp_path):
    encoder = {"registered_name": "keras_hub>XLNetBackbone", "class_name": "XLNetBackbone"}
    (tmp_path / "config.json").write_text(json.dumps({**encoder, "config": {}}))
    (tmp_path / "model.weights.h5").touch()
    for name, wanted in (("XLNetTextClassifier", "TextClassifier"), ("XLNetTagger", "XLNetTagger")):
        (tmp_path / "task.json").write_text(json.dumps({"class_name": name}))
        assert find_task(str(tmp_path)) == wanted
