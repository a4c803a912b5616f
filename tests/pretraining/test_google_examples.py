import pickle

import grain
import numpy as np
import pytest
from small_texts import VOCABULARY

from keras_bert_suite import LanguageModelMixture, TokenMasker, WordPieceTokenizer
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.data.arrays import map_arrays
from keras_bert_suite.data.row_orders import shuffled
from keras_bert_suite.pretraining.google_examples import GoogleExamples, write_google_examples
from keras_bert_suite.pretraining.pretraining_batches import PretrainingBatches
from keras_bert_suite.pretraining.tf_example import frame_record, serialize_example

L, P = 16, 3
GOOGLE_FIELDS = {
    "input_ids": ("int64", L), "input_mask": ("int64", L), "segment_ids": ("int64", L),
    "masked_lm_positions": ("int64", P), "masked_lm_ids": ("int64", P),
    "masked_lm_weights": ("float32", P), "next_sentence_labels": ("int64", 1),
}  # fmt: skip


def make_batches(mode="pairs", wrap=lambda masker: masker):
    corpus = TokenCorpus.from_documents([[[5 + d, 6, 7 + s] for s in range(4)] for d in range(10)])
    masker = wrap(TokenMasker(WordPieceTokenizer(VOCABULARY), max_predictions=P))
    return PretrainingBatches(corpus, masker, sequence_length=L, batch_size=4, mode=mode)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "examples.tfrecord"
    write_google_examples(path, make_batches())
    return path


def flatten(batch):
    return {f"{i}/{name}": array for i, part in enumerate(batch) for name, array in part.items()}


def sorted_rows(batches):
    """Every row of every batch as one tuple of numbers, sorted."""
    names = sorted(flatten(batches[0]))
    return sorted(
        tuple(np.concatenate([np.atleast_1d(flatten(batch)[name][row]) for name in names]).tolist())
        for batch in batches
        for row in range(len(batch[1]["nsp"]))
    )


@pytest.mark.backend("tensorflow")
def test_tensorflow_reads_what_is_written(path):
    import tensorflow as tf

    batches = make_batches()
    fields = {
        name: tf.io.FixedLenFeature([size], dtype) for name, (dtype, size) in GOOGLE_FIELDS.items()
    }
    records = list(tf.data.TFRecordDataset(str(path)))
    assert len(records) == 4 * len(batches)
    for i in range(len(batches)):
        x, y, weights = batches[i]
        parsed = tf.io.parse_example(tf.stack(records[4 * i : 4 * i + 4]), fields)
        np.testing.assert_array_equal(parsed["input_ids"], x["token_ids"])
        np.testing.assert_array_equal(parsed["input_mask"], x["padding_mask"])
        np.testing.assert_array_equal(parsed["segment_ids"], x["segment_ids"])
        np.testing.assert_array_equal(parsed["masked_lm_positions"], x["mask_positions"])
        np.testing.assert_array_equal(parsed["masked_lm_ids"], y["mlm"])
        np.testing.assert_array_equal(parsed["masked_lm_weights"], weights["mlm"])
        np.testing.assert_array_equal(parsed["next_sentence_labels"][:, 0], y["nsp"])


@pytest.mark.backend("tensorflow")
def test_what_tensorflow_writes_is_read(tmp_path):
    import tensorflow as tf

    values = {name: np.arange(size) % 2 for name, (_, size) in GOOGLE_FIELDS.items()}
    features = {
        name: tf.train.Feature(float_list=tf.train.FloatList(value=value))
        if "weights" in name
        else tf.train.Feature(int64_list=tf.train.Int64List(value=value))
        for name, value in values.items()
    }
    example = tf.train.Example(features=tf.train.Features(feature=features))
    path = str(tmp_path / "tensorflow.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(example.SerializeToString())
    x, y, weights = GoogleExamples(path, batch_size=1)[0]
    np.testing.assert_array_equal(x["token_ids"], [values["input_ids"]])
    np.testing.assert_array_equal(weights["mlm"], [values["masked_lm_weights"]])
    np.testing.assert_array_equal(x["padding_mask"], [values["input_mask"]])
    assert y["nsp"].tolist() == [0] and y["mlm"].tolist() == [values["masked_lm_ids"].tolist()]


def test_reading_gives_what_was_written(path):
    batches, examples = make_batches(), GoogleExamples([path], batch_size=4, seed=1)
    assert len(examples) == len(batches)
    ours, theirs = list(batches), list(examples)
    assert flatten(ours[0]).keys() == flatten(theirs[0]).keys()
    for name, array in flatten(ours[0]).items():
        assert flatten(theirs[0])[name].dtype == array.dtype
    assert sorted_rows(ours) == sorted_rows(theirs)


def test_a_slice_has_these_batches(path):
    examples = GoogleExamples(path, 2)
    for found, wanted in zip(examples[1:3], (examples[1], examples[2]), strict=True):
        np.testing.assert_equal(found, wanted)


def test_batches_are_a_function_of_their_index(path):
    examples = GoogleExamples([path, path], batch_size=3)
    expected = [flatten(examples[i]) for i in range(2 * len(examples))]
    assert not np.array_equal(expected[0]["0/token_ids"], expected[len(examples)]["0/token_ids"])
    copy = pickle.loads(pickle.dumps(examples))
    for i in reversed(range(len(expected))):
        np.testing.assert_equal(flatten(copy[i]), expected[i])
    options = grain.ReadOptions(num_threads=8, prefetch_buffer_size=8)
    for batch, other in zip(examples.repeat(2).to_iter_dataset(options), expected, strict=True):
        np.testing.assert_equal(flatten(batch), other)


def test_googles_own_file_comes_back_byte_for_byte(shared_data, tmp_path):
    golden = shared_data / "golden" / "pretraining_examples_google.tfrecord"
    in_file = np.argsort(shuffled(60, seed=0)(0))
    batch = map_arrays(lambda column: column[in_file], GoogleExamples(golden, batch_size=60)[0])
    x, y, _ = batch
    assert x["token_ids"].shape == (60, 128) and y["mlm"].shape == (60, 20)
    assert (x["token_ids"][:, 0] == 101).all() and set(y["nsp"]) == {0, 1}
    write_google_examples(tmp_path / "copy.tfrecord", [batch])
    assert (tmp_path / "copy.tfrecord").read_bytes() == golden.read_bytes()


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda data: data[:-1], "examples.tfrecord cannot be read .* last record is cut short"),
        (lambda data: data[:5], "at byte 0 has a wrong checksum"),
        (lambda data: b"\xff" + data[1:], "at byte 0 has a wrong checksum"),
        (lambda data: data[:-20] + b"\xff" + data[-19:], "at byte .* has a wrong checksum"),
        (lambda data: b"", "batch_size=4 is more than the 0 examples"),
        (lambda data: frame_record(b"text") * 4, "is no tf.train.Example"),
        (
            lambda data: frame_record(serialize_example({"input_ids": np.ones(3, int)})) * 4,
            "at byte .* lacks masked_lm_weights, next",
        ),
    ],
)
def test_damaged_files_are_named(path, damage, error):
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=error):
        list(GoogleExamples(path, batch_size=4))


def test_examples_of_different_lengths(path):
    short = {"token_ids": np.ones((1, 5), int), "segment_ids": np.ones((1, 5), int)}
    x = {**short, "padding_mask": np.ones((1, 5), int), "mask_positions": np.ones((1, P), int)}
    y = {"mlm": np.ones((1, P), int), "nsp": np.ones(1, int)}
    other = path.with_name("short.tfrecord")
    write_google_examples(other, [(x, y, {"mlm": np.ones((1, P), "float32")})])
    examples = GoogleExamples([path, other], batch_size=4 * len(make_batches()) + 1)
    with pytest.raises(ValueError, match="must have the same shape"):
        examples[0]


def test_only_pairs_are_written(tmp_path):
    for mode in ("full_sentences", "relations"):
        with pytest.raises(ValueError, match='next_sentence_labels of 0 and 1. .* mode="pairs" or'):
            write_google_examples(tmp_path / "none.tfrecord", make_batches(mode))
    with pytest.raises(ValueError, match="no segments of a LanguageModelMixture"):
        write_google_examples(
            tmp_path / "none.tfrecord", make_batches("pairs", LanguageModelMixture)
        )
