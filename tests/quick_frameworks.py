"""Frameworks as tests want them, which make hundreds of models and run each a few times."""

import functools
import inspect
import math
import os
import types
import weakref

import keras


def run_plain_graphs():
    """TensorFlow runs its graphs as they are traced, and traces fewer buckets of packed rows.

    A sixth of the time of most tests would go into optimizing what runs a few times. Each group
    of packed rows is a part of the graph by itself. An operation would keep the lines of Python
    that made it, for error messages. Does nothing under other backends.
    """
    if keras.config.backend() != "tensorflow":
        return
    import tensorflow as tf
    from tensorflow.python.framework import ops
    from tensorflow.python.util import tf_stack

    from keras_bert_suite.runs import packed_layout

    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    packed_layout.GRAPH_BUCKETS = 3
    lines = tf_stack.extract_stack()
    ops.tf_stack = types.SimpleNamespace(extract_stack=lambda stacklevel: lines)


def share_compiler_context():
    """JAX registers the operations of its compiler once, and not for each program."""
    if keras.config.backend() == "jax":
        from jax._src.interpreters import mlir

        mlir.make_ir_context = functools.cache(mlir.make_ir_context)


def seed_no_absent_devices():
    """PyTorch seeds the devices that are there.

    For each kind that is absent, it would write down the whole stack of Python.
    """
    if keras.config.backend() == "torch":
        import torch

        for devices in (torch.cuda, torch.mtia, torch.xpu):
            if not devices.is_available():
                devices.manual_seed_all = lambda seed: None


def find_classes_once():
    """Keras and KerasHub find out once what they find out for each object.

    - For each model, Keras assigns the bases of all its classes, also those that stay. KerasHub
      first undoes it, for models without inputs and outputs, which must not have them.
    - For each layer, Keras looks for the arguments of its methods.
    - For each object that is saved or loaded, it makes a layer for the names of its attributes.
      Its own cache looks for another name than it stores.
    - For each list of such an object, it resolves the path of a folder of assets.
    - For the same object KerasHub looks for subclasses among all classes that are registered.
    """
    from keras.src.layers import layer
    from keras.src.models import model
    from keras.src.ops import operation
    from keras.src.saving import saving_lib
    from keras_hub.src.utils import pipeline_model, preset_utils

    model.inject_functional_model_class = _make_functional
    pipeline_model.PipelineModel.__init__ = _make_pipeline(pipeline_model.PipelineModel)
    once = {name: _once(getattr(inspect, name)) for name in ("signature", "getfullargspec")}
    layer.inspect = operation.inspect = types.SimpleNamespace(**{**vars(inspect), **once})
    saving_lib.get_attr_skipset = functools.cache(saving_lib.get_attr_skipset)
    saving_lib.DiskIOStore.has_path = _has_path
    list_subclasses = preset_utils.list_subclasses
    find = functools.cache(lambda cls, registered: list_subclasses(cls))
    preset_utils.list_subclasses = lambda cls: find(
        cls, frozenset(keras.saving.get_custom_objects().values())
    )


def order_no_leaves():
    """Under PyTorch, Keras puts the keys of dicts in order, and looks for none within a tensor."""
    if keras.config.backend() == "torch":
        from keras.src.tree import torchtree_impl as trees

        order_dicts = trees._dict_to_ordered_dict
        trees._dict_to_ordered_dict = lambda structure: (
            order_dicts(structure) if trees.is_nested(structure) else structure
        )


def draw_normals_once():
    """Under PyTorch, Keras draws four normal numbers for one that is truncated.

    For weights of published sizes, one uniform number and the inverse of the distribution are as
    good.
    """
    if keras.config.backend() == "torch":
        from keras.src.backend.torch import random

        draw_four, within_two = random.truncated_normal, math.erf(math.sqrt(2))

        def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
            if math.prod(shape) < 100_000:
                return draw_four(shape, mean, stddev, dtype, seed)
            drawn = random.uniform(tuple(shape), -within_two, within_two, dtype, seed)
            return drawn.erfinv_().mul_(stddev * math.sqrt(2)).add_(mean)

        random.truncated_normal = truncated_normal


def leave_files_to_the_system():
    """No file waits for the disk, which takes up to a second for a training with checkpoints.

    Tests end processes, and cut no power: what a process has written is there.
    """
    os.fsync = lambda descriptor: None


def _has_path(store, path):
    return os.path.exists(f"{store.working_dir}/{path}")


def _make_functional(cls):
    """Puts `Functional` in the place of `keras.Model` among the bases of a class."""
    from keras.src.models.functional import Functional

    if cls is keras.Model:
        return Functional
    if cls is not object:
        bases = tuple(map(_make_functional, cls.__bases__))
        if bases != cls.__bases__:
            cls.__bases__ = bases
    return cls


def _make_pipeline(cls):
    make_plain = cls.__init__

    def make(self, *args, **kwargs):
        if "inputs" in kwargs:
            super(cls, self).__init__(*args, **kwargs)
        else:
            make_plain(self, *args, **kwargs)

    return make


def _once(find):
    """`find` of a function or method, which remembers what it found of each function."""
    known = weakref.WeakKeyDictionary()

    def find_once(method):
        function = getattr(method, "__func__", method)
        if not isinstance(function, types.FunctionType):
            return find(method)
        found = known.setdefault(function, {})
        is_bound = method is not function
        if is_bound not in found:
            found[is_bound] = find(method)
        return found[is_bound]

    return find_once
