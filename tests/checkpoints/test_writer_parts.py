"""What holds for each format that is written."""

import os
import sys

import keras_hub
import pytest

from keras_bert_suite.checkpoints import save_google_tf1, save_hugging_face
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.tasks import TextClassifier
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


@pytest.mark.parametrize("save", SAVERS)
def test_existing_target_stays(tmp_path, save):
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "precious").write_text("old")
    with pytest.raises(FileExistsError, match="exists already"):
        save(BertBackbone(**SIZES), tmp_path / "saved")
    assert os.listdir(tmp_path / "saved") == ["precious"]


@pytest.mark.parametrize("save", SAVERS)
@pytest.mark.parametrize("name", ["BertBackbone", "DistilBertBackbone"])
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
