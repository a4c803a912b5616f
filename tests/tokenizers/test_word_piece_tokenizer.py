"""The tokenizer as a Keras layer: what it takes, looks up, refuses and is restored from."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import keras
import numpy as np
import pytest
import transformers

from keras_bert_suite import WordPieceTokenizer

TOY_VOCABULARY = Path(__file__).parents[1] / "checkpoints" / "google_tf1_toy" / "vocab.txt"

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = "un ##able the cafe ##s ! a ##b ο ##δ ##ο ##ς".split()
VOCABULARY = SPECIAL + PIECES
IDS = {piece: index for index, piece in enumerate(VOCABULARY)}


@pytest.fixture(scope="module")
def uncased():
    return WordPieceTokenizer(VOCABULARY)


def ids_of(*pieces):
    return [IDS[piece] for piece in pieces]


def test_kinds_of_python_input(uncased):
    one, two = ids_of("un", "##able"), ids_of("the")
    assert uncased.tokenize("unable") == one
    assert uncased.tokenize(b"unable") == one
    assert uncased.tokenize(["unable", b"the"]) == [one, two]
    assert uncased.tokenize(("unable", "the")) == [one, two]
    assert uncased.tokenize(np.array(["unable", "the"])) == [one, two]
    assert uncased.tokenize(np.array(["unable", "the"], dtype=object)) == [one, two]
    assert uncased.tokenize(np.array("the")) == two
    assert uncased.tokenize([]) == []
    assert uncased(["unable", "the"]) == [one, two]
    flat, lengths = uncased.tokenize_flat(["unable", "", "the"])
    assert (flat.tolist(), flat.dtype) == (one + two, np.int32)
    assert (lengths.tolist(), lengths.dtype) == ([2, 0, 1], np.int64)
    assert [array.size for array in uncased.tokenize_flat([])] == [0, 0]


@pytest.mark.parametrize("bad", [3, None, {"text": "a"}])
def test_what_is_not_text_is_refused(uncased, bad):
    with pytest.raises(ValueError, match=type(bad).__name__):
        uncased.tokenize(bad)
    with pytest.raises(ValueError, match=f"{type(bad).__name__} at index 1"):
        uncased.tokenize(["a", bad])
    with pytest.raises(ValueError, match="one flat list .* list at index 0"):
        uncased.tokenize([["a"]])


def test_special_tokens(uncased):
    assert uncased.special_tokens == ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    assert uncased.special_token_ids == [1, 2, 3, 0, 4]
    assert (uncased.unknown_token_id, uncased.start_token_id) == (1, 2)
    assert (uncased.end_token_id, uncased.pad_token_id, uncased.mask_token_id) == (3, 0, 4)


def test_special_tokens_by_other_names():
    tokenizer = WordPieceTokenizer(
        ["<pad>", "<unk>", "<s>", "</s>", "a"],
        unknown_token="<unk>",
        start_token="<s>",
        end_token="</s>",
        pad_token="<pad>",
    )
    assert tokenizer.tokenize("a b") == [4, 1]
    assert tokenizer.mask_token_id is None
    assert tokenizer.special_token_ids == [1, 2, 3, 0]


def test_lookups(uncased):
    assert uncased.vocabulary_size() == len(VOCABULARY)
    assert uncased.get_vocabulary() == VOCABULARY
    assert uncased.id_to_token(IDS["##able"]) == "##able"
    assert uncased.token_to_id("##able") == IDS["##able"]
    with pytest.raises(ValueError, match="from 0 to"):
        uncased.id_to_token(len(VOCABULARY))
    with pytest.raises(ValueError, match="'unable' is not a piece"):
        uncased.token_to_id("unable")


def test_detokenize(uncased):
    ids = uncased.tokenize("Unable cafés!")
    assert uncased.detokenize(ids) == "unable cafes!"
    assert uncased.detokenize(np.array([ids, ids])) == ["unable cafes!"] * 2
    assert uncased.detokenize(keras.ops.convert_to_tensor(ids)) == "unable cafes!"
    assert uncased.detokenize([ids, [], ids[1:2]]) == ["unable cafes!", "", "##able"]
    assert uncased.detokenize([]) == ""


def test_vocabulary_of_the_toy_checkpoint():
    tokenizer = WordPieceTokenizer(TOY_VOCABULARY)
    assert tokenizer.vocabulary_size() == 15
    assert tokenizer.tokenize("All work and no play!") == [5, 6, 7, 8, 9, 1]


@pytest.mark.parametrize(
    "content",
    [
        b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n\xc3\xa9\n##a",
        b"[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n\xc3\xa9\r\n##a\r\n",
        b"\xef\xbb\xbf[PAD]\n[UNK]\n[CLS]\n[SEP]\n\xc3\xa9\n##a \n\n\n",
    ],
)
def test_line_ends_of_a_vocabulary_file(tmp_path, content):
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    expected = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "é", "##a"]
    assert WordPieceTokenizer(path).get_vocabulary() == expected


def test_line_separators_within_a_vocabulary_file_are_pieces(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes("\n".join([*SPECIAL, "\u2028", "\x85", "a\x0bb"]).encode())
    assert WordPieceTokenizer(str(path)).vocabulary_size() == len(SPECIAL) + 3


def test_a_blank_line_within_a_vocabulary_file_is_an_id_without_text(tmp_path, run_engine):
    """SimBERT's file has one."""
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, "un", "", "##able", "the"]) + "\n")
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path)
    tokenizer = WordPieceTokenizer(tmp_path / "vocab.txt")
    assert tokenizer.vocabulary_size() == len(theirs)
    texts = ["the unable the", "", " ", "x"]
    wanted = theirs(texts, add_special_tokens=False)["input_ids"]
    assert run_engine(tokenizer, texts) == wanted
    tokenizer.save_assets(tmp_path)
    assert WordPieceTokenizer(tmp_path / "vocab.txt").get_vocabulary() == tokenizer.get_vocabulary()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "vocab.txt is empty"),
        (b"\n\n", "vocab.txt is empty"),
        (b"[PAD]\n\xff\xfe\n", "vocab.txt is not UTF-8: .* byte 0xff"),
        ("[PAD]\n▁good\n[UNK]\n▁film\n".encode(), "2 of the 4 pieces of .* such as '▁good'"),
        (
            b"[PAD]\na\n[UNK]\na\n",
            "vocab.txt holds pieces twice: 'a' at lines 2 and 4. .* take the last",
        ),
        (b"[PAD]\n[UNK]\n[CLS]\n", r"vocab.txt of 3 pieces lacks '\[SEP\]' \(end_token\)"),
        (b"a\nb\n", "unknown_token=... or start_token=..."),
    ],
)
def test_bad_vocabulary_files(tmp_path, content, message):
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        WordPieceTokenizer(path)


def test_bad_vocabulary_lists():
    with pytest.raises(ValueError, match="vocabulary list is empty"):
        WordPieceTokenizer([])
    with pytest.raises(ValueError, match="holds 5 of type int at line 6"):
        WordPieceTokenizer([*SPECIAL, 5])
    with pytest.raises(ValueError, match=r"holds 'a\\r' at line 6: .* Remove the line end"):
        WordPieceTokenizer([*SPECIAL, "a\r"])
    with pytest.raises(
        ValueError, match="Ids are int32; drop the argument `dtype`.* dtype='int64'"
    ):
        WordPieceTokenizer(SPECIAL, dtype="int64")
    with pytest.raises(FileNotFoundError):
        WordPieceTokenizer("no/such/vocab.txt")


def test_without_a_vocabulary():
    tokenizer = WordPieceTokenizer()
    for use in (tokenizer.vocabulary_size, lambda: tokenizer.tokenize("a")):
        with pytest.raises(ValueError, match="No vocabulary has been set"):
            use()
    tokenizer.set_vocabulary(VOCABULARY)
    assert tokenizer.tokenize("the") == ids_of("the")
    # What was made of the vocabulary before does not stay.
    tokenizer.set_vocabulary([*SPECIAL, "the"])
    assert tokenizer.tokenize("the") == [5] != ids_of("the")


def check_restored(restored, original):
    assert type(restored) is WordPieceTokenizer
    assert restored is not original
    assert restored.get_config() == original.get_config()
    assert restored.get_vocabulary() == original.get_vocabulary()
    assert restored.tokenize("CAFÉ Ab") == original.tokenize("CAFÉ Ab")


@pytest.fixture
def configured():
    return WordPieceTokenizer(VOCABULARY, lowercase=False, strip_accents=True, name="pieces")


def test_configuration_round_trip(configured):
    config = configured.get_config()
    assert config["vocabulary"] is None
    restored = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(configured)
    )
    restored.set_vocabulary(VOCABULARY)
    check_restored(restored, configured)


def test_assets_round_trip(configured, tmp_path):
    configured.save_assets(tmp_path)
    restored = WordPieceTokenizer.from_config(configured.get_config())
    restored.load_assets(tmp_path)
    check_restored(restored, configured)


@keras.saving.register_keras_serializable(package="test_word_piece_tokenizer")
class TokenizerHolder(keras.layers.Layer):
    """Carries a tokenizer into a `.keras` archive."""

    def __init__(self, tokenizer, **kwargs):
        super().__init__(**kwargs)
        self.tokenizer = keras.saving.deserialize_keras_object(tokenizer)
        self.built = True

    def call(self, inputs):
        return inputs

    def get_config(self):
        tokenizer = keras.saving.serialize_keras_object(self.tokenizer)
        return {**super().get_config(), "tokenizer": tokenizer}


def test_keras_archive_round_trip(configured, tmp_path):
    inputs = keras.Input((1,))
    holder = TokenizerHolder(keras.saving.serialize_keras_object(configured))
    holder.tokenizer.set_vocabulary(VOCABULARY)
    path = tmp_path / "model.keras"
    keras.Model(inputs, holder(inputs)).save(path)
    check_restored(keras.saving.load_model(path).layers[-1].tokenizer, configured)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_copies(configured, duplicate):
    configured.tokenize("used before")
    check_restored(duplicate(configured), configured)
    with pytest.raises(ValueError, match="No vocabulary"):
        duplicate(WordPieceTokenizer()).vocabulary_size()


def test_threads_share_a_tokenizer():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    texts = [f"unable the {'ab' * i} cafés" for i in range(200)]
    expected = WordPieceTokenizer(VOCABULARY).tokenize(texts)
    with ThreadPoolExecutor(8) as pool:
        assert all(ids == expected for ids in pool.map(tokenizer.tokenize, [texts] * 16))


class TestTensors:
    @pytest.fixture(autouse=True)
    def need_tensorflow(self):
        pytest.importorskip("tensorflow_text")

    def test_ranks(self, uncased):
        import tensorflow as tf

        scalar = uncased.tokenize(tf.constant("unable"))
        assert (scalar.dtype, scalar.numpy().tolist()) == (tf.int32, ids_of("un", "##able"))
        vector = uncased(tf.constant(["unable", "", "the"]))
        assert isinstance(vector, tf.RaggedTensor)
        assert vector.shape.as_list() == [3, None]
        assert vector.to_list() == [ids_of("un", "##able"), [], ids_of("the")]
        matrix = uncased.tokenize(tf.constant([["the", "a"], ["", "a the"]]))
        assert matrix.to_list() == [[ids_of("the"), ids_of("a")], [[], ids_of("a", "the")]]
        ragged = uncased.tokenize(tf.ragged.constant([["the"], []], row_splits_dtype=tf.int32))
        assert ragged.to_list() == [[ids_of("the")], []]
        assert uncased.tokenize(tf.constant([], tf.string)).to_list() == []

    def test_offsets_of_a_scalar_and_of_nothing(self, uncased):
        import tensorflow as tf

        ids, starts, ends, word_starts = uncased.tokenize_with_offsets(tf.constant("é cafés"))
        assert ids.numpy().tolist() == ids_of("[UNK]", "cafe", "##s")
        assert starts.numpy().tolist() == [0, 3, 8]
        assert ends.numpy().tolist() == [2, 8, 9]
        assert word_starts.numpy().tolist() == [True, True, False]
        empty = uncased.tokenize_with_offsets(tf.constant([], tf.string))
        assert [part.to_list() for part in empty] == [[], [], [], []]

    def test_first_use_inside_a_graph_leaves_the_tokenizer_usable(self):
        import tensorflow as tf

        tokenizer = WordPieceTokenizer(VOCABULARY)
        dataset = tf.data.Dataset.from_tensor_slices(["unable", "ΟΔΟΣ", "δ" * 300])
        ids = [row.numpy().tolist() for row in dataset.map(tokenizer)]
        assert ids == tokenizer.tokenize(["unable", "ΟΔΟΣ", "δ" * 300])
        batches = [batch.to_list() for batch in dataset.batch(3).map(tokenizer)]
        assert batches == [ids]
        assert tf.function(tokenizer.tokenize)(tf.constant(["unable"])).to_list() == ids[:1]

    def test_saved_model(self, uncased, tmp_path):
        import tensorflow as tf

        texts = ["unable", "ΟΔΟΣ", "ο" + "δ" * 199, "δ" * 201, "cafés \x00!"]
        module = tf.Module()
        module.tokenize = tf.function(
            lambda texts: uncased.tokenize(texts).to_tensor(),
            input_signature=[tf.TensorSpec([None], tf.string)],
        )
        tf.saved_model.save(module, str(tmp_path))
        restored = tf.saved_model.load(str(tmp_path))
        expected = tf.ragged.constant(uncased.tokenize(texts)).to_tensor()
        assert restored.tokenize(tf.constant(texts)).numpy().tolist() == expected.numpy().tolist()

    def test_unknown_rank_is_refused(self, uncased):
        import tensorflow as tf

        function = tf.function(
            uncased.tokenize, input_signature=[tf.TensorSpec(None, tf.string)], autograph=False
        )
        with pytest.raises(ValueError, match="tf.ensure_shape"):
            function.get_concrete_function()
