"""SavedModels in bfloat16, beside the same tasks in float32."""

import keras
import numpy as np
import pytest
from heads.cases import TASKS
from keras import tree
from peer_weights import randomize
from small_tasks import BYTE_PAIRS, make_task, predicted_columns
from small_texts import make_reviews

from keras_bert_suite import AdamW, Ensemble, TextClassifier, export_saved_model
from keras_bert_suite.heads.base.served import serve
from keras_bert_suite.runs.batches import read
from keras_bert_suite.serving.weight_precision import bring_to_precision

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")

pytestmark = pytest.mark.backend("tensorflow")

#: Tasks with weights that stay in float32: the transitions of the CRF, and a head with its own.
MIXED = ("chains", "spans")
TEXTS, LABELS = make_reviews(20)


def read_dtypes(version):
    """The dtypes of the weights in the files of a SavedModel."""
    reader = tf.train.load_checkpoint(str(version / "variables" / "variables"))
    weights = reader.get_variable_to_dtype_map().items()
    return {dtype.name for name, dtype in weights if name.startswith("weights/")}


@pytest.mark.parametrize(
    ("task", "preprocessor"),
    [
        # Its transitions stay in float32.
        ("chains", "SegmentPacker"),
        *(
            pytest.param(*row, marks=pytest.mark.long("serving"))
            for row in (
                *((t, "SegmentPacker") for t in TASKS if t not in ("pretraining", "chains")),
                ("texts", BYTE_PAIRS),
                ("texts", "KerasHub's DistilBERT"),
            )
        ),
    ],
)
def test_every_task(task, preprocessor, tmp_path):
    model, (x, *_) = make_task(task, preprocessor)
    randomize(model)
    version = export_saved_model(model, tmp_path / "1", precision="bfloat16")
    assert read_dtypes(version) == {"bfloat16"} | ({"float32"} if task in MIXED else set())

    packed, *_ = model.data.pack(model.data.window(read(model, predicted_columns(model, x))))
    packed = {name: tf.cast(packed[name], "int32") for name in model.backbone.input}
    wanted = tree.map_structure(keras.ops.convert_to_numpy, serve(model).answer_ids(packed))
    got = tf.saved_model.load(str(version)).signatures["serve_ids"](**packed)
    got = {name: answer.numpy() for name, answer in got.items()}
    numbers = {name for name, answer in wanted.items() if answer.dtype == "float32"}
    # Who writes answers with tokens alone, and rounding may change a token.
    assert (
        bool(numbers) == (task not in ("targets", "continuations")) and got.keys() == wanted.keys()
    )
    for name in wanted:
        assert got[name].dtype == wanted[name].dtype and got[name].shape == wanted[name].shape
    for name in numbers:
        np.testing.assert_allclose(got[name], wanted[name], rtol=0.02, atol=0.02)
    assert {weight.dtype for weight in model.weights} == {"float32"}, "the task has changed"


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow", "torch", "jax")
def test_each_backend(classifier, tmp_path):
    """A task is brought to bfloat16 also in the process that has TensorFlow as its backend."""
    backbone = type(classifier.backbone).from_config(classifier.backbone.get_config())
    classifier = TextClassifier(
        backbone, label_names=["no", "yes"], preprocessor=classifier.preprocessor
    )
    # With new weights the answers would differ by little more than rounding.
    keras.utils.set_random_seed(0)
    classifier.compile(AdamW(1e-3))
    classifier.fit(TEXTS, LABELS, batch_size=4, epochs=10, verbose=0)
    version = export_saved_model(classifier, tmp_path / "1", precision="bfloat16")
    assert read_dtypes(version) == {"bfloat16"}
    answer = tf.saved_model.load(str(version)).signatures["serving_default"](text=TEXTS)
    logits = classifier.predict(TEXTS, verbose=0)
    wanted = keras.ops.convert_to_numpy(keras.ops.softmax(logits))
    np.testing.assert_allclose(answer["probabilities"], wanted, atol=np.ptp(wanted[:, 0]) / 10)


@pytest.mark.backend("torch")
@pytest.mark.parametrize("trained", ["mixed_bfloat16", "bfloat16"])
def test_a_task_in_bfloat16_is_brought_to_float32(trained):
    model, (x, _) = make_task("texts", "SegmentPacker", dtype=trained)
    randomize(model)
    assert bring_to_precision(model, None) is model
    rebuilt = bring_to_precision(model, "float32")
    assert {weight.dtype for weight in rebuilt.weights} == {"float32"}
    assert rebuilt.compute_dtype == rebuilt.backbone.compute_dtype == "float32"
    got, wanted = (np.asarray(m.predict(x, verbose=0), "float32") for m in (rebuilt, model))
    np.testing.assert_allclose(got, wanted, atol=np.abs(wanted).max() / 10)


@pytest.mark.backend("torch")
def test_each_task_of_an_ensemble_is_brought_to_bfloat16():
    tasks = [randomize(make_task("texts")[0]) for _ in range(2)]
    ensemble = bring_to_precision(Ensemble(tasks, weights=[1, 3]), "bfloat16")
    assert [task.backbone.dtype_policy.name for task in ensemble.tasks] == ["bfloat16"] * 2
    assert ensemble.weights == [0.25, 0.75]
    wanted = Ensemble(tasks, weights=[1, 3]).predict(TEXTS, verbose=0)
    got = np.asarray(ensemble.predict(TEXTS, verbose=0), "float32")
    np.testing.assert_allclose(got, wanted, atol=np.abs(wanted).max() / 10)


@pytest.mark.backend("torch")
def test_refusals(classifier, tmp_path):
    with pytest.raises(
        ValueError, match="one of float32, bfloat16, float16, or None .* got 'int8'"
    ):
        export_saved_model(classifier, tmp_path / "1", precision="int8")
    model, _ = make_task("texts", "SegmentPacker", hidden_dim=16)
    model.backbone.quantize("int8")
    with pytest.raises(ValueError, match="must be None for a task that was quantized"):
        export_saved_model(model, tmp_path / "1", precision="bfloat16")
    assert not list(tmp_path.iterdir())
