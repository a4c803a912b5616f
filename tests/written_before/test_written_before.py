"""What an older version wrote opens and answers as it did; `make.py` says how it was written."""

import json
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest
from written_before.make import CASES, answer, train_one_step

FOLDER = Path(__file__).parent


def unpack(name, directory):
    """(path of `task.keras`, path of `preset/`, columns, labels or None, {answer: array})."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        archive.extractall(directory)
    with np.load(directory / "arrays.npz") as file:
        arrays = dict(file)
    given = {key.removeprefix("x/"): value for key, value in arrays.items() if key[:2] == "x/"}
    columns = given if "token_ids" in given else tuple(map(read_column, given.values()))
    labels = arrays.get("y")
    if labels is not None and labels.dtype.kind == "U":
        labels = read_column(labels)
    return directory / "task.keras", directory / "preset", columns, labels, arrays


def read_column(column):
    """Texts; or words, which `make.py` joined by tabs."""
    texts = column.tolist()
    return [text.split("\t") for text in texts] if any("\t" in text for text in texts) else texts


def assert_answers(got, arrays, moment):
    wanted = {key.partition("/")[2]: array for key, array in arrays.items() if moment in key}
    assert set(got) == set(wanted)
    for key, array in wanted.items():
        if array.dtype.kind == "U":
            np.testing.assert_array_equal(got[key], array)
        else:
            np.testing.assert_allclose(got[key], array, rtol=0, atol=1e-4, err_msg=key)


#: What Keras writes of each layer, which is no argument of ours.
OF_KERAS = ("module", "build_config", "shared_object_id", "activity_regularizer", "autocast")


def assert_holds(new, old, place=""):
    """Every key of an old configuration is in the new one with its value."""
    if isinstance(old, dict):
        for key, value in old.items():
            if key not in OF_KERAS:
                assert key in new, f"{place}/{key}"
                assert_holds(new[key], value, f"{place}/{key}")
    else:
        assert new == old, place


@pytest.mark.parametrize("name", CASES)
def test_a_keras_file(name, tmp_path):
    file, _, columns, labels, arrays = unpack(name, tmp_path)
    task = keras.saving.load_model(file)
    assert_answers(answer(task, columns), arrays, "before/")
    with zipfile.ZipFile(file) as archive:
        old = json.loads(archive.read("config.json"))
    assert_holds(keras.saving.serialize_keras_object(task), old)
    if labels is not None:  # The optimizer, its moments and its schedule go on, too.
        train_one_step(task, columns, labels)
        assert_answers(answer(task, columns), arrays, "after/")


@pytest.mark.parametrize("name", CASES)
def test_a_preset(name, tmp_path):
    _, preset, columns, _, arrays = unpack(name, tmp_path)
    # A Pretrainer without a preprocessor has no tokenizer in its preset.
    arguments = {"preprocessor": None} if name == "pretrainer" else {}
    task = type(CASES[name]()[0]).from_preset(preset, **arguments)
    assert_answers(answer(task, columns), arrays, "before/")
