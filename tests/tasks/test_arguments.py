"""What the arguments of each task do, and that files keep them.

`CASES` has every argument of every task at a value that is not its default. A new task, or a new
argument, fails `test_the_table_is_whole` until it has one.
"""

import dataclasses
import inspect
from collections.abc import Callable

import keras
import keras_hub
import numpy as np
import pytest
from small_texts import ONE_LAYER, VOCABULARY

from keras_bert_suite import (
    AttributeClassifier,
    BertBackbone,
    CrfTokenClassifier,
    DocumentClassifier,
    ElectraBackbone,
    ElectraPretrainer,
    EntitySpanClassifier,
    GlobalPointer,
    LastLayers,
    MaskedLM,
    MultipleChoice,
    Pretrainer,
    QuestionAnswerer,
    RelationClassifier,
    SegmentPacker,
    Seq2Seq,
    TextClassifier,
    TextEmbedder,
    TextRanker,
    TokenClassifier,
    TokenMasker,
    WordCutting,
    WordPieceTokenizer,
)
from keras_bert_suite.heads.base.task import Task
from keras_bert_suite.runs.batches import read

LENGTH = 12
SIZES = {**ONE_LAYER, "dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.5}
TEXTS = ["the film was very good", "a dull plot", "great acting and a fine plot"]
OTHERS = ["not bad", "the acting was awful , and the plot was dull", "good"]
LONG_TEXTS = [
    " ".join([*text.split(), *other.split()] * 4) for text, other in zip(TEXTS, OTHERS, strict=True)
]
TAGS = ["O", "B-X", "I-X"]
LABEL_SETS = {
    "label_names": ["plot", "film", "acting"],
    "problem_type": "multi_label_classification",
    "activation": "sigmoid",
    "thresholds": [0.1, 0.5, 0.9],
    "pooling": "max",
    "dropout": 0.0,
}
#: They are saved in files of their own, or in another argument.
ELSEWHERE = {"self", "backbone", "preprocessor", "num_classes", "kwargs"}


def make_convolution():
    return keras.layers.Conv1D(SIZES["hidden_dim"], 3, padding="same")


def make_packer():
    return SegmentPacker(WordPieceTokenizer(VOCABULARY), LENGTH, padding_lengths=(LENGTH,))


def make_batch():
    masker = TokenMasker(make_packer().tokenizer, rate=0.4)
    masked = masker(make_packer().pack(TEXTS, OTHERS), row_ids=np.arange(len(TEXTS)))
    return {
        name: masked[name]
        for name in masked
        if not name.startswith("mask_") or name == "mask_positions"
    }


def pack(task):
    return task.preprocessor.pack(TEXTS, OTHERS)


def observe_outputs(task):
    """The outputs with and without `training`, which draws nothing where no rate is above 0."""
    inputs = pack(task)
    return [task(inputs, training=False), task(inputs, training=True)]


def observe_labels(task):
    rows = dict(zip(reversed(task.input_names), (OTHERS, TEXTS), strict=True))
    return [*observe_outputs(task), task.predict_labels(rows, verbose=0)]


def observe_documents(task):
    rows = dict(zip(reversed(task.input_names), (LONG_TEXTS, OTHERS), strict=True))
    packed = task.data.pack_texts((OTHERS, LONG_TEXTS))
    outputs = [packed, task(packed, training=False), task(packed, training=True)]
    return [*outputs, task.predict_labels(rows, verbose=0)]


def observe_sampled_windows(task):
    packed = task.data.pack_texts((LONG_TEXTS,))
    return np.shape(task.window_sampler(packed, training=True)["token_ids"])


def observe_tags(task):
    # Without its scheme the chain would stay in I-X.
    task.token_classifier.bias.assign([0.0, 0.0, 20.0])
    return [*observe_outputs(task), task.predict_tags(TEXTS, verbose=0)]


def observe_words(task):
    """The outputs, and the words of a text."""
    words = task.data.window(task.data.read(["the good-film"])).tokenized.words
    return [*observe_outputs(task), *words[0]]


def observe_chain_loss(task):
    return task.evaluate([["the", "film"]], [["B-X", "I-X"]], verbose=0)


def observe_answers(task):
    rows = dict(zip(reversed(task.input_names), (LONG_TEXTS, TEXTS), strict=True))
    answers = [*task.predict(rows, verbose=0)]
    for row in task.predict_n_best(rows, n_best=50, verbose=0):
        answers += row
    return [dataclasses.astuple(answer) for answer in answers]


def observe_choices(task):
    endings = [[a, b] for a, b in zip(TEXTS, OTHERS, strict=True)]
    rows = dict(zip(reversed(task.input_names), (endings, OTHERS), strict=True))
    packed = task.data.pack(task.data.read((OTHERS, endings)))[0]
    outputs = [task(packed, training=False), task(packed, training=True)]
    return [*outputs, task.predict(rows, verbose=0)]


def observe_ranking(task):
    rows = dict(zip(reversed(task.input_names), (TEXTS, OTHERS), strict=True))
    return [*observe_outputs(task), task.predict(rows, verbose=0)]


def observe_relations(task):
    return [*observe_outputs(task), list(task.markers), list(task.marker_ids)]


def observe_attributes(task):
    task.compile()
    labels = {"tone": ["good", "bad", None], "what": ["film", "plot", "plot"]}
    loss = task.evaluate((TEXTS, OTHERS), labels, verbose=0)
    return [*observe_outputs(task), loss, list(task.attributes)]


def observe_vectors(task):
    rows = dict(zip(reversed(task.column_names), (OTHERS, TEXTS), strict=True))
    columns = read(task, rows, labelled=True).inputs
    prompted = task.predict(TEXTS, prompt="query", verbose=0)
    return [*observe_outputs(task), [list(column) for column in columns], prompted]


def observe_masks(task):
    masked = task.data.pack(task.data.read(TEXTS).take(slice(3), 0), labelled=True)
    return [task.predict(["the [MASK] was good"], verbose=0), *masked]


def observe_pretraining(task):
    return [task(make_batch(), training=False), task(make_batch(), training=True)]


def observe_targets(task):
    # "…" is unknown, and "..." is not.
    return task.predict([*TEXTS, "… the plot … was … good …"])


@dataclasses.dataclass(frozen=True)
class Case:
    """A task with arguments that are not the defaults, and what they change.

    Attributes:
        cls: class of the task.
        arguments: dict.
        observe: function(task) to a structure of arrays, numbers and strings.
        backbone: dict of further arguments of the backbone.
    """

    cls: type
    arguments: dict
    observe: Callable
    backbone: dict = dataclasses.field(default_factory=dict)

    def build(self, arguments=None, **rates):
        keras.utils.set_random_seed(0)
        encoder = ElectraBackbone if self.cls is ElectraPretrainer else BertBackbone
        backbone = encoder(**{**SIZES, **self.backbone, **rates})
        given = self.arguments if arguments is None else arguments
        return self.cls(backbone, preprocessor=make_packer(), **given)


CASES = {
    "label sets": Case(
        TextClassifier, {**LABEL_SETS, "input_names": ("premise", "hypothesis")}, observe_labels
    ),
    "documents": Case(
        DocumentClassifier,
        {
            **LABEL_SETS,
            "window_pooling": "max",
            "input_names": ("question", "document"),
            "max_windows": 3,
            "stride": 3,
            "query_length": 1,
        },
        observe_documents,
    ),
    "sampled windows": Case(
        DocumentClassifier,
        {"label_names": ["no", "yes"], "training_windows": 1},
        observe_sampled_windows,
    ),
    "words": Case(
        TokenClassifier,
        {
            "label_names": TAGS,
            "head_layers": [make_convolution()],
            "dropout": 0.0,
            "input_names": ("sentence",),
            "word_cutting": WordCutting(rules={"<letter> - <letter>": "++"}),
        },
        observe_words,
    ),
    "chains": Case(
        CrfTokenClassifier,
        {
            "label_names": TAGS,
            "dropout": 0.0,
            "input_names": ("sentence",),
            "scheme": None,
            "word_cutting": WordCutting(["letters"]),
        },
        observe_tags,
    ),
    "constrained chains": Case(
        CrfTokenClassifier,
        {
            "label_names": TAGS,
            "head_layers": make_convolution(),
            "dropout": 0.0,
            "constrained_training": True,
        },
        observe_chain_loss,
    ),
    "spans": Case(
        EntitySpanClassifier,
        {
            "label_names": ["X"],
            "head": GlobalPointer(1, head_dim=4, rotary=False),
            "head_layers": [LastLayers(1, pooling=None), make_convolution()],
            "dropout": 0.0,
            "input_names": ("sentence",),
            "word_cutting": WordCutting(["letters"]),
        },
        observe_words,
    ),
    "questions": Case(
        QuestionAnswerer,
        {
            "stride": 2,
            "query_length": 2,
            "max_answer_length": 1,
            "no_answer_threshold": -100.0,
            "head_layers": make_convolution(),
            "input_names": ("query", "passage"),
        },
        observe_answers,
    ),
    "attributes": Case(
        AttributeClassifier,
        {
            "attributes": {"tone": ["good", "bad"], "what": ["plot", "film", "acting"]},
            "attribute_weights": {"what": 3.0},
            "dropout": 0.0,
            "input_names": ("premise", "hypothesis"),
        },
        observe_attributes,
    ),
    "entities": Case(
        RelationClassifier,
        {
            "label_names": TAGS,
            "entity_states": "averages",
            "markers": ["good", "the", "plot", "and"],
            "marker_ids": [VOCABULARY.index(word) for word in ("good", "the", "plot", "and")],
            "dropout": 0.0,
            "input_names": ("sentence",),
        },
        observe_relations,
    ),
    "choices": Case(
        MultipleChoice, {"dropout": 0.0, "input_names": ("start", "ends")}, observe_choices
    ),
    "rankings": Case(
        TextRanker, {"dropout": 0.0, "input_names": ("question", "title")}, observe_ranking
    ),
    "vectors": Case(
        TextEmbedder,
        {
            "pooling": "max",
            "dense_layers": [keras.layers.Dense(3, "tanh")],
            "dimensions": 2,
            "normalize": False,
            "input_names": ("body",),
            "column_names": ("query", "answer"),
            "prompts": {"query": "the film "},
        },
        observe_vectors,
    ),
    "masks": Case(
        MaskedLM,
        {"masking": {"unit": "word", "rate": 0.5}, "input_names": ("body",), "top_k": 2},
        observe_masks,
    ),
    "relations": Case(
        Pretrainer, {"sentence_relations": 3, "span_boundary": True}, observe_pretraining
    ),
    "no next sentence": Case(Pretrainer, {"next_sentence": False}, observe_pretraining),
    "replaced tokens": Case(
        ElectraPretrainer,
        {"generator_width": 1.0, "seed": 7},
        observe_pretraining,
        {"embedding_dim": 4},
    ),
    "targets": Case(
        Seq2Seq,
        {
            "max_target_length": 4,
            "sampler": keras_hub.samplers.BeamSampler(num_beams=4),
            "input_names": ("article",),
            "plain_marks": True,
        },
        observe_targets,
        {"attention_pattern": "seq2seq"},
    ),
}


def flatten(observed):
    """list of arrays and strings."""
    leaves = keras.tree.flatten(observed)
    return [leaf if isinstance(leaf, str) else keras.ops.convert_to_numpy(leaf) for leaf in leaves]


def look(case, task):
    """What a user sees of a task, with the names of its texts, which exports have."""
    return flatten([case.observe(task), list(getattr(task, "input_names", None) or [])])


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
    return {name: p for c in ours for name, p in inspect.signature(c).parameters.items()}


def test_the_table_is_whole():
    registered = {
        cls
        for cls in keras.saving.get_custom_objects().values()
        if inspect.isclass(cls) and issubclass(cls, Task) and "keras_bert_suite" in cls.__module__
    }
    assert registered == {case.cls for case in CASES.values()}
    for cls in registered:
        wanted = list_parameters(cls)
        given = set().union(*(case.arguments for case in CASES.values() if case.cls is cls))
        assert given == set(wanted) - ELSEWHERE, cls
        for case in CASES.values():
            if case.cls is cls:
                for name, value in case.arguments.items():
                    assert value is not wanted[name].default and value != wanted[name].default


@pytest.mark.filterwarnings("ignore:Skipping variable loading for optimizer")
@pytest.mark.parametrize("name", CASES)
def test_files_keep_every_argument(name, tmp_path):
    case = CASES[name]
    task = case.build()
    # One that had no effect from the start would be the same in the files, too.
    config = task.get_config()
    for given, value in case.arguments.items():
        got = config[given]
        if isinstance(value, (str, int, float, tuple)) and not isinstance(got, dict):
            assert (tuple(got) if isinstance(got, list) else got) == value, given
    wanted = look(case, task)
    task.save(tmp_path / "task.keras")
    task.save_to_preset(tmp_path / "preset")
    for twin in (
        keras.saving.load_model(tmp_path / "task.keras"),
        case.cls.from_preset(tmp_path / "preset"),
    ):
        assert are_equal(look(case, twin), wanted)
    # What is observed depends on each argument: a file that lost it would be seen.
    for lost in case.arguments:
        config = task.get_config()
        del config[lost]
        try:
            other = case.cls.from_config(config)
            other.set_weights(task.get_weights())
            found = look(case, other)
        except (ValueError, TypeError, AttributeError):
            continue
        assert not are_equal(found, wanted), lost


#: The data and the answers of a task read these arguments at each call, so a new value holds.
MAY_BE_SET = {
    *("input_names", "column_names", "prompts", "label_names", "thresholds", "masking", "top_k"),
    *("max_windows", "stride", "query_length", "max_answer_length", "no_answer_threshold"),
    *("max_target_length", "sampler", "word_cutting", "plain_marks"),
}
#: The constructor needs them, or finds them beside these values only.
NEEDED = {"label_names", "problem_type", "attributes", "max_target_length"}


@pytest.mark.parametrize("name", CASES)
def test_a_new_value_is_refused_or_holds(name):
    case = CASES[name]
    for argument, value in case.arguments.items():
        left = {key: v for key, v in case.arguments.items() if key != argument}
        task = case.build(case.arguments if argument in NEEDED else left)
        if argument in MAY_BE_SET - NEEDED:
            setattr(task, argument, value)
            full = case.build()
            task.set_weights(full.get_weights())
            assert are_equal(look(case, task), look(case, full)), argument
        elif argument not in MAY_BE_SET:
            config = task.get_config()
            with pytest.raises(
                AttributeError, match=f"^{argument}=.* has built this .*from_config"
            ):
                setattr(task, argument, "other" if argument in NEEDED else value)
            assert task.get_config() == config
    names = {*vars(task), *getattr(task, "_modules", {}), "backbone"} - {"preprocessor"}
    for key in names:
        if not key.startswith("_") and isinstance(getattr(task, key), keras.layers.Layer):
            with pytest.raises(AttributeError, match=f"{key}=the layer .* has built this"):
                setattr(task, key, keras.layers.Dense(5))


def test_the_remedy_for_an_argument_keeps_the_weights():
    old = CASES["vectors"].build({"dimensions": 4})
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


@pytest.mark.parametrize("name", ["relations", "replaced tokens"])
def test_heads_of_pretraining_begin_as_wide_as_the_backbone(name):
    """With one seed, weights of ten times the range are ten times as large, in heads as well."""
    narrow, wide = (CASES[name].build(initializer_range=width) for width in (0.05, 0.5))
    for weight, other in zip(narrow.weights, wide.weights, strict=True):
        if len(weight.shape) > 1:
            wanted = 10 * keras.ops.convert_to_numpy(weight)
            np.testing.assert_allclose(other, wanted, rtol=1e-4, err_msg=weight.path)


#: Rates of the encoder. A task with a dropout of its own has a third.
RATES = ("dropout", "attention_dropout")


def list_rates():
    return [
        (name, rate)
        for name, case in CASES.items()
        for rate in (*RATES, *(["head"] if "dropout" in case.arguments else []))
        if name != "sampled windows"
    ]


@pytest.mark.parametrize(("name", "rate"), list_rates())
def test_each_dropout_rate_alone_acts_in_training_only(name, rate):
    case = CASES[name]
    if rate == "head":
        task = case.build({**case.arguments, "dropout": 0.5})
    else:
        task = case.build(**{rate: 0.5})
    if isinstance(task, (Pretrainer, ElectraPretrainer, MaskedLM, Seq2Seq)):
        inputs = make_batch()
    elif isinstance(task, DocumentClassifier):
        inputs = task.data.pack_texts((OTHERS, LONG_TEXTS))
    elif isinstance(task, MultipleChoice):
        inputs = task.data.pack(task.data.read((OTHERS, [[text, "a"] for text in TEXTS])))[0]
    else:
        inputs = pack(task)
    trained, again = (flatten(task(inputs, training=True)) for _ in range(2))
    answers, repeated = (flatten(task(inputs, training=False)) for _ in range(2))
    for a, b, c, d in zip(trained, again, answers, repeated, strict=True):
        np.testing.assert_array_equal(c, d)
        if a.dtype.kind == "f":
            assert not np.allclose(a, b)
