"""Every task with an encoder in 8-bit integers."""

import warnings

import keras
import numpy as np
import pytest
from heads.cases import TASKS
from peer_weights import randomize, to_numpy
from small_tasks import make_task, predicted_columns

from keras_bert_suite import (
    AdamW,
    MaskedLM,
    TextClassifier,
    TrainingCheckpoint,
    export_saved_model,
)
from keras_bert_suite.checkpoints import save_google_tf1, save_hugging_face, save_keras_hub

#: Large enough that the scales of the integers and the norms take few of the bytes.
SIZES = {"hidden_dim": 64, "num_heads": 2, "intermediate_dim": 256}


def count_bytes(model):
    return sum(to_numpy(weight).nbytes for weight in model.weights)


def compute_outputs(model, columns):
    """The outputs of the model, without decoding."""
    x = predicted_columns(model, columns[0])
    return keras.tree.map_structure(to_numpy, model.predict_on_batch(x))


#: Heads on rows, on tokens and with the embeddings, and a decoder. The others are long.
SOME = ("texts", "spans", "targets", "pretraining")


@pytest.mark.parametrize(
    "task",
    [
        *SOME,
        *(
            pytest.param(task, marks=pytest.mark.long("combinations"))
            for task in TASKS
            if task not in SOME
        ),
    ],
)
def test_every_task(task, tmp_path):
    model, columns = make_task(task, "SegmentPacker", **SIZES)
    randomize(model)
    wanted, size = compute_outputs(model, columns), count_bytes(model)
    encoder = count_bytes(model.backbone)
    model.quantize("int8")
    assert count_bytes(model.backbone) < 0.3 * encoder
    assert encoder - count_bytes(model.backbone) == size - count_bytes(model)

    got = compute_outputs(model, columns)
    for a, b in zip(keras.tree.flatten(got), keras.tree.flatten(wanted), strict=True):
        # Scores of places that the mask hides are very small.
        seen = b > -1e3
        error = np.linalg.norm((a - b)[seen]) / np.linalg.norm(b[seen])
        assert 0 < error < 0.2

    # What was loaded is saved again. The task was never trained.
    loaded = model
    for file in (tmp_path / "task.keras", tmp_path / "again.keras"):
        loaded.save(file)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            loaded = keras.saving.load_model(file)
        assert count_bytes(loaded) == count_bytes(model)
        keras.tree.map_structure(
            np.testing.assert_array_equal, compute_outputs(loaded, columns), got
        )


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_presets_and_exports(tmp_path):
    pytest.importorskip("tensorflow_text")
    import tensorflow as tf

    model, (texts, _) = make_task("texts", "SegmentPacker", **SIZES)
    randomize(model)
    model.quantize("int8")
    logits = model.predict(texts, verbose=0)
    model.save_to_preset(tmp_path / "preset")
    loaded = TextClassifier.from_preset(tmp_path / "preset")
    np.testing.assert_allclose(loaded.predict(texts, verbose=0), logits, atol=1e-5)

    version = export_saved_model(model, tmp_path / "1")
    answer = tf.saved_model.load(str(version)).signatures["serving_default"](text=texts)
    wanted = to_numpy(keras.ops.softmax(logits))
    # A number that lies between two integers may be rounded to either of them.
    np.testing.assert_allclose(answer["probabilities"], wanted, atol=np.ptp(wanted[:, 0]) / 20)
    (file,) = (version / "variables").glob("variables.data-*")
    assert file.stat().st_size < 1.2 * count_bytes(model)


def test_a_loaded_task_is_as_the_quantized_one(tmp_path):
    """It is written as a preset, and takes LoRA."""
    model, columns = make_task("texts", "SegmentPacker", **SIZES)
    randomize(model)
    model.quantize("int8")
    wanted = compute_outputs(model, columns)
    model.save(tmp_path / "task.keras")
    loaded = keras.saving.load_model(tmp_path / "task.keras")
    assert loaded.backbone.get_config() == model.backbone.get_config()
    loaded.save_to_preset(tmp_path / "preset")
    opened = TextClassifier.from_preset(tmp_path / "preset")
    np.testing.assert_array_equal(compute_outputs(opened, columns), wanted)
    query = next(x for x in opened.backbone._flatten_layers() if (x.path or "").endswith("/query"))
    query.enable_lora(2)
    np.testing.assert_array_equal(compute_outputs(opened, columns), wanted)
    # `opened.save` refuses LoRA. Keras writes the sums.
    keras.saving.save_weights(opened, tmp_path / "sums.weights.h5")
    merged = TextClassifier.from_preset(tmp_path / "preset")
    merged.load_weights(tmp_path / "sums.weights.h5")
    np.testing.assert_allclose(compute_outputs(merged, columns), wanted, atol=0.05)


def test_training_goes_on(tmp_path):
    """Nobody is told of layers without matrices, or of the optimizer's state of the old weights."""
    model, rows = make_task("texts", "SegmentPacker")
    # A rate for matrices that are not trained any more after `quantize`.
    rates = [("query/kernel$", 2.0), ("bias$", 0.5)]
    names = ["^embeddings$", "^kernel$"]  # Only the head has a kernel that is trained.
    model.compile(AdamW(1e-3, rate_multipliers=rates, no_decay_names=names))
    model.fit(*rows, verbose=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Layer |Skipping variable loading")
        model.quantize("int8")
        model.save(tmp_path / "task.keras")
        keras.saving.load_model(tmp_path / "task.keras")
        model.fit(*rows, verbose=0)
        model.save(tmp_path / "task.keras")
        loaded = keras.saving.load_model(tmp_path / "task.keras")
    assert loaded.optimizer.rate_multipliers == (("bias$", 0.5),)
    assert loaded.optimizer.no_decay_names == ("^kernel$",)
    assert int(loaded.optimizer.iterations) == int(model.optimizer.iterations) > 0
    wanted = model.fit(*rows, verbose=0).history["loss"]
    assert loaded.fit(*rows, verbose=0).history["loss"] == pytest.approx(wanted, rel=1e-4)


def test_before_the_first_step(tmp_path):
    """Of an optimizer that has no variables yet, patterns without a variable leave too."""
    model, _ = make_task("texts", "SegmentPacker")
    rates = [("query/kernel$", 2.0), ("bias$", 0.5), ("no_such_layer", 3.0)]
    model.compile(AdamW(1e-3, rate_multipliers=rates[:2]))
    model.quantize("int8")
    model.save(tmp_path / "task.keras")
    loaded = keras.saving.load_model(tmp_path / "task.keras")
    for task in (model, loaded):
        assert task.optimizer.rate_multipliers == (("bias$", 0.5),)

    model, rows = make_task("texts", "SegmentPacker")
    model.compile(AdamW(1e-3, rate_multipliers=rates))
    model.quantize("int8")
    with pytest.raises(ValueError, match="rate_multipliers='no_such_layer' finds none"):
        model.fit(*rows, verbose=0)


def test_what_files_would_not_keep(tmp_path):
    model, _ = make_task("texts", "SegmentPacker")
    with pytest.raises(ValueError, match="'int8' with its defaults only, got mode='int4'"):
        model.quantize("int4")
    weights_only = keras.quantizers.Int8QuantizationConfig(activation_quantizer=None)
    with pytest.raises(ValueError, match="'activation_quantizer': None"):
        model.quantize(config=weights_only)
    model.quantize("int8")
    for write in (save_hugging_face, save_google_tf1, save_keras_hub):
        with pytest.raises(ValueError, match="cannot hold these weights .*_scale"):
            write(model, tmp_path / "written")
    model.save_to_preset(tmp_path / "preset")
    for open_other in (
        lambda: MaskedLM.from_preset(tmp_path / "preset"),
        lambda: TextClassifier.from_preset(tmp_path / "preset", dtype="mixed_bfloat16"),
    ):
        with pytest.raises(ValueError, match="saved before `quantize`"):
            open_other()


@pytest.mark.parametrize("policies", [("mixed_bfloat16", "float32"), ("float32", "mixed_bfloat16")])
def test_the_policy_of_other_layers_is_kept(policies, tmp_path):
    """KerasHub opened a quantized model in the policy of `keras.config`, whatever it had."""
    own, current = policies
    model, (texts, _) = make_task("texts", "SegmentPacker", dtype=own)
    randomize(model)
    model.quantize("int8")
    wanted = model.predict(texts, verbose=0)
    model.save(tmp_path / "task.keras")
    model.save_to_preset(tmp_path / "preset")
    usual = keras.config.dtype_policy()
    keras.config.set_dtype_policy(current)
    try:
        opened = [
            keras.saving.load_model(tmp_path / "task.keras"),
            TextClassifier.from_preset(tmp_path / "preset"),
        ]
    finally:
        keras.config.set_dtype_policy(usual)
    for task in opened:
        for layer in (task.classifier, task.backbone.pooler, task.backbone.embeddings.layer_norm):
            assert layer.compute_dtype == own.removeprefix("mixed_")
        np.testing.assert_allclose(task.predict(texts, verbose=0), wanted, atol=1e-5)
        assert task.backbone.get_config()["dtype"] == model.backbone.get_config()["dtype"]


def test_a_task_without_compile(tmp_path):
    """As `load_model(..., compile=False)` gives it."""
    model, rows = make_task("texts", "SegmentPacker")
    model.save(tmp_path / "task.keras")
    loaded = keras.saving.load_model(tmp_path / "task.keras", compile=False)
    for callbacks in ([], [TrainingCheckpoint(tmp_path / "run")]):
        with pytest.raises(ValueError, match="call `compile` first"):
            loaded.fit(*rows, callbacks=callbacks, verbose=0)
    loaded.quantize("int8")
    model.quantize("int8")
    np.testing.assert_allclose(
        loaded.predict(rows[0], verbose=0), model.predict(rows[0], verbose=0), atol=1e-5
    )
