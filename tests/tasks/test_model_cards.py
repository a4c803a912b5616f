"""What the model card of a task says, and until when it is true."""

import shutil

import huggingface_hub
import keras
import numpy as np
import pytest
from cli.small_files import save_tiny_checkpoint
from small_texts import make_reviews

from keras_bert_suite import TextClassifier
from keras_bert_suite.files.model_card import read_card
from keras_bert_suite.heads.base.card_facts import find_card, list_facts

TEXTS, LABELS = make_reviews(8)


@pytest.fixture
def checkpoint(tmp_path):
    save_tiny_checkpoint(tmp_path / "bert")
    (tmp_path / "bert" / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
    return tmp_path / "bert"


@pytest.mark.filterwarnings("ignore:.* has no weights for:UserWarning")
def test_the_card_goes_with_the_model(checkpoint, tmp_path):
    task = TextClassifier.from_preset(checkpoint, label_names=["no", "yes"])
    assert task.card == {"base": "bert", "licence of the base": "apache-2.0"}
    last = task.fit(TEXTS, LABELS, epochs=2, verbose=0).history["loss"][-1]
    task.card["test"] = "accuracy 0.75"
    task.save_to_preset(tmp_path / "preset")
    card = read_card(tmp_path / "preset")
    for row in (
        "| labels | no, yes |",
        "| base | bert |",
        "| licence of the base | apache-2.0 |",
        "| test | accuracy 0.75 |",
    ):
        assert row in card.splitlines()
    assert f"epoch 2, accuracy {task.history.history['accuracy'][-1]:.4g}, loss {last:.4g}" in card

    task.save(tmp_path / "task.keras")
    loaded = keras.saving.load_model(tmp_path / "task.keras")
    loaded.save_to_preset(tmp_path / "again")
    assert read_card(tmp_path / "again") == card


@pytest.mark.filterwarnings("ignore:.* has no weights for:UserWarning")
@pytest.mark.parametrize("train", [TextClassifier.fit, TextClassifier.fit_on_features])
def test_the_data_of_the_last_fit(checkpoint, train):
    task = TextClassifier.from_preset(checkpoint, label_names=["no", "yes"])

    def see(texts, labels, **arguments):
        train(task, texts, labels, epochs=1, verbose=0, **arguments)
        return task.card["data of the last fit"]

    digest = see(TEXTS, LABELS)
    assert digest.startswith("8 rows with the digest ")
    assert see(np.array(TEXTS), tuple(LABELS)) == see(list(np.array(TEXTS)), LABELS) == digest
    others = [
        see([TEXTS[0] + " ", *TEXTS[1:]], LABELS),
        see(TEXTS, ["yes", *LABELS[1:]]),
        see(TEXTS, LABELS, sample_weight=np.ones(8)),
        see(TEXTS, LABELS, validation_split=0.25),
    ]
    assert len({digest, *others}) == 5 and others[-1].startswith("6 rows ")

    # A fit that is refused has seen nothing.
    task.fit(iter([(TEXTS, LABELS)]), steps_per_epoch=1, verbose=0)
    with pytest.raises(ValueError, match="maybe"):
        see(TEXTS, ["maybe", *LABELS[1:]])
    assert task.card["data of the last fit"] == "a dataset"


@pytest.mark.filterwarnings("ignore:.* has no weights for:UserWarning")
@pytest.mark.filterwarnings("ignore:.*holds a classification layer:UserWarning")
def test_other_weights_drop_the_scores(checkpoint, tmp_path):
    task = TextClassifier.from_preset(checkpoint, label_names=["no", "yes"])
    task.fit(TEXTS, LABELS, verbose=0)
    task.card.update({"test": "accuracy 0.75", "data": "reviews"})
    task.save_to_preset(tmp_path / "preset")
    last = {"data of the last fit": task.card["data of the last fit"]}
    kept = {"base": "bert", "licence of the base": "apache-2.0", "data": "reviews", **last}

    loaded = TextClassifier.from_preset(tmp_path / "preset")
    assert set(loaded.card) == {*kept, "last epoch", "test"}
    loaded.fit(TEXTS, LABELS, verbose=0)
    assert loaded.card == kept
    task.train_on_batch(TEXTS, LABELS)
    assert find_card(task) == kept
    new_head = TextClassifier.from_preset(tmp_path / "preset", label_names=["a", "b", "c"])
    assert new_head.card == kept
    fewer = TextClassifier.from_preset(tmp_path / "preset", max_sequence_length=16)
    assert fewer.card == kept


@pytest.mark.filterwarnings("ignore:.* has no weights for:UserWarning")
def test_the_backend_is_that_of_the_training(checkpoint, tmp_path, monkeypatch):
    """An export of a model of PyTorch is written in a process of TensorFlow."""
    task = TextClassifier.from_preset(checkpoint, label_names=["no", "yes"])
    task.fit(TEXTS, LABELS, verbose=0)
    task.save(tmp_path / "task.keras")
    loaded = keras.saving.load_model(tmp_path / "task.keras", compile=False)
    backend = keras.config.backend()
    monkeypatch.setattr(keras.config, "backend", lambda: "another")
    facts = list_facts(loaded)
    assert facts["last epoch"].endswith(f", backend {backend}")
    assert "another" not in str(facts)


@pytest.fixture
def hub(checkpoint, tmp_path, monkeypatch):
    """Serves `checkpoint` as owner/name."""

    def snapshot_download(repo_id, *, revision=None, allow_patterns):
        assert (repo_id, revision) == ("owner/name", "v1.0")
        (tmp_path / "cache").mkdir(exist_ok=True)
        for pattern in allow_patterns:
            for file in checkpoint.glob(pattern):
                shutil.copy(file, tmp_path / "cache")
        return str(tmp_path / "cache")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)


@pytest.mark.filterwarnings("ignore:.* has no weights for:UserWarning")
@pytest.mark.parametrize("has_readme", [True, False])
def test_the_licence_of_a_base_on_the_hub(checkpoint, hub, has_readme):
    if not has_readme:
        (checkpoint / "README.md").unlink()
    task = TextClassifier.from_preset("hf://owner/name@v1.0", label_names=["no", "yes"])
    licence = {"licence of the base": "apache-2.0"} if has_readme else {}
    assert task.card == {"base": "hf://owner/name@v1.0", **licence}
