"""What is recognised, what is left to KerasHub, and what is said of the rest."""

import json
import shutil
from fnmatch import fnmatch

import keras_hub
import numpy as np
import pytest
from checkpoints.small_model import PIECES, SIZES
from peer_weights import to_numpy

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import open_checkpoint, preset_name
from keras_bert_suite.models import BertBackbone


def test_presets_of_keras_are_left_to_kerashub(tmp_path):
    backbone = BertBackbone.from_size("tiny", vocabulary_size=10)
    backbone.save_to_preset(str(tmp_path))
    assert open_checkpoint(tmp_path) is None


def test_other_schemes_are_left_to_kerashub():
    assert open_checkpoint("modelscope://a/b") is None


def test_kaggle(tmp_path, monkeypatch):
    """Presets of KerasHub's BERT are opened, others are left to KerasHub."""
    import kagglehub

    asked = []

    def model_download(handle, path=None):
        asked.append((handle, path))
        return str(tmp_path / path if path else tmp_path)

    monkeypatch.setattr(kagglehub, "model_download", model_download)
    keras_hub.models.BertBackbone(9, 1, 2, 4, 8).save_to_preset(str(tmp_path))
    handle = "keras/bert/keras/bert_tiny_en_uncased/3"
    assert open_checkpoint(f"kaggle://{handle}").backbone_config["num_layers"] == 1
    config = json.loads((tmp_path / "config.json").read_text())
    config["registered_name"] = "keras_hub>ElectraBackbone"
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert open_checkpoint(f"kaggle://{handle}") is None
    assert asked == [(handle, "config.json"), (handle, None), (handle, "config.json")]


def test_a_task_of_ours_on_kaggle(tmp_path, monkeypatch):
    """Its backbone is of KerasHub, and task.json comes with the second download."""
    import kagglehub

    def model_download(handle, path=None):
        if path is None:
            task = {"registered_name": "keras_bert_suite>TextClassifier"}
            (tmp_path / "task.json").write_text(json.dumps(task))
        return str(tmp_path / path if path else tmp_path)

    monkeypatch.setattr(kagglehub, "model_download", model_download)
    keras_hub.models.BertBackbone(9, 1, 2, 4, 8).save_to_preset(str(tmp_path))
    assert open_checkpoint("kaggle://owner/bert/keras/reviews/1") is None


def test_paths(toy, monkeypatch):
    """`pathlib.Path`, str and `~`."""
    monkeypatch.setenv("HOME", str(toy.parent))
    for preset in (toy, str(toy), f"~/{toy.name}", f"~/{toy.name}/bert_model.ckpt"):
        assert open_checkpoint(preset).backbone_config["vocabulary_size"] == 15
    assert preset_name(toy) == preset_name(f"~/{toy.name}") == str(toy)
    assert preset_name("hf://~/x") == "hf://~/x"


@pytest.mark.parametrize("preset", ["nowhere", "bert-base-uncased", "google/bert_tiny"])
def test_nothing_there(preset, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=f"{preset} does not exist.*hf://owner/name"):
        open_checkpoint(preset)


def test_own_presets_in_every_spelling(tmp_path, monkeypatch):
    """KerasHub takes str alone, and no `~`."""
    monkeypatch.setenv("HOME", str(tmp_path))
    tokenizer = kbs.WordPieceTokenizer(PIECES)
    packer = kbs.SegmentPacker(tokenizer, sequence_length=8)
    task = kbs.TextClassifier(BertBackbone(**SIZES), num_classes=2, preprocessor=packer)
    task.save_to_preset(str(tmp_path / "preset"))
    for preset in (tmp_path / "preset", "~/preset"):
        for cls, saved in (
            (BertBackbone, task.backbone),
            (kbs.SegmentPacker, packer),
            (kbs.WordPieceTokenizer, tokenizer),
            (kbs.TextClassifier, task),
        ):
            opened = cls.from_preset(preset)
            assert type(opened) is cls
            for weight, wanted in zip(opened.weights, saved.weights, strict=True):
                np.testing.assert_array_equal(to_numpy(weight), to_numpy(wanted))
        assert kbs.SegmentPacker.from_preset(preset).sequence_length == 8
        assert kbs.WordPieceTokenizer.from_preset(preset).get_vocabulary() == PIECES


def test_empty_directory(tmp_path):
    with pytest.raises(FileNotFoundError, match="found nothing, wanted a Hugging Face checkpoint"):
        open_checkpoint(tmp_path)


def test_directory_of_other_things(tmp_path):
    for i in range(30):
        (tmp_path / f"photo{i:02d}.jpg").touch()
    with pytest.raises(FileNotFoundError, match="found photo00.jpg, photo01.jpg.*photo19.jpg, ..."):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize("is_beside_a_model", [False, True])
def test_an_adapter_of_peft(save_peer, tmp_path, is_beside_a_model):
    """The files that PEFT writes, alone or beside the whole model of a trainer."""
    folder = save_peer()[1] if is_beside_a_model else tmp_path / "adapter"
    folder.mkdir(exist_ok=True)
    config = {"peft_type": "LORA", "base_model_name_or_path": "bert-base-uncased", "r": 8}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    (folder / "adapter_model.safetensors").write_bytes(b"")
    with pytest.raises(ValueError, match=r"an adapter of PEFT \(LORA\), .* of bert-base-uncased"):
        open_checkpoint(folder)
    with pytest.raises(ValueError, match="merge_and_unload"):
        kbs.TextClassifier.from_preset(folder, num_classes=2)


def test_single_file(save_peer):
    _, path = save_peer()
    with pytest.raises(ValueError, match="is a single file"):
        open_checkpoint(path / "model.safetensors")
    file = path / "model.keras"
    file.touch()
    with pytest.raises(ValueError, match=r"keras.saving.load_model\('.*model.keras'\) opens"):
        open_checkpoint(file)


def test_configuration_without_weights(save_peer):
    _, path = save_peer()
    (path / "model.safetensors").rename(path / "flax_model.msgpack")
    with pytest.raises(
        FileNotFoundError, match="no weights: found config.json, flax_model.msgpack"
    ):
        open_checkpoint(path)


@pytest.mark.parametrize("content", [b"{", b"", b"[1]", b"\xff\xfe\x00", b'"bert"'])
@pytest.mark.parametrize("name", ["config.json", "bert_config.json"])
def test_configuration_that_is_no_json_object(save_peer, toy, tmp_path, name, content):
    path = save_peer()[1] if name == "config.json" else shutil.copytree(toy, tmp_path / "toy")
    (path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} (is not JSON|must hold a JSON object)"):
        open_checkpoint(path)


def test_both_formats_in_one_directory(save_peer, toy):
    _, path = save_peer()
    shutil.copytree(toy, path, dirs_exist_ok=True)
    assert open_checkpoint(path).backbone_config["vocabulary_size"] == 24
    (path / "model.safetensors").unlink()
    assert open_checkpoint(path).backbone_config["vocabulary_size"] == 15


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """Serves the repository owner/name from a directory; `hub.copied` lists what was asked for."""
    import huggingface_hub

    class Hub:
        repository = tmp_path / "repository"
        cache = tmp_path / "cache"
        revisions = set()
        copied = []

    def snapshot_download(repo_id, *, revision=None, allow_patterns):
        assert repo_id == "owner/name"
        Hub.revisions.add(revision)
        Hub.cache.mkdir(exist_ok=True)
        for file in sorted(Hub.repository.rglob("*")):
            name = file.relative_to(Hub.repository).as_posix()
            if file.is_file() and any(fnmatch(name, pattern) for pattern in allow_patterns):
                Hub.copied.append(name)
                (Hub.cache / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, Hub.cache / name)
        return str(Hub.cache)

    Hub.copied, Hub.revisions = [], set()
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return Hub


def test_hub_downloads_one_format(hub, save_peer):
    _, path = save_peer(directory="repository")
    (path / "README.md").touch()
    wanted = sorted(file.name for file in path.iterdir())
    for name in ("pytorch_model.bin", "onnx/model.safetensors", "tf_model.h5", "logo.png"):
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).touch()
    checkpoint = open_checkpoint("hf://owner/name@v1.0")
    assert checkpoint.backbone_config["vocabulary_size"] == 24
    assert checkpoint.tokenizer_config["vocabulary"] == str(hub.cache / "vocab.txt")
    assert sorted(hub.copied) == wanted
    assert hub.revisions == {"v1.0"}


def test_hub_with_pytorch_weights_only(hub, save_peer):
    import torch

    peer, path = save_peer(directory="repository")
    (path / "model.safetensors").unlink()
    torch.save(peer.state_dict(), path / "pytorch_model.bin")
    assert open_checkpoint("hf://owner/name").tensor_shapes()
    assert hub.copied == ["config.json", "vocab.txt", "pytorch_model.bin"]
    assert hub.revisions == {None}


def test_hub_with_a_google_checkpoint(hub, toy):
    shutil.copytree(toy, hub.repository)
    (hub.repository / "bert_model.ckpt.meta").touch()
    assert len(open_checkpoint("hf://owner/name").tensor_shapes()) == 139
    assert "LICENSE.txt" not in hub.copied and "bert_model.ckpt.meta" not in hub.copied


def test_hub_preset_of_keras_hubs_bert(hub):
    tokenizer = keras_hub.models.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    preprocessor = keras_hub.models.BertTextClassifierPreprocessor(tokenizer)
    backbone = keras_hub.models.BertBackbone(9, 1, 2, 4, 8)
    backbone.save_to_preset(str(hub.repository))
    preprocessor.save_to_preset(str(hub.repository))
    (hub.repository / "logo.png").touch()
    checkpoint = open_checkpoint("hf://owner/name")
    assert checkpoint.backbone_config["vocabulary_size"] == 9
    assert "logo.png" not in hub.copied and "model.weights.h5" in hub.copied
    vocabulary = hub.cache / "assets" / "tokenizer" / "vocabulary.txt"
    assert checkpoint.tokenizer_config["vocabulary"] == str(vocabulary)
    assert vocabulary.is_file()


def test_hub_preset_of_keras_is_left_to_kerashub(hub):
    hub.repository.mkdir()
    config = {"registered_name": "keras_bert_suite>BertBackbone"}
    (hub.repository / "config.json").write_text(json.dumps(config))
    (hub.repository / "model.weights.h5").touch()
    assert open_checkpoint("hf://owner/name") is None
    assert hub.copied == ["config.json"]


@pytest.mark.parametrize("preset", ["hf://", "hf://a/b/c", "hf:///b"])
def test_malformed_handle(hub, preset):
    with pytest.raises(ValueError, match="Wanted 'hf://owner/name'"):
        open_checkpoint(preset)


def test_names_are_of_checkpoints_of_hugging_face(toy):
    message = "rename={'a': 'b'} is for checkpoints of Hugging Face, not .*toy. Leave it out"
    with pytest.raises(ValueError, match=message):
        open_checkpoint(toy, rename={"a": "b"})
