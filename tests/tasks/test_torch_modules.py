"""Under PyTorch, tasks and backbones are modules with the parameters that Keras trains."""

import copy
import io

import keras
import numpy as np
import pytest
from peer_weights import randomize, to_numpy
from small_tasks import make_task

from keras_bert_suite import TextClassifier

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.backend("torch")


def freeze(task, folder):
    task.backbone.embeddings.trainable = False
    return task


def adapt(task, folder):
    task.backbone.enable_lora(2)
    return task


def quantize(task, folder):
    kernels = [p for p in task.parameters() if p.ndim == 3]
    task.quantize("int8")
    for model in (task, task.backbone):  # Neither keeps the matrices in memory.
        assert not {*map(id, kernels)} & {*map(id, vars(model)["_parameters"].values())}
    return task


def load(task, folder):
    task.save(folder / "task.keras")
    return keras.models.load_model(folder / "task.keras")


def open_preset(task, folder):
    task.save_to_preset(folder)
    return TextClassifier.from_preset(folder)


CHANGES = {
    "new": lambda task, folder: task,
    "frozen": freeze,
    "with LoRA": adapt,
    "quantized": quantize,
    "resized": lambda task, folder: task.resize_vocabulary(task.backbone.vocabulary_size + 3),
    "loaded": load,
    "from a preset": open_preset,
    "copied": lambda task, folder: copy.deepcopy(task),
}


@pytest.mark.parametrize(
    ("name", "change"),
    [*(("texts", change) for change in CHANGES), ("replaced tokens", "new"), ("targets", "new")],
)
def test_parameters_are_the_variables(name, change, tmp_path):
    task = CHANGES[change](make_task(name)[0], tmp_path)
    for model in (task, task.backbone):
        parameters = dict(model.named_parameters())
        assert [*parameters] == [weight.path for weight in model.weights]
        for weight in model.weights:
            assert parameters[weight.path] is weight.value
            assert parameters[weight.path].requires_grad == weight.trainable, weight.path
        assert [*model.state_dict()] == [*parameters]
        outer = torch.nn.ModuleDict({"encoder": model})
        assert [*outer.state_dict()] == [f"encoder.{path}" for path in parameters]
        assert len([*outer.parameters()]) == len(parameters)


def make_classifier():
    task, (texts, labels) = make_task("texts", dropout=0.0)
    randomize(task, seed=0)
    return task, texts[0] if isinstance(texts, tuple) else texts, labels


def test_a_loop_of_pytorch_trains_as_fit_does():
    (task, texts, labels), (fitted, *_) = make_classifier(), make_classifier()
    fitted.compile(optimizer=keras.optimizers.SGD(0.1))
    fitted.fit(texts, labels, batch_size=len(labels), epochs=4, shuffle=False, verbose=0)

    optimizer = torch.optim.SGD(task.parameters(), lr=0.1)
    inputs, targets = task.preprocess_samples(texts, labels)
    inputs = {name: torch.as_tensor(np.array(array)) for name, array in inputs.items()}
    targets = torch.as_tensor(np.array(targets), dtype=torch.long)
    losses = []
    for _ in range(4):
        loss = torch.nn.functional.cross_entropy(task(inputs, training=True), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    for own, other in zip(task.weights, fitted.weights, strict=True):
        np.testing.assert_allclose(to_numpy(own), to_numpy(other), atol=1e-5, err_msg=own.path)

    file = io.BytesIO()
    torch.save(task.state_dict(), file)
    file.seek(0)
    new = make_task("texts")[0]
    assert (
        str(new.load_state_dict(torch.load(file), assign=True)) == "<All keys matched successfully>"
    )
    np.testing.assert_array_equal(new.predict(texts, verbose=0), task.predict(texts, verbose=0))
    new.to("cpu").zero_grad()
    with pytest.raises(RuntimeError, match="Missing key"):
        new.load_state_dict({})
