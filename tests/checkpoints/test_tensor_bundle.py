"""TensorFlow's checkpoint format, against TensorFlow."""

import ml_dtypes
import numpy as np
import pytest

from keras_bert_suite.checkpoints.google_tf1.string_table import (
    make_table,
    read_table,
    read_varint,
)
from keras_bert_suite.checkpoints.google_tf1.tensor_bundle import (
    TensorBundle,
    _message_classes,
    write_bundle,
)
from keras_bert_suite.files.checksums import masked_checksum


@pytest.fixture
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture
def write(tf, tmp_path):
    """Function: writes tensors with TensorFlow, returns the prefix."""

    def write_tensors(tensors, prefix="model.ckpt"):
        names = sorted(tensors)
        path = tmp_path / prefix
        tf.raw_ops.SaveV2(
            prefix=str(path),
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[tf.constant(tensors[name]) for name in names],
        )
        return path

    return write_tensors


def check_equal_to_tensorflow(tf, prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    bundle = TensorBundle(prefix)
    shapes = {name: tuple(shape) for name, shape in reader.get_variable_to_shape_map().items()}
    assert bundle.shapes == shapes
    for name in shapes:
        expected, got = reader.get_tensor(name), bundle.tensor(name)
        assert got.dtype == expected.dtype
        assert got.shape == np.shape(expected)
        assert got.tobytes() == np.asarray(expected).tobytes()


def test_toy_checkpoint(tf, toy):
    check_equal_to_tensorflow(tf, toy / "bert_model.ckpt")


DTYPES = [
    *("float32", "float64", "float16", ml_dtypes.bfloat16),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
]


def test_every_dtype_and_rank(tf, write):
    rng = np.random.default_rng(0)
    tensors = {
        f"{np.dtype(dtype).name}/{len(shape)}": (rng.normal(size=shape) * 50).astype(dtype)
        for dtype in DTYPES
        for shape in ((), (3,), (2, 5), (2, 1, 4), (0, 4))
    }
    check_equal_to_tensorflow(tf, write(tensors))


def test_index_of_many_blocks(tf, write):
    """More names than fit into one block of 256 KB, with long shared prefixes."""
    tensors = {f"{'scope/' * 40}{i:05d}": np.float32([i]) for i in range(5000)}
    prefix = write(tensors)
    bundle = TensorBundle(prefix)
    assert bundle.shapes == {name: (1,) for name in tensors}
    for name in list(tensors)[::501]:
        np.testing.assert_array_equal(bundle.tensor(name), tensors[name])


def test_what_is_written(tf, tmp_path):
    """TensorFlow reads it: every rank, sizes of one, two and three bytes, and no elements."""
    rng = np.random.default_rng(0)
    shapes = ((), (3,), (2, 5), (2, 1, 4), (0, 4), (127, 3), (128, 3), (70_000,))
    tensors = {f"scope/{i}": rng.normal(size=s).astype("float32") for i, s in enumerate(shapes)}
    # The names of the checkpoint are sorted, and these are not.
    tensors |= {"Z": np.float32([1]), "a": np.ones((2, 3), ">f4"), "é": np.float32([2])}
    write_bundle(tmp_path / "model.ckpt", tensors.items())
    reader = tf.train.load_checkpoint(str(tmp_path / "model.ckpt"))
    assert reader.get_variable_to_shape_map() == {
        name: list(tensor.shape) for name, tensor in tensors.items()
    }
    for name, tensor in tensors.items():
        assert reader.get_tensor(name).dtype == "float32"
        np.testing.assert_array_equal(reader.get_tensor(name), tensor)
    check_equal_to_tensorflow(tf, tmp_path / "model.ckpt")


def test_entries_are_tensorflows(write, tmp_path):
    """Header and entries, with their checksums and offsets, byte for byte."""
    tensors = {"a": np.zeros((), "float32"), "b": np.ones((3, 0, 300), "float32")}
    tensors |= {"c": np.arange(12, dtype="float32").reshape(3, 4), "d": np.ones(70_000, "float32")}
    write_bundle(tmp_path / "ours", tensors.items())
    write(tensors, "theirs")
    for suffix in ("data-00000-of-00001", "index"):
        got, wanted = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in ("ours", "theirs"))
        if suffix == "index":  # Blocks may be cut and keys be shortened in other ways.
            got, wanted = list(read_table(got)), list(read_table(wanted))
        assert got == wanted


def test_index_of_many_names_is_written(tf, tmp_path):
    """More than TensorFlow itself would put into one block of 256 KB."""
    tensors = {f"{'scope/' * 40}{i:05d}": np.float32([i]) for i in range(5000)}
    write_bundle(tmp_path / "model.ckpt", reversed(tensors.items()))
    assert (tmp_path / "model.ckpt.index").stat().st_size > 4 * 256 * 1024
    reader = tf.train.load_checkpoint(str(tmp_path / "model.ckpt"))
    assert reader.get_variable_to_shape_map() == {name: [1] for name in tensors}
    for name in list(tensors)[::501]:
        np.testing.assert_array_equal(reader.get_tensor(name), tensors[name])


def test_shards(tf, write):
    prefixes = [
        write({f"part{i}/{name}": np.full((i + 2, 3), i, "float32") for name in "ab"}, f"part{i}")
        for i in range(3)
    ]
    merged = prefixes[0].with_name("merged")
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[str(prefix) for prefix in prefixes], destination_prefix=str(merged)
    )
    assert len(list(merged.parent.glob("merged.data-*-of-00003"))) == 3
    check_equal_to_tensorflow(tf, merged)
    merged.with_name("merged.data-00001-of-00003").unlink()
    with pytest.raises(FileNotFoundError, match="merged.data-00001-of-00003"):
        TensorBundle(merged)


def test_strings_are_listed_and_refused(write):
    bundle = TensorBundle(write({"text": ["a", "bc"], "number": np.float32(1)}))
    assert bundle.shapes == {"text": (2,), "number": ()}
    assert bundle.tensor("number") == 1
    with pytest.raises(ValueError, match="text .*dtype number 7, wanted a whole array"):
        bundle.tensor("text")


def test_partitioned_variable_is_refused(tf, tmp_path):
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "model.ckpt"),
        tensor_names=["table"],
        shape_and_slices=["4 2 0,2:-"],
        tensors=[tf.zeros((2, 2))],
    )
    bundle = TensorBundle(tmp_path / "model.ckpt")
    assert bundle.shapes["table"] == (4, 2)
    with pytest.raises(ValueError, match="stored in slices"):
        bundle.tensor("table")


def test_every_flipped_byte_is_noticed(toy, tmp_path):
    """Whatever byte of the index or of a tensor is damaged, nothing wrong is returned."""
    original = TensorBundle(toy / "bert_model.ckpt")
    expected = {name: original.tensor(name).tobytes() for name in original.shapes}
    files = {path.name: path.read_bytes() for path in toy.glob("bert_model.ckpt.*")}
    rng = np.random.default_rng(0)
    for damaged_file, content in files.items():
        for position in rng.choice(len(content), 60, replace=False):
            for name, data in files.items():
                data = bytearray(data)
                if name == damaged_file:
                    data[position] ^= 1 << rng.integers(8)
                (tmp_path / name).write_bytes(data)
            try:
                bundle = TensorBundle(tmp_path / "bert_model.ckpt")
                got = {name: bundle.tensor(name).tobytes() for name in bundle.shapes}
            except ValueError as error:
                assert damaged_file in str(error)
                continue
            # Some bytes of the index mean nothing: padding, and a block that is not read.
            assert damaged_file.endswith("index")
            assert got == expected


def test_checkpoints_of_tensorflow_2_are_refused(tf, tmp_path):
    """Their tensors are named by the objects of a program, such as model/layer-0/..."""
    table = tf.Module()
    table.variable = tf.Variable(np.zeros((3, 2), "float32"))
    path = tf.train.Checkpoint(model=table).write(str(tmp_path / "bert_model.ckpt"))
    with pytest.raises(ValueError, match="bert_model.ckpt is a checkpoint of TensorFlow 2"):
        TensorBundle(tmp_path / path)


def rewrite_index(prefix, change):
    """Writes an index anew, with right checksums, after a function changed its Header and Entry."""
    messages, index = _message_classes(), prefix.with_name(prefix.name + ".index")
    table = dict(read_table(index.read_bytes()))
    header = messages["Header"].FromString(table.pop(b""))
    entries = {name: messages["Entry"].FromString(value) for name, value in table.items()}
    change(header, entries)
    pairs = [(b"", header.SerializeToString())]
    pairs += [(name, entry.SerializeToString()) for name, entry in sorted(entries.items())]
    index.write_bytes(make_table(pairs))


def test_an_index_that_contradicts_itself(tmp_path):
    prefix = tmp_path / "model.ckpt"
    tensors = {"a": np.zeros((2, 3), "float32")}

    def shorten(header, entries):
        entries[b"a"].size = 20

    def move(header, entries):
        entries[b"a"].shard = 1

    write_bundle(prefix, tensors.items())
    rewrite_index(prefix, lambda header, entries: None)
    np.testing.assert_array_equal(TensorBundle(prefix).tensor("a"), tensors["a"])
    rewrite_index(prefix, shorten)
    with pytest.raises(ValueError, match="ckpt.index .*a is said to have 20 bytes"):
        TensorBundle(prefix).tensor("a")
    write_bundle(prefix, tensors.items())
    rewrite_index(prefix, move)
    with pytest.raises(ValueError, match="ckpt.index .*it has 1 data files"):
        TensorBundle(prefix)


def test_blocks_that_are_no_ones_of_tensorflow():
    table = bytearray(make_table([(b"key", b"value")]))
    end = table.index(b"value") + len(b"value") + 8  # Behind a restart and their number.
    assert table[end] == 0
    table[end] = 1
    table[end + 1 : end + 5] = masked_checksum(bytes(table[: end + 1])).to_bytes(4, "little")
    with pytest.raises(ValueError, match="its blocks are compressed"):
        dict(read_table(bytes(table)))
    assert read_varint(b"\xff" * 9 + b"\x01", 0) == (2**64 - 1, 10)
    with pytest.raises(ValueError, match="a number has more than 64 bits"):
        read_varint(b"\xff" * 10 + b"\x01", 0)
