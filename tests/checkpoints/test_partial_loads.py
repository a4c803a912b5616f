"""Files with more than the model has: heads, copies, strangers."""

import json

import numpy as np
import pytest
import torch
from checkpoints.small_model import PIECES
from checkpoints.wild_files import TOLERANCE, check_encoder, edit_tensors
from peer_weights import run_transformers, to_numpy

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import (
    find_other_heads,
    find_task,
    head_arguments,
    load_weights,
    open_checkpoint,
)
from keras_bert_suite.heads import Pretrainer, TextClassifier
from keras_bert_suite.models import BertBackbone


def test_strangers_are_named_in_one_warning(save_peer, inputs):
    peer, path = save_peer("BertForPreTraining")

    def change(tensors):
        tensors["crf.transitions"] = np.zeros((3, 3), "float32")
        tensors["projection.0.weight"] = np.zeros((3, 8), "float32")
        tensors["projection.0.bias"] = np.zeros(3, "float32")

    edit_tensors(path, change)
    with pytest.warns(
        UserWarning,
        match=r"does not have: crf.transitions, projection.0.bias, projection.0.weight\. They",
    ) as warned:
        backbone = BertBackbone.from_preset(path)
    assert len(warned) == 1
    check_encoder(backbone, peer.bert, inputs)
    # Named in `skip`, they are no surprise.
    BertBackbone.from_preset(path, skip=[r"crf\..*", r"projection\..*"])
    checkpoint, pretraining = open_checkpoint(path), ["cls.predictions", "cls.seq_relationship"]
    for kept, others in (
        (["classifier"], [*pretraining, "crf", "projection"]),
        (["masked_lm"], [*pretraining[1:], "crf", "projection"]),
        (["masked_lm", "next_sentence"], ["crf", "projection"]),
    ):
        assert sorted(find_other_heads(checkpoint, kept)) == others


def test_the_skip_of_the_message_works(save_peer, inputs):
    """A tensor within the encoder may change what it computes: an error, unless named."""
    peer, path = save_peer()
    name = "encoder.layer.0.adapter.weight"
    edit_tensors(path, lambda tensors: tensors.update({name: np.zeros(3, "float32")}))
    with pytest.raises(ValueError, match=f"{name}: shape .* no such weight.*\n.*`skip`"):
        BertBackbone.from_preset(path)
    check_encoder(BertBackbone.from_preset(path, skip=name), peer, inputs)


def test_a_configuration_that_names_no_class(save_peer):
    """The head of such a file of 2019 may be any; the error says how to name it."""
    _, path = save_peer("BertForSequenceClassification")
    config = json.loads((path / "config.json").read_text())
    name = config.pop("architectures")
    (path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError) as caught:
        head_arguments(open_checkpoint(path), "classifier")
    assert str(caught.value).endswith(f'"architectures": {json.dumps(name)}.')
    (path / "config.json").write_text(json.dumps({**config, "architectures": name}))
    assert head_arguments(open_checkpoint(path), "classifier")["label_names"]


def test_a_head_without_labels_is_found_by_its_weights(save_peer):
    _, path = save_peer("BertForQuestionAnswering")
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "architectures": None}))
    assert find_task(open_checkpoint(path)) == "QuestionAnswerer"


@pytest.mark.parametrize("model_name", ["BertForTokenClassification", "BertForMultipleChoice"])
def test_classifier_of_something_else(save_peer, inputs, model_name):
    peer, path = save_peer(model_name)
    checkpoint = open_checkpoint(path)
    assert checkpoint.label_names is None
    with pytest.raises(ValueError, match="for texts. Pass `num_classes`.*layer.$"):
        head_arguments(checkpoint, "classifier")
    model = TextClassifier(BertBackbone(**checkpoint.backbone_config), num_classes=2)
    with pytest.raises(ValueError, match="classifier/kernel: no tensor is known"):
        load_weights(model, checkpoint)
    if model_name == "BertForTokenClassification":
        with pytest.warns(UserWarning, match="no weights for pooler"):
            load_weights(model.backbone, checkpoint)
    else:
        load_weights(model.backbone, checkpoint)  # The head is that of a `MultipleChoice`.
    check_encoder(model.backbone, peer.bert, inputs)


def test_head_that_nothing_knows(save_peer, inputs):
    peer, path = save_peer("BertForQuestionAnswering")

    def rename(tensors):
        for end in ("weight", "bias"):
            tensors[f"relations.{end}"] = tensors.pop(f"qa_outputs.{end}")

    edit_tensors(path, rename)
    with pytest.warns(UserWarning, match="pooler.*does not have: relations.bias") as warned:
        backbone = BertBackbone.from_preset(path)
    assert len(warned) == 1
    check_encoder(backbone, peer.bert, inputs)


def test_tokenizer_that_is_handed_in(save_peer):
    _, path = save_peer()
    (path / "vocab.txt").unlink()
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(PIECES), sequence_length=8)
    with pytest.raises(FileNotFoundError, match="no vocab.txt or tokenizer.json.*of your own"):
        TextClassifier.from_preset(path, num_classes=2)
    for name in ("vocab.json", "merges.txt"):
        (path / name).touch()
    with pytest.raises(FileNotFoundError, match="no vocab.txt .* wrong model_type in"):
        TextClassifier.from_preset(path, num_classes=2)
    classifier = TextClassifier.from_preset(path, num_classes=2, preprocessor=packer)
    np.testing.assert_allclose(
        classifier.predict(["a b c"], verbose=0),
        classifier.predict(packer(["a b c"]), verbose=0),
        atol=1e-6,
    )
    assert classifier.preprocessor is packer


def save_untied(save_peer):
    return save_peer("BertForMaskedLM", config={"tie_word_embeddings": False})


def test_untied_is_refused_by_name(save_peer, inputs):
    peer, path = save_untied(save_peer)
    checkpoint = open_checkpoint(path)
    pretrainer = Pretrainer(BertBackbone(**checkpoint.backbone_config), next_sentence=False)
    with pytest.raises(ValueError, match="decoder.weight: differs from bert.embeddings.word"):
        load_weights(pretrainer, checkpoint)
    with pytest.warns(UserWarning, match="pooler"):
        check_encoder(BertBackbone.from_preset(path), peer.bert, inputs)
    with pytest.warns(UserWarning, match="pooler"):
        again = Pretrainer.from_preset(path, skip="masked_lm/.*")
    check_encoder(again.backbone, peer.bert, inputs)


def test_copy_is_understood(save_peer, inputs):
    """Old PyTorch files hold the tied matrix twice."""
    peer, path = save_peer("BertForMaskedLM")

    def change(tensors):
        embedding = tensors["bert.embeddings.word_embeddings.weight"]
        tensors["cls.predictions.decoder.weight"] = embedding.copy()
        tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"].copy()

    edit_tensors(path, change)
    checkpoint = open_checkpoint(path)
    pretrainer = Pretrainer(BertBackbone(**checkpoint.backbone_config), next_sentence=False)
    with pytest.warns(UserWarning, match="pooler"):
        load_weights(pretrainer, checkpoint)
    positions = np.int32([[1, 3], [2, 5], [4, 0]])
    got = to_numpy(pretrainer({**inputs, "mask_positions": positions})["mlm"])
    with torch.no_grad():
        logits = run_transformers(peer, inputs).logits.numpy()
    expected = np.take_along_axis(logits, positions[:, :, None], axis=1)
    np.testing.assert_allclose(got, expected, atol=TOLERANCE)


def test_missing_is_refused(save_peer, inputs):
    _, path = save_untied(save_peer)
    edit_tensors(path, lambda tensors: tensors.pop("cls.predictions.decoder.weight"))
    with pytest.raises(ValueError, match="'tie_word_embeddings' .* is False, but"):
        open_checkpoint(path)
    # An encoder without the head misses nothing.
    peer, path = save_peer(config={"tie_word_embeddings": False})
    check_encoder(BertBackbone.from_preset(path), peer, inputs)


def test_another_activation_of_the_encoder(save_peer, tmp_path):
    """transformers takes it as an argument of `from_pretrained`, too."""
    import transformers

    _, path = save_peer("BertForSequenceClassification", config={"num_labels": 3})
    theirs = transformers.BertForSequenceClassification.from_pretrained(path, hidden_act="relu")
    task = TextClassifier.from_preset(path, backbone_activation="relu")
    rows = {"token_ids": np.array([[2, 7, 8, 3]]), "padding_mask": np.ones((1, 4), "int32")}
    rows = {
        **{n: a.astype("int32") for n, a in rows.items()},
        "segment_ids": np.zeros((1, 4), "int32"),
    }
    with torch.no_grad():
        wanted = theirs.eval()(input_ids=torch.tensor(rows["token_ids"]).long()).logits.numpy()
    np.testing.assert_allclose(task.predict(rows, verbose=0), wanted, atol=1e-5)
    plain = TextClassifier.from_preset(path)
    assert np.abs(plain.predict(rows, verbose=0) - wanted).max() > 1e-4
    task.save_to_preset(tmp_path / "preset")
    message = "backbone_activation='relu' is for an encoder of another library, not .*preset. Leave"
    with pytest.raises(ValueError, match=message):
        TextClassifier.from_preset(tmp_path / "preset", backbone_activation="relu")
    with pytest.raises(
        ValueError, match="skip='pooler' is for checkpoints of other libraries, not"
    ):
        TextClassifier.from_preset(tmp_path / "preset", skip="pooler")
    task.backbone.save_to_preset(tmp_path / "backbone")
    with pytest.raises(ValueError, match="preset of Keras, .* `skip` must be empty, got 'pooler'"):
        BertBackbone.from_preset(tmp_path / "backbone", skip="pooler")
