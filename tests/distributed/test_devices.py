"""A training on several devices of JAX is the training on one."""

import json
import re

import numpy as np
import pytest
from child_process import finish, start
from device_runs import RUNS, STEPS

from keras_bert_suite.models.model_parallel import MODEL, WEIGHT_LAYOUTS

pytestmark = pytest.mark.backend("jax")

#: The runs of `make test`, in one process.
SHORT = ["small alone", "small 2x2"]

#: run -> the run on one device whose numbers it has.
SAME = {name: f"{name.split()[0]} alone" for name in RUNS if f"{name.split()[0]} alone" in RUNS}


@pytest.fixture(scope="module")
def short_runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("short")
    finish(start("device_runs.py", folder, *SHORT, "exchanges", "numbers", num_devices=4))
    return folder


@pytest.fixture(scope="module")
def long_runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    finish(start("device_runs.py", folder, *sorted(RUNS.keys() - set(SHORT)), num_devices=4))
    return folder


def check_equal(folder, name, steps):
    """Outputs, losses, weights, moments and random states are those of one device."""
    wanted, found = (np.load(folder / f"{n}.npz") for n in (SAME.get(name, "alone"), name))
    assert found.files == wanted.files
    # The batch with a row that is NaN was skipped.
    assert found["optimizer/adamw/iteration"] == steps - 1
    for key in set(wanted.files) - {"parts"}:
        size = max(1.0, np.abs(wanted[key]).max(initial=0.0))
        np.testing.assert_allclose(found[key], wanted[key], 1e-3, 3e-4 * size, err_msg=key)
    np.testing.assert_allclose(found["losses"], wanted["losses"], rtol=2e-5)


def check_parts(folder, name):
    """Each device holds the part of weights and moments that the table says."""
    parts = json.loads(str(np.load(folder / f"{name}.npz")["parts"]))
    sizes = dict(zip(("batch", MODEL), RUNS[name][0], strict=True))
    arrays = np.load(folder / f"{name}.npz")
    weights = [n.removeprefix("model/") for n in parts if n.startswith("model/")]
    num_split = 0
    for weight in weights:
        if "seed_generator" in weight:
            continue
        (axes,) = (axes for pattern, axes in WEIGHT_LAYOUTS if re.fullmatch(pattern, weight))
        moments = f"optimizer/adamw/{weight.replace('/', '_')}"
        for variable in (f"model/{weight}", f"{moments}_momentum", f"{moments}_velocity"):
            if variable not in parts:
                continue  # A frozen weight has no moments.
            whole = arrays[variable].shape
            part = list(whole)
            for position, axis in enumerate(axes):
                part[position] //= sizes.get(axis, 1)
            assert parts[variable] == part, variable
            num_split += part != list(whole)
    assert num_split > 3 * 8


def test_weights_and_batches_are_split(short_runs):
    check_equal(short_runs, "small 2x2", steps=5)
    check_parts(short_runs, "small 2x2")


def test_two_sums_a_block(short_runs):
    """As Megatron has them, and one for the embeddings. Nothing else is exchanged.

    Packed rows need no more: each device packs and unpacks the rows of its share.
    """
    exchanges = json.loads((short_runs / "exchanges.json").read_text())
    assert exchanges == [{"all-reduce": 2 * 2 + 1}] * 2


def test_answers_for_rows_that_the_devices_do_not_divide(short_runs):
    one, four = json.loads((short_runs / "numbers.json").read_text())
    assert len(four) == 7
    np.testing.assert_allclose(four, one, rtol=1e-4, atol=1e-6)


@pytest.mark.long("faults")
@pytest.mark.parametrize("name", sorted(n for n in RUNS if n not in SHORT and "alone" not in n))
def test_any_division_of_devices(long_runs, name):
    check_equal(long_runs, name, STEPS)
    if not isinstance(RUNS[name][0], int):
        check_parts(long_runs, name)
