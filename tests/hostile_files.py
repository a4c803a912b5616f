"""Files that a stranger has changed, the readers that get them, and what no reader may do.

A case is a reader and a number: the number draws which file of a valid set is changed, and how.
Checksums are made right again after a change, since a stranger would do so too.
`benchmarks/fuzz.py` tries many cases, `test_hostile_files.py` a few.
"""

import contextlib
import dataclasses
import io
import json
import os
import random
import shutil
import sys
import warnings
import zipfile
from collections.abc import Callable

import numpy as np

#: The most characters of a message.
MAX_MESSAGE = 2000

#: What every reader may raise. UnicodeDecodeError and the like are ValueErrors.
ALLOWED = (ValueError, OSError)

#: Values that a stranger puts in place of one in JSON.
VALUES = (
    *(None, True, 0, -1, 1.5, 2**31, 2**63, 10**400, float("nan"), float("inf"), "", "x"),
    *("../../escaped", "/tmp/escaped", "a/../../escaped", "\0", "\ud800", "x" * 5000, [], {}),
    *([[]] * 3, {"x": 1}, [0] * 1000, ["../escaped"], {"a": "/etc/passwd"}),
)

#: Bytes that a stranger writes over others: sizes and offsets, small and huge.
NUMBERS = [
    *(number.to_bytes(size, "little") for size in (1, 2, 4, 8) for number in (0, 1, 255)),
    *(b"\xff" * size for size in (2, 4, 8)),
    *(b"\xff" * 9 + b"\x01", b"\x80" * 9 + b"\x01", (1 << 40).to_bytes(8, "little")),
    *(b"\0\0\0\x80", b"\xff\xff\xff\x7f", (2**63 - 1).to_bytes(8, "little")),
]


class Escape(Exception):
    """A reader has done what no reader may do: see `watch`."""


@dataclasses.dataclass(frozen=True)
class Reader:
    """A function that reads files, and a valid set of them.

    Attributes:
        make: function of a `pathlib.Path`, an empty folder. It writes the files.
        read: function of the folder. It reads all of it.
        seal: function of the folder, or None. It makes checksums right again.
        mutate: dict, ending of a file -> function of (bytes, `random.Random`) that changes what
            `mutate_bytes` would seldom reach.
        weight: float, how many cases it gets.
        raises: errors that may come beside `ALLOWED`.
    """

    make: Callable
    read: Callable
    seal: Callable | None = None
    mutate: dict = dataclasses.field(default_factory=dict)
    weight: float = 1.0
    raises: tuple = ()


def mutate_bytes(data, rng):
    """Changes some bytes: flips, overwrites, removes, doubles, cuts, inserts."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
        place = rng.randrange(len(data) + 1)
        size = min(rng.choice((1, 2, 4, 8, 64, 1000)), len(data) - place)
        kind = rng.randrange(7)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            number = rng.choice(NUMBERS)
            data[place : place + len(number)] = number
        elif kind == 2:
            del data[place : place + size]
        elif kind == 3:
            data[place:place] = data[place : place + size] * rng.choice((1, 2, 50))
        elif kind == 4:
            del data[place:]
        elif kind == 5:
            data[place:place] = rng.randbytes(size)
        else:
            source = rng.randrange(len(data) + 1)
            data[place : place + size] = data[source : source + size]
    return bytes(data[: 1 << 20])


def mutate_json(data, rng):
    """Changes a value or a key anywhere in JSON, or its bytes."""
    if rng.random() < 0.2:
        return rng.choice((b"[" * 100_000, b'{"a":' * 50_000, b"", b"null", b"[]", b"1" * 5000))
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return mutate_bytes(data, rng)
    for _ in range(rng.choice((1, 1, 2))):
        content = _change(content, rng)
    return json.dumps(content).encode("utf-8", "surrogatepass")


def _change(content, rng):
    """The JSON value with one value below it, or itself, exchanged."""
    if not isinstance(content, (dict, list)) or not content or rng.random() < 0.1:
        return rng.choice(VALUES)
    if isinstance(content, list):
        index = rng.randrange(len(content))
        return [*content[:index], _change(content[index], rng), *content[index + 1 :]]
    key = rng.choice(list(content))
    if rng.random() < 0.15:
        others = {name: value for name, value in content.items() if name != key}
        return {**others, rng.choice(("x" * 3000, "../x", "", key.upper())): content[key]}
    return {**content, key: _change(content[key], rng)}


def mutate_text(data, rng):
    """Changes lines of a text, or its bytes."""
    lines = data.split(b"\n")
    if rng.random() < 0.5:
        return mutate_bytes(data, rng)
    place = rng.randrange(len(lines))
    hostile = (b"", b"\0", b"x" * 5000, b"\t" * 500, b'"', "é\u2028".encode(), b"\xff", b"a b c")
    lines[place] = rng.choice((*hostile, lines[rng.randrange(len(lines))]))
    return b"\n".join(lines)


def mutate_safetensors(data, rng):
    """Changes the header of a safetensors file, whose size is made right again."""
    if rng.random() < 0.3:
        return mutate_bytes(data, rng)
    size = int.from_bytes(data[:8], "little")
    header = mutate_json(data[8 : 8 + size], rng)
    return len(header).to_bytes(8, "little") + header + data[8 + size :]


def mutate_zip(change):
    """A function that changes members of a zip archive, by name or content.

    Args:
        change: function of (name, bytes, `random.Random`) that changes the content of a member.
    """

    def mutate(data, rng):
        if rng.random() < 0.2:
            return mutate_bytes(data, rng)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
        place = rng.randrange(len(members))
        name, content = members[place]
        kind = rng.randrange(5)
        if kind == 0:
            name = rng.choice(("../escaped", "/tmp/escaped", "assets/../../escaped", "x" * 300))
        elif kind == 1:
            members.append((rng.choice(("../escaped", "assets/../../../escaped", name)), b"x"))
        else:
            content = change(name, content, rng)
        members[place] = name, content
        if rng.random() < 0.1:
            members.pop(rng.randrange(len(members)))
        output = io.BytesIO()
        method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        with warnings.catch_warnings(), zipfile.ZipFile(output, "w", method) as archive:
            warnings.simplefilter("ignore")  # of doubled names
            for name, content in members:
                archive.writestr(name, content)
        return output.getvalue()

    return mutate


def mutate_member(name, content, rng):
    """Changes a member of an archive by its kind."""
    if name.endswith(".json"):
        return mutate_json(content, rng)
    if name.endswith(".npy"):
        return _mutate_npy(content, rng)
    if name.endswith(".txt"):
        return mutate_text(content, rng)
    return mutate_bytes(content, rng)


def _mutate_npy(content, rng):
    """Changes the header of an array: its dtype, its shape."""
    shape = rng.choice(("(1099511627776,)", "(-1,)", "(2, 3)", "()", "(4611686018427387904, 4)"))
    dtype = rng.choice(("'<u1'", "'<i8'", "'|O'", "'<f8'", "'<U9'", "[('a', '<i8')]"))
    header = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}"
    output = content[:8] + len(header).to_bytes(2, "little") + header.encode()
    return output + content[128:] if rng.random() < 0.7 else mutate_bytes(content, rng)


def mutate_table(data, rng):
    """Changes entries of the index of a TensorFlow checkpoint, whose checksums stay right."""
    from keras_bert_suite.checkpoints.google_tf1.string_table import make_table, read_table

    if rng.random() < 0.3:
        return mutate_bytes(data, rng)
    pairs = list(read_table(data))
    place = rng.randrange(len(pairs))
    key, value = pairs[place]
    if rng.random() < 0.2:
        pairs[place] = rng.choice((b"x" * 5000, b"\xff\xfe", b"../x", key)), value
    else:
        pairs[place] = key, mutate_bytes(value, rng)[:100_000]
    return make_table(pairs)


def mutate_records(data, rng):
    """Changes a record of a TFRecord file, whose checksums stay right."""
    from keras_bert_suite.instances.tf_example import find_records, frame_record

    if rng.random() < 0.3:
        return mutate_bytes(data, rng)
    records = [bytes(data[o : o + size]) for o, size in find_records(data).tolist()]
    place = rng.randrange(len(records))
    records[place] = mutate_bytes(records[place], rng)
    return b"".join(map(frame_record, records))


#: Ending of a file -> function that changes it.
MUTATIONS = {
    ".json": mutate_json,
    ".jsonl": mutate_text,
    ".txt": mutate_text,
    ".csv": mutate_text,
    ".tsv": mutate_text,
    ".conll": mutate_text,
    ".safetensors": mutate_safetensors,
    ".index": mutate_table,
    ".tfrecord": mutate_records,
    ".keras": mutate_zip(mutate_member),
    ".npz": mutate_zip(mutate_member),
    ".bin": mutate_zip(mutate_member),
}


def mutate(folder, rng):
    """Changes one file of a folder.

    Returns:
        str, the name of the file.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file = rng.choice([path for path in files if path.name != "SHA256SUMS"])
    change = MUTATIONS.get(file.suffix, mutate_bytes)
    file.write_bytes(change(file.read_bytes(), rng))
    return file.relative_to(folder).as_posix()


#: While `watch` runs: the folders that may be written to, and what has happened.
_watched = {"folders": None, "events": []}


def _audit(event, arguments):
    if _watched["folders"] is None:
        return
    if event == "pickle.find_class":
        _watched["events"].append(f"unpickled {'.'.join(map(str, arguments))}")
    elif event in ("subprocess.Popen", "os.system", "os.exec"):
        _watched["events"].append(f"ran {arguments[0]}")
    elif event == "open":
        path, mode, flags = arguments
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes and not isinstance(path, int):
            _note_write(path)
    elif event in ("os.remove", "os.rmdir"):
        if arguments[1] == -1:  # Else the path is relative to an open folder, as in shutil.rmtree.
            _note_write(arguments[0])
    elif event in ("os.mkdir", "os.rename", "os.symlink"):
        _note_write(arguments[0])
        if event in ("os.rename", "os.symlink"):
            _note_write(arguments[1])


def _note_write(path):
    path = os.path.realpath(os.fsdecode(path))
    if not path.startswith(_watched["folders"]):
        _watched["events"].append(f"wrote {path}")


@contextlib.contextmanager
def watch(*folders):
    """Raises `Escape` if the block unpickles, starts a process, or writes outside of folders.

    Hooks cannot be removed from an interpreter, so there is one for all blocks.
    """
    if not _watched.get("hooked"):
        sys.addaudithook(_audit)
        _watched["hooked"] = True
    _watched["folders"] = tuple(os.path.realpath(folder) + os.sep for folder in folders)
    _watched["folders"] += ("/dev/null",)
    _watched["events"].clear()
    try:
        yield
    finally:
        _watched["folders"] = None
    if _watched["events"]:
        raise Escape("; ".join(_watched["events"]))


def try_case(reader, valid, folder, number):
    """Changes a copy of valid files, and reads it.

    Args:
        reader: `Reader`.
        valid: `pathlib.Path` of the folder that `reader.make` has filled.
        folder: `pathlib.Path` of a folder, which is made anew.
        number: int or str, the case.

    Returns:
        str that says what is wrong, or None.
    """
    shutil.rmtree(folder, ignore_errors=True)
    place = folder / "inner" / "files"
    shutil.copytree(valid, place)
    changed = mutate(place, random.Random(number))
    if reader.seal:
        reader.seal(place)
    temporary = folder / "temporary"
    temporary.mkdir()
    import tempfile

    before, tempfile.tempdir = tempfile.tempdir, str(temporary)
    try:
        with warnings.catch_warnings(), watch(place, temporary):
            warnings.simplefilter("ignore")
            reader.read(place)
    except ALLOWED + reader.raises as error:
        return check_message(error, place, changed)
    except Exception as error:
        return f"{changed}: raised {type(error).__name__}: {str(error)[:300]}"
    finally:
        tempfile.tempdir = before
    return None


def check_message(error, folder, changed):
    """Says what is wrong with the message of an error, or None."""
    message = str(error)
    if len(message) >= MAX_MESSAGE:
        return f"{changed}: {type(error).__name__} of {len(message):,} characters: {message[:200]}"
    if str(folder) not in message:
        return f"{changed}: {type(error).__name__} names no file: {message[:300]}"
    return None


def draw_reader(readers, rng):
    """The name of a reader, by weight."""
    names = list(readers)
    return rng.choices(names, [readers[name].weight for name in names])[0]


# The readers. What they need is imported when they are called, so that their backend is the one of
# the process.


def _make_task():
    import keras
    from small_texts import ONE_LAYER, VOCABULARY

    import keras_bert_suite as kbs

    keras.utils.set_random_seed(0)
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 16)
    backbone = kbs.BertBackbone(**ONE_LAYER)
    return kbs.TextClassifier(backbone, preprocessor=packer, label_names=["no", "yes"])


def _read_tensors(file):
    shapes = file.tensor_shapes() if hasattr(file, "tensor_shapes") else file.shapes()
    for name in shapes:
        np.asarray(file.tensor(name)).tobytes()


def _read_checkpoint(path):
    from keras_bert_suite import SegmentPacker
    from keras_bert_suite.checkpoints import open_checkpoint

    checkpoint = open_checkpoint(path)
    if checkpoint is not None:
        _read_tensors(checkpoint)
        SegmentPacker.from_checkpoint(checkpoint)("the film")


def make_safetensors(folder):
    from safetensors.numpy import save_file

    tensors = {"a": np.zeros((2, 3), "float32"), "b": np.ones(5, "int64"), "c": np.zeros(0)}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def read_safetensors(folder):
    from keras_bert_suite.checkpoints.tensor_files import SafetensorsFile

    _read_tensors(SafetensorsFile(folder / "model.safetensors"))


def make_sharded(folder):
    make_safetensors(folder)
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    weight_map = dict.fromkeys("abc", "model-00001-of-00001.safetensors")
    index = {"metadata": {"total_size": 64}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def read_sharded(folder):
    from keras_bert_suite.checkpoints.tensor_files import SafetensorsFile, ShardedFiles

    _read_tensors(ShardedFiles(folder / "model.safetensors.index.json", SafetensorsFile))


def make_torch(folder):
    import torch

    torch.save({"a": torch.zeros(2, 3), "b": torch.ones(4)}, folder / "pytorch_model.bin")


def read_torch(folder):
    from keras_bert_suite.checkpoints.tensor_files import TorchFile

    _read_tensors(TorchFile(folder / "pytorch_model.bin"))


def make_hdf5(folder):
    import h5py

    with h5py.File(folder / "model.weights.h5", "w") as file:
        file["layers/dense/vars/0"] = np.zeros((4, 3), "float32")
        file.create_dataset("layers/norm/vars/0", data=np.ones(100), compression="gzip")


def read_hdf5(folder):
    from keras_bert_suite.checkpoints.tensor_files import HDF5File

    _read_tensors(HDF5File(folder / "model.weights.h5"))


def make_bundle(folder):
    from keras_bert_suite.checkpoints.google_tf1.tensor_bundle import write_bundle

    tensors = [(name, np.ones((2, 3), "float32")) for name in ("a/b", "a/c", "d")]
    write_bundle(folder / "model.ckpt", tensors)


def read_bundle(folder):
    from keras_bert_suite.checkpoints.google_tf1.tensor_bundle import TensorBundle

    _read_tensors(TensorBundle(folder / "model.ckpt"))


def make_hugging_face(folder):
    from keras_bert_suite.checkpoints import save_hugging_face

    save_hugging_face(_make_task(), folder / "model")


def make_google(folder):
    from keras_bert_suite.checkpoints import save_google_tf1

    save_google_tf1(_make_task(), folder / "model")


def make_keras_hub(folder):
    from keras_bert_suite.checkpoints import save_keras_hub

    task = _make_task()
    save_keras_hub(task.backbone, folder / "model", tokenizer=task.preprocessor.tokenizer)


def read_model(folder):
    _read_checkpoint(folder / "model")


def make_embedder(folder):
    import keras_bert_suite as kbs
    from keras_bert_suite.checkpoints import save_sentence_transformers

    task = _make_task()
    embedder = kbs.TextEmbedder(task.backbone, preprocessor=task.preprocessor)
    save_sentence_transformers(embedder, folder / "model")


def make_preset(folder):
    _make_task().save_to_preset(str(folder / "model"))


def read_task(folder):
    from keras_bert_cli.model_paths import check_model, find_input_names
    from keras_bert_cli.saved_tasks import open_task

    path = str(next(folder.iterdir()))
    check_model(path)
    find_input_names(path)
    open_task(path)


def seal_model(folder):
    from keras_bert_suite.files.checksums import write_checksums

    write_checksums(folder / "model")


def make_archive(folder):
    _make_task().save(folder / "task.keras")


def make_word_pieces(folder):
    from small_texts import VOCABULARY

    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")


def read_tokenizer(folder):
    from keras_bert_suite import open_tokenizer

    files = sorted(path for path in folder.iterdir() if path.name != "merges.txt")
    open_tokenizer(files[0]).tokenize(["the film", "un-good, \u00e9!"])


def make_byte_pairs(folder):
    from small_byte_pairs import MERGES, make_vocabulary

    from keras_bert_suite import BytePairTokenizer

    BytePairTokenizer(make_vocabulary(), MERGES).save_assets(folder)


def make_sentence_pieces(folder):
    from small_sentence_pieces import make_albert

    (folder / "spiece.model").write_bytes(make_albert())


def make_fast_tokenizer(folder):
    from small_byte_pairs import MERGES, make_vocabulary
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    merges = [tuple(merge.split()) for merge in MERGES]
    tokenizer = Tokenizer(models.BPE(make_vocabulary(), merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), True, False)
    tokenizer.save(str(folder / "tokenizer.json"))


def make_shards(folder):
    from small_texts import VOCABULARY, make_reviews

    from keras_bert_suite import WordPieceTokenizer
    from keras_bert_suite.corpus import prepare_corpus

    texts = folder.with_name("texts.txt")
    texts.write_text("\n\n".join("\n".join(make_reviews(4, seed)[0]) for seed in range(9)))
    prepare_corpus(texts, WordPieceTokenizer(VOCABULARY), folder, slice_bytes=400)


def read_shards(folder):
    from keras_bert_suite.corpus import open_corpus
    from keras_bert_suite.corpus import read_tokenizer as read_corpus_tokenizer

    corpus = open_corpus(folder)
    for document in range(corpus.num_documents):
        corpus.tokens(document)
    read_corpus_tokenizer(folder).tokenize("the film")


def seal_shards(folder):
    """Describes the files of the shards anew in the manifest, and seals it."""
    from keras_bert_suite.corpus.token_shards import describe_file
    from keras_bert_suite.files.atomic_file import write_sealed_json

    file = folder / "manifest.json"
    with contextlib.suppress(Exception):
        manifest = json.loads(file.read_bytes())
        manifest.pop("sha256", None)
        for number, shard in enumerate(manifest["shards"]):
            for kind, ending in (("tokens", ".array_record"), ("lengths", ".npz")):
                shard["files"][kind] = describe_file(folder / f"shard-{number:05d}{ending}")
        write_sealed_json(file, manifest)


def make_records(folder):
    from small_texts import VOCABULARY

    from keras_bert_suite import TokenMasker, WordPieceTokenizer
    from keras_bert_suite.corpus.token_corpus import TokenCorpus
    from keras_bert_suite.instances.google_examples import write_google_examples
    from keras_bert_suite.instances.pretraining_batches import PretrainingBatches

    corpus = TokenCorpus.from_documents([[[5 + d, 6, 7] for _ in range(4)] for d in range(6)])
    masker = TokenMasker(WordPieceTokenizer(VOCABULARY), max_predictions=3)
    batches = PretrainingBatches(corpus, masker, sequence_length=16, batch_size=2)
    write_google_examples(folder / "examples.tfrecord", batches)


def read_records(folder):
    from keras_bert_suite.instances.google_examples import GoogleExamples

    examples = GoogleExamples(folder / "examples.tfrecord", batch_size=1)
    for index in range(len(examples)):
        examples[index]


def make_rows(folder):
    (folder / "rows.tsv").write_text("text\tlabel\nthe film\tyes\na plot\tno\n")
    (folder / "rows.csv").write_text('text,label\n"the, film",yes\na plot,no\n')
    (folder / "words.conll").write_text("the\tO\nfilm\tB-X\n\na O\nplot B-Y\n")
    answers = [{"text": "film", "answer_start": 4}]
    question = {"id": "1", "question": "What?", "answers": answers}
    paragraph = {"context": "the film", "qas": [question]}
    squad = {"version": "1.1", "data": [{"title": "x", "paragraphs": [paragraph]}]}
    (folder / "squad.json").write_text(json.dumps(squad))
    header = "video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3"
    (folder / "swag.csv").write_text(f"{header},label\n1,2,the film,the,film,gold,a,b,c,d,2\n")
    (folder / "SST-2").mkdir()
    (folder / "SST-2" / "train.tsv").write_text("sentence\tlabel\nthe film\t1\na plot\t0\n")


def read_rows(folder):
    from keras_bert_suite.data.conll import read_conll
    from keras_bert_suite.data.glue import GLUE_TASKS, read_glue
    from keras_bert_suite.data.squad import read_squad
    from keras_bert_suite.data.swag import read_swag
    from keras_bert_suite.data.tables import read_lines, read_table

    for name in ("rows.tsv", "rows.csv"):
        read_table(folder / name, ["text", "label"])
        read_lines(folder / name)
    read_conll(folder / "words.conll")
    read_squad(folder / "squad.json")
    read_swag(folder / "swag.csv")
    read_glue(GLUE_TASKS["sst2"], folder)


def make_run(folder):
    from keras_bert_cli.run_settings import write_settings
    from keras_bert_suite.training.progress import Progress
    from keras_bert_suite.training.run_checkpoints import write_checkpoint

    write_checkpoint(folder, Progress(0, 1, 7, 7), {"a": np.zeros(3), "b": np.ones(2)}, keep=1)
    settings = {"steps": 6, "report_every": 2, "output": "x", "checkpoint": None, "finished": 0}
    write_settings(folder, settings)


def read_run(folder):
    from keras_bert_cli import pretrain_folder
    from keras_bert_suite.training.run_checkpoints import find_checkpoint, read_arrays

    pretrain_folder.read_run(folder)
    found = find_checkpoint(folder)
    if found is not None:
        for array in read_arrays(found[0]).values():
            array.tobytes()


def seal_run(folder):
    from keras_bert_suite.files.checksums import write_checksums

    file = folder / "settings.json"
    with contextlib.suppress(Exception):
        content = json.loads(file.read_bytes())
        content.pop("sha256", None)
        file.write_text(json.dumps(content))
    for path in folder.glob("step-*"):
        write_checksums(path)


def make_corpus(folder):
    (folder / "texts.jsonl").write_text('{"text": "the film was good. a plot"}\n{"text": "a"}\n')
    (folder / "texts.txt").write_text("the film\nwas good\n\na plot\n")


def read_corpus(folder):
    from keras_bert_suite.corpus.documents import find_faults
    from keras_bert_suite.corpus.input_files import InputOptions, find_files, plan_slices

    place, names = find_files(folder)
    for piece in plan_slices(place, names, "auto", 100):
        if faults := find_faults(piece, InputOptions()):
            raise faults.error(place)


READERS = {
    "safetensors": Reader(make_safetensors, read_safetensors),
    "sharded safetensors": Reader(make_sharded, read_sharded),
    "PyTorch": Reader(make_torch, read_torch),
    "HDF5": Reader(make_hdf5, read_hdf5),
    "TensorFlow 1": Reader(make_bundle, read_bundle),
    "Hugging Face": Reader(make_hugging_face, read_model),
    "Google": Reader(make_google, read_model),
    "KerasHub": Reader(make_keras_hub, read_model),
    "sentence-transformers": Reader(make_embedder, read_model),
    "vocab.txt": Reader(make_word_pieces, read_tokenizer),
    "vocab.json": Reader(make_byte_pairs, read_tokenizer),
    "tokenizer.json": Reader(make_fast_tokenizer, read_tokenizer),
    "SentencePiece": Reader(make_sentence_pieces, read_tokenizer, weight=0.05),
    "shards": Reader(make_shards, read_shards, seal_shards),
    "TFRecords": Reader(make_records, read_records),
    "rows": Reader(make_rows, read_rows),
    "corpus": Reader(make_corpus, read_corpus),
    "run": Reader(make_run, read_run, seal_run),
    "preset": Reader(make_preset, read_task, seal_model, weight=0.05),
    ".keras": Reader(make_archive, read_task, weight=0.05),
}
