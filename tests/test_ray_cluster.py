"""A Ray that was started for one job ends after all that the job has started."""

import threading
import time
import types

import pytest

from keras_bert_suite import ray_cluster as module


@pytest.mark.parametrize("fails", [False, True])
def test_ray_ends_after_the_executions_of_ray_data(fails, monkeypatch):
    """Ray Data waits two seconds for such a thread, which would start Ray anew."""
    events = []

    def execute():
        time.sleep(0.2)
        events.append("execution")

    ray = types.SimpleNamespace(
        is_initialized=lambda: False,
        init=lambda **options: events.append(options["num_cpus"]),
        shutdown=lambda: events.append("shutdown"),
    )
    monkeypatch.setattr(module, "import_ray", lambda: ray)
    execution = threading.Thread(target=execute, name="StreamingExecutor-1", daemon=True)
    if fails:
        with pytest.raises(KeyError), module.ray_cluster(workers=2):
            execution.start()
            raise KeyError("fault")
    else:
        with module.ray_cluster(workers=2) as found:
            execution.start()
            assert found is ray
    assert events == [3, "execution", "shutdown"]


def test_a_connection_of_the_program_is_kept(monkeypatch):
    monkeypatch.setattr(module, "import_ray", lambda: ray)
    ray = types.SimpleNamespace(is_initialized=lambda: True)  # It has no `init` and no `shutdown`.
    with module.ray_cluster("there:1", workers=2) as found:
        assert found is ray
