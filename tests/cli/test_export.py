"""`keras-bert export`."""

import shutil

import pytest
from cli.small_files import list_files

from keras_bert_cli.export import read_calibration

pytest.importorskip("tensorflow_text")


@pytest.mark.backend("tensorflow")
def test_a_saved_model_is_asked(run, saved, finetuned, tmp_path):
    """It answers as the model does."""
    (tmp_path / "texts.txt").write_text("a good film\nit was awful , not good\n\na dull plot\n")
    arguments = ("predict", "--input", tmp_path / "texts.txt", "--batch_size=3", "--model")
    wanted, got = (run(*arguments, model) for model in (finetuned / "model.keras", saved))
    assert wanted[::2] == got[::2] == (0, "")
    rows = [[line.split("\t") for line in out.splitlines()] for out in (wanted[1], got[1])]
    assert [row[0] for row in rows[0]] == [row[0] for row in rows[1]]
    figures = ([float(row[1]) for row in lines[1:]] for lines in rows)
    assert next(figures) == pytest.approx(next(figures), abs=2e-6)
    table = tmp_path / "pairs.tsv"
    table.write_text("a\tb\na good film\tit was awful\n")
    flags = ("--input", table, "--text_column=a", "--text_pair_column=b")
    status, _, err = run("predict", "--model", saved, *flags)
    assert status == 1 and f"The inputs of {saved} are text, got a, b. Name the columns" in err


def test_a_version_that_is_there_needs_overwrite(run, finetuned, tmp_path):
    output = tmp_path / "reviews" / "1"
    output.mkdir(parents=True)
    (output / "saved_model.pb").write_bytes(b"old")
    arguments = ["export", "--model", finetuned / "model.keras", "--output"]
    status, _, err = run(*arguments, output)
    assert status == 1 and f"{output} exists already" in err


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_versions(run, finetuned, saved, tmp_path):
    """A model's folder gets its next version."""
    output = tmp_path / "reviews"
    shutil.copytree(saved, output / "7")
    arguments = ["export", "--model", finetuned / "model.keras", "--output"]
    flags = ["--inputs=sentence", "--max_batch_size=6"]
    status, out, err = run(*arguments, output, *flags)
    assert (status, out, err) == (0, f"wrote {output / '8'}, with the inputs sentence\n", "")
    assert "allowed_batch_sizes: 6" in (output / "8" / "batching_params.pbtxt").read_text()
    requests = (output / "8" / "assets.extra" / "tf_serving_warmup_requests").read_bytes()
    assert b"reviews" in requests and b"sentence" in requests


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_bfloat16(run, finetuned, saved, tmp_path):
    """The weights take half of the bytes."""
    model = ["export", "--model", finetuned / "model.keras", "--output"]
    assert run(*model, tmp_path / "half", "--precision=bfloat16")[0] == 0
    sizes = []
    for folder in (saved, tmp_path / "half" / "1"):
        (file,) = (folder / "variables").glob("variables.data-*")
        sizes.append(file.stat().st_size)
    assert sizes[1] < 0.6 * sizes[0]


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize(
    ("format", "files"),
    [
        ("onnx", {"model.onnx"}),
        ("openvino", {"model.xml", "model.bin"}),
        ("litert", {"model.tflite"}),
    ],
)
def test_other_formats(run, finetuned, tmp_path, format, files):
    if format != "litert":
        pytest.importorskip({"onnx": "tf2onnx"}.get(format, format))
    output = tmp_path / format
    arguments = ["export", "--model", finetuned / "model.keras", "--format", format]
    assert run(*arguments, "--output", output) == (0, f"wrote {output}\n", "")
    wanted = {*files, "vocab.txt", "tokenizer_config.json", "packing.json", "task.json"}
    wanted |= {"label_names.txt", "model_card.md"}
    assert set(list_files(output)) == wanted
    before = list_files(tmp_path)
    status, _, err = run(*arguments, "--output", output)
    assert status == 1 and "exists already" in err
    assert list_files(tmp_path) == before


def count_integers(folder):
    """How many matrices of a `model.onnx` are in 8-bit integers."""
    onnx = pytest.importorskip("onnx")
    tensors = onnx.load(folder / "model.onnx").graph.initializer
    return sum(tensor.data_type == onnx.TensorProto.INT8 for tensor in tensors)


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_int8(run, finetuned, tmp_path):
    """The scales of OpenVINO come from lines or from a column of a table."""
    pytest.importorskip("tf2onnx")
    model = ["export", "--model", finetuned / "model.keras"]
    (tmp_path / "texts.txt").write_text("a good film\nit was awful\n" * 10)
    (tmp_path / "texts.tsv").write_text("text\n" + "a good film\nit was awful\n" * 10)
    status, out, err = run(
        *model, "--format=onnx", "--output", tmp_path / "onnx", "--precision=int8"
    )
    assert (status, err) == (0, "") and out.endswith(f"wrote {tmp_path / 'onnx'}\n")
    assert count_integers(tmp_path / "onnx") > 0
    pytest.importorskip("nncf")
    openvino = [*model, "--format=openvino", "--precision=int8", "--output"]
    for texts in ("texts.txt", "texts.tsv"):
        folder = tmp_path / f"of {texts}"
        assert run(*openvino, folder, "--calibration", tmp_path / texts)[0] == 0
        assert (folder / "model.xml").is_file()


def test_flags_that_do_not_fit_together(run, finetuned, tmp_path):
    model = ["export", "--model", finetuned / "model.keras"]
    for flags, message in (
        (["--format=openvino", "--precision=int8"], "needs --calibration, a file of texts"),
        (["--precision=int8"], "is for --format onnx and openvino, got saved_model"),
        (
            ["--precision=bfloat16", "--format=openvino"],
            "is for --format saved_model, got",
        ),
        (
            ["--format=onnx", "--precision=int8", "--calibration=texts.txt"],
            "--calibration is for --format openvino --precision int8",
        ),
        (["--format=onnx", "--inputs=text"], "--inputs is for --format saved_model, got onnx"),
        (["--format=litert", "--max_batch_size=2"], "is for --format saved_model, got litert"),
    ):
        status, _, err = run(*model, "--output", tmp_path / "no", *flags)
        assert status == 2 and message in err
    assert not (tmp_path / "no").exists()


def test_texts_of_json_for_the_calibration(tmp_path):
    """A list of objects is read as lines of objects are. Other JSON has no column of texts."""
    path = tmp_path / "rows.json"
    path.write_text('[{"text": "good"}, {"text": "bad"}]', "utf-8")
    assert read_calibration(str(path), ["text"]) == ["good", "bad"]
    path.write_text('{"data": {"text": "good"}}', "utf-8")
    with pytest.raises(ValueError, match="no column 'text'. Its columns are data"):
        read_calibration(str(path), ["text"])
