"""Lower rates for lower layers: the published rules, other encoders, and what cannot be."""

import keras
import keras_hub
import numpy as np
import pytest
from kerashub_models import MODELS, SIZES, make_albert
from layer_rules import beit_rate, electra_rate, rename
from peer_weights import randomize, to_numpy
from small_tasks import make_task
from small_texts import TINY

import keras_bert_suite as kbs
from keras_bert_suite import AdamW, Lamb
from keras_bert_suite.models import Encoder
from keras_bert_suite.models.layer_groups import number_weights

RATE, DECAY, WEIGHT_DECAY, NUM_LAYERS = 1e-2, 0.8, 0.1, 3
#: The pooler takes the number that ELECTRA's rule leaves out.
RULES = {
    "electra": lambda path: (
        electra_rate(rename(path, 0), RATE, DECAY, NUM_LAYERS) if rename(path, 0) else RATE * DECAY
    ),
    "beit": lambda path: beit_rate(rename(path, 1), RATE, DECAY, NUM_LAYERS),
}


def make_classifier(cls=kbs.ElectraBackbone, **sizes):
    sizes = {"embedding_dim": 8, **sizes} if cls is kbs.ElectraBackbone else sizes
    backbone = cls(**{**TINY, "num_layers": NUM_LAYERS, "dropout": 0.0, **sizes})
    return kbs.TextClassifier(backbone, num_classes=2)


def step(optimizer, variables, seed=1):
    """Gradients by path, after a step."""
    rng = np.random.default_rng(seed)
    gradients = [rng.normal(size=v.shape).astype("float32") for v in variables]
    optimizer.apply([keras.ops.convert_to_tensor(g) for g in gradients], variables)
    return {v.path: g for v, g in zip(variables, gradients, strict=True)}


def numpy_step(value, gradient, rate, decay, cls):
    """The first update of a weight, by the formula of the paper of each optimizer."""
    m, v = 0.1 * gradient, 0.001 * gradient**2
    if cls is AdamW:
        return value - rate * (m / (np.sqrt(v) + 1e-6) + decay * value)
    update = m / 0.1 / (np.sqrt(v / 0.001) + 1e-6) + decay * value
    ratio = np.linalg.norm(value) / np.linalg.norm(update) if decay else 1.0
    return value - rate * ratio * update


@pytest.mark.parametrize("cls", [AdamW, Lamb])
@pytest.mark.parametrize("numbering", RULES)
def test_a_step_by_the_published_rule(numbering, cls):
    task = randomize(make_classifier())
    optimizer = cls(RATE, WEIGHT_DECAY, global_clipnorm=None, layer_decay=DECAY)
    if numbering == "beit":
        optimizer = cls.from_config({**optimizer.get_config(), "layer_numbering": "beit"})
    task.compile(optimizer)
    before = {v.path: to_numpy(v).astype("float64") for v in task.trainable_variables}
    gradients = step(task.optimizer, task.trainable_variables)
    assert {path.split("/")[0] for path in before} == {
        *("embeddings", "pooler", "classifier"),
        *(f"transformer_layer_{i}" for i in range(NUM_LAYERS)),
    }
    for variable in task.trainable_variables:
        path, is_matrix = variable.path, len(variable.shape) > 1
        arguments = RULES[numbering](path), WEIGHT_DECAY * is_matrix, cls
        wanted = numpy_step(before[path], gradients[path].astype("float64"), *arguments)
        np.testing.assert_allclose(to_numpy(variable), wanted, rtol=0, atol=1e-6, err_msg=path)


def test_all_three_kinds_of_rates_are_multiplied(tmp_path):
    """By hand: layer i of 3 has 0.5 ** (4 - i), the embeddings 0.5 ** 5, the pooler 0.5."""
    task = make_classifier()
    optimizer = AdamW(
        kbs.LinearWarmupDecay(1e-3), layer_decay=0.5, rate_multipliers={"query/kernel": 3.0}
    )
    task.compile(keras.optimizers.LossScaleOptimizer(optimizer), head_learning_rate=1e-2)
    wanted = {
        "embeddings/projection/kernel": 1 / 32,
        "transformer_layer_0/self_attention/key/kernel": 1 / 16,
        "transformer_layer_1/self_attention/query/kernel": 3 / 8,
        "transformer_layer_2/feedforward_norm/gamma": 1 / 4,
        "pooler/bias": 1 / 2,
        "classifier/kernel": 10.0,
    }
    table = {row.path: row for row in task.rates()}
    assert {path: table[path].factor for path in wanted} == pytest.approx(wanted)
    assert table["classifier/kernel"].rate == pytest.approx(1e-2)
    task.save(tmp_path / "task.keras")
    assert keras.saving.load_model(tmp_path / "task.keras").rates() == task.rates()


def test_thawed_layers_have_their_rates():
    task = make_classifier()
    task.backbone.trainable = False
    task.compile(AdamW(1e-3, layer_decay=0.5))
    table = {row.path: row for row in task.rates()}
    path = "transformer_layer_2/intermediate/kernel"
    assert table[path][2:] == (False, 0.25, 0.0, 0.0)
    task.backbone.transformer_layers[2].trainable = True
    wanted = (True, 0.25, pytest.approx(0.25e-3), 0.01)
    assert {row.path: row for row in task.rates()}[path][2:] == wanted


def make_keras_deberta():
    return keras_hub.models.DebertaV3Backbone(vocabulary_size=9, **{**SIZES, "num_layers": 2})


ENCODERS = {
    **{f"KerasHub's {name}": lambda make=make: make()[0] for name, make in MODELS.items()},
    "KerasHub's DeBERTaV3": make_keras_deberta,
    "ModernBERT": lambda: kbs.ModernBertBackbone(**TINY, layer_types=["full_attention"] * 2),
    "XLNet": lambda: kbs.XLNetBackbone(**TINY),
    "XLNet with shared biases": lambda: kbs.XLNetBackbone(**TINY, share_biases=True),
    "packed BERT": lambda: kbs.BertBackbone(**TINY),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_the_numbers_of_other_encoders(name):
    """By their names: what is named after a layer, after an embedding, or after neither."""
    encoder = Encoder.of(ENCODERS[name]())
    numbers, num_layers = number_weights(encoder, "layer_decay")
    assert num_layers == encoder.num_layers
    assert set(numbers) == {variable.path for variable in encoder.as_model().weights}
    found = {}
    for path, number in numbers.items():
        owner = path.split("/")[0]
        found.setdefault(owner, set()).add(number)
    above = num_layers + 1
    for owner, owned in found.items():
        *_, last = owner.rsplit("_", 1)
        if last.isdigit() and "layer" in owner:
            wanted = {int(last) + 1}
        else:
            is_above = owner in ("pooler", "pooled_dense", "final_norm", "rel_embedding")
            wanted = {above if is_above else 0}
        if name == "XLNet with shared biases" and owner == "transformer_layer_0":
            wanted.add(above)
        assert owned == wanted, owner


def encoder_decoder():
    bert = kbs.BertBackbone(**TINY)
    return kbs.Seq2Seq(kbs.BertEncoderDecoder.from_backbones(bert, bert))


SIZES_OF_ELMO = {"vocabulary_size": 10, "num_layers": 2, "units": 6, "projection_dim": 4}
REFUSED = {
    "an ElmoBackbone names none": lambda: kbs.TextClassifier(
        kbs.ElmoBackbone(**SIZES_OF_ELMO), 2, pooling=kbs.MeanPooling()
    ),
    "An AlbertBackbone has 3 layers with the weights of 1": lambda: make_classifier(
        kbs.AlbertBackbone
    ),
    "An AlbertBackbone has 2 layers with the weights of 1,": lambda: kbs.TextClassifier(
        make_albert()[0], 2
    ),
    "A BertEncoderDecoder has layers of an encoder and of a decoder": encoder_decoder,
    "A BartBackbone has layers of an encoder and of a decoder": lambda: kbs.TextClassifier(
        kbs.BartBackbone(**TINY, num_decoder_layers=2), 2
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_encoders_without_a_column_of_layers(message):
    task = REFUSED[message]()
    with pytest.raises(ValueError, match=f"layer_decay .*{message}.*rate_multipliers"):
        task.compile(AdamW(1e-3, layer_decay=0.8))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layer_decay": 1.2}, "over 0 and at most 1, such as 0.8: .* got 1.2"),
        ({"layer_decay": 0.0}, "over 0 .* got 0.0"),
        ({"layer_decay": True}, "over 0 .* got True"),
        ({"layer_decay": "0.8"}, "over 0 .* got '0.8'"),
        ({"layer_decay": float("nan")}, "over 0 .* got nan"),
        (
            {"layer_decay": 0.8, "layer_numbering": "xlnet"},
            "one of electra, beit, got 'xlnet'",
        ),
        ({"layer_numbering": "beit"}, "layer_numbering='beit' .* layer_decay=None. Pass"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        AdamW(1e-3, **arguments)


def test_models_without_numbers():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="dense")])
    with pytest.raises(ValueError, match="layer_decay=0.8 needs .*dense/kernel' is not known"):
        AdamW(1e-3, layer_decay=0.8).build(model.trainable_variables)
    task, (x, y) = make_task("texts")
    with pytest.raises(ValueError, match="'classifier/kernel' is not known.*`fit_on_features`"):
        task.fit_on_features(x, y, optimizer=AdamW(layer_decay=0.8), verbose=0)
    task.compile(AdamW(layer_decay=0.8))
    task.backbone.transformer_layers[0].intermediate.enable_lora(2)
    with pytest.raises(ValueError, match="lora_kernel_a' is not known.* compile after weights"):
        task.rates()
    task.compile(AdamW(layer_decay=0.8))
    adapters = [row.factor for row in task.rates() if "lora" in row.path]
    assert adapters == 2 * [pytest.approx(0.8**2)]


def test_weights_of_a_technique_have_the_whole_rate():
    class Owner(kbs.Technique):
        def build(self, model):
            self.owned = keras.Variable([1.0], name="owned")

    task, _ = make_task("texts")
    task.compile(AdamW(1e-3, layer_decay=0.5), technique=Owner())
    assert [row.factor for row in task.rates() if row.path == "owned"] == [1.0]


def test_a_head_that_is_thawed_after_compile_has_its_rate():
    task = make_classifier()
    task.classifier.trainable = False
    task.compile(AdamW(1e-3, layer_decay=0.5), head_learning_rate=1e-2)
    task.classifier.trainable = True
    rates = {row.path: row.rate for row in task.rates()}
    assert rates["classifier/kernel"] == pytest.approx(1e-2)
    assert rates["pooler/kernel"] == pytest.approx(5e-4)


def test_a_rate_of_no_weights():
    task = kbs.TextEmbedder(kbs.BertBackbone(**TINY))
    with pytest.raises(ValueError, match="head_learning_rate=0.01 .* TextEmbedder has none to"):
        task.compile(head_learning_rate=1e-2)
    with pytest.raises(ValueError, match="rate_multipliers='crf/' finds none of the"):
        task.compile(AdamW(layer_decay=0.8, rate_multipliers={"crf/": 9.0}))
        task.rates()


def test_a_decay_trains_lower_layers_less():
    """From the same weights, by the same rows: the change of each layer, beside a plain run."""

    def list_changes(**arguments):
        keras.utils.set_random_seed(0)
        task, (x, y) = make_task("texts", num_layers=3)
        task.compile(AdamW(1e-5, 0.0, **arguments))
        before = {v.path: np.array(to_numpy(v)) for v in task.backbone.variables}
        task.fit(x, y, epochs=2, batch_size=4, verbose=0)
        return [
            np.mean([np.abs(to_numpy(v) - before[v.path]).mean() for v in layer.variables])
            for layer in (task.backbone.embeddings, *task.backbone.transformer_layers)
        ]

    shares = np.array(list_changes(layer_decay=0.5)) / np.array(list_changes())
    assert (np.diff(shares) > 0).all()
    np.testing.assert_allclose(shares, 0.5 ** np.array([5, 4, 3, 2]), rtol=0.2)


WRITTEN = """\
weight        shape  trainable  factor   rate  weight decay
dense/kernel    2x1        yes       3  0.003          0.01
dense/bias        1         no       1      0             0
"""


def test_the_text_of_a_table():
    from keras_bert_suite.training import RateTable, WeightRate

    rows = [
        WeightRate("dense/kernel", (2, 1), True, 3.0, 0.003, 0.01),
        WeightRate("dense/bias", (1,), False, 1.0, 0.0, 0.0),
    ]
    assert str(RateTable(rows)) == repr(RateTable(rows)) == WRITTEN.rstrip("\n")
    assert "unknown" in str(RateTable([rows[0]._replace(rate=None)]))


@pytest.mark.parametrize(
    ("optimizer", "rate", "decays"),
    [
        ("keras AdamW", 1e-3, {"kernel": 0.3, "bias": 0.0}),
        ("keras Adam", 1e-3, {"kernel": 0.0, "bias": 0.0}),
        ("cosine", None, {"kernel": 0.01, "bias": 0.0}),
        ("piecewise", 2e-3, {"kernel": 0.01, "bias": 0.0}),
    ],
)
def test_rates_of_other_optimizers_and_schedules(optimizer, rate, decays):
    task, _ = make_task("texts")
    task.compile(optimizer=None)
    with pytest.raises(ValueError, match="A TextClassifier has no optimizer before `compile`"):
        task.rates()
    ours = {
        "cosine": keras.optimizers.schedules.CosineDecay(1e-3, 10),
        "piecewise": kbs.PiecewiseLinear(2e-3, {2: 1.0}),
    }
    theirs = keras.optimizers.AdamW(1e-3, weight_decay=0.3)
    theirs.exclude_from_weight_decay(var_names=["bias"])
    made = {"keras AdamW": theirs, "keras Adam": keras.optimizers.Adam(1e-3)}
    task.compile(made[optimizer] if optimizer in made else AdamW(ours[optimizer]))
    rows = {row.path.split("/")[-1]: row for row in task.rates() if "classifier" in row.path}
    assert {name: row.weight_decay for name, row in rows.items()} == decays
    assert [row.rate for row in rows.values()] == 2 * [rate and pytest.approx(rate)]
    assert {row.factor for row in rows.values()} == {1.0}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"kernel": -1.0}, "for 'kernel' must be a number of at least 0, got -1.0"),
        ({"kernel": float("nan")}, "for 'kernel' must be a number of at least 0, got nan"),
        ({"(": 0.5}, r"must be regular expressions, got '\(': missing \)"),
    ],
    ids=["negative", "nan", "pattern"],
)
def test_factors_that_no_weight_can_have(rows, message):
    with pytest.raises(ValueError, match=message):
        kbs.AdamW(1e-3, rate_multipliers=rows)
