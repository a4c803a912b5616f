"""`keras-bert finetune`."""

import errno
import zipfile

import keras
import pytest
from cli.small_files import list_files, write_reviews

import keras_bert_suite as kbs


@pytest.fixture
def finetune(run, workshop, tmp_path, monkeypatch):
    """Function: flags that differ from a good command line -> `run`'s result, in a new folder."""
    monkeypatch.chdir(tmp_path)

    def run_finetune(**flags):
        flags = {
            "checkpoint": workshop / "checkpoint",
            "train": workshop / "train.tsv",
            "text_column": "sentence",
            "epochs": 1,
            "output": "out/model.keras",
            **flags,
        }
        return run("finetune", *(f"--{name}={value}" for name, value in flags.items()))

    return run_finetune


def test_model_and_table(finetune, workshop, tmp_path):
    dev = workshop / "dev.tsv"
    status, out, err = finetune(dev=dev, test=dev, epochs=2, output="a/preset", sequence_length=32)
    assert (status, err) == (0, "")
    assert "32 training texts, labels no, yes" in out
    header = ["epoch", "loss", "accuracy", "dev loss", "dev accuracy", "seconds"]
    assert [cell.strip() for cell in next(x for x in out.splitlines() if "┃" in x).split("┃")] == [
        "",
        *header,
        "",
    ]
    rows = [line.split("│")[1:-1] for line in out.splitlines() if line.startswith("│")]
    assert [row[0].strip() for row in rows] == ["1", "2"]

    classifier = kbs.TextClassifier.from_preset("a/preset")
    assert classifier.label_names == ["no", "yes"]
    assert classifier.preprocessor.sequence_length == 32
    table = [line.split("\t") for line in dev.read_text().splitlines()[1:]]
    texts, labels = zip(*table, strict=True)
    classifier.compile()
    loss, accuracy = classifier.evaluate(list(texts), list(labels), verbose=0)
    assert float(rows[-1][3]) == pytest.approx(loss, abs=1e-4)
    assert float(rows[-1][4]) == pytest.approx(accuracy, abs=1e-4)
    assert f"test accuracy {accuracy:.4f}" in out
    assert list_files(tmp_path)[:2] == ["a", "a/preset"]


def test_pairs_numbered_labels_and_precision(finetune, tmp_path):
    write_reviews(tmp_path / "train.tsv", 32, 1, names=("9", "10"))
    rows = (tmp_path / "train.tsv").read_text().splitlines()
    rows = [f"b{i}\t{row}" for i, row in enumerate(rows)]
    (tmp_path / "pairs.tsv").write_text("\n".join(rows))
    status, _, err = finetune(
        train="pairs.tsv", text_column="b0", text_pair_column="sentence", dtype="mixed_bfloat16"
    )
    assert (status, err) == (0, "")
    classifier = keras.saving.load_model("out/model.keras")
    assert classifier.label_names == ["9", "10"]
    assert classifier.backbone.dtype_policy.name == "mixed_bfloat16"
    assert classifier.preprocessor.sequence_length == 128


@pytest.mark.backend_free
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"text_column": "text"}, "no column 'text'. Its columns are 'sentence', 'label'."),
        ({"label_column": "class"}, "no column 'class'"),
        ({"train": "absent.tsv"}, "absent.tsv: No such file or directory"),
        ({"train": "."}, "neither a .tsv nor a .csv"),
        ({"train": "empty.tsv"}, "empty.tsv is empty"),
        ({"train": "short.tsv"}, "short.tsv, line 3: wanted the 2 fields"),
        ({"train": "latin1.tsv"}, "latin1.tsv is not utf-8: byte 0xef at offset 17 (line 2)"),
        ({"train": "unlabelled.tsv"}, "unlabelled.tsv, line 2: the label is empty"),
        ({"train": "one.tsv"}, "Every row of one.tsv has the label 'yes'"),
        ({"dev": "strange.tsv"}, "strange.tsv, line 3: the label 'maybe' does not occur in "),
        ({"test": "strange.tsv"}, "strange.tsv, line 3: the label 'maybe' does not occur in "),
        ({"output": "one.tsv"}, "one.tsv exists already. Choose another path, or pass --overwrite"),
        ({"export": "folder/1"}, "folder/1 exists already"),
        ({"export": "e", "text_pair_column": "a b"}, "must be different names of letters"),
        ({"output": "one.tsv/a.keras"}, "one.tsv is not a folder"),
        ({"checkpoint": "absent"}, "absent does not exist"),
        ({"checkpoint": "folder"}, "holds no checkpoint"),
        ({"checkpoint": "damaged"}, "model.safetensors"),
        ({"sequence_length": 129}, "--sequence_length=129 is more than the 128 positions"),
    ],
)
def test_bad_input(finetune, workshop, tmp_path, flags, message):
    for name, content in {
        "empty.tsv": b"",
        "short.tsv": b"sentence\tlabel\nx\ty\nz\n",
        "latin1.tsv": b"sentence\tlabel\nna\xefve\tyes\n",
        "unlabelled.tsv": b"sentence\tlabel\nx\t\n",
        "one.tsv": b"sentence\tlabel\nx\tyes\ny\tyes\n",
        "strange.tsv": b"sentence\tlabel\nx\tyes\ny\tmaybe\n",
    }.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder/1").mkdir(parents=True)
    (tmp_path / "damaged").mkdir()
    for file in (workshop / "checkpoint").iterdir():
        data = file.read_bytes()
        size = len(data) - 100 * file.name.endswith(".safetensors")
        (tmp_path / "damaged" / file.name).write_bytes(data[:size])
    before = list_files(tmp_path)
    status, _, err = finetune(**flags)
    assert status == 1
    assert err.startswith("keras-bert: ") and message in err
    assert list_files(tmp_path) == before


@pytest.mark.backend_free
@pytest.mark.parametrize(
    ("method", "error", "status"),
    [
        ("fit", KeyboardInterrupt(), 130),
        ("save", OSError(errno.ENOSPC, "No space left on device"), 1),
    ],
)
def test_nothing_is_left_of_a_run_that_ends_early(
    finetune, tmp_path, monkeypatch, method, error, status
):
    def fail(self, path=None, *args, **kwargs):
        if method == "save":
            path.write_bytes(b"half of it")
        raise error

    monkeypatch.setattr(kbs.TextClassifier, method, fail)
    assert finetune()[0] == status
    assert list_files(tmp_path) == []

    (tmp_path / "out").mkdir()
    (tmp_path / "out/model.keras").write_text("the former one")
    assert finetune(overwrite="true")[0] == status
    assert list_files(tmp_path) == ["out", "out/model.keras"]
    assert (tmp_path / "out/model.keras").read_text() == "the former one"


@pytest.mark.backend_free
def test_overwrite(finetune, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/model.keras").write_text("the former one")
    assert finetune(overwrite="true")[0] == 0
    assert zipfile.is_zipfile(tmp_path / "out/model.keras")
    assert list_files(tmp_path) == ["out", "out/model.keras"]
