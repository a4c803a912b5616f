"""Losses, metrics, schedules and optimizers behave after saving and loading as before.

Each argument of each class has a value that is not the default, with which the class behaves in
another way. A class or an argument that is missing in the table fails.
"""

import inspect
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops
from peer_weights import to_numpy

import keras_bert_suite.training
from keras_bert_suite import (
    AdamW,
    CoSENT,
    CosineRegression,
    InBatchNegatives,
    Lamb,
    LinearWarmupDecay,
    MaskedLMLoss,
    PiecewiseLinear,
    RankingLoss,
    Triplet,
    training,
)
from keras_bert_suite.training import SpanLoss
from keras_bert_suite.training.techniques.differentiation import differentiate, differentiate_twice
from keras_bert_suite.training.techniques.technique import Batch, Gradients

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(6, 3, 4)).astype("float32")
NUMBERS = np.arange(18, dtype="int32").reshape(6, 3)
SCORES = np.linspace(-1, 1, 6, dtype="float32")
IDS = RNG.integers(0, 4, (6, 3)).astype("int32")
LOGITS = RNG.normal(size=(6, 3, 4)).astype("float32")
FLAGS = RNG.integers(0, 2, (6, 3)).astype("float32")
WEIGHTS = RNG.random((6, 3), "float32")
RELEVANCE = np.arange(18).reshape(6, 3).astype("float32") % 4
SPANS = np.array([[[0, 1, 0], [-1, -1, -1]], [[1, 1, 1], [0, 2, 0]]], "int32")


def see_loss(*columns):
    """function(loss) -> its value for labels, outputs and weights."""
    # `fit` reads the last.
    read_by_fit = ("distinct_texts", "rows_per_label")
    return lambda loss: (
        to_numpy(loss(*columns)),
        loss.name,
        *(getattr(loss, name, None) for name in read_by_fit),
    )


def see_metric(*columns):
    """function(metric) -> its result after two batches, and the dtype in which it counts."""

    def see(metric):
        for _ in range(2):
            metric.update_state(*columns)
        dtypes = [v.dtype for v in metric.variables]
        return to_numpy(metric.result()).astype("float64"), metric.name, dtypes

    return see


def see_schedule(schedule):
    if getattr(schedule, "total_steps", 1) is None:
        schedule.set_length(2, 23)
    return np.array([to_numpy(schedule(step)) for step in range(25)]), schedule.name


def see_optimizer(optimizer):
    """The weights and moments after some steps of a kernel and a bias."""
    layer = keras.layers.Dense(3, name="dense")
    layer.build((None, 4))
    paths = [variable.path for variable in layer.variables]
    training.set_layer_rates(optimizer, paths, lambda: ({paths[0]: 1}, 1))
    rng = np.random.default_rng(1)
    for variable in layer.variables:
        variable.assign(rng.normal(size=variable.shape))
    for _ in range(4):
        gradients = [rng.normal(size=v.shape).astype("float32") for v in layer.variables]
        optimizer.apply([ops.convert_to_tensor(g) for g in gradients], layer.variables)
    moments = [v for v in optimizer.variables if v.path.endswith(("momentum", "velocity"))]
    values = [to_numpy(ops.cast(v, "float32")).ravel() for v in (*layer.variables, *moments)]
    return np.concatenate(values), optimizer.name, [v.dtype for v in moments]


class SmallPasses:
    """The forward passes of a model of three numbers for each token, each pass another."""

    def __init__(self):
        self.number = 0

    def compute_outputs(self, batch, part=None):
        self.number += 1
        vectors = ops.convert_to_tensor(VECTORS) + batch.shift
        return ops.tanh(ops.sum(vectors, axis=1)) * (1 + 0.1 * self.number)

    def compute_loss(self, batch, outputs):
        return ops.mean(ops.sparse_categorical_crossentropy(batch.y, outputs, from_logits=True))

    def __call__(self, batch):
        outputs = self.compute_outputs(batch)
        return self.compute_loss(batch, outputs), outputs

    def differentiate(self, batch):
        def run(shift):
            return self(batch._replace(shift=shift))

        loss, gradient, outputs = differentiate_twice(run, batch.shift)
        return loss, outputs, gradient


def see_technique(technique):
    """The shifts, losses and gradients of all passes."""
    form = training.Divergence.of_form(training.OutputForm("classes"))
    technique.build(
        SimpleNamespace(
            find_divergence=lambda: form,
            split_at_vectors=lambda: (None, lambda x, training: x),
            has_second_derivative=True,
            non_trainable_variables=[SimpleNamespace(path="dropout/seed_generator_state")],
        )
    )
    seed, forward = keras.random.SeedGenerator(7), SmallPasses()
    mask = ops.ones(VECTORS.shape[:2])
    shift = ops.zeros(VECTORS.shape)
    batch = Batch({"padding_mask": mask}, ops.convert_to_tensor(IDS[:, 0]), None, shift)
    seen = []

    def differentiate_pass(shift=None, loss=None, **kwargs):
        def run(values):
            return (loss or technique.loss)(forward, batch._replace(shift=values[0]), seed)

        shift = batch.shift if shift is None else shift
        (gradient,), outputs = differentiate(run, [shift])
        seen.extend(to_numpy(x) for x in (shift, gradient, outputs))
        return Gradients([], gradient, None, outputs, None)

    technique.gradients(differentiate_pass, batch, seed)
    return np.concatenate([x.ravel() for x in seen]), len(seen)


def see_average(technique):
    """The average of a weight that is the number of the step."""
    weight = keras.Variable([0.0])
    technique.build(SimpleNamespace(weights=[weight]))
    for step in range(1, 8):
        weight.assign([float(step)])
        technique.after_update()
    return (to_numpy(technique.averages[0]),)


def see_memory(technique):
    """The shape of the memory of a small model."""
    backbone = SimpleNamespace(memory_length=2, num_layers=1, hidden_dim=4)
    technique.build(SimpleNamespace(backbone=backbone, output={"memory": None}))
    return (np.array(technique.memory.shape),)


NAMED = {"name": "x"}
OF_LABELS = {**NAMED, "margin": 1.5, "distance": "euclidean", "rows_per_label": 3}
METRIC = {"name": "x", "dtype": "float64"}
#: The mean is the only reduction of these losses.
ONE_REDUCTION = {"name": "x", "reduction": "refused"}
#: Keras saves them for no loss. Ours compute in float32, and the axis is the last.
UNSAVED = {"axis", "dtype"}
OPTIMIZER = {
    "learning_rate": LinearWarmupDecay(0.05, total_steps=9, warmup_steps=2),
    "weight_decay": 0.3,
    "beta_1": 0.5,
    "beta_2": 0.9,
    "epsilon": 0.1,
    "global_clipnorm": 0.1,
    "no_decay": ["kernel"],
    "no_decay_names": ["kernel"],
    "rate_multipliers": [("bias", 5.0), ("dense", 2.0)],
    "layer_decay": 0.5,
    "layer_numbering": "beit",
    "lookahead_steps": 3,
    "lookahead_share": 0.25,
    "gradient_accumulation_steps": 2,
    "momentum_dtype": "bfloat16",
    "name": "x",
}
RATES = {"learning_rate": 1e-2, "weight_decay": 0.1, "layer_decay": 0.8, "lookahead_steps": 2}
SOFT = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.2)
BINARY = keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.2)
FOCAL = keras.losses.BinaryFocalCrossentropy(from_logits=True, gamma=3.0)
GENERALIZED = keras.losses.CategoricalGeneralizedCrossEntropy(q=0.3)
PAIRS = VECTORS[:, :2]

#: class -> (function that sees its behaviour, arguments, values of which each is no default).
TABLE = {
    LinearWarmupDecay: (
        see_schedule,
        {"peak_learning_rate": 0.1},
        # A tenth or a quarter of 23 steps is no whole number.
        {"peak_learning_rate": 0.3, "total_steps": 17, "warmup_steps": 5, "warmup_ratio": 0.25,
         "name": "x"},
    ),
    PiecewiseLinear: (
        see_schedule,
        {"peak_learning_rate": 0.1, "points": {5: 1.0}},
        {"peak_learning_rate": 0.3, "points": {0: 0.5, 3: 1, 9: 0.25}, "name": "x"},
    ),
    AdamW: (see_optimizer, RATES, {**OPTIMIZER, "bias_correction": True}),
    Lamb: (see_optimizer, RATES, {**OPTIMIZER, "bias_correction": False}),
    InBatchNegatives: (
        see_loss(NUMBERS, VECTORS),
        {},
        {**NAMED, "temperature": 0.5, "distinct_texts": True},
    ),
    CosineRegression: (see_loss(SCORES, PAIRS), {}, NAMED),
    CoSENT: (see_loss(SCORES, PAIRS), {}, {**NAMED, "scale": 3.0}),
    Triplet: (see_loss(NUMBERS, VECTORS), {}, {**NAMED, "margin": 1.5, "distance": "euclidean"}),
    training.BatchAllTriplet: (see_loss(IDS[:, 0], VECTORS[:, :1]), {}, OF_LABELS),
    training.BatchHardTriplet: (
        see_loss(IDS[:, 0], VECTORS[:, :1]),
        {},
        {**OF_LABELS, "margin": "soft"},
    ),
    training.MarginMSE: (
        see_loss(RELEVANCE[:, :2], VECTORS),
        {},
        {**NAMED, "similarity": "cosine"},
    ),
    training.DistilledScores: (
        see_loss(RELEVANCE[:, :2], VECTORS),
        {},
        {**NAMED, "similarity": "cosine", "temperature": 0.5, "teacher_temperature": 2.0},
    ),
    training.VectorRegression: (see_loss(VECTORS[:, 0], VECTORS), {}, NAMED),
    training.Matryoshka: (
        see_loss(NUMBERS, VECTORS),
        {"loss": InBatchNegatives(), "dimensions": [4, 2]},
        {
            **NAMED,
            "loss": InBatchNegatives(0.5),
            "dimensions": [4, 3],
            "weights": [0.5, 2.0],
        },
    ),
    MaskedLMLoss: (see_loss(IDS, LOGITS, WEIGHTS), {}, ONE_REDUCTION),
    training.MaskedFrameLoss: (
        see_loss(LOGITS, 2 * LOGITS + 1, WEIGHTS),
        {},
        {**ONE_REDUCTION, "power": 2},
    ),
    RankingLoss: (
        see_loss(RELEVANCE, LOGITS[..., 0]),
        {},
        {**ONE_REDUCTION, "kind": "pairwise"},
    ),
    training.NDCG: (see_metric(RELEVANCE, LOGITS[..., 0]), {}, {**METRIC, "top_k": 1}),
    training.ReplacedTokenLoss: (see_loss(FLAGS, LOGITS[..., 0], WEIGHTS), {}, ONE_REDUCTION),
    SpanLoss: (
        see_loss(SPANS, RNG.normal(size=(2, 2, 3, 3)).astype("float32")),
        {},
        {**NAMED, "reduction": "sum"},
    ),
    training.OneHotLoss: (
        see_loss(IDS[:, 0], LOGITS[:, 0]),
        {"loss": keras.losses.CategoricalCrossentropy(from_logits=True)},
        {"loss": SOFT, "name": "x", "activation": "softmax"},
    ),
    training.LabelwiseLoss: (
        see_loss(FLAGS, LOGITS[..., 0], WEIGHTS),
        {"loss": BINARY},
        {"loss": FOCAL, "name": "x", "activation": "sigmoid"},
    ),
    training.ClassIdLoss: (
        see_loss(IDS[:, 0], LOGITS[:, 0]),
        {"loss": GENERALIZED},
        {"loss": GENERALIZED, "name": "x", "activation": "softmax"},
    ),
    training.ElementwiseLoss: (
        see_loss(FLAGS, LOGITS[..., 0]),
        {"loss": keras.losses.MeanSquaredError()},
        {"loss": keras.losses.MeanAbsoluteError(), "name": "x", "activation": "sigmoid"},
    ),
    training.PredictionMean: (
        see_loss(IDS, LOGITS, WEIGHTS),
        {"loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True)},
        {"loss": keras.losses.SparseCategoricalCrossentropy(ignore_class=1), "name": "x"},
    ),
    training.ClassCrossentropy: (
        see_loss(IDS[:, 0], np.abs(LOGITS[:, 0])),
        {},
        {**NAMED, "from_logits": True, "ignore_class": 1, "reduction": "sum"},
    ),
    training.AttributeLoss: (
        see_loss(IDS[:, :2] // 2 - 1, RNG.normal(size=(6, 4)).astype("float32")),
        {"sizes": [2, 2], "weights": [1.0, 1.0]},
        {**NAMED, "sizes": [1, 3], "weights": [1.0, 0.3], "reduction": "sum"},
    ),
    training.AttributeAccuracy: (
        see_metric(IDS[:, :2] // 2, np.linspace(1, 0, 24, dtype="float32").reshape(6, 4) % 0.3),
        {"sizes": [2, 2]},
        {**METRIC, "sizes": [1, 3]},
    ),
    training.TokenAccuracy: (see_metric(IDS, LOGITS, WEIGHTS), {}, METRIC),
    training.ClassAccuracy: (see_metric(IDS[:, 0], LOGITS[:, 0]), {}, METRIC),
    training.MaskedLMAccuracy: (see_metric(IDS, LOGITS, WEIGHTS), {}, METRIC),
    training.ReplacedTokenAccuracy: (see_metric(FLAGS, LOGITS[..., 0], WEIGHTS), {}, METRIC),
    training.ReplacedTokenRecall: (see_metric(FLAGS, LOGITS[..., 0], WEIGHTS), {}, METRIC),
    training.MacroF1: (see_metric(IDS[:, 0], LOGITS[:, 0]), {}, {**METRIC, "threshold": 0.6}),
    training.LabelSetF1: (
        see_metric(FLAGS, LOGITS[..., 0] / 2 + 0.3),
        {"average": "micro"},
        {**METRIC, "average": "macro", "from_logits": False, "threshold": 0.6},
    ),
    training.CarriedMemory: (see_memory, {"lanes": 2}, {"lanes": 3}),
    training.FGM: (see_technique, {}, {"epsilon": 0.7}),
    training.PGD: (see_technique, {}, {"steps": 2, "rate": 0.4, "max_norm": 0.2}),
    training.FreeLB: (
        see_technique, {}, {"steps": 2, "rate": 0.1, "first_norm": 0.2, "max_norm": 0.01}
    ),
    training.VAT: (
        see_technique, {}, {"epsilon": 0.3, "alpha": 2.0, "first_norm": 0.5, "steps": 2}
    ),
    training.SMART: (
        see_technique,
        {},
        {"alpha": 2.0, "noise": 1e-2, "rate": 0.5, "steps": 2, "size": 0.5},
    ),
    training.GradientPenalty: (see_technique, {}, {"epsilon": 2.0}),
    training.RDrop: (see_technique, {}, {"alpha": 2.0, "reduction": "sum"}),
    training.Mixup: (see_technique, {}, {"alpha": 3.0}),
    training.CombinedTechniques: (
        see_technique,
        {"techniques": [training.RDrop(), training.FGM()]},
        {"techniques": [training.RDrop(2.0), training.PGD()]},
    ),
    training.EMA: (see_average, {}, {"momentum": 0.5}),
    training.SWA: (see_average, {"first_step": 2}, {"first_step": 3, "every": 2}),
    training.FiniteMean: (see_metric(SCORES, FLAGS[:, 0] + 1), {}, METRIC),
}  # fmt: skip


#: A file keeps the arguments of these with a teacher, or with a graph: see test_distillation.py and
#: test_replaced_layers.py.
OTHERS = {
    *(training.Distillation, training.Theseus, training.LayerDrop),
    *(training.HiddenStates, training.AttentionScores, training.AttentionRelations),
}


def list_arguments(cls):
    """The arguments of the constructor of a class, also those it hands on to our base classes."""
    ours = [c for c in cls.__mro__ if c.__module__.startswith(keras_bert_suite.__name__)]
    constructors = [vars(c)["__init__"] for c in ours if "__init__" in vars(c)] or [cls.__init__]
    kinds = {}
    for constructor in constructors:
        kinds |= inspect.signature(constructor).parameters
        if not any(p.kind is p.VAR_KEYWORD for p in kinds.values()):
            break
        kinds = {name: p for name, p in kinds.items() if p.kind is not p.VAR_KEYWORD}
    return {*kinds} - {"self", "kwargs"}


def test_the_table_is_complete():
    classes = {
        cls
        for cls in keras.saving.get_custom_objects().values()
        if cls.__module__.startswith(training.__name__)
    }
    assert classes - OTHERS == set(TABLE)
    for cls, (_, _, values) in TABLE.items():
        unsaved = UNSAVED if issubclass(cls, keras.losses.Loss) else set()
        assert list_arguments(cls) - unsaved == set(values), cls


ROWS = [(cls, name) for cls, (_, _, values) in TABLE.items() for name in values]


@pytest.mark.parametrize(("cls", "name"), ROWS, ids=lambda x: getattr(x, "__name__", x))
def test_an_argument_is_saved(cls, name):
    see, arguments, values = TABLE[cls]
    if values[name] == "refused":
        with pytest.raises(ValueError, match="always the mean .*got reduction='sum'. Leave"):
            cls(**arguments, **{name: "sum"})
        return
    plain = cls(**arguments)
    changed = cls(**{**arguments, name: values[name]})
    twin = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(changed))
    assert type(twin) is cls
    without, wanted, found = see(plain), see(changed), see(twin)
    np.testing.assert_array_equal(found[0], wanted[0])
    assert found[1:] == wanted[1:]
    assert not np.array_equal(without[0], wanted[0]) or without[1:] != wanted[1:]
