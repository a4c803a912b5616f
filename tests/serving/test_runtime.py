"""The reader of exported folders answers as `predict` of the task does."""

import dataclasses
import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
from heads.cases import CASES, HOSTILE
from peer_weights import randomize
from small_byte_pairs import MERGES, make_vocabulary
from small_sentence_pieces import make_albert, make_xlm_roberta, make_xlnet
from small_tasks import assert_close, make_task
from small_texts import ONE_LAYER, VOCABULARY
from test_import import HIDE_TENSORFLOW

import keras_bert_suite as kbs
from keras_bert_suite import tokenizers
from keras_bert_suite.heads.base.head import HEADS
from keras_bert_suite.serving import TaskRuntime
from keras_bert_suite.serving.portable_formats import write_companions
from keras_bert_suite.serving.task_description import describe_task

pytestmark = pytest.mark.backend("tensorflow")

#: Rows leave the batch of early exits, which other runtimes cannot do.
SERVED = [name for name, case in CASES.items() if case.served is not None and name != "exits"]


def make_random_task(name):
    keras.utils.set_random_seed(5)
    task, _ = make_task(name, "SegmentPacker")
    randomize(task)
    if name == "label sets":
        task.thresholds = [0.3, 0.5, 0.7]
    if name == "vectors":
        task.prompts = {"query": "good "}
    if hasattr(task, "word_cutting"):
        task.word_cutting = kbs.WordCutting(["numbers"], {"<letter> - <letter>": "++"}, True)
    return task


def to_numbers(answers):
    """Entities and answers as tuples, for `assert_close`; their texts and labels are compared."""
    if dataclasses.is_dataclass(answers):
        answers = tuple(dataclasses.asdict(answers).values())
    if isinstance(answers, str):
        return [ord(character) for character in answers]
    return list(map(to_numbers, answers)) if isinstance(answers, (list, tuple)) else answers


LONG = pytest.mark.long("serving")


@pytest.mark.filterwarnings("ignore:Masks beyond")
@pytest.mark.parametrize(
    "name", [name if name == "chains" else pytest.param(name, marks=LONG) for name in SERVED]
)
def test_the_answers_of_the_task(name, tmp_path):
    pytest.importorskip("tf2onnx")
    pytest.importorskip("onnxruntime")
    task, (rows, find_wanted) = make_random_task(name), CASES[name].served
    kbs.export_onnx(task, tmp_path / "model")
    runtime = kbs.open_runtime(tmp_path / "model")
    wanted, found = find_wanted(task, rows), runtime.predict(rows, batch_size=2)
    if name == "choices":
        found = np.exp(found)
    assert_close(to_numbers(found), to_numbers(wanted))
    if hasattr(task, "predict_labels"):
        assert_close(
            to_numbers(list(runtime.predict_labels(rows))),
            to_numbers(list(task.predict_labels(rows, verbose=0))),
        )
    if name == "vectors":
        prompted = task.predict(rows, prompt="query", verbose=0)
        assert_close(runtime.predict(rows, prompt="query"), prompted)
        assert np.abs(prompted - wanted).max() > 1e-3
    nothing = tuple([] for _ in rows) if isinstance(rows, tuple) else []
    assert_close(runtime.predict(nothing), find_nothing(task, nothing))


def find_nothing(task, rows):
    return [] if isinstance(task.predict(rows, verbose=0), list) else task.predict(rows, verbose=0)


def test_every_task_that_is_exported_has_a_reader():
    named = {CASES[name].cls.__name__ for name in SERVED}
    # Tasks that write are exported as SavedModels alone, and pretraining is not exported.
    heads = {name for name in HEADS if hasattr(kbs, name)}  # Not those of the guests of tests.
    pretraining = {"Pretrainer", "ElectraPretrainer", "ElmoPretrainer", "Seq2SeqPretrainer"}
    pretraining.add("FramePretrainer")
    assert named == heads - {"CausalLM", "Seq2Seq", "EarlyExitClassifier", *pretraining}


@pytest.mark.long("serving")
def test_openvino(tmp_path):
    pytest.importorskip("openvino")
    task = make_random_task("words")
    kbs.export_openvino(task, tmp_path / "model")
    found = kbs.open_runtime(tmp_path / "model").predict(HOSTILE)
    assert_close(to_numbers(found), to_numbers(task.predict(HOSTILE, verbose=0)))


#: Opens the folder "model" and answers, without TensorFlow and without any model of Keras.
ASK_WITHOUT_A_MODEL = """
import keras

def refuse(*args, **kwargs):
    raise AssertionError("a model of Keras was built")

keras.Model.__init__ = refuse
import keras_bert_suite as kbs

print(len(kbs.open_runtime("model").predict(["a good film", "good " * 100])))
assert not {name.partition(".")[0] for name in sys.modules} & HIDDEN
"""


@pytest.mark.long("serving")
def test_neither_tensorflow_nor_a_model_of_keras(tmp_path):
    kbs.export_onnx(make_random_task("words"), tmp_path / "model")
    path = os.pathsep.join(entry for entry in sys.path if entry)
    run = subprocess.run(
        [sys.executable, "-c", HIDE_TENSORFLOW + ASK_WITHOUT_A_MODEL],
        env={**os.environ, "KERAS_BACKEND": "torch", "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stdout) == (0, "2\n"), run.stderr


@pytest.fixture
def folder(tmp_path):
    """What `export_onnx` writes, with a model that has only an output `probabilities`."""
    return write_folder(make_task("texts", "SegmentPacker")[0], tmp_path)


def write_folder(task, folder):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    write_companions(task, folder)
    helper, integers = onnx.helper, onnx.TensorProto.INT32
    ids = helper.make_tensor_value_info("token_ids", integers, ["batch", "length"])
    answer = helper.make_tensor_value_info("probabilities", integers, ["batch", "length"])
    node = helper.make_node("Identity", ["token_ids"], ["probabilities"])
    graph = helper.make_graph([node], "graph", [ids], [answer])
    opset = [helper.make_opsetid("", 15)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "model.onnx")
    return folder


def change(folder, values, left_out=()):
    file = folder / "task.json"
    said = {**json.loads(file.read_text()), **values}
    for name in left_out:
        del said[name]
    file.write_text(json.dumps(said))


@pytest.mark.backend("torch")
@pytest.mark.parametrize("name", ["task.json", "packing.json", "model.onnx", "vocab.txt"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=name.replace("vocab.txt", "holds no tokenizer")):
        kbs.open_runtime(folder)


@pytest.mark.backend("torch")
@pytest.mark.parametrize(
    ("values", "left_out", "message"),
    [
        (
            {"head": "Mine"},
            (),
            r"task\.json is of a TextClassifier, whose head 'Mine' is not known",
        ),
        ({}, ("encoder_inputs",), r"task\.json cannot be read: KeyError: 'encoder_inputs'"),
        (
            {"head": "TextEmbedder"},
            (),
            r"model\.onnx has the outputs .* beside it wants embedding with the axes",
        ),
        (
            {"head": "TokenClassifier"},
            (),
            "wants probabilities with the axes length, labels for 2 labels. They are of two",
        ),
        ({"sequence_length": 7}, (), r"packing\.json has the sequence_length .*, and task\.json 7"),
        (
            {"tokenizer": "MyTokenizer"},
            (),
            "has the files of a WordPieceTokenizer, and the task was exported with a MyTokenizer",
        ),
        (
            {"problem_type": "guess"},
            (),
            r"task\.json cannot be read: .*problem_type must be one of",
        ),
    ],
)
def test_another_task_is_refused(folder, values, left_out, message):
    change(folder, values, left_out)
    with pytest.raises(ValueError, match=message):
        kbs.open_runtime(folder)


@pytest.mark.backend("torch")
def test_a_model_with_other_labels_is_refused(folder):
    onnx = pytest.importorskip("onnx")
    model = onnx.load(folder / "model.onnx")
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 3
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 3
    onnx.save(model, folder / "model.onnx")
    with pytest.raises(ValueError, match="for 2 labels. They are of two exports"):
        kbs.open_runtime(folder)


@pytest.mark.backend("torch")
def test_a_damaged_model_is_named(folder):
    file = folder / "model.onnx"
    file.write_bytes(b"damaged" + file.read_bytes())
    with pytest.raises(ValueError, match=r"model\.onnx cannot be read: .*It is damaged"):
        kbs.open_runtime(folder)


@pytest.mark.backend("torch")
def test_a_shorter_vocabulary_is_named(folder):
    file = folder / "vocab.txt"
    file.write_text("\n".join(file.read_text().splitlines()[:-1]) + "\n")
    with pytest.warns(UserWarning, match="No text becomes the last 1"):
        kbs.open_runtime(folder)


@pytest.mark.backend("torch")
def test_arguments(folder):
    runtime = kbs.open_runtime(folder)
    assert runtime.description["labels"] == ["no", "yes"]
    with pytest.raises(ValueError, match="takes texts, got packed arrays"):
        runtime.predict(runtime.data.packer.pack(["good"]))
    with pytest.raises(ValueError, match="has the prompts none, got 'query'. Put the prompt"):
        runtime.predict(["good"], prompt="query")
    with pytest.raises(ValueError, match="batch_size must be an integer of at least 1, got -1"):
        runtime.predict(["good"], batch_size=-1)
    for other in ("MultipleChoice", "TokenClassifier"):
        data, answers = HEADS[other].make_parts(
            {"input_names": None, "labels": ["O"]}, runtime.data.packer, runtime.data.encoder
        )
        runtime = TaskRuntime({"task": other}, data, answers, None, [])
        with pytest.raises(ValueError, match=f"A {other} has no labels of rows. Use `predict`"):
            runtime.predict_labels(["good"])


@pytest.mark.backend("torch")
@pytest.mark.parametrize("threshold", [None, -1e6, 1e6])
def test_answers_keep_to_the_threshold_of_the_task(threshold):
    task = make_random_task("questions")
    task.no_answer_threshold = threshold
    data, answers = task.HEAD.make_parts(describe_task(task), task.preprocessor, task.data.encoder)
    rows = ["good?", "film?"], HOSTILE[1:3]
    windows = task.data.window(task.data.read(rows))
    scores = np.random.default_rng(0).normal(
        size=(len(windows), 2, task.preprocessor.sequence_length)
    )
    found = answers.decode(scores, data.window(data.read(rows)))
    assert found == task.answers.decode(scores, windows)
    assert [answer.start < 0 for answer in found] == [threshold == -1e6] * 2


TOKENIZERS = {
    "WordPiece": lambda: kbs.WordPieceTokenizer(
        VOCABULARY, lowercase=False, strip_accents=True, max_word_length=7
    ),
    "byte pairs": lambda: kbs.BytePairTokenizer(make_vocabulary(), MERGES, add_prefix_space=True),
    "ModernBERT": lambda: kbs.ModernBertTokenizer(
        make_vocabulary(special=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]), MERGES
    ),
    "sentence pieces": lambda: kbs.SentencePieceTokenizer(make_albert()),
    "ALBERT": lambda: kbs.AlbertTokenizer(make_albert(), lowercase=False),
    "XLM-RoBERTa": lambda: kbs.XLMRobertaTokenizer(make_xlm_roberta()),
}


@pytest.mark.backend("torch")
def test_each_tokenizer_is_in_the_table():
    # `test_an_xlnet_answers_strings` has rows of XLNet, and tests/tokenizers/ has characters. A
    # runtime does not write, as an mBART does.
    elsewhere = {kbs.XLNetTokenizer, kbs.CharacterTokenizer, kbs.MBartTokenizer}
    found = {type(make()) for make in TOKENIZERS.values()}
    assert found == {*tokenizers.TOKENIZERS.values()} - elsewhere


@pytest.mark.backend("torch")
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_texts_are_packed_as_the_task_packs_them(kind, tmp_path):
    tokenizer = TOKENIZERS[kind]()
    tokenizer.add_tokens(["covid-19"])
    has_segments = kind in ("WordPiece", "sentence pieces", "ALBERT")
    settings = {"truncation": "head_tail", "head_length": 5, "padding_lengths": None}
    settings["segment_ids"] = (1, 0) if has_segments else None
    packer = kbs.SegmentPacker(tokenizer, 24, **settings)
    sizes = {**ONE_LAYER, "vocabulary_size": tokenizer.vocabulary_size()}
    backbone = (kbs.BertBackbone if has_segments else kbs.RobertaBackbone)(**sizes)
    task = kbs.TextClassifier(backbone, num_classes=2, preprocessor=packer)
    runtime = kbs.open_runtime(write_folder(task, tmp_path))
    texts = [*HOSTILE, "Good covid-19 \u00e9", "longerthan7"]
    packed = runtime.data.packer.pack(texts, texts[::-1])
    for name, array in packer.pack(texts, texts[::-1]).items():
        np.testing.assert_array_equal(packed[name], array)


@LONG
def test_an_xlnet_answers_strings(tmp_path):
    """Rows of another template, with padding on the left: an ONNX folder, and a SavedModel."""
    pytest.importorskip("tf2onnx")
    pytest.importorskip("onnxruntime")
    tf = pytest.importorskip("tensorflow")
    packer = kbs.SegmentPacker(kbs.XLNetTokenizer(make_xlnet()), 16)
    size = {**ONE_LAYER, "vocabulary_size": packer.tokenizer.vocabulary_size()}
    backbone = kbs.XLNetBackbone(**{**size, "max_sequence_length": None, "num_segments": 3})
    task = randomize(kbs.TextClassifier(backbone, 3, preprocessor=packer))
    texts = ["the good film", "low", "", "café 2009, bad"]
    wanted = keras.ops.convert_to_numpy(keras.ops.softmax(task.predict(texts, verbose=0)))
    kbs.export_onnx(task, tmp_path / "onnx")
    got = kbs.open_runtime(tmp_path / "onnx").predict_probabilities(texts)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)
    saved = kbs.export_saved_model(task, tmp_path / "saved")
    serve = tf.saved_model.load(str(saved)).signatures["serving_default"]
    got = serve(text=tf.constant(texts))["probabilities"]
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)
