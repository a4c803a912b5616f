"""Two processes under PyTorch, here two threads, train as one."""

import re

import keras
import numpy as np
import pytest
from replicas.cases import build_case, check_same, train_case
from replicas.threads import Threads

from keras_bert_suite import FGM, AdamW, MaskedLMLoss, RankingLoss
from keras_bert_suite.replicas.processes import compare_batches
from keras_bert_suite.training import ReplacedTokenLoss
from keras_bert_suite.training.gradient_sums import keep_on_leader
from keras_bert_suite.training.loss_shares import share_loss

pytestmark = pytest.mark.backend("torch")

#: Each has a sum, a share or a loss of its own. "moved embeddings" are those of a pretraining, and
#: "a step that is not finite" has weights of rows. `test_gloo.py` has the others.
CHOSEN = (
    *("summed rows", "clipping", "accumulation", "ranks", "optimizer of Keras", "packed"),
    *("cached and one row left", "a step that is not finite", "few weights", "moved embeddings"),
)
#: What is summed up over the batches of an epoch goes on in the next one.
NUM_EPOCHS = {"accumulation": 2}


@pytest.fixture
def threads(monkeypatch):
    return Threads(2, monkeypatch)


@pytest.mark.filterwarnings("ignore:.*the last batch of each epoch has one row:UserWarning")
@pytest.mark.parametrize("name", CHOSEN)
def test_two_processes_train_as_one(name, threads):
    """They begin with the weights of the first process."""
    tasks = [build_case(name, seed) for seed in (0, 1)]
    epochs = NUM_EPOCHS.get(name, 1)
    wanted = train_case(name, *build_case(name), epochs)
    for found in threads.run(lambda rank: train_case(name, *tasks[rank], epochs)):
        check_same(found, wanted)


NUMBERS = np.random.default_rng(0).normal(size=(6, 3, 4)).astype("float32")
WEIGHTS = np.array([[3, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 2], [0, 0, 0]], "float32")
IDS = np.array([[0, 1, 3], [2, 1, 0], [3, 3, 3], [0, 0, 1], [2, 2, 1], [1, 0, 2]])
MEANS = ("sum", "sum_over_batch_size", "mean_with_sample_weight")


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize(
    ("loss", "y", "outputs", "weights"),
    [
        *(
            (keras.losses.MeanSquaredError(reduction=kind), IDS, NUMBERS[..., 0], WEIGHTS[:, 0])
            for kind in MEANS
        ),
        (MaskedLMLoss(), IDS, NUMBERS, WEIGHTS),
        (ReplacedTokenLoss(), IDS % 2, NUMBERS[..., 0], WEIGHTS),
        (RankingLoss(), IDS % 2, NUMBERS[..., 0], WEIGHTS[:, 0]),
    ],
    ids=[*MEANS, "words", "tokens", "lists"],
)
def test_the_losses_of_unequal_shares_sum_to_the_loss(loss, y, outputs, weights, weighted, threads):
    """The first process has most of the weight, and the second most of the rows."""
    columns = [keras.ops.convert_to_tensor(x) for x in (y, outputs, *[weights] * weighted)]
    parts = [[x[:2] for x in columns], [x[2:] for x in columns]]
    found = threads.run(lambda rank: float(share_loss(loss)(*parts[rank])))
    assert sum(found) == pytest.approx(float(loss(*columns)), rel=1e-4)


def catch(function):
    with pytest.raises(ValueError) as error:
        function()
    return str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": (4, 2)}, "process 1 has another number of batches of the data than"),
        ({"x": (["good", "bad", "a", "film"], ["good", "bad", "a", "plot"])}, "another data than"),
        ({"epochs": (1, 2)}, "process 1 has another epochs than process 0: 2 instead of 1"),
        ({"optimizer": (AdamW(1e-3), AdamW(2e-3))}, "process 1 has another optimizer than"),
        ({"technique": (FGM(0.5), FGM(1.0))}, "process 1 has another technique than process 0"),
        ({"batch_size": (3, 3)}, "batch_size=3 .* 2 replicas .* multiple of 2, such as 2"),
    ],
)
def test_differences_are_errors_in_both_processes(threads, arguments, message):
    tasks = [build_case("weighted rows", 0)[0] for _ in range(2)]
    rows = {"x": ["good", "bad", "a", "film"], "y": [0, 1, 0, 1], "batch_size": 2, "verbose": 0}

    def fit(rank):
        own = {name: values[rank] for name, values in arguments.items()}
        tasks[rank].compile(own.pop("optimizer", "sgd"), technique=own.pop("technique", None))
        return catch(lambda: tasks[rank].fit(**{**rows, **own}))

    for found in threads.run(fit):
        assert re.search(message, found), found


def test_another_method_is_an_error_in_both_processes(threads):
    tasks = [build_case("weighted rows", 0)[0] for _ in range(2)]

    def call(rank):
        return catch(lambda: (tasks[rank].evaluate if rank else tasks[rank].fit)(["a"], [0]))

    for found in threads.run(call):
        assert 'another call than process 0: "evaluate" instead of "fit"' in found


def test_batches_are_compared_as_they_are_read(threads):
    batches = [np.arange(3), np.arange(4)]

    def read(rank):
        assert len(list(compare_batches(iter(batches)))) == 2
        fewer = catch(lambda: list(compare_batches(iter(batches[: 2 - rank]))))
        return fewer, catch(lambda: next(compare_batches(iter(batches[rank:]))))

    for fewer, other in threads.run(read):
        assert 'process 1 has another batch 2 than process 0: "no batch" instead of' in fewer
        assert "process 1 has another batch 1 than process 0" in other


def test_each_process_trains_and_tests_on_its_share_of_a_batch(threads):
    def work(task):
        batch = ["good", "bad", "a", "film"], np.array([0, 1, 0, 1])
        logs = [*task.train_on_batch(*batch), *task.test_on_batch(*batch)]
        return np.array(logs), task.get_weights()

    wanted = work(build_case("weighted rows", 0)[0])
    tasks = [build_case("weighted rows", seed)[0] for seed in (0, 1)]
    for found in threads.run(lambda rank: work(tasks[rank])):
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-4)
        for array, other in zip(found[1], wanted[1], strict=True):
            np.testing.assert_allclose(array, other, rtol=1e-4, atol=1e-6)


def test_a_sum_of_all_processes_is_gone_on_with_in_one(threads):
    optimizers = [keras.optimizers.SGD(gradient_accumulation_steps=2) for _ in range(2)]
    for optimizer in optimizers:
        optimizer._accumulated_gradients = [keras.Variable([3.0])]
    threads.run(lambda rank: keep_on_leader(optimizers[rank]))
    kept = [each._accumulated_gradients[0].numpy().tolist() for each in optimizers]
    assert kept == [[3.0], [0.0]]
