"""Two processes under PyTorch train as one, and fail as one."""

import re

import numpy as np
import pytest
from replicas.cases import CASES, check_same, run_case
from replicas.gloo_steps import (
    ACCUMULATED,
    BATCHES,
    EPOCH_STEPS,
    STOP,
    Reordered,
    evaluate,
    fit,
    fit_by_batch,
)
from replicas.worker_processes import read_results, start_processes

pytestmark = [pytest.mark.backend("torch"), pytest.mark.long("faults")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gloo")


@pytest.fixture(scope="module")
def alone():
    """The results of one process, which `pair` computes while the others run."""
    return {}


@pytest.fixture(scope="module")
def pair(folder, alone):
    """The results of both processes."""
    processes = start_processes(
        2, "replicas.gloo_steps", "run_steps", folder, ",".join(CASES), folder=folder
    )
    alone.update({name: run_case(name) for name in CASES})
    alone["accumulated"] = fit(**ACCUMULATED)
    alone["same order"] = fit(batches=Reordered(1))
    alone["by batch"] = fit_by_batch()
    alone["evaluated"] = evaluate(iter(BATCHES))
    return read_results(processes)


@pytest.mark.parametrize("name", CASES)
def test_two_processes_train_as_one(name, pair, alone):
    for results in pair:
        check_same(results[name], alone[name])


#: step -> what its error says, in both processes.
DIFFERENCES = {
    "other data": "process 1 has another data than process 0",
    "other arguments": "process 1 has another epochs than process 0",
    "other model": "process 1 has another optimizer than process 0",
    "other validation data": "process 1 has another validation data than process 0",
    "other order": "process 1 has another batch 1 than process 0",
    "fewer batches": "process 1 has another batch 1 than process 0",
    "other call": 'process 1 has another call than process 0: "fit" instead of "evaluate"',
    "other batch": "process 1 has another batch than process 0",
    "other batches": "process 1 has another batch than process 0",
    "evaluated other data": "process 1 has another data than process 0",
    "evaluated fewer batches": 'process 1 has another batch 3 than process 0: "no batch"',
    "not finite": "values that are not finite",
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_differences_are_found_at_once_in_both_processes(name, pair):
    for results in pair:
        assert DIFFERENCES[name] in results[name]


def test_batches_that_are_compared_one_by_one_train_as_one(pair, alone):
    for results in pair:
        for found, wanted in zip(results["same order"][2], alone["same order"][2], strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
        assert results["evaluated"] == pytest.approx(alone["evaluated"], rel=1e-5)


def test_a_training_batch_by_batch_begins_with_one_model_and_shares_each_batch(pair, alone):
    for results in pair:
        np.testing.assert_allclose(results["by batch"][0], alone["by batch"][0], rtol=1e-4)
        for found, wanted in zip(results["by batch"][1], alone["by batch"][1], strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_only_the_first_process_copies_the_variables_for_a_checkpoint(pair):
    # Once after each batch, and once when the epoch is closed.
    assert [results["copies"] for results in pair] == [EPOCH_STEPS + 1, 0]


def test_a_batch_that_processes_cannot_share_is_an_error(pair):
    for results in pair:
        assert "batch_size=3" in results["uneven batch"]
        assert "2 replicas" in results["uneven batch"]
        assert "multiple of 2" in results["uneven batch"]


def test_processes_draw_other_random_numbers(pair):
    assert pair[0]["random state"] != pair[1]["random state"]


def test_sigterm_in_one_process_stops_both_at_one_batch(pair):
    # The signal came after the checkpoint had looked for it.
    assert [results["stopped"][0] for results in pair] == [STOP + 1] * 2


def test_a_stopped_training_goes_on_bit_for_bit(pair):
    for results in pair:
        for found, wanted in zip(results["gone on"][2], results["at once"][2], strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["gone on within a step", "two fits"])
def test_gradients_of_all_processes_are_accumulated(name, pair, alone):
    for results in pair:
        assert results["stopped within a step"][0] == STOP + 1
        for found, wanted in zip(results[name][2], alone["accumulated"][2], strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_a_killed_process_is_named_and_one_process_goes_on(pair, folder):
    assert "killed" not in pair[1]
    message = pair[0]["killed"]
    lost = r"LostProcessError: Process 1 of 2 was lost in step \d of fit; the others stop\. Look at"
    assert re.match(lost, message)
    batches, _, weights = fit(folder / "killed")
    assert batches == 2 * EPOCH_STEPS
    for found, wanted in zip(weights, fit()[2], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("absent", "Process 1 of 2 was lost in the code before evaluate"),
        ("killed", r"Process 1 of 2 was lost in .* of evaluate; the others stop"),
        ("failed", r"Process 1 of 2 was lost in .* of evaluate; .* OSError: The disk is gone"),
    ],
)
def test_a_process_that_is_lost_in_an_evaluation_is_named(loss, message, tmp_path, capfd):
    """The error is raised, or printed by a process that still waits for the lost one."""
    processes = start_processes(2, "replicas.gloo_steps", "run_evaluation", loss, folder=tmp_path)
    found = read_results(processes)[0]
    assert re.search(message, found.get("error") or capfd.readouterr().err)
