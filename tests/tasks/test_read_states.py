"""The last layer computes only the tokens that a head reads, and the outputs stay the same.

The oracle is the whole backbone, all of whose tokens are computed, with the layers of the head.
"""

import keras
import numpy as np
import pytest
from gradients import compute_gradients
from kerashub_models import make_bert
from peer_weights import randomize, to_numpy
from tables import everywhere_for

from keras_bert_suite import (
    AlbertBackbone,
    BertBackbone,
    DistilBertBackbone,
    ElectraBackbone,
    ElectraPretrainer,
    LongformerBackbone,
    MaskedLM,
    MultipleChoice,
    NezhaBackbone,
    Pretrainer,
    RobertaBackbone,
    RoFormerBackbone,
    TextClassifier,
)
from keras_bert_suite.layers import LAYOUT_ARGUMENT
from keras_bert_suite.layers.dense import Dense
from keras_bert_suite.preprocessing.sequence_packing import lay_out_buckets, lay_out_sequences

SIZES = {
    "vocabulary_size": 40,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 24,
    "dropout": 0.0,
}
LENGTHS = (7, 4, 9)
#: Some slots are unused, some positions come twice, and one is the last token of its row.
MASKED = np.array([[2, 5, 0], [1, 3, 3], [8, 0, 0]], "int32")

FAMILY = {
    "bert": BertBackbone,
    "rotary": RoFormerBackbone,
    "shared layer": AlbertBackbone,
    "no pooler": ElectraBackbone,
    "no segments": DistilBertBackbone,
    "offset positions": RobertaBackbone,
}
LAYOUTS = {"padded": None, "array": lay_out_sequences, "buckets": lay_out_buckets}


def make_arrays(backbone, **more):
    rng = np.random.default_rng(0)
    mask = (np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None]).astype("int32")
    arrays = {
        "token_ids": rng.integers(5, 40, mask.shape, "int32") * mask,
        "segment_ids": rng.integers(0, 2, mask.shape, "int32") * mask,
        "padding_mask": mask,
    }
    return {name: arrays[name] for name in arrays if name in backbone.input} | more


def classify(task, arrays):
    encoded = task.backbone(arrays)
    return {"outputs": task.classifier(encoded["pooled_output"])}


def guess(task, arrays):
    encoded = task.backbone({name: arrays[name] for name in arrays if name != "mask_positions"})
    mlm = task.masked_lm(encoded["sequence_output"], arrays["mask_positions"])
    return {"outputs": mlm, "pooled": encoded["pooled_output"]}


class WholeTask(keras.Model):
    """A task whose outputs are made by a function from its whole encoded rows."""

    def __init__(self, task, compute):
        super().__init__()
        self.task, self.compute = task, compute

    def call(self, arrays):
        return self.compute(self.task, arrays)


class NamedTask(keras.Model):
    """A task with a dict of outputs, and the gradients of its own weights."""

    def __init__(self, task):
        super().__init__()
        self.task = task

    def call(self, arrays):
        outputs = self.task(arrays)
        return outputs if isinstance(outputs, dict) else {"outputs": outputs}


@pytest.mark.parametrize("kind", FAMILY)
def test_a_classifier_computes_the_same(kind):
    task = TextClassifier(FAMILY[kind](**SIZES), 3, dropout=0.0)
    randomize(task)
    check_same(task, classify, make_arrays(task.backbone))


def test_a_pretrainer_computes_the_same():
    task = Pretrainer(RoFormerBackbone(**SIZES))
    randomize(task)

    def compute(task, arrays):
        guessed = guess(task, arrays)
        return {"mlm": guessed["outputs"], "nsp": task.next_sentence_head(guessed["pooled"])}

    check_same(task, compute, make_arrays(task.backbone, mask_positions=MASKED))


@pytest.mark.parametrize("kind", ["bert", "rotary", "shared layer"])
def test_guesses_are_the_same(kind):
    task = MaskedLM(FAMILY[kind](**SIZES))
    randomize(task)
    arrays = make_arrays(task.backbone, mask_positions=MASKED)
    check_same(task, lambda *given: {"outputs": guess(*given)["outputs"]}, arrays)


def check_same(task, compute, arrays):
    ours, whole = NamedTask(task), WholeTask(task, compute)
    outputs, expected = ours(arrays), whole(arrays)
    assert set(outputs) == set(expected)
    rng = np.random.default_rng(1)
    weighting = {
        name: rng.normal(size=tuple(expected[name].shape)).astype("float32") for name in expected
    }
    for name in expected:
        np.testing.assert_allclose(
            to_numpy(outputs[name]), to_numpy(expected[name]), atol=1e-5, rtol=1e-5
        )
    found = compute_gradients(ours, arrays, weighting)
    wanted = compute_gradients(whole, arrays, weighting)
    assert set(found) == set(wanted)
    for path in wanted:
        np.testing.assert_allclose(found[path], wanted[path], atol=2e-5, rtol=1e-4, err_msg=path)


@pytest.mark.parametrize("layout", everywhere_for(["array", "buckets"], "buckets"))
def test_packed_rows(layout):
    task = Pretrainer(BertBackbone(**SIZES))
    randomize(task)
    arrays = make_arrays(task.backbone, mask_positions=MASKED)
    padded = task(arrays)
    packed = task({**arrays, LAYOUT_ARGUMENT: LAYOUTS[layout](arrays["padding_mask"])})
    for name in padded:
        np.testing.assert_allclose(to_numpy(packed[name]), to_numpy(padded[name]), atol=1e-5)


@pytest.mark.parametrize(
    ("make", "read"),
    [
        (lambda backbone: TextClassifier(backbone, 2), 1),
        (lambda backbone: MultipleChoice(backbone), 1),
        (lambda backbone: MaskedLM(backbone), MASKED.shape[1]),
        (lambda backbone: Pretrainer(backbone), 1 + MASKED.shape[1]),
    ],
    ids=["classifier", "choices", "masked lm", "pretrainer"],
)
def test_the_last_layer_computes_what_is_read(make, read, monkeypatch):
    lengths = run_last_layer(make(BertBackbone(**SIZES)), monkeypatch)
    assert lengths == [read]


def test_the_generator_of_electra_computes_what_is_masked(monkeypatch):
    task = ElectraPretrainer(ElectraBackbone(**SIZES))
    lengths = run_last_layer(task, monkeypatch, task.generator)
    assert lengths == [MASKED.shape[1]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: TextClassifier(NezhaBackbone(**SIZES), 2),
        lambda: TextClassifier(LongformerBackbone(**SIZES, attention_window=4), 2),
        lambda: TextClassifier(BertBackbone(**SIZES), 2, pooling="mean"),
        lambda: TextClassifier(BertBackbone(**SIZES, attention_pattern="seq2seq"), 2),
        lambda: Pretrainer(BertBackbone(**SIZES), span_boundary=True),
    ],
    ids=["distances", "windows", "mean", "pattern", "neighbours"],
)
def test_other_heads_have_all_tokens(make, monkeypatch):
    assert run_last_layer(make(), monkeypatch) == [max(LENGTHS)]


def test_an_encoder_of_kerashub():
    backbone, _ = make_bert()
    task = TextClassifier(backbone, 2)
    assert backbone in task.layers


def test_a_model_that_goes_on_after_its_last_block():
    class Scaled(BertBackbone):
        def encode(self, x, **attention):
            states = super().encode(x, **attention)
            return [*states[:-1], 2 * states[-1]]

    task = TextClassifier(Scaled(**SIZES), 2, dropout=0.0)
    randomize(task)
    arrays = make_arrays(task.backbone)
    expected = classify(task, arrays)["outputs"]
    np.testing.assert_allclose(to_numpy(task(arrays)), to_numpy(expected), atol=1e-5)


def run_last_layer(task, monkeypatch, backbone=None):
    """The lengths of what the feed-forward network of the last block of a task gets."""
    backbone = backbone or task.backbone
    last, lengths = backbone.transformer_layers[-1].intermediate, []
    call = Dense.call

    def note(layer, x, *arguments, **named):
        if layer is last:
            lengths.append(x.shape[1])
        return call(layer, x, *arguments, **named)

    monkeypatch.setattr(Dense, "call", note)
    arrays = make_arrays(backbone)
    if isinstance(task, MultipleChoice):
        arrays = {name: array[:, None] for name, array in arrays.items()}
    elif "mask_positions" in task.input:
        arrays["mask_positions"] = MASKED
    task(arrays)
    return lengths
