"""What holds for each format that is written."""

import os
import sys

import keras_hub
import pytest

from keras_bert_suite.checkpoints import save_google_tf1, save_hugging_face, save_keras_hub
from keras_bert_suite.heads import TextClassifier
from keras_bert_suite.models import (
    AlbertBackbone,
    BertBackbone,
    DistilBertBackbone,
    RobertaBackbone,
)
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.tokenizers import WordPieceTokenizer

SIZES = {
    "vocabulary_size": 1000,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 16,
    "max_sequence_length": 12,
}
SAVERS = [save_google_tf1, save_hugging_face]


@pytest.mark.parametrize(
    ("save", "cls", "name", "value", "constant"),
    [
        (save_google_tf1, BertBackbone, "layer_norm_epsilon", 1e-5, 1e-12),
        (save_hugging_face, BertBackbone, "embedding_dim", 4, 8),
        (save_hugging_face, DistilBertBackbone, "layer_norm_epsilon", 1e-5, 1e-12),
        (save_hugging_face, DistilBertBackbone, "num_segments", 2, 0),
        (save_keras_hub, AlbertBackbone, "layer_norm_epsilon", 1e-5, 1e-12),
        (save_keras_hub, BertBackbone, "embedding_dim", 4, 8),
        (save_keras_hub, DistilBertBackbone, "num_segments", 2, 0),
        (save_keras_hub, RobertaBackbone, "num_segments", 2, 1),
    ],
)
def test_each_constant_of_a_format_alone(save, cls, name, value, constant, tmp_path):
    usual = {"layer_norm_epsilon": 1e-5 if cls is RobertaBackbone else 1e-12}
    backbone = cls(**{**SIZES, **usual, name: value})
    with pytest.raises(ValueError, match=f"has {name}={constant}, got {value}"):
        save(backbone, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize("save", SAVERS)
def test_existing_target_stays(tmp_path, save):
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "precious").write_text("old")
    with pytest.raises(FileExistsError, match="exists already"):
        save(BertBackbone(**SIZES), tmp_path / "saved")
    assert os.listdir(tmp_path / "saved") == ["precious"]


@pytest.mark.parametrize(
    "save, name",
    [
        (save_google_tf1, "BertBackbone"),
        (save_hugging_face, "BertBackbone"),
        (save_hugging_face, "DistilBertBackbone"),
    ],
)
def test_backbones_of_keras_hub_are_refused_by_name(tmp_path, save, name):
    names = ("vocabulary_size", "num_layers", "num_heads", "hidden_dim", "intermediate_dim")
    backbone = getattr(keras_hub.models, name)(**{size: SIZES[size] for size in names})
    task = TextClassifier(backbone, num_classes=2)
    for model in (backbone, task):
        with pytest.raises(ValueError, match=f"keras_hub's {name}. Use `model.save_to_preset`"):
            save(model, tmp_path / "saved")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file size limit")
@pytest.mark.parametrize("save", SAVERS)
@pytest.mark.parametrize("largest_file", [100, 1000, 10_000])
def test_full_disk_leaves_nothing(tmp_path, save, largest_file):
    import resource

    backbone = BertBackbone(**SIZES)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = WordPieceTokenizer([*special, *(f"a{i}" for i in range(995))])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            save(backbone, tmp_path / "saved", tokenizer)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("save", SAVERS)
def test_segments_of_a_packer_are_not_lost_in_silence(tmp_path, save):
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    packer = SegmentPacker(tokenizer, 12, segment_ids=(0, 0))
    backbone = BertBackbone(**{**SIZES, "vocabulary_size": 5})
    classifier = TextClassifier(backbone, num_classes=2, preprocessor=packer)
    with pytest.warns(UserWarning, match=r"do not keep segment_ids=\(0, 0\)"):
        save(classifier, tmp_path / "saved")
