"""Which of several processes is named as the lost one."""

import json

import pytest

from keras_bert_suite.replicas import process_watch
from keras_bert_suite.replicas.find_replicas import Member
from keras_bert_suite.replicas.process_watch import ProcessWatch


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.seconds = 0.0

    def monotonic(self):
        return self.seconds


class Store(dict):
    """The texts that processes have left."""

    write = dict.__setitem__

    def read(self, key):
        return self.get(key, "")


@pytest.fixture
def look(monkeypatch):
    """Function from the signs of processes 1 and 2 to what process 0 says of them."""
    clock, store, watch = Clock(), Store(), ProcessWatch("fit")
    monkeypatch.setattr(process_watch, "time", clock)
    watch._begin(Member(0, 3), store)

    def look(seconds, collective_failed=False, failure="", **places):
        clock.seconds = seconds
        if collective_failed:
            watch._failed_at = seconds
        for name, place in places.items():
            sign = {"place": place, "failure": failure, "ended": place == "end", "time": seconds}
            store[int(name.removeprefix("process_"))] = json.dumps(sign)
        watch._read()
        return watch._find_lost()

    return look


def test_a_process_that_is_late_is_not_taken_for_the_lost_one(look):
    assert look(1, process_2="the start of fit") is None
    # Process 2 is killed, and a collective fails. Process 1 reads its files.
    assert look(2, collective_failed=True) is None
    assert look(5) is None
    assert "Process 2 of 3 was lost in the start of fit; the others stop" in look(7)


def test_a_process_that_never_comes_is_named(look):
    assert look(1) is None
    assert look(60, collective_failed=True) is None
    assert look(68) is None
    assert "Process 1 of 3 was lost in the code before fit" in look(69)


def test_a_process_that_has_left_is_not_the_lost_one(look):
    assert look(1, process_1="step 3 of fit", process_2="step 3 of fit") is None
    assert look(2, process_1="end") is None
    assert look(61) is None
    assert "Process 2 of 3 was lost in step 3 of fit" in look(70)


def test_a_process_that_fails_is_named_at_once(look):
    assert look(1, process_1="step 3 of fit", process_2="step 3 of fit") is None
    failed = look(2, process_2="step 4 of fit", failure="OSError: The disk is gone.")
    assert "Process 2 of 3 was lost in step 4 of fit; the others stop. OSError: The disk" in failed


def test_a_process_reads_what_another_writes(monkeypatch):
    clock, store, ends = Clock(), Store(), []
    monkeypatch.setattr(process_watch, "time", clock)
    monkeypatch.setattr(process_watch, "PERIOD", 0.0)
    watches = [ProcessWatch("fit"), ProcessWatch("fit")]
    for index, watch in enumerate(watches):
        watch._begin(Member(index, 2), store)
    watches[1].on_train_batch_begin(0)
    watches[1]._show()

    def find_lost():
        clock.seconds += 25
        assert clock.seconds < 1000, "no process was read"
        ends.append(ProcessWatch._find_lost(watches[0]))
        if ends[-1]:
            watches[0]._ended.set()
        return ends[-1]

    watches[0]._find_lost = find_lost
    watches[0]._run()
    assert watches[0]._has_lost.is_set()
    # The other one was seen at 0 s, and is given up after 60 s.
    assert ends[:2] == [None, None] and "Process 1 of 2 was lost in step 1 of fit" in ends[2]


def test_the_place_counts_steps(monkeypatch):
    watch = ProcessWatch("fit")
    for batch in (0, 1, 0):
        watch.on_train_batch_begin(batch)
    assert watch._sign["place"] == "step 3 of fit"
    watch.on_test_batch_begin(0)
    assert watch._sign["place"] == "the validation after step 3 of fit"
    watch = ProcessWatch("evaluate")
    watch.on_test_batch_begin(0)
    assert watch._sign["place"] == "step 1 of evaluate"
