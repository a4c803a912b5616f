"""The tables name every weight, both ways."""

import numpy as np
import pytest
import torch
from peer_weights import to_numpy
from transformers.activations import ACT2FN

from keras_bert_suite.checkpoints.google_tf1.released_models import GOOGLE_TF1
from keras_bert_suite.checkpoints.model_types import activation_names
from keras_bert_suite.checkpoints.model_types.activation_names import find_ours, find_theirs
from keras_bert_suite.checkpoints.model_types.bert import BERT
from keras_bert_suite.checkpoints.model_types.name_table import matches_any
from keras_bert_suite.heads import Pretrainer, TextClassifier
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.models.activations import ACTIVATIONS

TABLES = pytest.mark.parametrize("table", [GOOGLE_TF1, BERT.names])


@TABLES
def test_every_weight_has_one_name_and_back(table):
    backbone = BertBackbone(
        vocabulary_size=9, num_layers=12, num_heads=2, hidden_dim=4, intermediate_dim=8
    )
    tasks = Pretrainer(backbone), TextClassifier(backbone, num_classes=2)
    paths = list(dict.fromkeys(weight.path for task in tasks for weight in task.weights))
    paths = [path for path in paths if "seed_generator" not in path]
    names = [table.their_name(path)[0] for path in paths]
    assert len(set(names)) == len(paths) == 5 + 12 * 16 + 2 + 7 + 2
    assert [table.our_path(name)[0] for name in names] == paths
    assert not any(matches_any(name, table.ignored) for name in names)
    assert [table.spell(name) for name in names] == names


@TABLES
def test_both_tables_have_the_same_rows(table):
    paths = [row[0] for row in GOOGLE_TF1.rows]
    if table is BERT.names:  # cannot hold embeddings of another width
        paths = [path for path in paths if not path.startswith("embeddings/projection/")]
        for head in ("token_classifier", "choice_scorer"):  # Google has no such heads.
            paths += [f"{head}/kernel", f"{head}/bias"]
    assert sorted(row[0] for row in table.rows) == sorted(paths)


@TABLES
def test_stranger_has_no_name(table):
    for path in ("transformer_layer_x/pooler/kernel", "pooler/kernel/more", "my/pooler/kernel"):
        assert table.their_name(path) is None
        assert table.our_path(path) is None


def test_names_known_from_elsewhere():
    ours = "transformer_layer_11/self_attention/output_projection/kernel"
    google, same = GOOGLE_TF1.their_name(ours)
    hugging_face, transposed = BERT.names.their_name(ours)
    assert google == "bert/encoder/layer_11/attention/output/dense/kernel"
    assert hugging_face == "bert.encoder.layer.11.attention.output.dense.weight"
    assert same is not transposed


@pytest.mark.parametrize(
    "names", [activation_names.HUGGING_FACE, activation_names.GOOGLE, activation_names.KERAS_HUB]
)
def test_activations_are_ones_the_backbone_knows(names):
    assert set(names) <= set(ACTIVATIONS)
    for ours, theirs in names.items():
        assert find_theirs(ACTIVATIONS[ours], names, "the library") == theirs[0]


def test_activations_of_hugging_face_are_those_of_transformers():
    x = np.linspace(-3, 3, 41, dtype="float32")
    for theirs, ours in find_ours(activation_names.HUGGING_FACE).items():
        wanted = ACT2FN[theirs](torch.from_numpy(x)).numpy()
        np.testing.assert_allclose(
            to_numpy(ACTIVATIONS[ours](x)), wanted, atol=1e-6, err_msg=theirs
        )
