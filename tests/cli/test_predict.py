"""`keras-bert predict` and `export`."""

import io
import json
import shutil
import types

import keras
import numpy as np
import pytest
import transformers
from cli.small_files import list_files
from peer_weights import randomize
from safetensors.numpy import load_file, save_file
from small_texts import TINY, VOCABULARY

import keras_bert_suite as kbs
from keras_bert_cli.kinds.classify import ClassifyKind
from keras_bert_suite.checkpoints import save_hugging_face

TEXTS = ["a good film", "it was awful , not good", "", "a [bold]dull[/bold] plot"]


@pytest.fixture(scope="module")
def expected(finetuned):
    """(N labels, N probabilities) of `TEXTS`, by the methods of Keras."""
    classifier = keras.saving.load_model(finetuned / "model.keras")
    logits = classifier.predict(TEXTS, verbose=0)
    probabilities = keras.ops.convert_to_numpy(keras.ops.softmax(logits))
    labels = [classifier.label_names[i] for i in logits.argmax(axis=-1)]
    return labels, probabilities


def check_tsv(text, expected):
    """Compares with the output of `predict`."""
    header, *lines = text.splitlines()
    assert header == "label\tprobability"
    labels, probabilities = zip(*(line.split("\t") for line in lines), strict=True)
    assert list(labels) == expected[0]
    np.testing.assert_allclose(np.float64(probabilities), expected[1].max(axis=-1), atol=2e-6)


def test_lines_of_standard_input(run, finetuned, expected, monkeypatch):
    data = "\n".join(TEXTS).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    status, out, err = run("predict", "--model", finetuned / "model.keras", "--batch_size=3")
    assert (status, err) == (0, "")
    check_tsv(out, expected)


def test_probabilities_are_those_of_a_server(run, finetuned, expected, tmp_path, monkeypatch):
    """Also of a model that has the softmax inside."""
    classifier = keras.saving.load_model(finetuned / "model.keras")
    twin = type(classifier).from_config({**classifier.get_config(), "activation": "softmax"})
    twin.preprocessor = classifier.preprocessor
    twin.set_weights(classifier.get_weights())
    twin.save(tmp_path / "twin.keras")
    data = "\n".join(TEXTS).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    status, out, err = run("predict", "--model", tmp_path / "twin.keras")
    assert (status, err) == (0, "")
    check_tsv(out, expected)


def test_rows_that_leave_early(run, workshop, tmp_path):
    """Its answers and scores are those of the task itself."""
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 16)
    parts = {"preprocessor": packer, "label_names": ["no", "yes"], "method": "deebert"}
    task = kbs.EarlyExitClassifier(kbs.BertBackbone(**TINY), **parts)
    randomize(task)
    task.save(tmp_path / "untuned.keras")
    arguments = ["--text_column=sentence", "--input", workshop / "dev.tsv"]
    status, _, err = run("predict", "--model", tmp_path / "untuned.keras", *arguments)
    assert status == 1 and "Call `tune_exits(dev_texts, dev_labels)`, or set `threshold`" in err
    rows = kbs.read_table(workshop / "dev.tsv", "sentence", "label")
    curve = task.measure_exits(rows.x, rows.y)
    task.threshold = curve[len(curve) // 2].threshold
    assert {*task.predict(rows.x, return_layers=True, verbose=0)[1]} == {1, 2}
    task.save(tmp_path / "exits.keras")
    status, out, err = run("predict", "--model", tmp_path / "exits.keras", *arguments)
    assert (status, err) == (0, "")
    check_tsv(out, (task.predict_labels(rows.x), task.predict_probabilities(rows.x)))
    status, out, err = run("evaluate", "--model", tmp_path / "exits.keras", *arguments)
    assert (status, err) == (0, "")
    assert out.startswith(f"rows 32, accuracy {task.score(rows.x, rows.y)['accuracy']:.4f}, ")


def test_json_lines_of_a_table(run, finetuned, expected, tmp_path):
    table = tmp_path / "texts.csv"
    table.write_text("id,film\n" + "".join(f'{i},"{text}"\n' for i, text in enumerate(TEXTS)))
    output = tmp_path / "answers.jsonl"
    arguments = ["predict", "--model", finetuned / "model.keras", "--input", table]
    arguments += ["--text_column=film", "--format=jsonl", "--output", output]
    assert run(*arguments) == (0, "", "")
    answers = [json.loads(line) for line in output.read_text().splitlines()]
    assert [answer["film"] for answer in answers] == TEXTS
    assert [answer["label"] for answer in answers] == expected[0]
    got = [[answer["probabilities"][name] for name in ("no", "yes")] for answer in answers]
    np.testing.assert_allclose(got, expected[1], atol=2e-6)
    status, out, err = run(*arguments)
    assert status == 1 and "answers.jsonl exists already" in err
    assert run(*arguments, "--overwrite")[0] == 0
    assert list_files(tmp_path) == ["answers.jsonl", "texts.csv"]


def test_half_a_character_is_no_reason_to_stop(run, finetuned, tmp_path):
    """JSON can hold one half of a pair of surrogates, UTF-8 cannot."""
    (tmp_path / "texts.jsonl").write_text('{"text": "a good \\ud83d film"}\n')
    arguments = ["--model", finetuned / "model.keras", "--input", tmp_path / "texts.jsonl"]
    output = tmp_path / "answers.jsonl"
    arguments += ["--text_column=text", "--format=jsonl", "--output", output]
    assert run("predict", *arguments) == (0, "", "")
    assert json.loads(output.read_text())["text"] == "a good \ud83d film"


@pytest.fixture
def check_pairs(run, pairs, tmp_path):
    """function(model, *flags): checks the answer to a table of two columns in some order."""
    classifier = keras.saving.load_model(pairs)
    logits = classifier.predict((["it was awful"], ["a good film"]), verbose=0)
    expected = keras.ops.convert_to_numpy(keras.ops.softmax(logits))[0]
    turned = classifier.predict((["a good film"], ["it was awful"]), verbose=0)
    turned = keras.ops.convert_to_numpy(keras.ops.softmax(turned))[0]
    assert abs(turned - expected).max() > 2e-5  # ten times the tolerance
    table = tmp_path / "pairs.tsv"
    table.write_text("hypothesis\tpremise\na good film\tit was awful\n")

    def check(model, *flags):
        arguments = ["predict", "--model", model, "--input", table, "--format=jsonl", *flags]
        status, out, err = run(*arguments)
        assert (status, err) == (0, "")
        got = json.loads(out)["probabilities"]
        assert list(got) == classifier.label_names
        np.testing.assert_allclose(list(got.values()), expected, atol=2e-6)

    return check


COLUMNS = ("--text_column=premise", "--text_pair_column=hypothesis")


def test_pairs(run, pairs, check_pairs, tmp_path):
    """Columns are called as the model calls its texts, in whatever order they stand."""
    check_pairs(pairs)
    check_pairs(pairs, *COLUMNS)
    check_pairs(pairs, "--text_column=hypothesis", "--text_pair_column=premise")
    table = ("--input", tmp_path / "pairs.tsv", "--text_column=premise")
    status, _, err = run("predict", *table, "--model", pairs)
    message = "trained with rows of 2 texts, premise, hypothesis, and got rows of 1, premise. Name"
    assert status == 1 and message in err


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_a_saved_model_of_pairs(run, pairs, check_pairs, tmp_path):
    export = ["export", "--model", pairs, "--output"]
    status, out, err = run(*export, tmp_path / "pairs/1")
    assert (status, err) == (0, "") and "with the inputs premise, hypothesis\n" in out
    check_pairs(tmp_path / "pairs/1")
    check_pairs(tmp_path / "pairs/1", *COLUMNS)
    table = tmp_path / "pairs.tsv"
    arguments = ["predict", "--input", table, "--text_column=premise", "--model"]
    status, _, err = run(*arguments, tmp_path / "pairs/1")
    assert status == 1 and "are hypothesis, premise, got premise." in err

    # Columns without names come in the order of the model's texts.
    assert run(*export, tmp_path / "unnamed/1", "--inputs=text_a,text_b")[0] == 0
    check_pairs(tmp_path / "unnamed/1", *COLUMNS)
    table.write_text("a good film\tit was awful\n")
    check_pairs(tmp_path / "unnamed/1", "--noheader", "--text_column=2", "--text_pair_column=1")


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_the_folder_of_an_onnx_model(run, finetuned, expected, tmp_path):
    pytest.importorskip("tf2onnx")
    pytest.importorskip("onnxruntime")
    export = ["export", "--format=onnx", "--model", finetuned / "model.keras", "--output"]
    assert run(*export, tmp_path / "onnx")[0] == 0
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    arguments = ["--model", tmp_path / "onnx", "--input", tmp_path / "texts.txt"]
    status, out, err = run("predict", *arguments)
    assert (status, err) == (0, "")
    check_tsv(out, expected)
    status, _, err = run("evaluate", *arguments)
    assert status == 2 and "is an export, which only answers: keras-bert predict" in err


def test_a_model_of_single_texts_takes_no_pairs(run, finetuned, tmp_path):
    table = tmp_path / "pairs.tsv"
    table.write_text("a\tb\na good film\tit was awful\n")
    model = ["--model", finetuned / "model.keras"]
    columns = ["--input", table, "--text_column=a", "--text_pair_column=b"]
    status, _, err = run("predict", *model, *columns)
    assert status == 1 and "with rows of 1 texts, text, and got rows of 2, a, b. Name" in err
    status, _, err = run("export", *model, "--output", tmp_path / "1", "--inputs=a,b")
    assert status == 1 and "trained with rows of 1 texts, text, and inputs=" in err


def test_a_table_of_standard_input(run, finetuned, expected, monkeypatch):
    data = "".join(f"{i};{text}\n" for i, text in enumerate(TEXTS)).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    flags = ["--delimiter=;", "--noheader", "--text_column=2"]
    status, out, err = run("predict", "--model", finetuned / "model.keras", *flags)
    assert (status, err) == (0, "")
    check_tsv(out, expected)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"model": "absent.keras"}, "absent.keras does not exist"),
        ({"model": "absent"}, "absent does not exist"),
        ({"model": "texts.keras"}, "texts.keras is damaged, or was not written by Keras"),
        ({"model": "cut.keras"}, "cut.keras is damaged"),
        ({"model": "other.keras"}, "other.keras holds a Sequential, wanted a task"),
        ({"model": "checkpoint"}, "checkpoint holds only an encoder, wanted a model with a head"),
        ({"model": "unknown"}, "unknown holds an encoder with the head my_scorer, wanted a model"),
        ({"input": "empty.txt"}, "empty.txt is empty"),
        ({"input": "absent.txt"}, "absent.txt: No such file or directory"),
        ({"input": "table.tsv"}, "table.tsv has no column 'text'"),
    ],
)
def test_bad_input(run, finetuned, workshop, tmp_path, monkeypatch, flags, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.keras").write_text("not a zip archive")
    (tmp_path / "texts.txt").write_text("a film\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "table.tsv").write_text("film\na\n")
    (tmp_path / "checkpoint").symlink_to(workshop / "checkpoint")
    shutil.copytree(workshop / "checkpoint", tmp_path / "unknown")
    tensors = load_file(tmp_path / "unknown/model.safetensors")
    tensors["my_scorer.weight"] = np.zeros((1, 16), "float32")
    save_file(tensors, tmp_path / "unknown/model.safetensors")
    model = (finetuned / "model.keras").read_bytes()
    (tmp_path / "model.keras").write_bytes(model)
    (tmp_path / "cut.keras").write_bytes(model[: len(model) // 2])
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]).save("other.keras")
    before = list_files(tmp_path)
    flags = {"model": "model.keras", "input": "texts.txt", "output": "out/answers", **flags}
    status, out, err = run("predict", *(f"--{name}={value}" for name, value in flags.items()))
    assert (status, out) == (1, "")
    assert err.startswith("keras-bert: ") and message in err
    assert list_files(tmp_path) == before


def test_whether_a_text_follows(run, tmp_path):
    """The head for pairs of a checkpoint, against transformers."""
    tokenizer = kbs.WordPieceTokenizer(VOCABULARY)
    backbone = kbs.BertBackbone(**{**TINY, "num_layers": 1})
    pretrainer = kbs.Pretrainer(backbone, preprocessor=kbs.SegmentPacker(tokenizer, 32))
    randomize(pretrainer)
    save_hugging_face(pretrainer, tmp_path / "checkpoint", tokenizer=tokenizer)
    peer = transformers.BertForNextSentencePrediction.from_pretrained(tmp_path / "checkpoint")
    rows = [("a good film", "it was awful"), ("it was awful", "a good film"), ("a", "not good")]
    packed = transformers.BertTokenizerFast.from_pretrained(tmp_path / "checkpoint")(
        *zip(*rows, strict=True), padding=True, return_tensors="pt"
    )
    wanted = peer.eval()(**packed).logits.softmax(dim=-1).tolist()
    assert np.ptp([row[0] for row in wanted]) > 1e-3
    table = tmp_path / "pairs.tsv"
    table.write_text("first\tsecond\n" + "".join("\t".join(row) + "\n" for row in rows))
    arguments = ["predict", "--model", tmp_path / "checkpoint", "--input", table]
    arguments += ["--text_column=first", "--text_pair_column=second"]
    status, out, _ = run(*arguments, "--format=jsonl")
    answers = [json.loads(line) for line in out.splitlines()]
    assert status == 0 and [(answer["first"], answer["second"]) for answer in answers] == rows
    got = [[answer["probabilities"][name] for name in ("next", "other")] for answer in answers]
    np.testing.assert_allclose(got, wanted, atol=2e-5)
    lines = run(*arguments)[1].splitlines()[1:]
    assert [line.split("\t")[0] for line in lines] == [
        "next" if follows > other else "other" for follows, other in wanted
    ]
    status, _, err = run(*arguments, "--question=Who?")
    assert (status, "--question is for --task qa" in err) == (2, True)
    # Of single texts nothing is known.
    status, _, err = run(*arguments[:-1])
    assert (status, "guesses masked tokens" in err) == (1, True)


@pytest.mark.parametrize("format", ["tsv", "jsonl"])
def test_the_probability_is_that_of_the_label(format):
    """Also where the model of a user answers with another class than the most probable."""
    kind = object.__new__(ClassifyKind)
    kind.values = types.SimpleNamespace(format=format, batch_size=1)
    served = {"label_ids": np.array([0]), "probabilities": np.array([[0.3, 0.7]])}
    kind.model = types.SimpleNamespace(
        HEAD=kbs.RelationClassifier.HEAD,
        label_names=["a", "b"],
        input_names=("text",),
        predict=lambda x, **_: np.zeros((len(x), 2)),
        answers=types.SimpleNamespace(serve=lambda *_: served),
    )
    line = list(kind.predict({"text": ["one"]}))[-1]
    assert "0.3" in line and "0.7" not in line.partition("probabilities")[0]


def test_labels_that_were_not_trained_on(run, tmp_path):
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 24)
    names = ["contradiction", "neutral", "entailment"]
    nli = kbs.TextClassifier(kbs.BertBackbone(**TINY), label_names=names, preprocessor=packer)
    randomize(nli).save_to_preset(tmp_path / "nli")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS[:2]), "utf-8")
    labels = ["good film", "plot", "dull"]
    line = f"predict --model={tmp_path / 'nli'} --input={tmp_path / 'texts.txt'} --format=jsonl"
    asked = [*line.split(), f"--zero_shot_labels={','.join(labels)}", "--zero_shot_template=a {}"]
    status, output, _ = run(*asked)
    rows = [json.loads(row) for row in output.splitlines()]
    assert status == 0
    wanted = nli.zero_shot(labels, template="a {}")
    assert [row["label"] for row in rows] == wanted.predict_labels(TEXTS[:2])
    found = [[row["probabilities"][label] for label in labels] for row in rows]
    np.testing.assert_allclose(found, wanted.predict(TEXTS[:2]), atol=2e-6)
