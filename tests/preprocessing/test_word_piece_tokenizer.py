import copy
import itertools
import pickle
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import google_tokenization
import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_bert_suite import WordPieceTokenizer

pytestmark = pytest.mark.backend_free

TOY_VOCABULARY = Path(__file__).parents[1] / "data" / "google_tf1_toy" / "vocab.txt"

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# fmt: off
PIECES = [
    "un", "##able", "the", "cafe", "café", "##s", "!", "'", "[", "]", "sep", "一", "丁",
    "ο", "##δ", "##ο", "##σ", "##ς", "a", "A", "##b", "##a", "##é", "##e", "ᄀ", "##ᅡ", "##ᆨ", "가",
]
# fmt: on
VOCABULARY = SPECIAL + PIECES
IDS = {piece: index for index, piece in enumerate(VOCABULARY)}

#: Characters at the borders of the rules.
BORDERLINE = (
    list("ΣΣσςοδΟΔaAbBéÉİıßẞﬁ½1 ")
    + list("'’.·ʰˑ!#[]“”。，≠\u037e\u0387\u1fef")  # Punctuation and what sigma looks past.
    + list("\u0301\u0308\u0345\u0488\u302e")  # Combining marks.
    + list("\x00\x01\x0b\x1c\x7f\x85\u00ad\u200b\u200d\ufeff\ufffd")  # Deleted.
    + list("\t\n\r\xa0\u1680\u2028\u2029\u3000")  # Spaces.
    + list("一龥\u9fff\uf900\U0002b81f\U0002b820\U0002ceaf\U0002ceb0\U0002f800가각ᄀカが")
    + list("\ue000\uf8ff\ufdd0\U0010ffff\u1b4e\U00011f43\U0001fae8\U0001f600")  # Letters, to BERT.
)


@pytest.fixture(scope="module")
def uncased():
    return WordPieceTokenizer(VOCABULARY)


@pytest.fixture(scope="module")
def cased():
    return WordPieceTokenizer(VOCABULARY, lowercase=False)


def ids_of(*pieces):
    return [IDS[piece] for piece in pieces]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        (" \n\t ", []),
        ("Unable !", ["un", "##able", "!"]),
        ("the,the", ["the", "[UNK]", "the"]),
        ("CAFÉS", ["cafe", "##s"]),
        ("cafe\u0301s", ["cafe", "##s"]),
        ("[SEP]", ["[", "sep", "]"]),
        ("the一丁the", ["the", "一", "丁", "the"]),
        ("un\x00ab\u200ble", ["un", "##able"]),
        ("un\u2028able", ["un", "[UNK]"]),
        ("ΟΔΟΣ", ["ο", "##δ", "##ο", "##ς"]),
        ("ΟΔΟΣ'", ["ο", "##δ", "##ο", "##ς", "'"]),
        ("ΟΔΟΣ'a", ["ο", "##δ", "##ο", "##σ", "'", "a"]),
        ("각", ["ᄀ", "##ᅡ", "##ᆨ"]),
        ("a" + "b" * 199, ["a"] + ["##b"] * 199),
        ("a" + "b" * 200, ["[UNK]"]),
        ("ο" + "δ" * 199, ["ο"] + ["##δ"] * 199),
        ("ο" + "δ" * 200 + " the", ["[UNK]", "the"]),
        ("A" + "\u0301" * 300 + "b", ["a", "##b"]),
        ("a \ue000 \U0010ffff \U0001f600", ["a", "[UNK]", "[UNK]", "[UNK]"]),
    ],
)
def test_ids_of_lower_cased_text(uncased, run_engine, text, pieces):
    assert run_engine(uncased, [text]) == [ids_of(*pieces)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("the café", ["the", "café"]),
        ("cafe\u0301", ["[UNK]"]),
        ("Ab aÉ aé", ["A", "##b", "[UNK]", "a", "##é"]),
        ("가", ["가"]),
        ("ο" + "δ" * 199, ["ο"] + ["##δ"] * 199),
        ("ο" + "δ" * 200, ["[UNK]"]),
    ],
)
def test_ids_of_cased_text(cased, run_engine, text, pieces):
    assert run_engine(cased, [text]) == [ids_of(*pieces)]


def test_lower_case_and_accents_are_separate_choices(run_engine):
    kept = WordPieceTokenizer(VOCABULARY, lowercase=True, strip_accents=False)
    assert run_engine(kept, ["CAFÉ 가 aÉ"]) == [ids_of("café", "가", "a", "##é")]
    stripped = WordPieceTokenizer(VOCABULARY, lowercase=False, strip_accents=True)
    assert run_engine(stripped, ["café Aé"]) == [ids_of("cafe", "A", "##e")]


def test_characters_of_later_unicode_versions_are_letters(run_engine):
    # Punctuation since Unicode 16, 15 and a noncharacter; two are in the vocabulary.
    vocabulary = [*SPECIAL, "a", "##\u1b4e", "\U00011f43", "##a", "\ue000", "##\ue001"]
    tokenizer = WordPieceTokenizer(vocabulary)
    texts = ["a\u1b4ea", "\U00011f43a", "a\u1b4f", "\U00011f43", "\U00011f44", "\ue000\ue001\ue002"]
    expected = [google_tokenization.tokenize(text, vocabulary, True) for text in texts]
    assert expected[:5] == [[5, 6, 8], [7, 8], [1], [7], [1]]
    assert run_engine(tokenizer, texts) == expected
    assert run_engine(tokenizer, ["\ue000\ue001", "\ue001"]) == [[9, 10], [1]]


def test_a_piece_with_a_space_in_it_matches_nothing(run_engine):
    tokenizer = WordPieceTokenizer([*SPECIAL, "a", "b", "a b", "a\u3000b"])
    assert run_engine(tokenizer, ["a b", "a\u3000b"]) == [[5, 6], [5, 6]]


def test_visible_marks_are_put_in_canonical_order():
    # Not in the graph: see FastGraphTokenizer.
    tokenizer = WordPieceTokenizer([*SPECIAL, "a", "##\U0001d165", "##\U0001d16d"])
    assert tokenizer.tokenize("a\U0001d16d\U0001d165") == [5, 6, 7]
    ids, offsets, _ = tokenizer.tokenize_with_offsets("a\U0001d16d\U0001d165")
    assert (ids, offsets) == ([5, 6, 7], [(0, 1), (1, 3), (1, 3)])


texts_strategy = st.lists(
    st.lists(
        st.one_of(
            st.sampled_from(BORDERLINE),
            st.sampled_from([piece.removeprefix("##") for piece in PIECES]),
            st.characters(),
            st.sampled_from(["a" * 199, "é" * 101, "ก" * 67, "一" * 70, "ab" * 101, "δ" * 200]),
        )
    ).map("".join),
    min_size=8,
    max_size=8,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(texts=texts_strategy)
@pytest.mark.parametrize("lowercase", [True, False])
def test_both_engines_equal_the_original_rules(texts, lowercase, uncased, cased):
    tokenizer = uncased if lowercase else cased
    eager = tokenizer.tokenize(texts)
    flat, lengths = tokenizer.tokenize_flat(texts)
    assert flat.tolist() == list(itertools.chain.from_iterable(eager))
    assert lengths.tolist() == [len(row) for row in eager]
    assert [row[0] for row in tokenizer.tokenize_with_offsets(texts)] == eager
    if unicodedata.unidata_version == "14.0.0":
        assert eager == [google_tokenization.tokenize(t, VOCABULARY, lowercase) for t in texts]
    tf = pytest.importorskip("tensorflow")
    encoded = [text.encode("utf-8", "ignore") for text in texts]
    assert tokenizer.tokenize(encoded) == eager
    assert tokenizer.tokenize(tf.constant(encoded)).to_list() == eager


@settings(max_examples=30, deadline=None, derandomize=True)
@given(texts=texts_strategy)
def test_offsets_of_both_engines_agree(texts, uncased):
    tf = pytest.importorskip("tensorflow")
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    in_graph = [part.to_list() for part in uncased.tokenize_with_offsets(tf.constant(texts))]
    for text, row, *graph_row in zip(
        texts, uncased.tokenize_with_offsets(texts), *in_graph, strict=True
    ):
        ids, offsets, word_starts = row
        bytes_before = [0, *itertools.accumulate(len(c.encode()) for c in text)]
        starts = [bytes_before[start] for start, _ in offsets]
        ends = [bytes_before[end] for _, end in offsets]
        assert [ids, starts, ends, word_starts] == graph_row


@settings(max_examples=60, deadline=None, derandomize=True)
@given(text=st.lists(st.one_of(st.sampled_from(BORDERLINE), st.characters())).map("".join))
def test_offsets_cover_what_a_piece_was_made_from(text, cased):
    """Without lower case and decomposition a span holds its piece and what was deleted."""
    ids, offsets, _ = cased.tokenize_with_offsets(text)
    for id, (start, end) in zip(ids, offsets, strict=True):
        token = VOCABULARY[id].removeprefix("##")
        if token != "[UNK]":
            kept = [c for c in text[start:end] if google_tokenization.clean_character(c)]
            assert "".join(kept) == token


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Unable, THE", ["Un", "able", ",", "THE"]),
        ("caf\u00e9s", ["caf\u00e9", "s"]),
        ("cafe\u0301s !", ["cafe\u0301", "s", "!"]),
        ("the一 丁", ["the", "一", "丁"]),
        ("un\u00adable", ["un\u00ad", "able"]),
        ("the.\u200b a", ["the", ".\u200b", "a"]),
        ("각", ["각", "각", "각"]),
        ("ΟΔΟΣ the", ["Ο", "Δ", "Ο", "Σ", "the"]),
        ("x" * 300 + " a", ["x" * 300, "a"]),
    ],
)
def test_spans(uncased, text, expected):
    _, offsets, _ = uncased.tokenize_with_offsets(text)
    assert [text[start:end] for start, end in offsets] == expected


def test_word_starts(uncased):
    ids, offsets, word_starts = uncased.tokenize_with_offsets("Unable cafés")
    assert ids == ids_of("un", "##able", "cafe", "##s")
    assert offsets == [(0, 2), (2, 6), (7, 11), (11, 12)]
    assert word_starts == [True, False, True, False]


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


def test_what_is_no_text_vanishes(uncased, run_engine):
    the = ids_of("the")
    assert uncased.tokenize("t\ud800h\x00e\ufffd") == the
    assert run_engine(uncased, [b"t\xffh\xe2\x80e\xf0\x9f\x98\xed\xa0\x80\xc3"]) == [the]


@pytest.mark.parametrize("bad", [3, None, {"text": "a"}])
def test_what_is_not_text_is_refused(uncased, bad):
    with pytest.raises(ValueError, match=type(bad).__name__):
        uncased.tokenize(bad)
    with pytest.raises(ValueError, match=f"{type(bad).__name__} at index 1"):
        uncased.tokenize(["a", bad])


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
    assert uncased.detokenize(ids) == "unable cafes !"
    assert uncased.detokenize(np.array([ids, ids])) == ["unable cafes !"] * 2
    assert uncased.detokenize(keras.ops.convert_to_tensor(ids)) == "unable cafes !"
    assert uncased.detokenize([ids, [], ids[1:2]]) == ["unable cafes !", "", "##able"]
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "vocab.txt is empty"),
        (b"\n\n", "vocab.txt is empty"),
        (b"[PAD]\n\xff\xfe\n", "vocab.txt is not UTF-8: line 2 holds the byte 0xff"),
        (b"[PAD]\n\n[UNK]\n", "vocab.txt holds '' at line 2"),
        (b"[PAD]\na\n[UNK]\na\n", "vocab.txt holds pieces twice: 'a' at lines 2 and 4"),
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
    with pytest.raises(FileNotFoundError):
        WordPieceTokenizer("no/such/vocab.txt")


def test_without_a_vocabulary():
    tokenizer = WordPieceTokenizer()
    for use in (tokenizer.vocabulary_size, lambda: tokenizer.tokenize("a")):
        with pytest.raises(ValueError, match="No vocabulary has been set"):
            use()
    tokenizer.set_vocabulary(VOCABULARY)
    assert tokenizer.tokenize("the") == ids_of("the")


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


def test_more_distinct_words_than_are_remembered(monkeypatch):
    module = "keras_bert_suite.preprocessing.cached_word_piece.MAX_CACHED_SEGMENTS"
    monkeypatch.setattr(module, 3)
    tokenizer = WordPieceTokenizer(VOCABULARY)
    for _ in range(2):
        assert tokenizer.tokenize("a ab aba the un !") == ids_of(
            "a", "a", "##b", "a", "##b", "##a", "the", "un", "!"
        )


def test_long_texts(uncased, run_engine):
    """Quadratic time would show as minutes."""
    texts = ["a" * 1_000_000, "a " * 300_000, "οΣ'" * 50_000, ("ο" + "δ" * 150 + " ") * 500]
    rows = run_engine(uncased, texts)
    assert rows[0] == ids_of("[UNK]")
    assert [len(row) for row in rows[1:]] == [300_000, 150_000, 75_500]
    assert set(rows[3]) == set(ids_of("ο", "##δ"))


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
