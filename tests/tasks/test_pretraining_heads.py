"""The heads of a `Pretrainer` for span boundaries and for relations, beside plain PyTorch code."""

import keras
import numpy as np
import pytest
import torch
import transformers
from peer_weights import randomize, to_numpy
from safetensors.numpy import load_file, save_file
from small_texts import TINY

from keras_bert_suite import BertBackbone, Pretrainer
from keras_bert_suite.checkpoints import save_google_tf1, save_hugging_face
from keras_bert_suite.layers import SpanBoundaryHead, gelu_tanh
from keras_bert_suite.layers.heads.span_boundary import find_masked_spans

L, RATE = 20, 0.1
SIZES = {**TINY, "dropout": 0.0, "activation": "gelu_erf", "max_sequence_length": L}
#: A span of two, a span beside [CLS], one before [SEP], and a span of more than 15 tokens.
POSITIONS = [[1, 4, 5, 8, *[0] * 13], [2, 3, 5, 6, *[0] * 13], [*range(1, 18)]]
LENGTHS = [10, 8, 20]


def build(**arguments):
    arguments = {"next_sentence": False, "span_boundary": True, **arguments}
    return randomize(Pretrainer(BertBackbone(**SIZES), **arguments))


@pytest.fixture(scope="module")
def pretrainer():
    """Not to be trained."""
    return build()


def make_batch(relations=()):
    """(x, y, sample weights); with relations also of pairs."""
    rng = np.random.default_rng(0)
    mask = (np.arange(L) < np.array(LENGTHS)[:, None]).astype("int32")
    positions = np.array(POSITIONS, "int32")
    x = {
        "token_ids": rng.integers(5, TINY["vocabulary_size"], mask.shape).astype("int32") * mask,
        "segment_ids": np.zeros_like(mask),
        "padding_mask": mask,
        "mask_positions": positions,
    }
    y = {"mlm": rng.integers(5, TINY["vocabulary_size"], positions.shape).astype("int32")}
    weights = {"mlm": (positions > 0).astype("float32")}
    if len(relations):
        y["nsp"] = np.array(relations, "int32")
        weights["nsp"] = np.ones(len(relations), "float32")
    return x, y, weights


def score_spans(hidden, positions, weights):
    """Yields ((row, slot), scores of the vocabulary), span by span, as the paper's formulas say."""
    for row, places in enumerate(positions):
        masked = [p for p in places if p]
        spans = []
        for p in masked:
            if spans and spans[-1][-1] + 1 == p:
                spans[-1].append(p)
            else:
                spans.append([p])
        for span in spans:
            left, right = hidden[row, span[0] - 1], hidden[row, span[-1] + 1]
            for place, p in enumerate(span[:15]):
                h = torch.cat([left, right, weights["place_embedding/embeddings"][place]])
                for i in "12":
                    h = h @ weights[f"transform_{i}/kernel"] + weights[f"transform_{i}/bias"]
                    h = torch.nn.functional.gelu(h)
                    h = torch.nn.functional.layer_norm(
                        h,
                        h.shape,
                        weights[f"layer_norm_{i}/gamma"],
                        weights[f"layer_norm_{i}/beta"],
                        eps=1e-12,
                    )
                yield (row, masked.index(p)), h @ weights["embeddings"].T + weights["bias"]


def test_a_step_equals_plain_code_on_transformers(tmp_path):
    pretrainer = build()
    pretrainer.compile(keras.optimizers.SGD(RATE))
    alone = Pretrainer(pretrainer.backbone, next_sentence=False)
    alone.masked_lm.set_weights(pretrainer.masked_lm.get_weights())
    save_hugging_face(alone, tmp_path / "before")
    peer = transformers.BertForMaskedLM.from_pretrained(tmp_path / "before")
    prefix = "span_boundary/"
    weights = {
        weight.path.removeprefix(prefix): torch.tensor(to_numpy(weight), requires_grad=True)
        for weight in pretrainer.weights
        if weight.path.startswith(prefix)
    }
    assert weights["transform_1/kernel"].shape == (2 * 16 + 200, 16)
    own = list(weights.values())
    weights["embeddings"] = peer.bert.embeddings.word_embeddings.weight
    peer.bert.embeddings.word_embeddings.padding_idx = None
    x, y, sample_weight = make_batch()

    outputs = pretrainer.predict(x, verbose=0)
    logs = pretrainer.train_on_batch(x, y, sample_weight=sample_weight, return_dict=True)
    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids"}
    names["padding_mask"] = "attention_mask"
    theirs = peer(
        **{names[name]: torch.from_numpy(x[name]).long() for name in names},
        output_hidden_states=True,
    )
    labels = torch.from_numpy(y["mlm"]).long()
    used = torch.from_numpy(x["mask_positions"]).long()
    picked = torch.take_along_dim(theirs.logits, used[..., None], 1)[used > 0]
    mlm = torch.nn.functional.cross_entropy(picked, labels[used > 0])
    cells, scores = zip(*score_spans(theirs.hidden_states[-1], POSITIONS, weights), strict=True)
    assert len(cells) == 4 + 4 + 15
    for cell, score in zip(cells, scores, strict=True):
        np.testing.assert_allclose(outputs["sbo"][cell], score.detach(), atol=1e-5)
    sbo = torch.nn.functional.cross_entropy(
        torch.stack(scores), torch.stack([labels[cell] for cell in cells])
    )
    (mlm + sbo).backward()
    for name, wanted in (("mlm_loss", mlm), ("sbo_loss", sbo), ("loss", mlm + sbo)):
        np.testing.assert_allclose(logs[name], wanted.item(), rtol=1e-4, err_msg=name)
    accuracy = np.mean(
        [score.argmax() == labels[c] for c, score in zip(cells, scores, strict=True)]
    )
    assert logs["sbo_accuracy"] == pytest.approx(float(accuracy))

    torch.optim.SGD({*own, *peer.parameters()}, lr=RATE).step()
    for weight in pretrainer.span_boundary_head.weights:
        name = weight.path.removeprefix(prefix)
        if name in weights:
            wanted = weights[name].detach().numpy()
            np.testing.assert_allclose(to_numpy(weight), wanted, atol=1e-5, err_msg=name)
    alone.masked_lm.set_weights(pretrainer.masked_lm.get_weights())
    save_hugging_face(alone, tmp_path / "after")
    got = load_file(tmp_path / "after" / "model.safetensors")
    for name, parameter in peer.named_parameters():
        np.testing.assert_allclose(got[name], parameter.detach(), atol=1e-5, err_msg=name)


def test_spans_literally():
    left, right, places = map(
        to_numpy, find_masked_spans(np.array([[2, 3, 7, 9, 0, 0], [1] + [0] * 5]))
    )
    np.testing.assert_array_equal(left[0, :4], [1, 1, 6, 8])
    np.testing.assert_array_equal(right[0, :4], [4, 4, 8, 10])
    np.testing.assert_array_equal(places, [[0, 1, 0, 0, 0, 0], [0] * 6])
    assert (left[1, 0], right[1, 0]) == (0, 2)
    np.testing.assert_array_equal(right[1, 1:], [1] * 5)


def test_the_configuration_of_the_layer():
    embedding = keras.layers.ReversibleEmbedding(24, 8, name="token_embedding")
    embedding.build()
    head = SpanBoundaryHead(embedding, gelu_tanh, max_span_length=3, place_dim=5, name="head")
    twin = SpanBoundaryHead.from_config(head.get_config())
    assert twin.get_config() == head.get_config() and twin.activation is gelu_tanh
    # The embeddings are narrower than the hidden states, and rows are shorter than a span's end.
    hidden, positions = np.ones((2, 4, 16), "float32"), np.array([[3, 0], [0, 0]], "int32")
    assert tuple(head(hidden, positions).shape) == (2, 2, 24)
    assert head.compute_output_shape(hidden.shape, positions.shape) == (2, 2, 24)


def test_files_keep_the_heads(tmp_path):
    pretrainer = build(next_sentence=True, sentence_relations=3)
    x, y, weights = make_batch(relations=[0, 2, 1])
    pretrainer.compile()
    pretrainer.fit(x, y, sample_weight=weights, verbose=0)
    wanted = pretrainer.predict(x, verbose=0)
    assert wanted["nsp"].shape == (3, 3)
    pretrainer.save(tmp_path / "p.keras")
    pretrainer.save_to_preset(str(tmp_path / "preset"))
    preset = {"preset": str(tmp_path / "preset"), "preprocessor": None}
    for twin in (keras.saving.load_model(tmp_path / "p.keras"), Pretrainer.from_preset(**preset)):
        for name, array in twin.predict(x, verbose=0).items():
            np.testing.assert_array_equal(array, wanted[name], err_msg=name)
    fewer = Pretrainer.from_preset(**preset, next_sentence=False, span_boundary=False)
    assert fewer.predict(x, verbose=0).keys() == {"mlm"}
    with pytest.warns(UserWarning, match="no head for pairs of texts as it is wanted"):
        other = Pretrainer.from_preset(**preset, sentence_relations=2)
    outputs = other.predict(x, verbose=0)
    assert outputs["nsp"].shape == (3, 2)
    np.testing.assert_array_equal(outputs["sbo"], wanted["sbo"])


def test_packed_rows_train_as_padded_rows_do(pretrainer):
    x, y, weights = make_batch()
    before = pretrainer.get_weights()
    results = []
    for sequence_packing in (False, True):
        pretrainer.set_weights(before)
        pretrainer.compile(keras.optimizers.SGD(RATE))
        history = pretrainer.fit(
            x, y, sample_weight=weights, sequence_packing=sequence_packing, verbose=0
        )
        results.append((history.history["sbo_loss"], pretrainer.get_weights()))
    pretrainer.set_weights(before)
    (padded_loss, padded), (packed_loss, packed) = results
    assert packed_loss == pytest.approx(padded_loss, rel=1e-5)
    for array, wanted in zip(packed, padded, strict=True):
        np.testing.assert_allclose(array, wanted, atol=1e-5)


def test_bfloat16(pretrainer):
    config = {**pretrainer.backbone.get_config(), "dtype": "mixed_bfloat16"}
    half = Pretrainer(BertBackbone.from_config(config), next_sentence=False, span_boundary=True)
    half.set_weights(pretrainer.get_weights())
    x, _, _ = make_batch()
    got, wanted = half.predict(x, verbose=0)["sbo"], pretrainer.predict(x, verbose=0)["sbo"]
    assert keras.backend.standardize_dtype(half(x)["sbo"].dtype) == "bfloat16"
    difference = np.linalg.norm(got.astype("float32") - wanted) / np.linalg.norm(wanted)
    assert difference < 0.05


def test_relations_that_the_head_does_not_know():
    pretrainer = build(next_sentence=True, span_boundary=False)
    pretrainer.compile()
    x, y, weights = make_batch(relations=[0, 2, 1])
    with pytest.raises(ValueError, match="relation 2, .*sentence_relations=2"):
        pretrainer.fit(x, y, sample_weight=weights, verbose=0)
    with pytest.raises(ValueError, match="sentence_relations must be an integer of at least 2"):
        build(sentence_relations=1)


def test_checkpoints_of_three_relations(tmp_path):
    """Read as they are; not written, because transformers knows two relations only."""
    two = build(next_sentence=True, span_boundary=False)
    save_hugging_face(two, tmp_path / "two")
    preset = {"preset": tmp_path / "two", "preprocessor": None}
    with pytest.warns(UserWarning, match="no head for pairs of texts as it is wanted"):
        three = Pretrainer.from_preset(**preset, sentence_relations=3)
    np.testing.assert_array_equal(three.masked_lm.get_weights()[0], two.masked_lm.get_weights()[0])
    for write in (save_hugging_face, save_google_tf1):
        with pytest.raises(ValueError, match="two relations .* sentence_relations=3"):
            write(three, tmp_path / "three")
    with pytest.warns(UserWarning, match="no head for the boundaries of spans"):
        spans = Pretrainer.from_preset(**preset, span_boundary=True)
    with pytest.raises(ValueError, match="cannot hold these weights.*span_boundary/"):
        save_hugging_face(spans, tmp_path / "three")
    # StructBERT's own checkpoints have such a head.
    file = tmp_path / "two" / "model.safetensors"
    tensors = load_file(file)
    for name in ("weight", "bias"):
        tensor = tensors[f"cls.seq_relationship.{name}"]
        tensors[f"cls.seq_relationship.{name}"] = np.concatenate([tensor, tensor[:1] + 1])
    save_file(tensors, file, metadata={"format": "pt"})
    read = Pretrainer.from_preset(**preset)
    assert read.sentence_relations == 3
    wanted = tensors["cls.seq_relationship.weight"].T
    np.testing.assert_array_equal(to_numpy(read.next_sentence_head.kernel), wanted)
