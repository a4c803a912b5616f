"""A head that is in the file and not loaded is named: one warning, or one line of the log."""

import logging
import warnings

import keras_hub
import numpy as np
import pytest
import torch
import transformers
from checkpoints.small_model import PIECES, SIZES
from checkpoints.wild_files import edit_tensors
from peer_weights import randomize
from safetensors.torch import load_file
from tables import left_out, short_for

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import open_checkpoint, save_google_tf1

NEW = {"num_classes": 5, "label_names": None}


def open_and_listen(cls, path, caplog, **arguments):
    """(messages of our warnings, messages of our log) of `cls.from_preset`."""
    if not issubclass(cls, keras_hub.models.Backbone):
        arguments = {"preprocessor": None, **arguments}
    caplog.clear()
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.INFO):
        warnings.simplefilter("always")
        cls.from_preset(path, **arguments)
    warned = [str(w.message) for w in caught if str(path) in str(w.message)]
    logged = [r.getMessage() for r in caplog.records if r.name == "keras_bert_suite"]
    return warned, logged


PRETRAINING = ("cls.predictions", "cls.seq_relationship")
CLASSIFIER = ("classifier.weight", "classifier.bias")

#: (class of transformers that wrote the file, class that opens it, its arguments, class of
#: transformers that would open it, what is warned of, what is logged)
CASES = [
    ("SequenceClassification", kbs.BertBackbone, {}, "BertModel", (), ("classifier",)),
    ("SequenceClassification", kbs.TokenClassifier, NEW, None, CLASSIFIER, ()),
    ("SequenceClassification", kbs.EntitySpanClassifier, NEW, None, CLASSIFIER, ()),
    ("SequenceClassification", kbs.TextClassifier, NEW, None, ("holds a classification lay",), ()),
    (
        *("SequenceClassification", kbs.QuestionAnswerer, {}, "BertForQuestionAnswering"),
        (*CLASSIFIER, "no weights for span_labeler/kernel"),
        (),
    ),
    (
        *("SequenceClassification", kbs.MaskedLM, {}, "BertForMaskedLM"),
        (*CLASSIFIER, "no weights for masked_lm/"),
        (),
    ),
    ("SequenceClassification", kbs.TextEmbedder, {}, "BertModel", CLASSIFIER, ()),
    ("TokenClassification", kbs.TextClassifier, NEW, None, CLASSIFIER, ()),
    ("MultipleChoice", kbs.TextClassifier, NEW, None, CLASSIFIER, ()),
    (
        *("QuestionAnswering", kbs.TextClassifier, NEW, "BertForSequenceClassification"),
        ("qa_outputs.weight", "qa_outputs.bias", "New and random, so train them: classifier/"),
        (),
    ),
    ("PreTraining", kbs.BertBackbone, {}, "BertModel", (), PRETRAINING),
    ("PreTraining", kbs.TextClassifier, NEW, "BertForSequenceClassification", (), PRETRAINING),
    ("PreTraining", kbs.MaskedLM, {}, "BertForMaskedLM", (), PRETRAINING[1:]),
    ("PreTraining", kbs.Pretrainer, {}, "BertForPreTraining", (), ()),
]
SHORT = [
    *(
        ("SequenceClassification", cls)
        for cls in (kbs.BertBackbone, kbs.TokenClassifier, kbs.TextClassifier, kbs.MaskedLM)
    ),
    *(("PreTraining", cls) for cls in (kbs.BertBackbone, kbs.MaskedLM, kbs.Pretrainer)),
]


@pytest.mark.parametrize(
    ("head", "cls", "arguments", "peer", "warned", "logged"),
    short_for(
        CASES,
        # A head that is left out, replaced, new beside another, taken in part, and taken.
        *(row for row in CASES if row[:2] in SHORT),
        part="combinations",
    ),
)
def test_hugging_face(save_peer, caplog, head, cls, arguments, peer, warned, logged):
    _, path = save_peer(f"BertFor{head}")
    if head in ("TokenClassification", "QuestionAnswering"):  # So that all else is as it should be.
        pooler = {f"bert.pooler.dense.{n}": np.zeros(s, "float32") for n, s in POOLER.items()}
        edit_tensors(path, lambda tensors: tensors.update(pooler))
    check(*open_and_listen(cls, path, caplog, **arguments), warned, logged)
    if peer is not None:  # Whatever transformers does not take is among these names.
        _, info = getattr(transformers, peer).from_pretrained(path, output_loading_info=True)
        names = [*warned, *logged]
        left_out = [key for key in info["unexpected_keys"] if not key.startswith("bert.pooler")]
        assert all(any(key.startswith(name) for name in names) for key in left_out)


POOLER = {"weight": (8, 8), "bias": (8,)}


def check(got_warned, got_logged, warned, logged):
    assert len(got_warned) == bool(warned) and len(got_logged) == bool(logged)
    for text in warned:
        assert text in got_warned[0]
    if logged:
        assert got_logged[0].endswith(f"left out the head {', '.join(logged)}.")


@pytest.mark.parametrize("form", ["shards", "bin", "wrapped"])
def test_every_form_of_the_weights(save_peer, caplog, form):
    sharded = {"max_shard_size": "2KB"} if form == "shards" else {}
    _, path = save_peer("BertForQuestionAnswering", **sharded)
    pooler = {f"bert.pooler.dense.{n}": torch.zeros(s) for n, s in POOLER.items()}
    if form == "shards":
        assert (path / "model.safetensors.index.json").is_file()
    else:
        state = {**load_file(path / "model.safetensors"), **pooler}
        prefix = "module." if form == "wrapped" else ""
        (path / "model.safetensors").unlink()
        torch.save({prefix + n: t for n, t in state.items()}, path / "pytorch_model.bin")
    (warned,), logged = open_and_listen(kbs.TextEmbedder, path, caplog)
    assert "qa_outputs.weight, " in warned or "qa_outputs.bias, " in warned and not logged


def test_what_is_skipped_by_name_is_no_surprise(save_peer, caplog):
    _, path = save_peer("BertForSequenceClassification")
    skip = [r"classifier\..*"]
    check(*open_and_listen(kbs.TextEmbedder, path, caplog, skip=skip), (), ())


@pytest.mark.parametrize("arguments", [{}, NEW])
def test_a_pooler_beside_a_head_of_two_layers(tmp_path, caplog, arguments):
    """Classifiers of transformers 3, such as cardiffnlp/twitter-roberta-base-sentiment."""
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 24}
    more = {"intermediate_size": 16, "type_vocab_size": 1, "num_labels": 3}
    config = transformers.RobertaConfig(max_position_embeddings=18, **sizes, **more)
    transformers.RobertaForSequenceClassification(config).save_pretrained(tmp_path)
    pooler = {f"roberta.pooler.dense.{n}": np.ones(s, "float32") for n, s in POOLER.items()}
    edit_tensors(tmp_path, lambda tensors: tensors.update(pooler))
    warned, logged = open_and_listen(kbs.TextClassifier, tmp_path, caplog, **arguments)
    assert "roberta.pooler.dense.bias, roberta.pooler.dense.weight" in warned[-1] and not logged
    assert len(warned) == 1 + bool(arguments)
    _, info = transformers.RobertaForSequenceClassification.from_pretrained(
        tmp_path, output_loading_info=True
    )
    assert {*info["unexpected_keys"]} == {*pooler}


def test_google(toy, tmp_path, caplog, make_classifier):
    """A regression of run_classifier.py, which names no class; the toy has pretraining's heads."""
    regression = {"num_classes": 1, "problem_type": "regression"}
    model = make_classifier(open_checkpoint(toy).backbone_config, 1)
    save_google_tf1(randomize(model), tmp_path / "regression")
    heads = ("output_weights", "output_bias", "New and random, so train them: classifier/kernel")
    path = tmp_path / "regression"
    got = open_and_listen(kbs.TextClassifier, path, caplog, **regression)
    check(*got, heads, ())
    check(*open_and_listen(kbs.BertBackbone, path, caplog), (), ("output_bias", "output_weights"))
    answerer = kbs.QuestionAnswerer(model.backbone)
    save_google_tf1(answerer, tmp_path / "questions")
    got = open_and_listen(kbs.TextEmbedder, tmp_path / "questions", caplog)
    check(*got, ("cls/squad/output_bias", "cls/squad/output_weights"), ())
    got = open_and_listen(kbs.TextClassifier, toy, caplog, **NEW)
    check(*got, (), ("cls/predictions", "cls/seq_relationship"))


def test_keras_hub(tmp_path, caplog):
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
    backbone = keras_hub.models.BertBackbone(24, **sizes, max_sequence_length=12)
    peer = keras_hub.models.BertTextClassifier(backbone, num_classes=3, preprocessor=None)
    peer.save_to_preset(str(tmp_path))
    names = ("BertTextClassifier/layers/dense/vars/0", "BertTextClassifier/layers/dense/vars/1")
    check(*open_and_listen(kbs.TokenClassifier, tmp_path, caplog, **NEW), names, ())
    check(*open_and_listen(kbs.TextEmbedder, tmp_path, caplog), names, ())


@pytest.mark.parametrize(
    "held, cls, arguments, warned, logged",
    [
        ("tags", kbs.TextClassifier, NEW, ("of its TokenClassifier, in task.weights.h5",), ()),
        pytest.param(
            *("tags", kbs.TextEmbedder, {}, ("The head of its TokenClassifier",), ()),
            marks=left_out("combinations"),
        ),
        ("tags", kbs.QuestionAnswerer, {}, ("its TokenClassifier", "backbone are new"), ()),
        ("tags", kbs.TokenClassifier, NEW, ("holds a classification layer",), ()),
        ("tags", kbs.TokenClassifier, {}, (), ()),
        ("tags", kbs.BertBackbone, {}, (), ("of its task",)),
        *(
            pytest.param("pretraining", *row, marks=left_out("combinations"))
            for row in (
                (kbs.TextClassifier, NEW, (), ("of its Pretrainer",)),
                (kbs.QuestionAnswerer, {}, ("backbone are new",), ()),
            )
        ),
        ("pretraining", kbs.TextEmbedder, {}, (), ("of its Pretrainer",)),
        ("pretraining", kbs.MaskedLM, {}, (), ("next_sentence",)),
        ("vectors", kbs.TextClassifier, NEW, (), ()),  # It has no weights of its own.
    ],
)
def test_our_presets(presets, caplog, held, cls, arguments, warned, logged):
    check(*open_and_listen(cls, presets / held, caplog, **arguments), warned, logged)


@pytest.fixture(scope="module")
def presets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets")
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(PIECES), 8)
    tasks = {
        "tags": lambda backbone: kbs.TokenClassifier(backbone, 3, preprocessor=packer),
        "pretraining": lambda backbone: kbs.Pretrainer(backbone, preprocessor=packer),
        "vectors": lambda backbone: kbs.TextEmbedder(backbone, preprocessor=packer),
    }
    for name, make in tasks.items():
        make(kbs.BertBackbone(**SIZES)).save_to_preset(folder / name)
    return folder
