"""The records of heads fit the tasks, the classes of transformers and the exports."""

import inspect
import re

import pytest
import transformers
from heads.cases import CASES
from small_tasks import make_task
from small_texts import ONE_LAYER

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints.head_types.records import HEAD_LAYERS, HEAD_TYPES
from keras_bert_suite.heads.base.preset_task import PresetTask
from keras_bert_suite.heads.base.served import ServedTask


def make_tasks():
    """One of each class of task, with all heads that it can have."""
    yield from (make_task(name)[0] for name in CASES if name != "pretraining")
    yield kbs.Pretrainer(kbs.BertBackbone(**ONE_LAYER), span_boundary=True)


def test_records_name_the_layers_of_the_tasks():
    tasks = {type(task).__name__: task for task in make_tasks()}
    for head in HEAD_TYPES:
        paths = [weight.path for weight in tasks[head.task].weights]
        layers = [path.partition("/")[0] for path in paths]
        if head.layer:
            assert {head.layer, *head.more_layers} <= {*layers}, head
        if head.ending:
            assert head.path in paths, head
    for name, task in tasks.items():
        own = {weight.path.partition("/")[0] for weight in task.weights}
        own -= {weight.path.partition("/")[0] for weight in task.backbone.weights}
        own = {layer for layer in own if not re.fullmatch(r"exit_\d+(_pooler)?", layer)}
        assert own <= {*HEAD_LAYERS, "generator", "window_pooling"}, name


def test_every_task_has_a_record():
    tasks = {
        name
        for name, value in vars(kbs).items()
        if inspect.isclass(value) and issubclass(value, PresetTask)
    }
    assert tasks == {head.task for head in HEAD_TYPES}


def test_every_task_is_served():
    for head in HEAD_TYPES:
        cls = getattr(kbs, head.task)
        assert cls.HEAD.task == head.task
        assert issubclass(cls.HEAD.find_served(), ServedTask)


@pytest.mark.parametrize("head", [head for head in HEAD_TYPES if head.ending])
def test_transformers_has_the_classes(head):
    config = transformers.BertConfig(
        vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1, intermediate_size=4
    )
    model = getattr(transformers, f"Bert{head.ending}")(config)
    assert head.hugging_face is None or hasattr(model, head.hugging_face)
