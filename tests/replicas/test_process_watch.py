"""Which of several processes is named as the lost one."""

import json

import pytest

from keras_bert_suite.replicas import process_watch
from keras_bert_suite.replicas.process_watch import ProcessWatch, _Sign


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.seconds = 0.0

    def monotonic(self):
        return self.seconds


class Store(dict):
    """The texts that processes have left."""

    def write(self, key, text):
        self[key] = text

    def read(self, key):
        return self.get(key, "")


@pytest.fixture
def look(monkeypatch):
    """Function from the signs of processes 1 and 2 to what process 0 says of them."""
    clock, store, watch = Clock(), Store(), ProcessWatch("fit")
    others = {index: _Sign("fit") for index in (1, 2)}
    monkeypatch.setattr(process_watch, "time", clock)

    def look(seconds, collective_failed=False, **signs):
        clock.seconds = seconds
        if collective_failed:
            watch._failed_at, watch._patience = seconds, process_watch.PATIENCE_AFTER_FAILURE
        for name, place in signs.items():
            sign = {"number": seconds, "place": place, "failure": None, "ended": place == "end"}
            store.write(f"/{name.removeprefix('process_')}", json.dumps(sign))
        return watch._look(store, others)

    return look


def test_a_process_that_is_late_is_not_taken_for_the_lost_one(look):
    assert look(1, process_2="the start of fit") is None
    # Process 2 is killed, and a collective fails. Process 1 reads its files.
    assert look(2, collective_failed=True) is None
    assert look(5) is None
    assert "Process 2 has given no sign of life for 6 s" in look(7)


def test_all_processes_that_never_come_are_named(look):
    assert look(1) is None
    assert look(60, collective_failed=True) is None
    assert "Processes 1, 2 have not come to `fit`" in look(69)


def test_a_process_that_has_left_is_not_the_lost_one(look):
    assert look(1, process_1="batch 3 of epoch 1", process_2="batch 3 of epoch 1") is None
    assert look(2, process_1="end") is None
    assert "Process 2 has given no sign of life" in look(70)
