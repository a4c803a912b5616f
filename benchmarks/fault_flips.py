"""Flips single bits of files that the package has written, and reads them; for faults.py.

A flip is found if an error is raised, or a warning comes and an older state is read. It is without
effect if the result is that of the intact files. Every other result is silent: wrong without an
error. Half of the flips fall anywhere in the files, so most of them in weights; the other half fall
in a file that is drawn first, so that small files get their share.

    python benchmarks/fault_flips.py saved_models/sentiment/1 200     # what TensorFlow finds alone
"""

import dataclasses
import json
import random
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

from fault_runs import PIECES, Counts, pretrain_command
from forks import fork, wait

TEXTS = ["the film was good!", "a very awful plot, dull acting", "great"]

#: Errors that the package promises, and those that Keras raises when it reads an archive.
PROMISED = ("ValueError", "OSError", "FileNotFoundError", "JSONDecodeError", "UnicodeDecodeError")


@dataclasses.dataclass
class Target:
    """Files whose bits are flipped.

    Attributes:
        folder: `pathlib.Path`. Bits of all files in it and below are flipped.
        read: function that reads the files and returns a result that can be compared.
        older: list of results that may come, with a warning, in place of the right one.
    """

    folder: Path
    read: Callable
    older: list = dataclasses.field(default_factory=list)


def flip_bits(bench, make, number):
    """Flips `number` bits, one at a time, in a child.

    Args:
        bench: `Bench`.
        make: function of a folder and a `Bench` that returns a `Target`.
        number: int.
    """
    folder = bench.folder / "flips"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    seed, answer = bench.rng.random(), bench.folder / "counts.json"
    answer.unlink(missing_ok=True)
    status = wait(fork(_count_flips, make, folder, bench, number, seed, answer))
    if status:
        sys.exit(f"The flips of {make.__name__} ended with {status}.")
    return Counts(**json.loads(answer.read_text()))


def _count_flips(make, folder, bench, number, seed, answer):
    counts = _flip(make(folder, bench), number, random.Random(seed))
    answer.write_text(json.dumps(dataclasses.asdict(counts)))


def draw_flips(folder, number, rng):
    """Yields (file, offset of a byte, bit)."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    sizes = [path.stat().st_size for path in files]
    for index in range(number):
        (file,) = rng.choices(files, sizes) if index % 2 else [rng.choice(files)]
        yield file, rng.randrange(file.stat().st_size), rng.randrange(8)


def flip(file, offset, bit):
    """Flips a bit of a file in its place, and returns the byte as it was."""
    with open(file, "rb") as opened:
        opened.seek(offset)
        byte = opened.read(1)[0]
    put_byte(file, offset, byte ^ 1 << bit)
    return byte


def put_byte(file, offset, byte):
    """Writes a byte of a file in its place."""
    with open(file, "r+b") as opened:
        opened.seek(offset)
        opened.write(bytes([byte]))


def _flip(target, number, rng):
    counts, wanted, errors = Counts(), target.read(), {}
    for file, offset, bit in draw_flips(target.folder, number, rng):
        byte = flip(file, offset, bit)
        counts.faults += 1
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = target.read()
        except Exception as error:
            counts.found += 1
            errors[type(error).__name__] = errors.get(type(error).__name__, 0) + 1
        else:
            if result == wanted:
                counts.harmless += not caught
                counts.found += bool(caught)
            elif caught and result in target.older:
                counts.found += 1
            else:
                counts.silent += 1
                place = f"{file.relative_to(target.folder)}, byte {offset}, bit {bit}"
                print(f"silent: {place}", file=sys.stderr)
        put_byte(file, offset, byte)
    others = {name: count for name, count in errors.items() if name not in PROMISED}
    if others:
        print(f"other errors: {others}", file=sys.stderr)
    assert target.read() == wanted
    return counts


def make_checkpoints(folder, bench):
    """The newer one of two training checkpoints."""
    from keras_bert_suite.runs.run_checkpoints import find_checkpoint, read_arrays

    whole = bench.undisturbed.output / "checkpoints"
    for path in sorted(whole.iterdir())[-2:]:
        shutil.copytree(path, folder / path.name)

    def read():
        path, progress = find_checkpoint(folder)
        arrays = read_arrays(path)
        return path.name, progress, [(name, arrays[name].tobytes()) for name in sorted(arrays)]

    newest = sorted(folder.iterdir())[-1]
    hidden = newest.with_name("hidden")
    newest.rename(hidden)
    older = read()
    hidden.rename(newest)
    return Target(newest, read, [older])


def make_shards(folder, bench):
    """A prepared corpus, read as a whole, and its tokenizer."""
    from keras_bert_suite.corpus import open_corpus, read_tokenizer

    folder = _copy_shards(folder, bench)

    def read():
        corpus = open_corpus(folder)
        documents = range(corpus.num_documents)
        tokens = b"".join(corpus.tokens(document).tobytes() for document in documents)
        lengths = b"".join(corpus.sentences(document).tobytes() for document in documents)
        return tokens, lengths, read_tokenizer(folder).tokenize(TEXTS)

    return Target(folder, read)


def make_preparation(folder, bench):
    """A corpus whose preparation goes on: damaged shards are made again."""
    import keras_bert_suite as kbs
    from keras_bert_suite.corpus import prepare_corpus

    shards = _copy_shards(folder, bench)
    tokenizer = kbs.open_tokenizer(bench.folder / "vocab.txt")
    inputs = bench.folder / "corpus.txt"

    def read():
        slice_bytes = round(0.003 * (1 << 20))
        manifest = prepare_corpus(inputs, tokenizer, shards, slice_bytes=slice_bytes)
        return manifest, {path.name: path.read_bytes() for path in shards.iterdir()}

    return Target(shards, read)


def _copy_shards(folder, bench):
    shards = folder / "shards"
    shards.mkdir()
    for name, content in bench.shards.items():
        (shards / name).write_bytes(content)
    return shards


def _make_classifier():
    import keras_bert_suite as kbs

    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(PIECES), 16)
    return kbs.TextClassifier(_make_backbone(), preprocessor=packer, label_names=["no", "yes"])


def _make_backbone():
    import keras_bert_suite as kbs

    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32}
    return kbs.BertBackbone(len(PIECES), **sizes, max_sequence_length=32)


def _answer(task):
    return task.predict(TEXTS, verbose=0).tobytes()


def make_preset(folder, bench):
    """A preset of a task with its tokenizer."""
    import keras_bert_suite as kbs

    _make_classifier().save_to_preset(str(folder))
    return Target(folder, lambda: _answer(kbs.TextClassifier.from_preset(folder)))


def make_archive(folder, bench):
    """A `.keras` file, read by Keras."""
    import keras

    file = folder / "task.keras"
    _make_classifier().save(file)
    return Target(folder, lambda: _answer(keras.saving.load_model(file, compile=False)))


def make_tokenizers(folder, bench):
    """Presets of tokenizers of each kind."""
    from small_byte_pairs import MERGES, make_vocabulary
    from small_sentence_pieces import make_albert

    import keras_bert_suite as kbs

    for name, tokenizer in (
        ("word_piece", kbs.WordPieceTokenizer(PIECES)),
        ("byte_pair", kbs.BytePairTokenizer(make_vocabulary(), MERGES)),
        ("sentence_piece", kbs.AlbertTokenizer(make_albert())),
    ):
        # A tokenizer is opened beside the configuration of its backbone.
        _make_backbone().save_to_preset(str(folder / name))
        tokenizer.save_to_preset(str(folder / name))
    folders = sorted(folder.iterdir())

    def read():
        return [kbs.open_tokenizer(path).tokenize(TEXTS) for path in folders]

    return Target(folder, read)


def make_settings(folder, bench):
    """The settings of a run, as the command that goes on reads them."""
    from keras_bert_cli import pretrain
    from keras_bert_cli.command_flags import Flags

    shutil.copy(bench.undisturbed.output / "settings.json", folder)
    (folder / "model").mkdir()
    command = pretrain_command(bench.corpus, folder)

    def read():
        values = Flags("pretrain", pretrain).parse(command[1:])
        with pretrain.begin_run(values, folder) as settings:
            return settings, vars(values)

    return Target(folder, read)


def make_google(folder, bench):
    """The index and the tensors of a TensorFlow checkpoint, which have checksums of their own."""
    from keras_bert_suite.checkpoints.google_tf1.tensor_bundle import TensorBundle, write_bundle

    task = _make_classifier()
    write_bundle(folder / "model.ckpt", ((v.path, v.numpy()) for v in task.weights))

    def read():
        bundle = TensorBundle(folder / "model.ckpt")
        return [(name, bundle.tensor(name).tobytes()) for name in sorted(bundle.shapes)]

    return Target(folder, read)


def make_saved_model(folder, bench):
    """A SavedModel, checked as `keras-bert predict` does before TensorFlow reads it."""
    from keras_bert_suite import export_saved_model
    from keras_bert_suite.files.checksums import check_checksums

    path = export_saved_model(_make_classifier(), folder / "model" / "1")
    shutil.copytree(path, bench.folder / "saved_model", dirs_exist_ok=True)
    return Target(path, lambda: check_checksums(path))


#: Name -> (share of the flips, function of a folder and a `Bench` that makes a `Target`).
FLIPPED = {
    "training checkpoints": (0.3, make_checkpoints),
    "shards": (0.22, make_shards),
    "shards, prepared again": (0.05, make_preparation),
    "presets": (0.15, make_preset),
    ".keras files": (0.05, make_archive),
    "tokenizers": (0.03, make_tokenizers),
    "run settings": (0.1, make_settings),
    "TensorFlow 1 checkpoints": (0.05, make_google),
    "SavedModels": (0.05, make_saved_model),
}


def ask_tensorflow(path, number):
    """Flips bits of a SavedModel that TensorFlow reads alone, and counts what comes of them.

    Args:
        path: `pathlib.Path` of a version.
        number: int.

    Returns:
        dict, name of a file -> {"found", "harmless" or "silent" -> count}.
    """
    import tensorflow as tf

    from keras_bert_cli.ask_saved_model import load_text_ops

    load_text_ops(tf)
    (path / "SHA256SUMS").unlink()

    def read():
        model = tf.saved_model.load(str(path))
        outputs = model.signatures["serving_default"](text=tf.constant(TEXTS))
        return {name: value.numpy().tobytes() for name, value in outputs.items()}

    wanted, counts = read(), {}
    for file, offset, bit in draw_flips(path, number, random.Random(0)):
        byte = flip(file, offset, bit)
        try:
            outcome = "harmless" if read() == wanted else "silent"
        except Exception:
            outcome = "found"
        put_byte(file, offset, byte)
        row = counts.setdefault(file.relative_to(path).as_posix(), {})
        row[outcome] = row.get(outcome, 0) + 1
    return counts


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        version = shutil.copytree(sys.argv[1], Path(scratch) / "1")
        print(json.dumps(ask_tensorflow(version, int(sys.argv[2])), indent=2))
