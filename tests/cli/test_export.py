"""`keras-bert export`."""

import pytest
from cli.small_files import list_files

pytest.importorskip("tensorflow_text")


@pytest.mark.backend("tensorflow")
def test_versions(run, finetuned, tmp_path):
    """A model's folder gets its next version; a version that is there needs --overwrite."""
    model, output = finetuned / "model.keras", tmp_path / "reviews"
    arguments = ["export", "--model", model, "--output"]
    status, out, err = run(*arguments, output)
    assert (status, out, err) == (0, f"wrote {output / '1'}, with the inputs text\n", "")
    requests = (output / "1" / "assets.extra" / "tf_serving_warmup_requests").read_bytes()
    assert b"reviews" in requests

    status, _, err = run(*arguments, output / "1")
    assert status == 1 and f"{output / '1'} exists already" in err
    (output / "1" / "keras_metadata.pb").touch()
    (output / "1" / "notes.txt").touch()
    flags = ["--overwrite", "--inputs=sentence", "--max_batch_size=6"]
    status, _, err = run(*arguments, output / "1", *flags)
    assert status == 1 and "holds files that keras-bert did not write: notes.txt." in err
    (output / "1" / "notes.txt").unlink()
    assert run(*arguments, output / "1", *flags)[0] == 0
    assert not (output / "1" / "keras_metadata.pb").exists()
    assert "allowed_batch_sizes: 6" in (output / "1" / "batching_params.pbtxt").read_text()
    requests = (output / "1" / "assets.extra" / "tf_serving_warmup_requests").read_bytes()
    assert b"reviews" in requests and b"sentence" in requests


@pytest.mark.backend("tensorflow")
def test_bfloat16(run, finetuned, tmp_path):
    """The weights take half of the bytes."""
    model = ["export", "--model", finetuned / "model.keras", "--output"]
    assert run(*model, tmp_path / "half", "--precision=bfloat16")[0] == 0
    sizes = []
    for folder in (finetuned / "saved", tmp_path / "half"):
        (file,) = (folder / "1" / "variables").glob("variables.data-*")
        sizes.append(file.stat().st_size)
    assert sizes[1] < 0.6 * sizes[0]
    status, _, err = run(*model, tmp_path / "no", "--precision=bfloat16", "--format=openvino")
    assert status == 2 and "--precision bfloat16 is for --format saved_model, got openvino" in err


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
    wanted = {*files, "vocab.txt", "tokenizer_config.json", "packing.json", "label_names.txt"}
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


@pytest.mark.backend("tensorflow")
def test_int8(run, finetuned, tmp_path):
    """Scales come from lines or from a column of a table; the flags must fit together."""
    pytest.importorskip("tf2onnx")
    model = ["export", "--model", finetuned / "model.keras"]
    (tmp_path / "texts.txt").write_text("a good film\nit was awful\n" * 10)
    (tmp_path / "texts.tsv").write_text("sentence\n" + "a good film\nit was awful\n" * 10)
    onnx = [*model, "--format=onnx", "--output"]
    int8 = ["--precision=int8", "--calibration", tmp_path / "texts.txt"]
    status, out, err = run(*onnx, tmp_path / "lines", *int8)
    assert (status, err) == (0, "") and out.endswith(f"wrote {tmp_path / 'lines'}\n")
    int8[-1] = tmp_path / "texts.tsv"
    assert run(*onnx, tmp_path / "table", *int8, "--text_column=sentence")[0] == 0
    assert count_integers(tmp_path / "lines") == count_integers(tmp_path / "table") > 0

    for flags, message in (
        (["--format=openvino", "--precision=int8"], "needs --calibration, a file of texts"),
        (["--precision=int8"], "is for --format onnx and openvino, got saved_model"),
        (["--format=onnx", "--calibration=texts.txt"], "--calibration is for --precision int8"),
        (["--format=onnx", "--inputs=text"], "--inputs is for --format saved_model, got onnx"),
        (["--format=litert", "--max_batch_size=2"], "is for --format saved_model, got litert"),
        (["--text_column=sentence"], "--text_column is for the texts of --calibration"),
    ):
        status, _, err = run(*model, "--output", tmp_path / "no", *flags)
        assert status == 2 and message in err
    assert not (tmp_path / "no").exists()
