"""Files found and cut into slices."""

import os

import pytest

from keras_bert_suite.corpus.input_files import CorpusSlice, find_files, plan_slices


@pytest.fixture
def tree(tmp_path):
    for name in ("b.txt", "a.jsonl", "deep/c.txt", "deep/.hidden", ".git/config"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    return tmp_path


def test_finds_files(tree, monkeypatch):
    everything = (str(tree), ["a.jsonl", "b.txt", "deep/c.txt"])
    assert (
        find_files(tree) == find_files([tree / "deep", tree / "b.txt", f"{tree}/*"]) == everything
    )
    assert find_files(f"{tree}/*.txt") == (str(tree), ["b.txt"])
    assert find_files(f"{tree}/**/*.txt") == (str(tree), ["b.txt", "deep/c.txt"])
    # Wherever the corpus lies, the names are the same.
    assert find_files(tree / "deep") == (str(tree / "deep"), ["c.txt"])
    monkeypatch.chdir(tree)
    assert find_files("*") == everything
    # A name that is a pattern too.
    (tree / "x[1].txt").write_text("")
    assert find_files(tree / "x[1].txt") == (str(tree), ["x[1].txt"])


@pytest.mark.parametrize("pattern", ["absent.txt", "*.csv", "empty"])
def test_no_files(tree, pattern):
    (tree / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="No file matches '.*Wanted a file"):
        find_files([tree, tree / pattern])


def test_cuts_between_documents(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\n\nthree\n\nfour\n")
    #                                  0    4    8 9     15 16
    for size, ends in ((1, [9, 16, 21]), (8, [16, 21]), (9, [16, 21]), (15, [21]), (99, [21])):
        slices = plan_slices(str(tmp_path), ["a.txt"], "sentences", size)
        starts = [0, *ends[:-1]]
        pieces = [(("a.txt", *ends),) for ends in zip(starts, ends, strict=True)]
        assert [piece.parts for piece in slices] == pieces, size
        assert [piece.number for piece in slices] == list(range(len(ends)))
    (tmp_path / "a.jsonl").write_bytes(b'{"a"}\n{"b"}\n{"c"}')
    slices = plan_slices(str(tmp_path), ["a.jsonl"], "auto", 1)
    assert [piece.parts[0][1:] for piece in slices] == [(0, 6), (6, 12), (12, 17)]


def test_small_files_share_a_slice(tmp_path):
    for name, size in (("a", 3), ("b", 3), ("c", 4), ("d", 20), ("e", 0), ("f", 1)):
        (tmp_path / name).write_bytes(b"x" * size)
    slices = plan_slices(str(tmp_path), list("abcdef"), "files", 10)
    parts = [(("a", 0, 3), ("b", 0, 3), ("c", 0, 4)), (("d", 0, 20),), (("e", 0, 0), ("f", 0, 1))]
    assert slices == [CorpusSlice(i, str(tmp_path), part) for i, part in enumerate(parts)]
    assert [piece.num_bytes for piece in slices] == [10, 20, 1]


def test_planning_reads_little(tmp_path, monkeypatch):
    with open(tmp_path / "a.txt", "wb") as file:
        file.write(b"one line of many\n\n" * 500_000)
    read = []
    real_open = open

    def counting_open(*arguments):
        file = real_open(*arguments)
        readline = file.readline

        class Counting:
            def __getattr__(self, name):
                return getattr(file, name)

            def __enter__(self):
                return self

            def __exit__(self, *exception):
                file.close()

            def readline(self):
                read.append(readline())
                return read[-1]

        return Counting()

    monkeypatch.setattr("builtins.open", counting_open)
    slices = plan_slices(str(tmp_path), ["a.txt"], "auto", 1 << 20)
    assert sum(piece.num_bytes for piece in slices) == os.path.getsize(tmp_path / "a.txt")
    assert len(slices) == 9 and sum(map(len, read)) < 1000


def test_wrong_arguments(tmp_path):
    with pytest.raises(ValueError, match="slice_bytes must be an integer of at least 1, got 0"):
        plan_slices(str(tmp_path), ["a"], "auto", 0)
