"""Predictions of a compiled forward pass under PyTorch."""

import keras
import numpy as np
import pytest
from heads.cases import TASKS
from peer_weights import to_numpy
from small_tasks import make_task

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.backend("torch")

SOME = ("texts", "words")


@pytest.mark.long("combinations")
@pytest.mark.parametrize("name", TASKS)
def test_a_forward_pass_is_one_graph(name):
    """`fullgraph` makes each graph break an error."""
    task, _ = make_task(name, "SegmentPacker")
    sizes = {0: 2, 1: 3 if name in ("documents", "choices") else 16}
    x = {
        key: torch.ones(
            [size or sizes.get(axis, 16) for axis, size in enumerate(symbol.shape)],
            dtype=torch.int32,
        )
        for key, symbol in task.input.items()
    }
    graphs = []

    def count(graph, _):
        graphs.append(graph)
        return graph.forward

    forward = lambda x: task(x, training=False)  # noqa: E731
    with torch.no_grad():
        wanted = forward(x)
        torch._dynamo.reset()
        got = torch.compile(forward, backend=count, fullgraph=True)(x)
    assert len(graphs) == 1
    for a, b in zip(keras.tree.flatten(got), keras.tree.flatten(wanted), strict=True):
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), atol=1e-5)


@pytest.mark.long("combinations")
@pytest.mark.parametrize("name", SOME)
def test_the_same_predictions(name):
    """Batches of several lengths; the weights change between two predictions."""
    task, (x, *_) = make_task(name, "SegmentPacker")
    task.compile(optimizer=None, loss=None)
    for _ in range(2):
        task.jit_compile, task.predict_function = False, None
        wanted = task.predict(x, batch_size=5, verbose=0)
        task.jit_compile, task.predict_function = True, None
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        got = task.predict(x, batch_size=5, verbose=0)
        assert torch._dynamo.utils.counters["stats"]["unique_graphs"] >= 1
        assert not torch._dynamo.utils.counters["graph_break"]
        for a, b in zip(keras.tree.flatten(got), keras.tree.flatten(wanted), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5) if hasattr(a, "dtype") else None
        task.set_weights(
            [w + 0.1 * np.sin(np.arange(w.size)).reshape(w.shape) for w in task.get_weights()]
        )


def test_without_the_compiler(monkeypatch):
    """The function that is compiled answers as Keras does, and keeps no graph for gradients."""
    monkeypatch.setattr(torch, "compile", lambda **_: lambda function: function)
    task, (x, _) = make_task("texts", "SegmentPacker", dropout=0.5)
    wanted = task.predict(x, verbose=0)
    task.compile(jit_compile=True)
    np.testing.assert_allclose(task.predict(x, verbose=0), wanted, atol=1e-6)
    packed = task.data.pack(task.data.read(x))[0]
    assert not task.make_predict_function()([(packed,)]).requires_grad
