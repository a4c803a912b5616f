"""Two processes of JAX predict together: they are compared and watched as in a `fit`."""

import numpy as np
import pytest
from replicas.jax_steps import TEXTS, WORDS, make_answerers
from replicas.worker_processes import read_results, start_processes

pytestmark = [
    pytest.mark.backend("jax"),
    pytest.mark.long("faults"),
]

#: step -> what its error says, in both processes.
DIFFERENCES = {
    "no texts": "process 1 has another number of batches of the data than process 0",
    "other steps": "process 1 has another steps than process 0",
    "other words": "process 1 has another batch 1 than process 0",
    "other call": 'process 1 has another call than process 0: "evaluate" instead of "predict"',
    "other batch": "process 1 has another batch than process 0",
}


def run(loss, folder):
    """(results of both processes, their exit statuses)."""
    environment = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "1"}
    processes = start_processes(
        2, "replicas.jax_steps", "run_steps", loss, folder=folder, environment=environment
    )
    return read_results(processes), [process.returncode for process, _ in processes]


def test_processes_predict_as_one_or_find_out_at_once_why_not(tmp_path):
    results, statuses = run("failed", tmp_path)
    classify, tag, _ = make_answerers()
    texts, words = classify(TEXTS), tag(WORDS)
    for found in results:
        np.testing.assert_allclose(found["texts"], texts, rtol=1e-5)
        assert found["words"] == words
        for name, message in DIFFERENCES.items():
            assert message in found[name], name
    # Process 1 has failed in a batch. Process 0 cannot leave the batch, so it ends.
    assert results[1]["lost"] == "OSError: The disk is gone."
    assert "lost" not in results[0] and statuses[0] == 1


def test_a_process_that_is_killed_is_named(tmp_path):
    results, _ = run("killed", tmp_path)
    assert "LostProcessError: Process 1 of 2 was lost in step 1 of predict" in results[0]["lost"]
