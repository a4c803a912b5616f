"""Batches of columns have the answers of `predict`, whatever holds the columns and the model."""

import pickle
from types import SimpleNamespace

import keras
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from heads.cases import CASES, FIRST, HOSTILE, HOSTILE_OTHERS, HOSTILE_WORDS
from peer_weights import randomize
from small_embedder import make_embedder
from small_tasks import make_task
from small_texts import ONE_LAYER, VOCABULARY
from tables import short_for

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints.head_types.records import HEAD_TYPES
from keras_bert_suite.heads.base.head import read_heads
from keras_bert_suite.serving.saved_model_runtime import SavedModelRuntime

#: The texts that a reader of a table can hand over.
TEXTS = [text for text in HOSTILE_WORDS if isinstance(text, str)]

#: The heads with answers for a table.
NAMES = [name for name, case in CASES.items() if case.column]
#: The other heads: guesses for words, and rows that bring labels of their own.
WITHOUT = {"MaskedLM", "ZeroShotClassifier"}


def make_columns(name):
    """Hostile rows of a head as columns of texts."""
    case = CASES[name]
    rows = TEXTS if case.served is None else case.served[0]
    if isinstance(rows, tuple):
        return dict(zip(case.names, rows, strict=True))
    return {"text": [text for text in rows if isinstance(text, str)]}


def make_random_task(name):
    keras.utils.set_random_seed(5)
    task, _ = make_task(name)
    randomize(task)
    return task


@pytest.fixture
def saved(tmp_path):
    """function(name of a case): (its task with random weights, the folder of its preset)."""

    def save(name):
        task = make_random_task(name)
        task.save_to_preset(tmp_path / "model")
        return task, tmp_path / "model"

    return save


def test_every_head_answers_for_a_table():
    answering = {head.task for head in read_heads().values() if head.columns is not None}
    assert {CASES[name].cls.__name__ for name in NAMES} == answering
    pretrainers = {task for task in read_heads() if task.endswith("Pretrainer")}
    assert answering == {head.task for head in HEAD_TYPES} - pretrainers - WITHOUT


@pytest.mark.parametrize(
    "name",
    short_for(
        NAMES,
        # Each form of answers, and of rows.
        *("texts", "pairs", "label sets", "numbers", "attributes", "words", "questions"),
        *("choices", "rankings", "vectors", "targets"),
        part="combinations",
    ),
)
def test_the_answers_of_the_task(saved, name):
    task, folder = saved(name)
    columns = make_columns(name)
    ids = np.arange(len(next(iter(columns.values()))))
    predictor = kbs.BatchPredictor(folder, list(columns), batch_size=2)
    found = predictor(pa.table({"id": ids, **columns}))
    types = {field.name: field.type for field in found.schema}
    assert {n: types[n] for n in predictor.find_types()} == predictor.find_types()
    assert found["id"].to_pylist() == ids.tolist()
    assert found.column_names[: 1 + len(columns)] == ["id", *columns]
    check_answers(name, found.to_pylist(), task, columns)
    nothing = predictor(found.select(["id", *columns]).slice(0, 0))
    assert len(nothing) == 0 and nothing.schema == found.schema


def check_answers(name, rows, task, columns):
    x = list(columns.values())
    x = x[0] if len(x) == 1 else tuple(x)
    column = CASES[name].column
    answers = [row[column] for row in rows]
    if column in ("label", "labels"):
        wanted = task.predict_labels(x, verbose=0)
        assert answers == list(wanted)
        if hasattr(task, "predict_probabilities"):
            shares = [list(row["probabilities"].values()) for row in rows]
            assert_close(shares, task.predict_probabilities(x, verbose=0))
        if column == "label":
            assert [row["probability"] for row in rows] == [
                row["probabilities"][row["label"]] for row in rows
            ]
            assert list(rows[0]["probabilities"]) == list(map(str, task.label_names))
    elif name == "attributes":
        wanted, shares = task.predict_labels(x, verbose=0), task.predict_probabilities(x, verbose=0)
        for attribute, labels in wanted.items():
            assert [row[attribute]["label"] for row in answers] == list(labels)
            chosen = [row[attribute]["probability"] for row in answers]
            assert_close(chosen, shares[attribute].max(axis=-1))
    elif column == "entities":
        wanted = task.predict(x, verbose=0)
        assert any(wanted)
        for row, entities in zip(answers, wanted, strict=True):
            assert [list(entity.values())[:4] for entity in row] == [
                [entity.label, entity.text, entity.start, entity.end] for entity in entities
            ]
            assert_close([e["score"] for e in row], [e.score for e in entities])
    elif name == "questions":
        for row, answer in zip(rows, task.predict(x, verbose=0), strict=True):
            assert (row["answer"], row["start"], row["end"]) == (
                *(answer.text, answer.start, answer.end),
            )
            assert_close([row["score"]], [answer.score])
            np.testing.assert_allclose(row["null_odds"], answer.null_odds, rtol=1e-6)
    elif name == "choices":
        scores = task.predict(x, verbose=0)
        assert answers == [int(np.argmax(row)) for row in scores]
        assert [row["ending"] for row in rows] == [t[i] for t, i in zip(x[1], answers, strict=True)]
        assert_close([row["probabilities"] for row in rows], task.predict_probabilities(x))
    elif column in ("target", "continuation"):
        assert answers == task.predict(x)
    elif name == "numbers":
        assert_close([list(row.values()) for row in answers], task.predict(x, verbose=0))
    else:
        assert_close(answers, task.predict(x, verbose=0))


def assert_close(found, wanted):
    np.testing.assert_allclose(
        np.asarray(found, "float64"), np.asarray(wanted, "float64"), rtol=0, atol=1e-6
    )


@pytest.fixture
def embedder(tmp_path):
    """The folder of an embedder."""
    task = make_embedder()
    randomize(task)
    task.prompts = {"query": "good "}
    task.save_to_preset(tmp_path / "embedder")
    return task, tmp_path / "embedder"


def test_the_form_of_a_batch_is_the_form_of_its_answers(embedder):
    task, folder = embedder
    # A process gets the path, and opens the model itself.
    predictor = kbs.BatchPredictor(folder)
    wanted = task.predict(FIRST, verbose=0)
    predictor.open()
    predictor = pickle.loads(pickle.dumps(predictor))
    assert len(pickle.dumps(predictor)) < 1000
    columns = {"text": np.array(FIRST, object), "place": np.arange(2 * len(FIRST)).reshape(-1, 2)}
    found = predictor(columns)
    assert found["embedding"].dtype == "float32" and found["place"].tolist()[1] == [2, 3]
    assert_close(found["embedding"], wanted)
    frame = predictor(pd.DataFrame({"text": FIRST}))
    assert isinstance(frame, pd.DataFrame) and list(frame.columns) == ["text", "embedding"]
    assert_close(np.stack(frame["embedding"]), wanted)
    batch = predictor(pa.RecordBatch.from_pydict({"text": FIRST}))
    assert isinstance(batch, pa.RecordBatch)
    assert_close(batch["embedding"].to_pylist(), wanted)
    assert len(predictor(batch.select(["text"]).slice(0, 0))) == 0
    prompted = kbs.BatchPredictor(folder, prompt="query")({"text": FIRST})["embedding"]
    assert_close(prompted, task.predict(FIRST, prompt="query", verbose=0))


def test_static_vectors(tmp_path):
    tokenizer = kbs.WordPieceTokenizer(VOCABULARY)
    packer = kbs.SegmentPacker(tokenizer, 16, add_special_tokens=False)
    task = kbs.TextEmbedder(kbs.StaticBackbone(len(VOCABULARY), 6), preprocessor=packer)
    task.save_to_preset(tmp_path / "model")
    found = kbs.BatchPredictor(tmp_path / "model")(pa.table({"text": TEXTS}))
    assert_close(found["embedding"].to_pylist(), task.predict(TEXTS, verbose=0))


def test_columns_that_go_on(embedder):
    batch = pa.table({"id": [1], "review": ["good"], "embedding": [0.5]})
    found = kbs.BatchPredictor(embedder[1], "review", ["id"])(batch)
    assert found.column_names == ["id", "embedding"] and len(found["embedding"][0]) == 16
    with pytest.raises(ValueError, match="have the column 'embedding' already.*columns"):
        kbs.BatchPredictor(embedder[1], "review")(batch)


def test_what_a_batch_lacks(embedder):
    predictor = kbs.BatchPredictor(embedder[1])
    with pytest.raises(ValueError, match="no columns 'text'. There are id, review. Name the col"):
        predictor(pa.table({"id": [1], "review": ["good"]}))
    with pytest.raises(ValueError, match="Row 1 of the batch.*column 'text' holds None, wanted"):
        predictor(pa.table({"text": ["good", None, "bad"]}))
    for column in ([1.5], pa.array([1.5])):
        faults = predictor.find_faults({"text": column})
        assert faults == {0: "the column 'text' holds 1.5, wanted a text"}
    with pytest.raises(ValueError, match="reads the texts text of a row, and text_columns has a"):
        kbs.BatchPredictor(embedder[1], ["a", "b"])(pa.table({"a": ["x"], "b": ["y"]}))


def test_what_is_no_predictor(tmp_path, saved):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist. Pass the folder"):
        kbs.BatchPredictor(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="columns must be a list of names, got 'id'"):
        kbs.BatchPredictor(tmp_path, columns="id")
    with pytest.raises(ValueError, match="task must be 'TextEmbedder' or None, got 'MaskedLM'"):
        kbs.BatchPredictor(tmp_path, task="MaskedLM")
    assert repr(kbs.BatchPredictor(tmp_path)) == f"BatchPredictor({str(tmp_path)!r})"
    with pytest.raises(ValueError, match="A MaskedLM has no answers for a table. Wanted one of At"):
        kbs.BatchPredictor(saved("masks")[1]).open()


def make_conditional(cls, pattern="bidirectional", **arguments):
    """A task with random weights whose norms depend on a condition of two numbers."""
    condition = kbs.NormCondition(2)
    backbone = kbs.BertBackbone(**ONE_LAYER, attention_pattern=pattern, norm_condition=condition)
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), sequence_length=16)
    return randomize(cls(backbone, preprocessor=packer, **arguments))


#: Tasks that take a condition: their class, its arguments, and a column of their answers.
CONDITIONAL = {
    "texts": (kbs.TextClassifier, {"label_names": ["no", "yes"]}, "label"),
    "words": (kbs.TokenClassifier, {"label_names": ["B-X", "I-X", "O"]}, "entities"),
    "continuations": (kbs.CausalLM, {"pattern": "left_to_right", "max_length": 3}, "continuation"),
}


@pytest.mark.parametrize("name", CONDITIONAL)
def test_a_condition_is_a_column_beside_the_texts(tmp_path, name):
    cls, arguments, answer = CONDITIONAL[name]
    task = make_conditional(cls, **arguments)
    task.save_to_preset(tmp_path / "model")
    numbers = np.random.default_rng(0).normal(size=(len(FIRST), 2)).astype("float32")
    predictor = kbs.BatchPredictor(tmp_path / "model", "review")
    table = pa.table({"review": FIRST, "condition": numbers.tolist()})
    found = predictor(table)
    columns = {"text": FIRST, "condition": numbers}
    if name == "texts":
        shares = [[*row.values()] for row in found["probabilities"].to_pylist()]
        wanted = task.predict_probabilities(columns, verbose=0)
        assert_close(shares, wanted)
        turned = {**columns, "condition": numbers[:, ::-1]}
        assert np.abs(task.predict_probabilities(turned, verbose=0) - wanted).max() > 1e-3
    elif name == "words":
        entities = [[list(e.values())[:4] for e in row] for row in found[answer].to_pylist()]
        wanted = task.predict(columns, verbose=0)
        assert any(wanted)
        assert entities == [[[e.label, e.text, e.start, e.end] for e in row] for row in wanted]
    else:
        assert found[answer].to_pylist() == task.predict(columns)
    with pytest.raises(ValueError, match="have no columns 'condition'. There are review"):
        predictor(table.select(["review"]))
    for wrong in (None, [1.0], [1.0, float("nan")], 3.0):
        faults = predictor.find_faults({"review": FIRST[:2], "condition": [[0.0, 1], wrong]})
        fault = f"the column 'condition' holds {wrong!r}, wanted 2 finite numbers"
        assert faults == {1: fault}


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_an_export_with_a_condition(tmp_path):
    task = make_conditional(kbs.TextClassifier, label_names=["no", "yes"], input_names="text")
    served = kbs.export_saved_model(task, tmp_path / "model")
    kbs.export_onnx(task, tmp_path / "onnx")
    numbers = np.random.default_rng(0).normal(size=(len(FIRST), 2)).astype("float32")
    wanted = task.predict_probabilities({"text": FIRST, "condition": numbers}, verbose=0)
    for folder in (served, tmp_path / "onnx"):
        found = kbs.BatchPredictor(folder)(pa.table({"text": FIRST, "condition": numbers.tolist()}))
        shares = [[*row.values()] for row in found["probabilities"].to_pylist()]
        np.testing.assert_allclose(shares, wanted, rtol=0, atol=1e-5)


def test_an_adapter_answers_on_its_base(tmp_path):
    backbone = kbs.BertBackbone(**ONE_LAYER)
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), sequence_length=16)
    backbone.save_to_preset(tmp_path / "base")
    packer.tokenizer.save_to_preset(tmp_path / "base")
    task = kbs.TextClassifier(backbone, preprocessor=packer, label_names=["no", "yes"])
    task.adapt(kbs.LoRA(2), verbose=False)
    for weight in task.trainable_weights:
        weight.assign(weight + 0.1 * np.arange(weight.shape[-1]))
    task.save_adapter(tmp_path / "films")
    predictor = kbs.BatchPredictor(tmp_path / "films", base=tmp_path / "base")
    found = pickle.loads(pickle.dumps(predictor))(pa.table({"text": FIRST}))
    shares = [[*row.values()] for row in found["probabilities"].to_pylist()]
    assert_close(shares, task.predict_probabilities(FIRST, verbose=0))
    with pytest.raises(ValueError, match="base='films' is for the folder of an adapter, got"):
        kbs.BatchPredictor(tmp_path / "base", base="films")
    with pytest.raises(ValueError, match="adapter='films' is for a SavedModel of export_adapters"):
        kbs.BatchPredictor(tmp_path / "films", adapter="films")


@pytest.mark.backend("tensorflow")
def test_exports(classifier, saved_model, onnx_folder):
    texts = [*TEXTS, *FIRST]
    wanted = classifier.predict_probabilities(texts, verbose=0)
    labels = list(classifier.predict_labels(texts, verbose=0))
    for folder in (saved_model, onnx_folder):
        found = kbs.BatchPredictor(folder, batch_size=3)({"text": np.array(texts, object)})
        assert found["label"].tolist() == labels
        shares = [list(row.values()) for row in found["probabilities"]]
        np.testing.assert_allclose(shares, wanted, atol=1e-5)
    with pytest.raises(ValueError, match="A SavedModel answers in one way, got the arguments pro"):
        kbs.BatchPredictor(saved_model, prompt="query").open()


class SignatureOnly(SavedModelRuntime):
    """What a SavedModel says of its inputs."""

    def __init__(self, inputs, said):
        self.input_names = sorted(inputs)
        self.description = {
            "head": "TextClassifier",
            "input_names": said,
            "encoder_inputs": {"condition_dim": None},
        }


PAIR = ["premise", "hypothesis"]


@pytest.mark.parametrize(
    ("inputs", "said", "columns", "names"),
    [
        (["text"], None, None, {"text": "text"}),
        (["text"], None, ["review"], {"review": "text"}),
        # The texts of pairs without names come in their order.
        (["text_a", "text_b"], None, None, {"text_a": "text_a", "text_b": "text_b"}),
        (["text_a", "text_b"], None, PAIR, {"premise": "text_a", "hypothesis": "text_b"}),
        (PAIR, PAIR, None, {"hypothesis": "hypothesis", "premise": "premise"}),
        (PAIR, PAIR, ["a", "b"], {"a": "premise", "b": "hypothesis"}),
        # Names that an export gave its inputs are in no order.
        (PAIR, None, ["hypothesis", "premise"], dict(zip(PAIR, PAIR, strict=True))),
        (PAIR, None, ["a", "b"], None),
        (PAIR, ["q", "p"], ["a", "b"], None),
    ],
)
def test_the_inputs_that_columns_go_to(tmp_path, monkeypatch, inputs, said, columns, names):
    answers = SimpleNamespace(model=SignatureOnly(inputs, said))
    monkeypatch.setattr(kbs.BatchPredictor, "open", lambda self: answers)
    predictor = kbs.BatchPredictor(tmp_path, columns)
    if names is None:
        with pytest.raises(ValueError, match="are hypothesis, premise, in no order, and text_colu"):
            predictor.find_columns()
        return
    assert predictor._find_names() == names
    assert sorted(predictor.find_columns()) == sorted(names)


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_a_saved_model_of_pairs(classifier, pair_model):
    table = pa.table({"hypothesis": HOSTILE_OTHERS, "premise": HOSTILE})
    found = kbs.BatchPredictor(pair_model)(table)
    assert found["label"].to_pylist() == list(
        classifier.predict_labels((HOSTILE, HOSTILE_OTHERS), verbose=0)
    )
    with pytest.raises(ValueError, match="are hypothesis, premise, in no order, and text_columns"):
        kbs.BatchPredictor(pair_model, ["a", "b"])(table.rename_columns(["b", "a"]))
