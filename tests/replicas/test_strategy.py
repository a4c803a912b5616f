"""Two devices of a `MirroredStrategy` under TensorFlow train as one."""

import pytest
from replicas.cases import CASES, check_same, run_case
from replicas.worker_processes import read_results, start_processes

pytestmark = [pytest.mark.backend("tensorflow"), pytest.mark.long("faults")]

#: The case of `make test`. TensorFlow compiles each twice, once for two devices.
CHOSEN = ("pretraining",)


def check_cases(names, folder):
    """Trains on two devices, and meanwhile on one."""
    processes = start_processes(
        1, "replicas.strategy_steps", "run_steps", ",".join(names), folder=folder
    )
    wanted = {name: run_case(name) for name in names}
    (found,) = read_results(processes, timeout=900)
    for name in names:
        check_same(found[name], wanted[name])


def test_two_devices_train_as_one(tmp_path):
    check_cases(CHOSEN, tmp_path)


@pytest.mark.long("faults")
def test_two_devices_train_as_one_in_all_cases(tmp_path):
    check_cases([name for name in CASES if name not in (*CHOSEN, "accumulation")], tmp_path)
