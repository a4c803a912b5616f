import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from keras_bert_suite.pretraining.epoch_sections import PLANS_KEPT, SectionPlans


def test_a_plan_is_made_once_for_all_threads():
    made, go = [], threading.Event()

    def make(section):
        go.wait()
        made.append(section)
        return [section]

    plans = SectionPlans(make)
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(plans, 0) for _ in range(8)]
        go.set()
        assert all(future.result() is plans(0) for future in waiting)
    assert made == [0]
    plans.prepare(1)
    assert plans(1) == [1] and plans(0) == [0] and made == [0, 1]


def test_old_plans_are_dropped():
    made = []
    plans = SectionPlans(made.append)
    for section in range(4):
        plans(section)
    plans(4 - PLANS_KEPT)
    assert made == [0, 1, 2, 3]
    plans(0)
    assert made == [0, 1, 2, 3, 0]


def test_errors_reach_whoever_asks():
    known = {}
    plans = SectionPlans(known.__getitem__)
    for _ in range(2):
        with pytest.raises(KeyError):
            plans(0)
    known[0] = "a plan"
    assert plans(0) == "a plan"


def test_a_copy_makes_its_own_plans():
    plans = SectionPlans(str)
    plans(0)
    assert pickle.loads(pickle.dumps(plans))(7) == "7"
