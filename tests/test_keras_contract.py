"""The private names of other packages that this one uses, each with what breaks without it.

Such a name may go in any version, so the versions of Keras and KerasHub are bounded above.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import tomllib
from pathlib import Path

import keras
import keras_hub
import numpy as np
import pytest
from keras import ops

import keras_bert_cli
import keras_bert_suite
from keras_bert_suite import AdamW

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (keras_bert_suite, keras_bert_cli)

#: Private methods that are called or overridden: name -> (classes, parameters, what breaks).
METHODS = {
    "_backend_update_step": (
        [keras.optimizers.Optimizer],
        ["self", "grads", "trainable_variables", "learning_rate"],
        "AdamW's fused update, and that a step which is not finite is skipped and not counted.",
    ),
    "_clip_gradients": (
        [keras.optimizers.Optimizer],
        ["self", "grads"],
        "Clipping by the norm of the dense gradients; no step knows whether it is finite.",
    ),
    "_get_variable_index": (
        [keras.optimizers.Optimizer],
        ["self", "variable"],
        "The moments and the decay of a variable are not found.",
    ),
    "_use_weight_decay": (
        [keras.optimizers.Optimizer],
        ["self", "variable"],
        "`task.rates()` cannot say which weights an optimizer of Keras decays.",
    ),
    "_aggregate_additional_loss": (
        [keras.Model],
        ["self", "loss"],
        "Replicas under PyTorch add the penalties of layers as often as there are replicas.",
    ),
    "_run_through_graph": (
        [type(keras.Model(NUMBER := keras.Input((1,)), NUMBER))],
        ["self", "inputs", "operation_fn", "call_fn"],
        "`keras.models.clone_model` copies a task without its tokenizer, in silence.",
    ),
    "_clear_losses": (
        [keras.Model],
        ["self"],
        "Under PyTorch each call of a model takes a millisecond longer.",
    ),
    "_symbolic_build": (
        [keras.Model],
        ["self", "iterator", "data_batch"],
        "A resumed training cannot restore the metrics of the epoch at hand.",
    ),
    "_add_missing_kwargs": (
        [keras_hub.models.Preprocessor],
        ["loader", "kwargs"],
        "A preset without a preprocessor of ours is opened with another class of tokenizer.",
    ),
    "_flatten_layers": (
        [keras.Model, keras_hub.models.Backbone],
        ["self", "include_self", "recursive"],
        "The weights of a task's head cannot be saved without those of the backbone. A training "
        "with an unnamed layer does not go on in a process that has built such a layer.",
    ),
}

#: Private attributes of instances, and what breaks.
ATTRIBUTES = {
    "_iterations": "Skipped steps are counted, and a resumed run reports none.",
    "_accumulated_gradients": "Several processes resume half a step wrongly.",
    "_trainable_variables": "A task that is quantized after weights were frozen does not load.",
    "_trainable_variables_indices": "A layer that is thawed in a training is unknown to it.",
    "_tracker": "The same: the optimizer keeps the state of weights that it does not train.",
    "_layers": "The moments in a file that PyTorch has written are read as those of other weights.",
    "_model_variables_moving_average": "The average of a thawed weight begins with 0.",
    "_dtype_policy": "A quantized task that was loaded cannot be saved again.",
    "_learning_rate": "A schedule of open length is not found, nor laid over the steps of `fit`.",
    "_loss_tracker": "One loss that is not finite is all that is known of its epoch.",
    "_compile_loss": "The same for the losses of each output.",
    "_flat_losses": "The losses of replicas are means of their own rows, and not of the batch.",
    "_compile_metrics": "`compile` without metrics keeps earlier ones.",
    "_batches_seen_since_last_saving": "A resumed `ModelCheckpoint(save_freq=9)` saves after other "
    "batches.",
    "_last_batch_seen": "The same.",
    "_jax_state": "A `predict` under JAX that fails, or that a callback calls, loses the weights.",
    "_value": "A task has no parameters under PyTorch by the paths of its variables.",
    "_parameters": "A task has no parameters for an optimizer of PyTorch.",
    "_losses": "Losses that layers add are never forgotten under PyTorch.",
    "_loss_ids": "The same.",
    "_kernel": "A dense layer asks for each kind of quantization at each call.",
    "_nodes_by_depth": "Under PyTorch, Keras finds the order of a graph anew at each call.",
    "_remat_mode": "A layer made in a `keras.RematScope` keeps its activations under PyTorch.",
    "_forward_hooks": "A hook of PyTorch on a layer within a block is not called.",
    "_forward_pre_hooks": "The same.",
    "_backward_hooks": "The same.",
    "_backward_pre_hooks": "The same.",
}

#: Private methods of TensorFlow's optimizers and models: name -> (class, parameters, what breaks).
TENSORFLOW = {
    "_all_reduce_sum_gradients": (
        keras.optimizers.Optimizer,
        ["self", "grads_and_vars"],
        "Gradients that were summed before they were clipped are summed again.",
    ),
    "_maybe_symbolic_build": (
        keras.Model,
        ["self", "iterator", "data_batch"],
        "A `fit` under a strategy fails if the first batch has shares of different sizes.",
    ),
}

#: Private names of Keras' layers under PyTorch: name -> (parameters of a method that is overridden,
#: or None of an attribute; what breaks).
TORCH_LAYERS = {
    "_track_variables": (["self"], "A task has no parameters before a method asks for them."),
    "_torch_params": (None, "A training step looks up the weights twice."),
    "_apply": (["self", "fn", "recurse"], "`to` moves the weights that a task had before."),
    "_save_to_state_dict": (["self", "destination", "prefix", "keep_vars"], "The same of files."),
    "_load_from_state_dict": (
        ["self", "state_dict", "prefix", "local_metadata"],
        "Weights that are loaded do not reach the variables of Keras.",
    ),
}

#: Private arguments: name -> (function, what breaks).
ARGUMENTS = {
    "_use_cached_eval_dataset": (
        keras.Model.fit,
        "The data that `fit` validates on is preprocessed twice.",
    ),
}

#: Functions of PyTorch, which has no public ones for them: name -> (place, what breaks).
TORCH = {
    "_fused_adamw_": ("torch", "AdamW's update under PyTorch."),
    "_foreach_norm": ("torch", "Clipping under PyTorch."),
    "_foreach_mul_": ("torch", "Clipping under PyTorch."),
    "_foreach_copy_": ("torch", "The sum of gradients over processes."),
    "_get_default_store": ("torch.distributed.distributed_c10d", "A lost process is not named."),
    "_linear_pointwise": ("torch.ops.mkldnn", "Products on processors of AMD are slow again."),
    "_reorder_linear_weight": ("torch.ops.mkldnn", "The scores of the next token are slow again."),
}

#: Functions and enums of JAX's private module `cudnn.fused_attention_stablehlo`, which
#: `layers/attention/cudnn_attention.py` uses, with their parameters. Without them JAX has no cuDNN
#: attention on a GPU.
CUDNN = {
    "check_is_flash_attention": [
        *("query", "key", "value", "layout", "cudnn_version", "has_bias", "is_training"),
    ],
    "check_cudnn_version": [],
    "check_compute_capability": ["capability"],
    "AttentionLayout": None,
}

#: Methods of JAX's private client of its coordination service. Without them a process of JAX that
#: is lost is not named.
JAX_CLIENT = ("key_value_set", "key_value_dir_get")

#: Private methods of Keras 3.16, which 3.15 does not have, that are overridden.
LATER = {"_initialize_ddp": "The gradients of the processes of PyTorch are summed twice."}

#: Names of internal modules of Keras and KerasHub: module -> (name -> parameters, what breaks).
INTERNAL = {
    "keras_hub.src.utils.preset_utils": (
        {"get_preset_loader": ["preset"], "get_file": ["preset", "path"]},
        "Presets of tasks cannot be read. KerasHub's own `Task.from_preset` takes no task of ours "
        "on a backbone of another library.",
    ),
    "keras.src.backend.common.variables": (
        {"AutocastScope": ["dtype"], "get_autocast_scope": []},
        "Cached gradients under a mixed policy would be computed from rounded weights, and the "
        "products of a decoder from weights that are not.",
    ),
    "keras.src.backend.common.stateless_scope": (
        {"in_stateless_scope": []},
        "Under PyTorch, a mixed policy reads weights that another scope has replaced.",
    ),
}

#: The versions that the tests have run with. The bounds are above the last of them.
TESTED = {"keras": ("3.15", "3.16"), "keras-hub": ("0.32", "0.33"), "keras-nlp": ("0.32", "0.33")}

#: Public in spite of their names: `os._exit`, `_replace` of named tuples, a field of Prodigy, and
#: the folder of rows that a job has left out.
DOCUMENTED = {"_exit", "_replace", "_input_hash", "_left_out"}

#: Without Keras. Some of the names of weights there begin as private names do.
WITHOUT_KERAS = {"model_types", "released_models.py"}

PRIVATE = re.compile(r"_[a-z]\w*")
#: The classes of a functional model.
FUNCTIONAL = inspect.getmro(type(keras.Model(*[keras.Input((1,))] * 2)))


def list_names():
    """The private names that the sources use and do not define themselves."""
    used, defined = set(), set()
    for package in PACKAGES:
        for path in sorted(Path(package.__file__).parent.rglob("*.py")):
            if not WITHOUT_KERAS.isdisjoint(path.parts):
                continue
            nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
            # f"{name}_ids" names nothing of Keras.
            joined = {
                part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values
            }
            for node in nodes:
                if node in joined:
                    continue
                match node:
                    case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                        defined.add(name)
                    case ast.Name(id=name, ctx=ast.Store()):
                        defined.add(name)
                    case ast.Attribute(ast.Name("self"), name, ast.Store()):
                        defined.add(name)
                    case ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                        used.add(name)
                    case ast.alias(name=name) | ast.Constant(str(name)):
                        used.add(name)
    return {name for name in used - defined if PRIVATE.fullmatch(name)}


def list_overrides():
    """The private names of Keras and KerasHub that classes of this package define anew."""
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for cls in vars(importlib.import_module(module.name)).values():
                if not inspect.isclass(cls):
                    continue
                ours = [base for base in cls.__mro__ if is_ours(base)]
                # Keras puts it among the bases when the first model of a class is made.
                bases = {*cls.__mro__, *(FUNCTIONAL if issubclass(cls, keras.Model) else ())}
                theirs = [b for b in bases if b.__module__.startswith(("keras.", "keras_hub."))]
                for name in {name for base in ours for name in vars(base)}:
                    if PRIVATE.fullmatch(name) and any(name in vars(base) for base in theirs):
                        yield name


def is_ours(cls):
    return cls.__module__.partition(".")[0] in {package.__name__ for package in PACKAGES}


def test_the_lists_are_complete():
    listed = {*METHODS, *ATTRIBUTES, *ARGUMENTS, *TORCH, *DOCUMENTED, *TENSORFLOW, *TORCH_LAYERS}
    found = {*list_names(), *list_overrides(), *TENSORFLOW, *TORCH_LAYERS}
    assert found - {*LATER} == listed


def test_the_list_of_internal_modules_is_complete():
    imported = {
        (node.module, alias.name)
        for package in PACKAGES
        for path in Path(package.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and ".src." in f"{node.module}."
        for alias in node.names
    }
    assert imported == {(module, name) for module in INTERNAL for name in INTERNAL[module][0]}


@pytest.mark.parametrize("module", INTERNAL)
def test_internal_modules(module):
    names, breaks = INTERNAL[module]
    for name, parameters in names.items():
        found = getattr(importlib.import_module(module), name, None)
        assert found is not None, f"{module}.{name} is gone. {breaks}"
        if parameters is not None:
            assert list(inspect.signature(found).parameters)[: len(parameters)] == parameters, name


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    classes, parameters, breaks = METHODS[name]
    for cls in classes:
        method = getattr(cls, name, None)
        assert method is not None, f"{cls.__name__}.{name} is gone. {breaks}"
        # Decorated methods of PyTorch's optimizer say what they wrap.
        assert list(inspect.signature(method).parameters) == parameters, breaks


def test_keras_calls_the_methods_that_are_overridden():
    calls = []

    class Recorder(AdamW):
        def _clip_gradients(self, gradients):
            calls.append("_clip_gradients")
            return super()._clip_gradients(gradients)

        def _backend_update_step(self, grads, trainable_variables, learning_rate):
            calls.append("_backend_update_step")
            super()._backend_update_step(grads, trainable_variables, learning_rate)

    for steps in (None, 2):
        calls.clear()
        optimizer = Recorder(1.0, gradient_accumulation_steps=steps)
        variable = keras.Variable([1.0])
        for _ in range(steps or 1):
            optimizer.apply([ops.ones(1)], [variable])
        # JAX calls them in every batch and throws away what is too early.
        assert calls[-2:] == ["_clip_gradients", "_backend_update_step"]


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("name", TENSORFLOW)
def test_methods_under_tensorflow(name):
    cls, parameters, breaks = TENSORFLOW[name]
    assert list(inspect.signature(getattr(cls, name)).parameters) == parameters, breaks


@pytest.mark.backend("torch")
@pytest.mark.parametrize("name", TORCH_LAYERS)
def test_methods_under_pytorch(name):
    parameters, breaks = TORCH_LAYERS[name]
    if parameters is None:
        assert name in inspect.getsource(keras.Layer.named_parameters), breaks
        return
    found = list(inspect.signature(getattr(keras.Model, name)).parameters)
    assert found[: len(parameters)] == parameters, breaks


@pytest.mark.backend("jax")
def test_the_store_of_the_processes_of_jax():
    from jax._src import distributed
    from jax._src.lib import _jax

    assert distributed.global_state.client is None  # This process is alone.
    for name in JAX_CLIENT:
        assert hasattr(_jax.DistributedRuntimeClient, name), name


def test_attributes_of_an_optimizer():
    schedule = keras.optimizers.schedules.ExponentialDecay(1.0, 1, 0.5)
    optimizer = keras.optimizers.SGD(schedule)
    assert optimizer._learning_rate is schedule, ATTRIBUTES["_learning_rate"]
    optimizer._iterations.assign(2)
    assert int(optimizer.iterations) == 2, ATTRIBUTES["_iterations"]
    accumulating = keras.optimizers.SGD(gradient_accumulation_steps=2)
    variable = keras.Variable([0.0])
    accumulating.build([variable])
    (trained,) = accumulating._trainable_variables
    assert trained is variable, ATTRIBUTES["_trainable_variables"]
    assert len(accumulating._accumulated_gradients) == 1, ATTRIBUTES["_accumulated_gradients"]
    assert list(accumulating._trainable_variables_indices.values()) == [0]
    last = accumulating.variables[-1]
    accumulating._tracker.untrack(last)
    assert all(variable is not last for variable in accumulating.variables), ATTRIBUTES["_tracker"]
    averaging = keras.optimizers.SGD(use_ema=True)
    averaging.build([variable])
    assert len(averaging._model_variables_moving_average) == 1
    assert float(optimizer.learning_rate) == 0.25


@pytest.mark.backend("torch")
def test_hooks_of_a_layer():
    for name in ("forward_hook", "forward_pre_hook", "full_backward_hook"):
        layer = keras.layers.Dense(1)
        getattr(layer, f"register_{name}")(lambda *arguments: None)
        place = f"_{name.removeprefix('full_')}s"
        assert getattr(layer, place), ATTRIBUTES[place]
    assert isinstance(layer._parameters, dict), ATTRIBUTES["_parameters"]
    layer.register_full_backward_pre_hook(lambda *arguments: None)
    assert layer._backward_pre_hooks, ATTRIBUTES["_backward_pre_hooks"]


def test_attributes_of_a_callback():
    saves = keras.callbacks.ModelCheckpoint("model.keras", save_freq=4)
    saves._should_save_on_batch(2)
    for name in ("_batches_seen_since_last_saving", "_last_batch_seen"):
        assert getattr(saves, name) in (2, 3), ATTRIBUTES[name]


def test_attributes_of_a_model():
    """What stands in for them is what Keras logs."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(loss="mse")
    assert model.metrics[0] is model._loss_tracker, ATTRIBUTES["_loss_tracker"]
    x = np.ones((2, 1), "float32")
    model._compile_loss.build(x, model(x))
    assert isinstance(model._compile_loss.metrics, list), ATTRIBUTES["_compile_loss"]
    (entry,) = model._compile_loss._flat_losses
    assert entry._replace(loss=None).loss is None, ATTRIBUTES["_flat_losses"]
    assert model._compile_metrics is None, ATTRIBUTES["_compile_metrics"]
    model.compile(metrics=["mae"], weighted_metrics=["mse"])
    given = model._compile_metrics
    model.compile()
    assert model._compile_metrics is given, ATTRIBUTES["_compile_metrics"]


@pytest.mark.backend("jax")
def test_the_weights_of_a_model_that_predicts():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    (kernel, _), states = model.weights, []

    class Look(keras.callbacks.Callback):
        def on_predict_batch_end(self, batch, logs=None):
            states.append((model._jax_state, kernel._value))

    model.predict(np.ones((1, 1), "float32"), callbacks=[Look()], verbose=0)
    ((state, value),) = states
    assert len(state["trainable_variables"]) == 2, ATTRIBUTES["_jax_state"]
    assert value is None and kernel._value is not None, ATTRIBUTES["_value"]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name):
    function, breaks = ARGUMENTS[name]
    assert f"{name}=True" in inspect.getsource(function), breaks


@pytest.mark.parametrize("name", TORCH)
def test_functions_of_pytorch(name):
    torch = pytest.importorskip("torch")
    place, breaks = TORCH[name]
    places = {
        "torch": torch,
        "torch.ops.mkldnn": torch.ops.mkldnn,
        "torch.distributed.distributed_c10d": torch.distributed.distributed_c10d,
    }
    assert hasattr(places[place], name), breaks


def test_cudnn_under_jax():
    pytest.importorskip("jax")
    cudnn = importlib.import_module("jax._src.cudnn.fused_attention_stablehlo")
    for name, parameters in CUDNN.items():
        found = getattr(cudnn, name)
        if parameters is not None:
            assert list(inspect.signature(found).parameters)[: len(parameters)] == parameters, name
    source = Path(keras_bert_suite.layers.attention.__file__).with_name("cudnn_attention.py")
    used = {
        node.attr
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if node.value.id == "cudnn"
    }
    assert used == set(CUDNN)


@pytest.mark.parametrize(
    ("package", "version"),
    [
        ("keras", keras.__version__),
        ("keras-hub", keras_hub.__version__),
        ("keras-nlp", keras_hub.__version__),
    ],
)
def test_versions_are_bounded_to_the_minor_versions_that_were_tested(package, version):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (line,) = [line for line in project["dependencies"] if re.match(rf"{package}\b(?!-)", line)]
    assert version.startswith(tuple(f"{tested}." for tested in TESTED[package]))
    major, minor = TESTED[package][-1].split(".")
    assert line.endswith(f",<{major}.{int(minor) + 1}"), line
