"""What is special about RoFormer: its vocabularies of Chinese words, and its second version."""

import json
import warnings

import keras
import numpy as np
import pytest
import torch
from family import LENGTH, MEMBERS, PIECES
from peer_weights import to_numpy
from safetensors.numpy import load_file, save_file

from keras_bert_suite import MultipleChoice, Pretrainer, RoFormerBackbone, TextClassifier
from keras_bert_suite.checkpoints import open_checkpoint, save_hugging_face
from keras_bert_suite.preprocessing.sequence_packing import lay_out_buckets

MEMBER = MEMBERS["roformer"]

#: The sizes of a small RoFormerV2.
V, H, HEADS, INNER = len(PIECES), 8, 2, 16
WORDS = "roformer.embeddings.word_embeddings.weight"

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*has no weights for"),
]


def test_chinese_words_are_warned_of(tmp_path):
    """transformers would cut a text into words. A vocabulary of characters needs no warning."""
    MEMBER.save_peer(tmp_path / "peer", "ForSequenceClassification")
    (tmp_path / "peer" / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "RoFormerTokenizer"})
    )
    for last, is_word in (("天", False), ("今天", True)):
        pieces = [*PIECES[:-2], "今", last]
        (tmp_path / "peer" / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            task = TextClassifier.from_preset(tmp_path / "peer")
        assert any("Chinese words, such as 今天" in str(w.message) for w in caught) == is_word
        ids = task.preprocessor.tokenizer("今天")
        assert len(ids) == 2


def test_a_head_that_scores_padding_is_left_out(tmp_path):
    """The default of transformers: the state at the last place of a row, whatever stands there."""
    MEMBER.save_peer(tmp_path / "peer", "ForMultipleChoice")
    with pytest.warns(UserWarning, match="has heads that .* does not have: .*classifier"):
        MultipleChoice.from_preset(tmp_path / "peer", preprocessor=None)


def make_second_version(path, head=()):
    """Writes a random RoFormerV2 as JunnYu's roformer package does, and returns its tensors.

    Args:
        path: directory, which is made.
        head: tuple of (name, shape) of the tensors of a head.
    """
    shapes = {"embeddings.word_embeddings": (V, H), "embeddings.token_type_embeddings": (2, H)}
    for i in range(2):
        layer = f"encoder.layer.{i}."
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            shapes[f"{layer}attention.{name}"] = (H, H)
        shapes[f"{layer}intermediate.dense"] = (INNER, H)
        shapes[f"{layer}output.dense"] = (H, INNER)
    shapes = {f"roformer.{name}.weight": shape for name, shape in shapes.items()} | dict(head)
    rng = np.random.default_rng(0)
    tensors = {n: rng.normal(0, 0.5, shape).astype("float32") for n, shape in shapes.items()}
    config = {
        "model_type": "roformer",
        "architectures": ["RoFormerForSequenceClassification" if head else "RoFormerForMaskedLM"],
        "vocab_size": V,
        "embedding_size": H,
        "hidden_size": H,
        "num_hidden_layers": 2,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "hidden_act": "relu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 16,
        "type_vocab_size": 2,
        "norm_type": "rms_norm",
        "use_bias": False,
        "id2label": {"0": "a", "1": "b", "2": "c"},
    }
    path.mkdir()
    (path / "config.json").write_text(json.dumps(config))
    (path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    decoder = {} if head else {"cls.predictions.decoder.weight": tensors[WORDS]}
    save_file({**tensors, **decoder}, path / "model.safetensors", metadata={"format": "pt"})
    return {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}


def run_second_version(tensors, inputs):
    """The last hidden states (B, L, H) of a RoFormerV2, as its authors describe it."""

    def normalize(x):
        return x / torch.sqrt(torch.mean(x**2, dim=-1, keepdim=True) + 1e-12)

    def turn(x):
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
        rates = 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
        angles = torch.arange(x.shape[-2])[:, None] * rates
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)

    ids, segments, mask = (
        torch.from_numpy(inputs[name]).long()
        for name in ("token_ids", "segment_ids", "padding_mask")
    )
    x = tensors[WORDS][ids] + tensors["roformer.embeddings.token_type_embeddings.weight"][segments]
    x = normalize(x)
    for i in range(2):
        layer = f"roformer.encoder.layer.{i}."
        query, key, value = (
            (x @ tensors[f"{layer}attention.self.{name}.weight"].T)
            .unflatten(-1, (HEADS, -1))
            .transpose(1, 2)
            for name in ("query", "key", "value")
        )
        scores = turn(query) @ turn(key).transpose(-1, -2) / query.shape[-1] ** 0.5
        scores = scores.masked_fill(mask[:, None, None] == 0, -1e30)
        context = (scores.softmax(-1) @ value).transpose(1, 2).flatten(-2)
        x = normalize(x + context @ tensors[f"{layer}attention.output.dense.weight"].T)
        inner = torch.relu(x @ tensors[f"{layer}intermediate.dense.weight"].T)
        x = normalize(x + inner @ tensors[f"{layer}output.dense.weight"].T)
    return x


def test_the_second_version(tmp_path):
    """Its encoder, its guesses, its files and its packed rows."""
    tensors = make_second_version(tmp_path / "v2")
    inputs = MEMBER.make_inputs()
    seen = inputs["padding_mask"] == 1
    expected = run_second_version(tensors, inputs)
    backbone = RoFormerBackbone.from_preset(tmp_path / "v2")
    got = to_numpy(backbone(inputs)["sequence_output"])
    np.testing.assert_allclose(got[seen], expected.numpy()[seen], rtol=0, atol=1e-5)
    layout = lay_out_buckets(inputs["padding_mask"], num_buckets=2)
    packed = to_numpy(backbone({**inputs, "sequence_layout": layout})["sequence_output"])
    np.testing.assert_allclose(packed[seen], got[seen], rtol=0, atol=1e-5)
    assert not any("bias" in w.path for w in backbone.weights if not w.path.startswith("pooler/"))

    pretrainer = Pretrainer.from_preset(tmp_path / "v2", preprocessor=None)
    positions = np.tile(np.arange(LENGTH, dtype="int32"), (3, 1))
    logits = to_numpy(pretrainer({**inputs, "mask_positions": positions})["mlm"])
    wanted = (expected @ tensors[WORDS].T).numpy()
    np.testing.assert_allclose(logits[seen], wanted[seen], rtol=0, atol=1e-4)

    with pytest.warns(UserWarning, match="transformers has no RoFormer with use_bias=False"):
        save_hugging_face(backbone, tmp_path / "again")
    again = load_file(tmp_path / "again" / "model.safetensors")
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(again[name], tensor.numpy(), err_msg=name)
    config = json.loads((tmp_path / "again" / "config.json").read_text())
    assert (config["norm_type"], config["use_bias"]) == ("rms_norm", False)


def test_a_classifier_of_the_second_version(tmp_path):
    """Its two layers have biases."""
    head = {"dense.weight": (H, H), "dense.bias": (H,), "out_proj.weight": (3, H)}
    head = {f"classifier.{name}": shape for name, shape in head.items()}
    tensors = make_second_version(
        tmp_path / "v2", (*head.items(), ("classifier.out_proj.bias", (3,)))
    )
    task = TextClassifier.from_preset(tmp_path / "v2")
    inputs = MEMBER.make_inputs()
    first = run_second_version(tensors, inputs)[:, 0]
    x = torch.relu(first @ tensors["classifier.dense.weight"].T + tensors["classifier.dense.bias"])
    expected = x @ tensors["classifier.out_proj.weight"].T + tensors["classifier.out_proj.bias"]
    np.testing.assert_allclose(to_numpy(task(inputs)), expected.numpy(), rtol=0, atol=1e-4)
    task.save(tmp_path / "task.keras")
    again = keras.saving.load_model(tmp_path / "task.keras")
    np.testing.assert_allclose(to_numpy(again(inputs)), to_numpy(task(inputs)), rtol=0, atol=1e-6)


def test_an_unknown_norm_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match="norm_type must be one of layer_norm, rms_norm, got 'x'"):
        RoFormerBackbone(10, 1, 2, 4, 8, norm_type="x")
    MEMBER.save_peer(tmp_path / "peer")
    path = tmp_path / "peer" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "norm_type": "batch_norm"}))
    with pytest.raises(ValueError, match="'norm_type' in .* must be one of layer_norm, rms_norm"):
        open_checkpoint(tmp_path / "peer")


def test_a_head_of_odd_width_is_refused():
    with pytest.raises(ValueError, match="heads of even width, got num_heads=2 and hidden size 6"):
        RoFormerBackbone(10, 1, 2, 6, 8)
