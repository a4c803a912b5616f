"""Text to tokens: the contents, the same bytes whatever happens, and what is refused."""

import json
import os
import signal
import subprocess
import sys
import time

import forks
import numpy as np
import pytest
from corpus.small_corpus import (
    check_same_corpus,
    make_documents,
    make_tokenizer,
    read_folder,
    tokenize_in_memory,
    write_jsonl,
    write_sentences,
)

from keras_bert_suite.corpus import shard_reader
from keras_bert_suite.corpus.preparation import prepare_corpus
from keras_bert_suite.corpus.preparation_plan import list_faults
from keras_bert_suite.corpus.sentence_splitter import split_sentences
from keras_bert_suite.corpus.shard_reader import open_corpus, read_tokenizer
from keras_bert_suite.files import folder_lock

DOCUMENTS = [*make_documents(119), ["A zebra of a film."]]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Folder of two files of text. Not to be written to."""
    folder = tmp_path_factory.mktemp("corpus")
    write_sentences(folder / "a.txt", DOCUMENTS[:50])
    write_jsonl(folder / "b.jsonl", DOCUMENTS[50:])
    return folder


#: What `prepare_corpus` is told about `faulty`.
TOLERANT = {"encoding": "gb18030", "errors": "replace", "on_error": "skip", "slice_bytes": 150}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    """Folder of files that are not of `TOLERANT["encoding"]`, or not JSON, here and there."""
    folder = tmp_path_factory.mktemp("faulty")
    texts = [". ".join(document) for document in DOCUMENTS[:60]]
    blocks = [
        b"good \xff film\n" if i % 9 == 4 else f"{text}\n".encode("gb18030")
        for i, text in enumerate(texts)
    ]
    (folder / "a.txt").write_bytes(b"\n".join(blocks))
    lines = ["{" if i % 7 == 3 else json.dumps({"text": text}) for i, text in enumerate(texts)]
    (folder / "b.jsonl").write_text("\n".join(lines))
    return folder


@pytest.fixture(scope="module")
def prepared(corpus, tmp_path_factory):
    """The corpus in shards, made by this process. Not to be written to."""
    output = tmp_path_factory.mktemp("prepared") / "tokens"
    prepare_corpus(corpus, make_tokenizer(), output, slice_bytes=1500)
    return output


def test_tokens_and_boundaries(prepared):
    corpus = open_corpus(prepared)
    check_same_corpus(corpus, tokenize_in_memory(DOCUMENTS, make_tokenizer()))
    manifest = corpus.manifest
    assert len(manifest["shards"]) > 5
    assert manifest["documents"] == 120
    assert manifest["sentences"] == sum(map(len, DOCUMENTS)) == corpus.num_sentences
    tokens = np.concatenate([corpus.tokens(document) for document in range(120)])
    assert manifest["tokens"] == len(tokens)
    assert 0 < manifest["unknown_tokens"] == (tokens == 1).sum()


@pytest.mark.parametrize("format", ["sentences", "jsonl", "files"])
def test_every_format_gives_the_same_tokens(tmp_path, format):
    documents, folder = DOCUMENTS[:20], tmp_path / "corpus"
    folder.mkdir()
    if format == "files":
        for number, document in enumerate(documents):
            (folder / f"{number:03d}.txt").write_text(" ".join(document))
    else:
        write = {"sentences": write_sentences, "jsonl": write_jsonl}[format]
        write(folder / "a", documents)
    prepare_corpus(folder, make_tokenizer(), tmp_path / "out", slice_bytes=400, format=format)
    expected = tokenize_in_memory(documents, make_tokenizer())
    check_same_corpus(open_corpus(tmp_path / "out"), expected)


@pytest.mark.parametrize("workers", [2, pytest.param(3, marks=pytest.mark.long("faults"))])
def test_same_bytes_with_any_number_of_workers(corpus, prepared, tmp_path, workers):
    seen = []
    prepare_corpus(
        str(corpus / "*"),
        make_tokenizer(),
        tmp_path,
        workers=workers,
        slice_bytes=1500,
        progress=lambda *figures: seen.append(figures),
    )
    assert read_folder(tmp_path) == read_folder(prepared)
    total = sum(file.stat().st_size for file in corpus.iterdir())
    assert seen[0] == (0, 0, total) and seen[-1] == (total, 0, total)
    assert len(seen) == 1 + len(open_corpus(prepared).manifest["shards"])


def test_same_bytes_wherever_the_corpus_lies(corpus, prepared, tmp_path):
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for file in corpus.iterdir():
        (moved / file.name).write_bytes(file.read_bytes())
    prepare_corpus([moved / "b.jsonl", moved], make_tokenizer(), tmp_path / "o", slice_bytes=1500)
    assert read_folder(tmp_path / "o") == read_folder(prepared)


def test_a_killed_run_continues(corpus, tmp_path):
    killed, options = tmp_path / "killed", {"slice_bytes": 150}

    def kill_itself(done, kept, total):
        if (killed / "shard-00003.json").exists():
            os.kill(os.getpid(), signal.SIGKILL)

    def run():
        prepare_corpus(corpus, make_tokenizer(), killed, progress=kill_itself, **options)

    assert forks.wait(forks.fork(run)) == -signal.SIGKILL
    check_continued(corpus, killed, tmp_path / "whole", options)


PROGRAM = """
import json, sys
sys.modules.update(tensorflow=None, tensorflow_text=None)
from corpus.small_corpus import make_tokenizer
from keras_bert_suite.corpus.preparation import prepare_corpus
if __name__ == "__main__":
    inputs, output, options = sys.argv[1:]
    prepare_corpus(inputs, make_tokenizer(), output, workers=2, **json.loads(options))
"""


@pytest.mark.long("faults")
@pytest.mark.parametrize("tolerant", [False, True])
def test_workers_end_with_a_killed_run(corpus, faulty, tmp_path, tolerant):
    corpus, options = (faulty, TOLERANT) if tolerant else (corpus, {"slice_bytes": 150})
    killed = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(corpus), str(killed), json.dumps(options)],
        env={
            **os.environ,
            "KERAS_BACKEND": "numpy",
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        },
        start_new_session=True,
    )
    deadline = time.monotonic() + 300
    while not (killed / "shard-00003.json").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.001)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    # The workers, which nobody killed, end too.
    while _is_running(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    check_continued(corpus, killed, tmp_path / "whole", options)


def check_continued(corpus, killed, whole, options):
    """Continues a run that was killed. Finished shards are kept, and the corpus becomes whole."""
    assert (killed / ".lock").exists() and not (killed / "manifest.json").exists()
    with pytest.raises(FileNotFoundError, match="not finished. Prepare it again"):
        open_corpus(killed)
    finished = {path.stem for path in killed.glob("shard-*.json")}
    # As if it had been killed in the middle of a file.
    (killed / ".shard-00099.npz.0.tmp").write_bytes(b"half")
    before = {path.name: path.stat().st_mtime_ns for path in killed.glob("shard-*")}
    seen = []

    def progress(*figures):
        seen.append(figures)

    prepare_corpus(corpus, make_tokenizer(), killed, progress=progress, **options)
    manifest = prepare_corpus(corpus, make_tokenizer(), whole, **options)
    assert 3 <= len(finished) < len(manifest["shards"])
    assert read_folder(killed) == read_folder(whole)
    for name in before:
        if name.partition(".")[0] in finished:
            assert (killed / name).stat().st_mtime_ns == before[name], "was made anew"
    shards = {f"shard-{i:05d}": shard for i, shard in enumerate(manifest["shards"])}
    assert seen[-1][1] == sum(shards[name]["input"]["bytes"] for name in finished)


def _is_running(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_damage_is_repaired(corpus, prepared, tmp_path):
    expected = read_folder(prepared)
    for name, content in expected.items():
        (tmp_path / name).write_bytes(content)
    names = ["shard-00001.array_record", "shard-00002.npz", "shard-00003.json", "manifest.json"]
    for name in [*names, "vocab.txt"]:
        (tmp_path / name).write_bytes(expected[name][:-20])
    (tmp_path / "shard-00004.array_record").unlink()
    with pytest.raises(ValueError):
        open_corpus(tmp_path)
    prepare_corpus(corpus, make_tokenizer(), tmp_path, slice_bytes=1500)
    assert read_folder(tmp_path) == expected


@pytest.mark.parametrize(
    "change, difference",
    [
        ({"slice_bytes": 999}, "slice_bytes: 1500, and this run has 999"),
        ({"format": "sentences"}, "format: auto, and this run has sentences"),
        ({"text_key": "body"}, "text_key: text, and this run has body"),
        (
            {"inputs": "a.txt"},
            r"inputs: .*'b.jsonl', \d+\]\], .* has \[\['a.txt', \d+\]\]",
        ),
        ({"tokenizer": {"lowercase": False}}, "tokenizer: .*'lowercase': True.*'lowercase': False"),
        (
            {"tokenizer": {"mask_token": "[UNK]"}},
            r"tokenizer: .*'mask_token': '\[MASK\]'.*'mask_token': '\[UNK\]'",
        ),
    ],
)
def test_another_corpus_is_refused(corpus, prepared, change, difference):
    arguments = {"slice_bytes": 1500, **change}
    inputs = corpus / arguments.pop("inputs", "*")
    tokenizer = make_tokenizer(**arguments.pop("tokenizer", {}))
    before = read_folder(prepared)
    with pytest.raises(ValueError, match=f"holds a corpus made with another {difference}"):
        prepare_corpus(inputs, tokenizer, prepared, **arguments)
    assert read_folder(prepared) == before


def test_another_vocabulary_is_refused(corpus, prepared):
    pieces = make_tokenizer().get_vocabulary()
    other = type(make_tokenizer())([*pieces[:-1], "zebra"])
    with pytest.raises(ValueError, match="made with another vocabulary_sha256: "):
        prepare_corpus(corpus, other, prepared, slice_bytes=1500)


def test_changed_input_is_refused(tmp_path):
    text = tmp_path / "a.txt"
    text.write_text("good film\n")
    prepare_corpus(text, make_tokenizer(), tmp_path / "out")
    text.write_text("good plot\n")  # As long as it was.
    with pytest.raises(
        ValueError, match="not made of the present text of slice 0, from byte 0 of a.txt. The input"
    ):
        prepare_corpus(text, make_tokenizer(), tmp_path / "out")
    text.write_text("good films\n")
    with pytest.raises(ValueError, match=r"inputs: .*'a.txt', 10\].* has \[\['a.txt', 11"):
        prepare_corpus(text, make_tokenizer(), tmp_path / "out")


def test_other_folders_are_left_alone(tmp_path):
    (tmp_path / "a.txt").write_text("good film\n")
    before = read_folder(tmp_path)
    with pytest.raises(FileExistsError, match="holds files already, and no plan.json"):
        prepare_corpus(tmp_path / "a.txt", make_tokenizer(), tmp_path)
    assert read_folder(tmp_path) == before


def test_nothing_to_tokenize(tmp_path):
    (tmp_path / "a.txt").write_text("\n\n")
    with pytest.raises(ValueError, match="There is no text in the input, 1 files"):
        prepare_corpus(tmp_path, make_tokenizer(), tmp_path / "out")
    with pytest.raises(ValueError, match="workers must be an integer of at least 1"):
        prepare_corpus(tmp_path, make_tokenizer(), tmp_path / "out", workers=0)


@pytest.mark.long("faults")
def test_bad_input_in_a_worker(tmp_path):
    text, output = tmp_path / "a.txt", tmp_path / "out"
    text.write_bytes(b"good film\n\n" * 50 + b"b\xffd\n\n" + b"good film\n\n" * 50)
    with pytest.raises(ValueError, match="a.txt, line 101 is not UTF-8: byte 0xff"):
        prepare_corpus(text, make_tokenizer(), output, workers=2, slice_bytes=200)
    assert not (output / "manifest.json").exists()


@pytest.mark.parametrize("workers", [1, pytest.param(3, marks=pytest.mark.long("faults"))])
def test_everything_that_cannot_be_read_is_said_at_once(faulty, tmp_path, workers):
    """In the order of the files, whoever finds it first, and before anything is written."""
    with pytest.raises(ValueError) as error:
        prepare_corpus(faulty, make_tokenizer(), tmp_path / "out", workers, slice_bytes=150)
    assert read_folder(tmp_path / "out") == {}
    lines = str(error.value).splitlines()
    assert len(lines) == 1 + 2 * 5 + 1 + 1
    assert lines[0] == "16 places of the input cannot be read:"
    assert lines[1].startswith(f"{faulty}/a.txt, line 9 is not UTF-8: byte 0xff at offset ")
    assert lines[6] == (
        f"{faulty}/b.jsonl, line 4 is not JSON: Expecting property name enclosed in double quotes "
        "(character 2)."
    )
    assert lines[11] == "6 more"


def test_what_cannot_be_read_is_left_out_and_counted(faulty, tmp_path):
    expected = tokenize_in_memory(
        [
            *[
                ["good film"] if i % 9 == 4 else [". ".join(d)]
                for i, d in enumerate(DOCUMENTS[:60])
            ],
            *[
                split_sentences(". ".join(document))
                for i, document in enumerate(DOCUMENTS[:60])
                if i % 7 != 3
            ],
        ],
        make_tokenizer(),
    )
    manifest = prepare_corpus(faulty, make_tokenizer(), tmp_path / "one", **TOLERANT)
    assert manifest["skipped_documents"] == 9 and manifest["replaced_texts"] == 7
    assert manifest["documents"] == 60 + 51
    check_same_corpus(open_corpus(tmp_path / "one"), expected)
    places = list_faults(manifest, faulty)
    assert len(places) == 6 and places[5] == "4 more"
    assert places[1].startswith(f"{faulty}/b.jsonl, line 11 is not JSON: Expecting property")
    assert str(faulty) not in (tmp_path / "one" / "manifest.json").read_text()


@pytest.mark.long("faults")
def test_workers_leave_out_the_same(faulty, tmp_path):
    for workers in (1, 2):
        prepare_corpus(faulty, make_tokenizer(), tmp_path / str(workers), workers, **TOLERANT)
    assert read_folder(tmp_path / "2") == read_folder(tmp_path / "1")


def test_nothing_is_left_over(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"b\xffd\n")
    with pytest.raises(ValueError, match="no text in the input, 1 files .* 1 documents were left"):
        prepare_corpus(tmp_path, make_tokenizer(), tmp_path / "out", on_error="skip")


@pytest.mark.parametrize("content", [b"b\xffd\n\n", b"\n\n\n"])
def test_a_run_that_wrote_nothing_binds_nobody(tmp_path, content):
    text = tmp_path / "a.txt"
    text.write_bytes(b"good film\n\n" * 50 + content if b"b" in content else content)
    with pytest.raises(ValueError, match="is not UTF-8|There is no text"):
        prepare_corpus(text, make_tokenizer(), tmp_path / "out", slice_bytes=200)
    text.write_bytes(b"good film\n\nbad plot\n")
    prepare_corpus(text, make_tokenizer(lowercase=False), tmp_path / "out")
    prepare_corpus(text, make_tokenizer(lowercase=False), tmp_path / "other")
    assert read_folder(tmp_path / "out") == read_folder(tmp_path / "other")


def test_a_plan_without_a_shard_binds_nobody(corpus, prepared, tmp_path):
    """As after a kill: an array of tokens is there, and no summary that says it is whole."""
    for name in ("plan.json", "vocab.txt", "shard-00000.array_record", "shard-00000.npz"):
        (tmp_path / name).write_bytes((prepared / name).read_bytes())
    (tmp_path / "shard-00099.npz").write_bytes(b"half")
    prepare_corpus(corpus, make_tokenizer(lowercase=False), tmp_path, slice_bytes=2000)
    assert "shard-00099.npz" not in read_folder(tmp_path)
    assert open_corpus(tmp_path).manifest["slice_bytes"] == 2000


def test_two_runs_on_one_folder(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(folder_lock, "SECONDS_TO_WAIT", 0)
    message = f"is being written by another run, process {os.getpid()} on .* another folder"

    def try_another(*figures):
        with pytest.raises(BlockingIOError, match=message):
            prepare_corpus(corpus, make_tokenizer(), tmp_path, slice_bytes=1500)

    prepare_corpus(corpus, make_tokenizer(), tmp_path, slice_bytes=1500, progress=try_another)
    assert open_corpus(tmp_path).num_documents == 120
    prepare_corpus(corpus, make_tokenizer(), tmp_path, slice_bytes=1500)


@pytest.mark.skipif(os.name == "nt", reason="there are no limits of resources")
def test_full_disk(tmp_path):
    import resource

    (tmp_path / "a.txt").write_text("good film\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, limits[1]))
    try:
        with pytest.raises(OSError, match="cannot be written: .*File too large.*make room"):
            prepare_corpus(tmp_path / "a.txt", make_tokenizer(), tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert set(read_folder(tmp_path / "out")) == {"plan.json", "vocab.txt"}


def test_sentences_without_a_token(tmp_path):
    (tmp_path / "a.txt").write_text("\x01\ngood film\n\u200b\n\n\u200b\n\ngreat\n", "utf-8")
    prepare_corpus(tmp_path / "a.txt", make_tokenizer(), tmp_path / "out")
    expected = tokenize_in_memory([["good film"], ["great"]], make_tokenizer())
    check_same_corpus(open_corpus(tmp_path / "out"), expected)


def test_large_vocabulary(tmp_path):
    pieces = [*make_tokenizer().get_vocabulary(), *(f"w{i}" for i in range(70_000)), "zebra"]
    tokenizer = type(make_tokenizer())(pieces)
    (tmp_path / "a.txt").write_text("good zebra\n")
    manifest = prepare_corpus(tmp_path / "a.txt", tokenizer, tmp_path / "out")
    assert manifest["token_dtype"] == "uint32"
    expected = [pieces.index("good"), len(pieces) - 1]
    assert open_corpus(tmp_path / "out").tokens(0).tolist() == expected


def test_long_sentences(tmp_path):
    text = "good film " * 50_000
    (tmp_path / "a.txt").write_text(text)
    prepare_corpus(tmp_path / "a.txt", make_tokenizer(), tmp_path / "out")
    corpus = open_corpus(tmp_path / "out")
    assert corpus.sentences(0).tolist() == [100_000]
    (pair,) = tokenize_in_memory([["good film"]], make_tokenizer()).tokens(0).reshape(1, 2)
    assert (corpus.tokens(0).reshape(-1, 2) == pair).all()


def test_a_corpus_knows_its_tokenizer(corpus, tmp_path):
    tokenizer = make_tokenizer(lowercase=False, strip_accents=True, mask_token="un")
    prepare_corpus(corpus / "a.txt", tokenizer, tmp_path)
    found = read_tokenizer(tmp_path)
    assert found.get_vocabulary() == tokenizer.get_vocabulary()
    ours, theirs = found.get_config(), tokenizer.get_config()
    assert {**ours, "name": None} == {**theirs, "name": None}


def test_corpora_of_other_tokenizers_are_not_mixed(prepared, corpus, tmp_path):
    pieces = make_tokenizer().get_vocabulary()
    for name, other in {
        "tokenizer": make_tokenizer(lowercase=False),
        "vocabulary_sha256": type(make_tokenizer())([*pieces[:-2], *pieces[:-3:-1]]),
    }.items():
        prepare_corpus(corpus / "a.txt", other, tmp_path / name)
        with pytest.raises(ValueError, match=f"than {prepared}: its {name} is "):
            read_tokenizer(prepared, prepared, tmp_path / name)
    assert read_tokenizer(prepared, prepared).get_vocabulary() == pieces


def test_manifest_names_no_place(prepared, corpus):
    text = (prepared / "manifest.json").read_text()
    assert str(corpus) not in text and str(prepared) not in text
    assert json.loads(text)["inputs"][0][0] == "a.txt"


def test_documents_are_kept_up_to_a_limit(prepared, monkeypatch):
    """Whatever is kept, the same tokens come out."""
    wanted = [open_corpus(prepared).tokens(document).tolist() for document in range(20)]
    monkeypatch.setattr(shard_reader, "CACHE_BYTES", 100)
    corpus = open_corpus(prepared)
    for document in [*range(20), 3, 3, 19, 0]:
        assert corpus.tokens(document).tolist() == wanted[document]
        assert [*corpus._cache][-1:] == [document] or not corpus._cache, "the oldest goes"
        assert corpus._cached_bytes == sum(array.nbytes for array in corpus._cache.values()) <= 100
    monkeypatch.setattr(shard_reader, "CACHE_BYTES", 1 << 20)
    monkeypatch.setattr(corpus, "_unpack_document", None)  # not read again
    assert corpus.tokens(0).tolist() == wanted[0]
