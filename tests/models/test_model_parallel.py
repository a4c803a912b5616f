"""Every weight has one place in the table of layouts, and a wrong table is an error."""

import re

import keras
import pytest
from family import MEMBERS
from heads.cases import TASKS
from small_tasks import make_task

from keras_bert_suite import (
    BertBackbone,
    ElectraBackbone,
    ElectraPretrainer,
    ElmoBackbone,
    ElmoPretrainer,
    FramePretrainer,
    ModelParallel,
    ModernBertBackbone,
    Pretrainer,
    TextClassifier,
)
from keras_bert_suite.models.model_parallel import MODEL, WEIGHT_LAYOUTS, WHOLE


def find_rows(path):
    """The axes that `WEIGHT_LAYOUTS` has for a path: one row, or none."""
    return [axes for pattern, axes in WEIGHT_LAYOUTS if re.fullmatch(pattern, path)]


SIZES = {
    "vocabulary_size": 24,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 16,
}


def add_adapters(model):
    """Gives all layers that can have them adapters of LoRA."""
    for layer in model._flatten_layers():
        if isinstance(layer, (keras.layers.Dense, keras.layers.Embedding)):
            layer.trainable = True
            layer.enable_lora(2)


def list_layouts(model):
    """dict of path -> axes of each weight. Each weight has exactly one row."""
    layouts = {}
    for weight in model.weights:
        if "seed_generator" in weight.path:
            continue
        rows = find_rows(weight.path)
        assert len(rows) == 1, f"{weight.path} has {rows}"
        layouts[weight.path] = rows[0]
        assert len(rows[0]) in (0, len(weight.shape)), weight.path
    return layouts


@pytest.mark.parametrize("kind", MEMBERS)
def test_every_model_has_a_table(kind):
    member = MEMBERS[kind]
    backbone = member.make(vocabulary_size=24)
    layouts = list_layouts(backbone)
    for block in backbone.transformer_layers:
        kernels = [
            axes
            for path, axes in layouts.items()
            if path.startswith(block.name + "/") and path.endswith("/kernel")
        ]
        found = kernels.count((None, MODEL)), kernels.count((MODEL, None))
        assert found == member.matrices
        assert len(kernels) == sum(found)
    assert layouts["embeddings/token_embedding/embeddings"] == (MODEL, None)
    add_adapters(backbone)
    with_adapters = list_layouts(backbone)
    for path, axes in with_adapters.items():
        if path.endswith("_a"):
            # The product of A (I, rank) and B (rank, units) lies as the kernel (I, units).
            kernel = with_adapters[path.replace("lora_", "").removesuffix("_a")] or (None, None)
            assert (axes or (None,))[0] == kernel[0]
            assert (with_adapters[path[:-1] + "b"] or (None,))[-1] == kernel[1]


def test_every_task_has_a_table():
    tasks = [make_task(name, "SegmentPacker")[0] for name in TASKS]
    tasks.append(ElectraPretrainer(ElectraBackbone(**SIZES, embedding_dim=4)))
    tasks.append(Pretrainer(BertBackbone(**SIZES), span_boundary=True))
    tasks.append(Pretrainer(ModernBertBackbone(**SIZES)))
    tasks.append(ElmoPretrainer(ElmoBackbone(9, units=4, projection_dim=2)))
    elmo = ElmoBackbone(None, units=4, projection_dim=2, characters={"filters": [(1, 3)]})
    tasks.append(TextClassifier(elmo, 2))
    tasks.append(FramePretrainer(ElmoBackbone(None, frame_dim=3, units=4, projection_dim=2)))
    tasks.append(FramePretrainer(BertBackbone(**{**SIZES, "vocabulary_size": None}, frame_dim=3)))
    for task in tasks:
        layouts = list_layouts(task)
        # Scores of the vocabulary are split, as its embedding is.
        assert layouts.get("masked_lm/bias", (MODEL,)) == (MODEL,)


def test_outputs_of_layers_have_no_layout():
    """Keras would bring the outputs to the layout of a weight."""
    for task in (make_task("pretraining", "none")[0], ElectraBackbone(**SIZES, embedding_dim=4)):
        for layer in task._flatten_layers():
            assert not find_rows(f"{layer.path}/output"), layer.path
        assert find_rows("embeddings/projection/kernel") == [WHOLE]


class Variable:
    """What `ModelParallel` reads of a variable."""

    trainable = True

    def __init__(self, path, shape):
        self.path, self.shape = path, shape


@pytest.fixture
def distribution():
    mesh = keras.distribution.DeviceMesh((1, 1), ("batch", "model"), ["cpu:0"])
    # Its checks read the sizes, and need no devices.
    mesh._shape = (2, 4)
    return ModelParallel(layout_map=BertBackbone.get_layout_map(mesh))


@pytest.mark.backend("jax")
def test_a_wrong_axis_is_named():
    mesh = keras.distribution.DeviceMesh((1, 1), ("data", "tensor"), ["cpu:0"])
    with pytest.raises(ValueError, match="(?s)Valid axis names.*tensor.*model"):
        BertBackbone.get_layout_map(mesh)


@pytest.mark.backend("jax")
def test_a_weight_without_a_rule_is_named(distribution):
    with pytest.raises(ValueError, match=r"No rule .*'scorer/kernel' \(16, 2\).*\(None, None,\)"):
        distribution.get_variable_layout(Variable("scorer/kernel", (16, 2)))
    total = Variable("accuracy/total", ())
    total.trainable = False
    assert distribution.get_variable_layout(total).axes == ()


@pytest.mark.backend("jax")
def test_a_weight_that_is_not_divided_is_named(distribution):
    path = "embeddings/token_embedding/embeddings"
    embedding = Variable(path, (30522, 768))
    with pytest.raises(ValueError, match="4 devices does not divide") as raised:
        distribution.get_variable_layout(embedding)
    assert f"layout_map['{path}'] to other axes" in str(raised.value)
    distribution._layout_map[path] = (None, "model")
    assert distribution.get_variable_layout(embedding).axes == (None, "model")
