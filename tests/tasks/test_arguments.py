"""What the arguments of each task do, and that files keep them.

`heads/cases.py` has every argument of every task at a value that is not its default. A new task, or
a new argument, fails `test_the_table_is_whole` until it has one.
"""

import inspect

import keras
import numpy as np
import pytest
from heads.cases import CASES
from heads.observed import TEXTS, make_inputs, make_packer
from small_texts import ONE_LAYER
from tables import left_out

from keras_bert_suite import (
    BertBackbone,
    BertEncoderDecoder,
    ElectraBackbone,
    ElectraPretrainer,
    ElmoBackbone,
    ElmoPretrainer,
    FramePacker,
    FramePretrainer,
    Seq2SeqPretrainer,
    TextEmbedder,
)
from keras_bert_suite.heads.base.task import Task

SIZES = {**ONE_LAYER, "dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.5}
ELMO = {"units": 6, "projection_dim": 4, "dropout": 0.0, "initializer_range": 0.5}

#: They are saved in files of their own, or in another argument.
ELSEWHERE = {"self", "backbone", "preprocessor", "num_classes", "kwargs"}

#: (class, `Changed`) by the name of the head.
CHANGED = {
    f"{name} {i}" if i else name: (case.cls, changed)
    for name, case in CASES.items()
    for i, changed in enumerate(case.changed)
}


def build(name, arguments=None, **rates):
    cls, changed = CHANGED[name]
    keras.utils.set_random_seed(0)
    encoder = ElectraBackbone if cls is ElectraPretrainer else BertBackbone
    sizes = SIZES
    if cls is ElmoPretrainer:
        encoder, sizes = ElmoBackbone, {**ELMO, "vocabulary_size": SIZES["vocabulary_size"]}
    backbone = encoder(**{**sizes, **changed.backbone, **rates})
    if cls is Seq2SeqPretrainer:
        backbone = BertEncoderDecoder.from_backbones(backbone, backbone)
    packer = make_packer()
    if cls is FramePretrainer:
        backbone, packer = backbone.for_frames(3), FramePacker(3, 12)
    given = changed.arguments if arguments is None else arguments
    return cls(backbone, preprocessor=packer, **given)


def flatten(observed):
    """list of arrays and strings."""
    leaves = keras.tree.flatten(observed)
    return [leaf if isinstance(leaf, str) else keras.ops.convert_to_numpy(leaf) for leaf in leaves]


def look(name, task):
    """What a user sees of a task, with the names of its texts, which exports have."""
    return flatten([CHANGED[name][1].observe(task), list(getattr(task, "input_names", None) or [])])


def are_equal(found, wanted):
    return len(found) == len(wanted) and all(
        a == b
        if isinstance(a, str) or isinstance(b, str)
        else a.shape == b.shape and np.allclose(a, b, rtol=0, atol=1e-5)
        for a, b in zip(found, wanted, strict=True)
    )


def list_parameters(cls):
    """dict of the arguments of a constructor, and of those that it hands to its base class."""
    constructors = [vars(base).get("__init__") for base in reversed(cls.__mro__)]
    ours = [c for c in constructors if "keras_bert_suite" in getattr(c, "__module__", "")]
    found = [pair for c in ours for pair in inspect.signature(c).parameters.items()]
    return {name: p for name, p in found if p.kind is not p.VAR_POSITIONAL}


def test_the_table_is_whole():
    registered = {
        cls
        for cls in keras.saving.get_custom_objects().values()
        if inspect.isclass(cls) and issubclass(cls, Task) and "keras_bert_suite" in cls.__module__
    }
    assert registered == {cls for cls, _ in CHANGED.values()}
    for cls in registered:
        wanted = list_parameters(cls)
        tables = [changed.arguments for other, changed in CHANGED.values() if other is cls]
        assert set().union(*tables) == set(wanted) - ELSEWHERE, cls
        for table in tables:
            for name, value in table.items():
                assert value is not wanted[name].default and value != wanted[name].default


@pytest.mark.parametrize("name", CHANGED)
def test_presets_keep_every_argument(name, tmp_path):
    cls, changed = CHANGED[name]
    task = build(name)
    # One that had no effect from the start would be the same in the files, too.
    config = task.get_config()
    for given, value in changed.arguments.items():
        got = config[given]
        if isinstance(value, (str, int, float, tuple)) and not isinstance(got, dict):
            assert (tuple(got) if isinstance(got, list) else got) == value, given
    wanted = look(name, task)
    task.save_to_preset(tmp_path / "preset")
    assert are_equal(look(name, cls.from_preset(tmp_path / "preset")), wanted)


@pytest.mark.long("combinations")
@pytest.mark.filterwarnings("ignore:Skipping variable loading for optimizer")
@pytest.mark.parametrize("name", CHANGED)
def test_keras_files_keep_every_argument(name, tmp_path):
    """They hold the configuration that presets hold."""
    task = build(name)
    wanted = look(name, task)
    task.save(tmp_path / "task.keras")
    twin = keras.saving.load_model(tmp_path / "task.keras")
    assert are_equal(look(name, twin), wanted)


@pytest.mark.long("combinations")
@pytest.mark.parametrize("name", CHANGED)
def test_what_is_observed_depends_on_each_argument(name):
    """So a file that lost it would be seen."""
    cls, changed = CHANGED[name]
    task = build(name)
    wanted = look(name, task)
    for lost in changed.arguments:
        config = task.get_config()
        del config[lost]
        try:
            other = cls.from_config(config)
            other.set_weights(task.get_weights())
            found = look(name, other)
        except (ValueError, TypeError, AttributeError):
            continue
        assert not are_equal(found, wanted), lost


#: The data and the answers of a task read these arguments at each call, so a new value holds.
MAY_BE_SET = {
    *("input_names", "column_names", "prompts", "label_names", "thresholds", "masking", "top_k"),
    *("max_windows", "stride", "query_length", "max_answer_length", "no_answer_threshold"),
    *("max_length", "max_target_length", "sampler", "word_cutting", "plain_marks"),
    *("min_target_length", "no_repeat_ngram_size", "first_token", "last_token", "threshold"),
}
#: The constructor needs them, or finds them beside these values only.
NEEDED = {"label_names", "problem_type", "attributes", "max_length", "max_target_length"}
NEEDED |= {"method", "pattern", "verbalizers"}


@pytest.mark.parametrize("name", CHANGED)
def test_a_new_value_is_refused_or_holds(name):
    arguments = CHANGED[name][1].arguments
    full = build(name)
    config = full.get_config()
    for argument in arguments.keys() - MAY_BE_SET:
        with pytest.raises(AttributeError, match=f"^{argument}=.* has built this .*from_config"):
            setattr(full, argument, "other")
        assert full.get_config() == config
    names = {*vars(full), *getattr(full, "_modules", {}), "backbone"} - {"preprocessor"}
    for key in names:
        if not key.startswith("_") and isinstance(getattr(full, key), keras.layers.Layer):
            with pytest.raises(AttributeError, match=f"{key}=the layer .* has built this"):
                setattr(full, key, keras.layers.Dense(5))
    may_be_set = [argument for argument in arguments if argument in MAY_BE_SET - NEEDED]
    wanted = look(name, full) if may_be_set else None
    for argument in may_be_set:
        task = build(name, {key: v for key, v in arguments.items() if key != argument})
        setattr(task, argument, arguments[argument])
        task.set_weights(full.get_weights())
        assert are_equal(look(name, task), wanted), argument


def test_the_remedy_for_an_argument_keeps_the_weights():
    old = build("vectors", {"dimensions": 4})
    with pytest.raises(AttributeError, match="pooling='cls'") as raised:
        old.pooling = "cls"
    code = str(raised.value).partition("same encoder: `")[2]
    names = {"old": old}
    for line in (code.partition("`")[0], "new.compile()", "new.set_weights(old.get_weights())"):
        assert line in str(raised.value)
        exec(line, names)
    new = names["new"]
    assert new.backbone is old.backbone
    cls = TextEmbedder(old.backbone, preprocessor=old.preprocessor, dimensions=4, pooling="cls")
    np.testing.assert_allclose(new.predict(TEXTS), cls.predict(TEXTS), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["pretraining", "replaced tokens"])
def test_heads_of_pretraining_begin_as_wide_as_the_backbone(name):
    """With one seed, weights of ten times the range are ten times as large, in heads as well."""
    narrow, wide = (build(name, initializer_range=width) for width in (0.05, 0.5))
    for weight, other in zip(narrow.weights, wide.weights, strict=True):
        if len(weight.shape) > 1:
            wanted = 10 * keras.ops.convert_to_numpy(weight)
            np.testing.assert_allclose(other, wanted, rtol=1e-4, err_msg=weight.path)


def list_rates():
    """The rates of the encoder. A task with a dropout of its own has a third."""
    for name, case in CASES.items():
        if case.changed:
            yield name, "dropout"
            # That a head trains the encoder is seen by one of its rates.
            if case.cls is not ElmoPretrainer:
                marks = () if name == "texts" else left_out("combinations")
                yield pytest.param(name, "attention_dropout", marks=marks)
            if "dropout" in case.changed[0].arguments:
                yield name, "head"


@pytest.mark.parametrize(("name", "rate"), [*list_rates()])
def test_each_dropout_rate_alone_acts_in_training_only(name, rate):
    if rate == "head":
        task = build(name, {**CHANGED[name][1].arguments, "dropout": 0.5})
    else:
        task = build(name, **{rate: 0.5})
    inputs = make_inputs(task)
    trained, again = (flatten(task(inputs, training=True)) for _ in range(2))
    answers, repeated = (flatten(task(inputs, training=False)) for _ in range(2))
    for a, b, c, d in zip(trained, again, answers, repeated, strict=True):
        np.testing.assert_array_equal(c, d)
        if a.dtype.kind == "f":
            assert not np.allclose(a, b)
