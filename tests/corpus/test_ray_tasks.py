"""`prepare_corpus` by tasks of Ray: the same bytes, whatever dies, and what is refused."""

import os
import sys

import pytest
from corpus.dying_tokenizer import DyingTokenizer
from corpus.small_corpus import make_documents, make_tokenizer, read_folder, write_sentences
from small_texts import VOCABULARY

from keras_bert_suite.corpus import ray_tasks
from keras_bert_suite.corpus.input_files import CorpusSlice, InputOptions
from keras_bert_suite.corpus.preparation import prepare_corpus
from keras_bert_suite.corpus.token_shards import ShardWriter
from keras_bert_suite.files.folder_lock import LOCK_FILE


@pytest.fixture(scope="module")
def deaths(tmp_path_factory):
    """A cluster of two local workers. A file in the folder kills one of them."""
    ray = pytest.importorskip("ray")
    folder = tmp_path_factory.mktemp("deaths")
    path = os.pathsep.join(entry for entry in sys.path if entry)
    variables = {"DEATHS": str(folder), "PYTHONPATH": path}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_raylet_start_wait_time_s", "300")  # On a machine with other work.
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            runtime_env={"env_vars": variables},
        )
        yield folder
        ray.shutdown()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A file of text. Not to be written to."""
    file = tmp_path_factory.mktemp("corpus") / "a.txt"
    write_sentences(file, make_documents(120))
    return file


@pytest.mark.long("faults")
@pytest.mark.parametrize("number", [1, 10])
def test_same_bytes_whatever_dies(corpus, deaths, tmp_path, number):
    prepare_corpus(corpus, make_tokenizer(), tmp_path / "one", slice_bytes=400)
    for i in range(number):
        (deaths / str(i)).touch()
    seen = []
    prepare_corpus(
        corpus,
        DyingTokenizer(VOCABULARY),
        tmp_path / "ray",
        slice_bytes=400,
        progress=lambda *figures: seen.append(figures),
        engine="ray",
    )
    assert not [*deaths.iterdir()], "nobody has died"
    assert read_folder(tmp_path / "ray") == read_folder(tmp_path / "one")
    total = corpus.stat().st_size
    assert seen[0] == (0, 0, total) and seen[-1] == (total, 0, total)


@pytest.mark.long("faults")
def test_a_worker_that_always_dies(corpus, deaths, tmp_path):
    """Ray gives a slice up after three repetitions. What is finished is kept, and goes on."""
    for i in range(4):
        (deaths / str(i)).touch()
    tokenizer = DyingTokenizer(VOCABULARY)
    with pytest.raises(RuntimeError, match="(?s)^Ray has given up slice 0, .* Run again to contin"):
        prepare_corpus(corpus, tokenizer, tmp_path / "ray", engine="ray", workers=1)
    prepare_corpus(corpus, tokenizer, tmp_path / "ray", engine="ray")
    prepare_corpus(corpus, make_tokenizer(), tmp_path / "one")
    assert read_folder(tmp_path / "ray") == read_folder(tmp_path / "one")


@pytest.mark.long("faults")
def test_what_cannot_be_read(deaths, tmp_path):
    """The error of the input is that of one process, and nothing is written."""
    text = tmp_path / "a.txt"
    text.write_bytes(b"good film\n\n" * 50 + b"b\xffd\n\n" + b"good film\n\n" * 50)
    with pytest.raises(ValueError, match="a.txt, line 101 is not UTF-8: byte 0xff"):
        prepare_corpus(text, make_tokenizer(), tmp_path / "o", slice_bytes=200, engine="ray")
    assert read_folder(tmp_path / "o") == {}


def test_a_worker_that_does_not_see_the_files(corpus, tmp_path):
    """Each machine has the package, and maybe a folder of this name on a disk of its own."""
    part = CorpusSlice(0, str(corpus.parent), (("a.txt", 0, 100),))
    writer = ShardWriter(make_tokenizer(), str(tmp_path), InputOptions())
    result, error = ray_tasks.answer(writer, "write", part)
    assert result is None and isinstance(error, FileNotFoundError)
    assert str(error).startswith(f"{tmp_path} is not the folder of the run that writes it, on ")
    (tmp_path / LOCK_FILE).touch()
    missing = CorpusSlice(0, str(tmp_path), (("a.txt", 0, 100),))
    result, error = ray_tasks.answer(writer, "write", missing)
    assert result is None and f"'{tmp_path}/a.txt', on " in str(error)
    assert str(error).endswith("under the same paths, in a file system that they share.")
    assert ray_tasks.answer(writer, "write", part)[1] is None


def test_an_engine_that_is_not_there(corpus, tmp_path, monkeypatch):
    arguments = corpus, make_tokenizer(), tmp_path / "out"
    with pytest.raises(ValueError, match="`engine` must be one of local, ray, got 'spark'"):
        prepare_corpus(*arguments, engine="spark")
    with pytest.raises(ValueError, match="ray_address is for engine='ray'. Leave it out."):
        prepare_corpus(*arguments, ray_address="auto")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'keras-bert-suite\[ray\]'"):
        prepare_corpus(*arguments, engine="ray")
    assert not (tmp_path / "out").exists()
