import json

import keras
import keras_hub
import numpy as np
import pytest
from small_texts import VOCABULARY, make_reviews

from keras_bert_suite import SegmentPacker, WordPieceTokenizer
from keras_bert_suite.preprocessing.keras_hub_packer import find_segment_packer
from keras_bert_suite.preprocessing.packing import NUMPY, kept_lengths

PAD, CLS, SEP = 0, 2, 3


@pytest.fixture
def tokenizer():
    return WordPieceTokenizer(VOCABULARY)


def ids(text):
    return [VOCABULARY.index(word) for word in text.split()]


def truncate_like_google(lengths, budget):
    """The loop of run_classifier.py, also for more than two texts: of equals the last loses."""
    lengths = list(lengths)
    while sum(lengths) > budget:
        longest = max(range(len(lengths)), key=lambda i: (lengths[i], i))
        lengths[longest] -= 1
    return lengths


def test_one_text_literally(tokenizer):
    packed = SegmentPacker(tokenizer, padding_lengths=None)(["the film", "good"])
    assert packed["token_ids"].tolist() == [
        [CLS, *ids("the film"), SEP],
        [CLS, *ids("good"), SEP, PAD],
    ]
    assert packed["segment_ids"].tolist() == [[0] * 4] * 2
    assert packed["padding_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert {array.dtype for array in packed.values()} == {np.dtype("int32")}


@pytest.mark.parametrize("kind", ["numpy", "tensorflow"])
def test_rows_without_special_tokens_literally(tokenizer, kind):
    packer = SegmentPacker(tokenizer, 4, padding_lengths=None, add_special_tokens=False)
    texts = [["the film", "", "good"], ["", "", "it was not good !"]]
    if kind == "tensorflow":
        texts = list(map(pytest.importorskip("tensorflow").constant, texts))
    packed = packer.pack(texts[0])
    assert np.asarray(packed["token_ids"]).tolist() == [
        ids("the film"),
        [PAD] * 2,
        [*ids("good"), PAD],
    ]
    assert np.asarray(packed["padding_mask"]).tolist() == [[1, 1], [0, 0], [1, 0]]
    pairs = packer.pack(*texts)
    rows = [[*ids("the film"), PAD, PAD], [PAD] * 4, ids("good it was not")]
    assert np.asarray(pairs["token_ids"]).tolist() == rows
    assert np.asarray(pairs["segment_ids"]).tolist() == [[0] * 4, [0] * 4, [0, 1, 1, 1]]
    windows = packer.pack_windows(texts[1][2:], stride=2)
    assert np.asarray(windows["token_ids"]).tolist() == [
        ids("it was not good"),
        [*ids("not good !"), PAD],
    ]


def test_tokens_behind_others_literally(tokenizer):
    where = np.array([0, 2], "int32"), np.array([2, 1], "int32")
    first = np.array([[5, 6], [0, 1], [1, 1]], "int32")
    packer = SegmentPacker(tokenizer, sequence_length=6)
    packed = packer.pack_tokens(np.array([7, 8, 9], "int32"), *where, queries=[first])
    assert packed["token_ids"].tolist() == [[CLS, 5, SEP, 7, 8, SEP], [CLS, 6, SEP, 9, SEP, PAD]]
    indices = packed["token_indices"].tolist()
    assert indices == [[-1, -1, -1, 0, 1, -1], [-1, -1, -1, 2, -1, -1]]


def test_pair_literally(tokenizer):
    packed = SegmentPacker(tokenizer, sequence_length=8).pack(["a film"], ["it was not good !"])
    # Of 5 places the second text loses until both fit: 2 and 3.
    assert packed["token_ids"].tolist() == [[CLS, *ids("a film"), SEP, *ids("it was not"), SEP]]
    assert packed["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 1, 1]]


@pytest.mark.parametrize(("num_segments", "longest"), [(2, 14), (3, 6)])
def test_longest_first_is_googles_loop(num_segments, longest):
    lengths = np.array(list(np.ndindex(*[longest] * num_segments)), "int32")
    for budget in (1, 2, 7, 10, 27):
        kept = np.stack(kept_lengths(NUMPY, list(lengths.T), budget, "longest_first"), axis=1)
        assert kept.tolist() == [truncate_like_google(row, budget) for row in lengths.tolist()]


@pytest.mark.parametrize(
    ("truncation", "first", "second"),
    [("only_first", 1, 5), ("only_second", 4, 2), ("longest_first", 3, 3)],
)
def test_which_segment_gives_way(truncation, first, second):
    kept = kept_lengths(NUMPY, [np.array([4]), np.array([5])], 6, truncation)
    assert [int(k[0]) for k in kept] == [first, second]


@pytest.mark.parametrize(
    ("truncation", "wanted"),
    [
        ("head", "the film was good bad very"),
        ("tail", "and of it plot acting great"),
        ("head_tail", "the film it plot acting great"),
    ],
)
def test_which_part_remains(tokenizer, truncation, wanted):
    text = "the film was good bad very not a and of it plot acting great"
    packer = SegmentPacker(tokenizer, sequence_length=8, truncation=truncation, head_length=2)
    assert packer([text])["token_ids"].tolist() == [[CLS, *ids(wanted), SEP]]


@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"])
def test_default_padding_lengths(tokenizer, monkeypatch, backend):
    """A ladder of lengths where each length is compiled, the longest row elsewhere."""
    monkeypatch.setattr(keras.config, "backend", lambda: backend)

    def pack():
        return SegmentPacker(tokenizer)(["good " * 20, "good"])["token_ids"].shape

    is_jax = backend == "jax"
    assert pack() == (2, 24 if is_jax else 22)
    ladder = (16, 24, 32, 48, 64, 96, 100)
    assert SegmentPacker(tokenizer, 100).allowed_lengths() == (ladder if is_jax else None)
    if backend == "tensorflow":
        import tensorflow as tf

        devices = [tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")]
        monkeypatch.setattr(tf.config, "list_physical_devices", lambda: devices)
        assert pack() == (2, 24)


def test_padding_lengths(tokenizer):
    texts = ["good " * 20, "good"]
    assert SegmentPacker(tokenizer, padding_lengths=None)(texts)["token_ids"].shape == (2, 22)
    assert SegmentPacker(tokenizer, padding_lengths=[40])(texts)["token_ids"].shape == (2, 40)
    assert SegmentPacker(tokenizer, 64, padding_lengths=(64,))(["good"])["token_ids"].shape == (
        1,
        64,
    )
    assert SegmentPacker(tokenizer, 20)(texts)["token_ids"].shape == (2, 20)
    packer = SegmentPacker(tokenizer, 24, padding_lengths=(8, 16, 24))
    for words, length in ((1, 8), (6, 8), (7, 16), (14, 16), (15, 24), (22, 24), (40, 24)):
        assert packer(["good " * words])["token_ids"].shape == (1, length)


def test_one_row_without_a_batch(tokenizer):
    packed = SegmentPacker(tokenizer, sequence_length=8)("the film")
    assert packed["token_ids"].tolist() == [CLS, *ids("the film"), SEP, PAD, PAD, PAD, PAD]


def test_nothing_to_see(tokenizer):
    packer = SegmentPacker(tokenizer, padding_lengths=None)
    for texts in (["", "   ", "\t\n"], np.array(["", "", ""])):
        assert packer(texts)["token_ids"].tolist() == [[CLS, SEP]] * 3
    assert packer([])["token_ids"].shape == (0, 1)


@pytest.mark.parametrize(
    ("segments", "truncation"),
    [
        (1, "tail"),
        (3, "longest_first"),
        # TensorFlow traces each of them anew.
        pytest.param(2, "only_first", marks=pytest.mark.long("texts")),
        pytest.param(2, "only_second", marks=pytest.mark.long("texts")),
        pytest.param(2, "head_tail", marks=pytest.mark.long("texts")),
    ],
)
def test_graph_equals_eager(tokenizer, segments, truncation):
    tf = pytest.importorskip("tensorflow")
    texts = [make_reviews(30, seed=s)[0] + ["", "good " * 40] for s in range(segments)]
    packer = SegmentPacker(tokenizer, sequence_length=19, truncation=truncation, head_length=4)
    eager = packer.pack(*texts)
    # Traced once for both.
    pack = tf.function(packer.pack, input_signature=[tf.TensorSpec([None], tf.string)] * segments)
    graph = pack(*map(tf.constant, texts))
    dataset = tf.data.Dataset.from_tensor_slices(tuple(texts)).batch(32).map(pack)
    for name, wanted in eager.items():
        np.testing.assert_array_equal(graph[name], wanted)
        np.testing.assert_array_equal(next(iter(dataset))[name], wanted)


@pytest.mark.long("texts")
def test_it_is_called_as_a_kerashub_preprocessor(tokenizer):
    """The same elements mapped through KerasHub's preprocessor and through ours."""
    tf = pytest.importorskip("tensorflow")
    ours = SegmentPacker(tokenizer, 16, padding_lengths=(16,))
    peer_tokenizer = keras_hub.models.BertTokenizer(VOCABULARY, lowercase=True)
    peer = keras_hub.models.BertTextClassifierPreprocessor(peer_tokenizer, 16)
    first, second = make_reviews(8)[0], make_reviews(8, seed=1)[0]
    names = ["pos"] * 8
    for arguments in (
        (first,),
        (first, names),
        (first, np.ones(8), np.zeros(8)),
        ((first, second), names),
        ((first, second), names, np.ones(8)),
        ((first, names),),
        (((first, second), names),),
    ):
        got, wanted = ours(*arguments), peer(*arguments)
        assert type(got) is type(wanted)
        packed, *rest = got if isinstance(got, tuple) else (got,)
        theirs, *their_rest = wanted if isinstance(wanted, tuple) else (wanted,)
        assert len(rest) == len(their_rest)
        for name, array in packed.items():
            np.testing.assert_array_equal(array, keras.ops.convert_to_numpy(theirs[name]), name)
    dataset = tf.data.Dataset.from_tensor_slices(((first, second), names)).batch(8)
    packed, labels = next(iter(dataset.map(ours)))
    np.testing.assert_array_equal(packed["token_ids"], ours.pack(first, second)["token_ids"])
    assert labels.numpy().tolist() == [b"pos"] * 8


def test_rows_of_a_tensorflow_dataset_can_be_batched_later(tokenizer):
    tf = pytest.importorskip("tensorflow")
    packer = SegmentPacker(tokenizer, sequence_length=12)
    dataset = tf.data.Dataset.from_tensor_slices(["good", "the film was good"]).map(packer).batch(2)
    assert next(iter(dataset))["token_ids"].shape == (2, 12)


def test_config_round_trip(tokenizer):
    packer = SegmentPacker(tokenizer, 20, "tail", head_length=3, padding_lengths=[10])
    config = json.loads(json.dumps(keras.layers.serialize(packer)))
    twin = keras.layers.deserialize(config)
    twin.tokenizer.set_vocabulary(VOCABULARY)
    assert (
        twin(["the film"] * 2)["token_ids"].tolist()
        == packer(["the film"] * 2)["token_ids"].tolist()
    )
    assert twin.get_config() == packer.get_config()


def test_the_default_head_follows_the_length(tokenizer):
    """It was 128 at every length, and nothing of the end was kept in 130 tokens."""
    packer = SegmentPacker(tokenizer, truncation="head_tail")
    assert packer.head_length == 128
    packer.sequence_length = 16
    text = "good " * 20 + "bad " * 20
    good, bad = VOCABULARY.index("good"), VOCABULARY.index("bad")
    assert packer([text])["token_ids"].tolist() == [[CLS, *[good] * 4, *[bad] * 10, SEP]]
    twin = SegmentPacker(tokenizer, 64, "head_tail", packer.get_config()["head_length"])
    assert twin.head_length == 16
    assert SegmentPacker(tokenizer, 64, "head_tail", 50).get_config()["head_length"] == 50


def test_no_such_truncation(tokenizer):
    with pytest.raises(ValueError, match="truncation must be one of .*'middle'"):
        SegmentPacker(tokenizer, truncation="middle")


def test_bad_calls(tokenizer):
    with pytest.raises(ValueError, match=r"same number of texts, got \[1, 2\]"):
        SegmentPacker(tokenizer).pack(["a"], ["a", "b"])
    tf = pytest.importorskip("tensorflow")
    with pytest.raises(ValueError, match=r"same number of texts, got \[1, 2\]"):
        SegmentPacker(tokenizer).pack(tf.constant(["a"]), tf.constant(["a", "b"]))
    with pytest.raises(ValueError, match="cannot hold 3 segments"):
        SegmentPacker(tokenizer, sequence_length=4).pack(["a"], ["a"], ["a"])


def test_equals_googles_features_of_mrpc(shared_data):
    tf = pytest.importorskip("tensorflow")
    tokenizer = WordPieceTokenizer(shared_data / "vocab" / "bert-base-uncased" / "vocab.txt")
    packer = SegmentPacker(tokenizer, sequence_length=128, padding_lengths=(128,))
    records = tf.data.TFRecordDataset(shared_data / "golden" / "mrpc_dev_features_len128.tfrecord")
    feature = tf.io.FixedLenFeature([128], tf.int64)
    label = tf.io.FixedLenFeature([], tf.int64)
    names = {
        "input_ids": feature,
        "input_mask": feature,
        "segment_ids": feature,
        "label_ids": label,
    }
    golden = next(iter(records.map(lambda r: tf.io.parse_single_example(r, names)).batch(1000)))

    lines = (shared_data / "glue" / "MRPC" / "dev.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines[1:]]
    first, second = [row[3] for row in rows], [row[4] for row in rows]
    for packed in (
        packer.pack(first, second),
        packer.pack(tf.constant(first), tf.constant(second)),
    ):
        np.testing.assert_array_equal(packed["token_ids"], golden["input_ids"])
        np.testing.assert_array_equal(packed["padding_mask"], golden["input_mask"])
        np.testing.assert_array_equal(packed["segment_ids"], golden["segment_ids"])
    assert [int(row[0]) for row in rows] == golden["label_ids"].numpy().tolist()


def test_the_packer_of_a_preprocessor_of_keras_hub():
    """Its settings are handed on, or there is none for what our tokenizers do not do."""
    for adds_space in (False, True):
        pieces = {t: i for i, t in enumerate("<s> <pad> </s> <unk> a Ġ Ġa <mask>".split())}
        theirs = keras_hub.models.RobertaTokenizer(pieces, ["Ġ a"], add_prefix_space=adds_space)
        preprocessor = keras_hub.models.RobertaTextClassifierPreprocessor(theirs, 9)
        packer = find_segment_packer(preprocessor)
        assert packer.sequence_length == 9
        assert packer.tokenizer.add_prefix_space is adds_space
        assert packer.tokenizer.tokenize("a a") == np.asarray(theirs("a a")).tolist()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"]
    for arguments, is_read in (({}, True), ({"split_on_cjk": False}, False)):
        theirs = keras_hub.models.BertTokenizer(vocabulary, **arguments)
        preprocessor = keras_hub.models.BertTextClassifierPreprocessor(theirs, 9)
        assert (find_segment_packer(preprocessor) is not None) is is_read
    preprocessor = keras_hub.models.BertTextClassifierPreprocessor(
        keras_hub.models.BertTokenizer(vocabulary), 9, truncate="waterfall"
    )
    assert find_segment_packer(preprocessor) is None
