"""Files that a stranger has changed: a few cases of each reader of `hostile_readers.py`.

`benchmarks/fuzz.py` tries thousands, in processes with little memory.
"""

import errno
import pickle
import zipfile

import numpy as np
import pytest
from hostile_files import Escape, try_case, watch
from hostile_readers import READERS, make_shards, seal_shards

from keras_bert_suite.corpus import open_corpus
from keras_bert_suite.files.messages import reading

#: Cases of each reader in the short tests, and of a reader of weight 1 in the long ones.
FEW, CASES = 2, 25
#: Later cases, of those that once found a bug.
FOUND = {
    "shards": (25218,),
    "rows": (28178, 28438),
}


@pytest.mark.parametrize("name", READERS)
def test_no_reader_does_harm(name, tmp_path):
    check_reader(name, (*range(FEW), *FOUND.get(name, ())), tmp_path)


@pytest.mark.long("texts")
@pytest.mark.parametrize("name", READERS)
def test_no_reader_does_harm_at_length(name, tmp_path):
    check_reader(name, range(FEW, max(4, round(CASES * READERS[name].weight))), tmp_path)


def check_reader(name, cases, tmp_path):
    reader = READERS[name]
    valid = tmp_path / "valid"
    valid.mkdir()
    reader.make(valid)
    reader.read(valid)
    problems = [
        f"{name} {case}: {problem}"
        for case in cases
        if (problem := try_case(reader, valid, tmp_path / "case", f"{name} {case}"))
    ]
    assert problems == []


def test_the_watch_sees_what_no_reader_may_do(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    with watch(inside):
        (inside / "file").write_bytes(b"")
    for harm in (
        lambda: outside.write_bytes(b""),
        lambda: (inside / "file").rename(outside),
        lambda: outside.with_name("folder").mkdir(),
        lambda: pickle.loads(pickle.dumps(zipfile.ZipFile)),
    ):
        with pytest.raises(Escape), watch(inside):
            harm()


@pytest.mark.parametrize(
    "error",
    [
        *(KeyError("x"), RecursionError(), ValueError("y" * 9999), TypeError()),
        *(OSError("no number"), OSError(errno.ENAMETOOLONG, "File name too long", "z" * 9999)),
    ],
)
def test_errors_name_the_file(tmp_path, error):
    with pytest.raises(ValueError) as caught, reading(tmp_path):
        raise error
    assert str(tmp_path) in str(caught.value) and len(str(caught.value)) < 2000


@pytest.mark.parametrize(
    "error", [FileNotFoundError(2, "No such file", "z"), ImportError("w"), MemoryError()]
)
def test_errors_that_stay(tmp_path, error):
    with pytest.raises(type(error)) as caught, reading(tmp_path):
        raise error
    assert caught.value is error
    named = ValueError(f"{tmp_path} is empty.")
    with pytest.raises(ValueError) as caught, reading(tmp_path):
        raise named
    assert caught.value is named


def test_lengths_that_contradict_each_other(tmp_path):
    folder = tmp_path / "shards"
    folder.mkdir()
    make_shards(folder)
    lengths = dict(np.load(folder / "shard-00000.npz"))
    lengths["sentence_lengths"] = lengths["sentence_lengths"][1:]
    np.savez(folder / "shard-00000.npz", **lengths)
    seal_shards(folder)
    with pytest.raises(
        ValueError, match=r"shard-00000\.npz is damaged: the manifest describes other arrays"
    ):
        open_corpus(folder).read_block(0)
