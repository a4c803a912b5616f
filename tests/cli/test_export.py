"""`keras-bert export`."""

import pytest
from cli.small_files import list_files

pytest.importorskip("tensorflow_text")


@pytest.mark.backend_free
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


@pytest.mark.backend_free
@pytest.mark.parametrize(("format", "file"), [("onnx", "model.onnx"), ("litert", "model.tflite")])
def test_other_formats(run, finetuned, tmp_path, format, file):
    if format == "onnx":
        pytest.importorskip("tf2onnx")
    output = tmp_path / format
    arguments = ["export", "--model", finetuned / "model.keras", "--format", format]
    assert run(*arguments, "--output", output) == (0, f"wrote {output}\n", "")
    wanted = {file, "vocab.txt", "tokenizer_config.json", "packing.json", "label_names.txt"}
    assert set(list_files(output)) == wanted
    before = list_files(tmp_path)
    status, _, err = run(*arguments, "--output", output)
    assert status == 1 and "exists already" in err
    assert list_files(tmp_path) == before
