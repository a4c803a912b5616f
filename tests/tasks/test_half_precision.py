"""The warning of bfloat16 that the processor emulates."""

import functools
import warnings

import keras
import pytest
from small_tasks import make_task, predict, predicted_columns
from tables import everywhere_for

from keras_bert_suite.tasks.base import half_precision

WITHOUT, WITH = frozenset({"avx2", "avx512f"}), frozenset({"avx512f", "avx512_bf16"})
MESSAGE = "has no bfloat16 on this processor: .* twice as long .*dtype='float32'"


@pytest.fixture
def machine(monkeypatch):
    """function(instructions, has_accelerator): makes this a machine that nothing has warned of."""

    def pretend(instructions, has_accelerator=False):
        half_precision._warn_once.cache_clear()
        monkeypatch.setattr(half_precision, "read_instructions", lambda: instructions)
        monkeypatch.setattr(half_precision, "has_accelerator", lambda: has_accelerator)

    yield pretend
    half_precision._warn_once.cache_clear()


def fit_and_predict(task, dtype):
    """The warnings of bfloat16."""
    model, (x, y, *_) = make_task(task, "SegmentPacker", dtype=dtype)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.compile(jit_compile=False)
        model.fit(x, y, 4, epochs=1, verbose=0)
        predict(model, x=predicted_columns(model, x))
    return [str(warning.message) for warning in caught if "bfloat16" in str(warning.message)]


@pytest.mark.parametrize("task", everywhere_for(["texts", "spans"], "texts"))
def test_one_warning(machine, task):
    machine(WITHOUT)
    (message,) = fit_and_predict(task, "mixed_bfloat16")
    assert message.startswith(keras.config.backend())


@pytest.mark.parametrize("dtype", everywhere_for(["mixed_bfloat16", "bfloat16"], "mixed_bfloat16"))
def test_a_prediction_alone(machine, dtype):
    machine(WITHOUT)
    model, (x, _) = make_task("texts", "SegmentPacker", dtype=dtype)
    with pytest.warns(UserWarning, match=MESSAGE):
        model.predict(x, verbose=0)


def test_a_prediction_with_the_instructions(machine):
    machine(WITH)
    model, (x, _) = make_task("texts", "SegmentPacker", dtype="mixed_bfloat16")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*bfloat16")
        model.predict(x, verbose=0)


@pytest.mark.parametrize(
    ("dtype", "instructions", "has_accelerator"),
    everywhere_for(
        [
            ("float32", WITHOUT, False),
            ("mixed_bfloat16", WITHOUT, True),
            ("mixed_bfloat16", WITH, False),
            ("mixed_bfloat16", frozenset(), False),
        ],
        ("mixed_bfloat16", WITHOUT, True),
    ),
)
def test_no_warning(machine, dtype, instructions, has_accelerator):
    if keras.config.backend() == "jax" and dtype != "float32" and not has_accelerator:
        pytest.skip("XLA emulates bfloat16 in a training on every CPU")
    machine(instructions, has_accelerator)
    assert not fit_and_predict("texts", dtype)


@pytest.mark.skipif(keras.config.backend() != "jax", reason="the compiler of JAX")
def test_the_compiler_of_jax_multiplies_in_float32():
    """If this fails, JAX has learned bfloat16 on CPUs, and must not be warned of.

    `Dense` asks for float32, and then the matrices stay in bfloat16.
    """
    import jax

    if half_precision.has_accelerator():
        pytest.skip("for CPUs")
    half = jax.numpy.ones((256, 256), "bfloat16")
    program = jax.jit(jax.numpy.matmul).lower(half, half).compile().as_text()
    (product,) = [line for line in program.splitlines() if " dot(" in line]
    assert " f32[256,256]" in product and "convert(" in program
    widened = functools.partial(jax.numpy.matmul, preferred_element_type="float32")
    assert "convert(" not in jax.jit(widened).lower(half, half).compile().as_text()


def test_instructions_of_linux(tmp_path):
    x86, arm = tmp_path / "x86", tmp_path / "arm"
    x86.write_text("processor : 0\nmodel name: x\nflags\t\t: fpu avx512_bf16 amx_tile\n")
    arm.write_text("processor : 0\nFeatures : fp asimd bf16\n")
    assert half_precision.read_instructions(x86) == {"fpu", "avx512_bf16", "amx_tile"}
    assert half_precision.read_instructions(arm) == {"fp", "asimd", "bf16"}
    assert half_precision.read_instructions(tmp_path / "none") == frozenset()
