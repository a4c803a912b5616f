"""`CharacterTokenizer` beside a transcription of the original, and tasks on words."""

import pickle
import random
from pathlib import Path

import keras
import numpy as np
import pytest
from serving.traced import called_or_saved

from keras_bert_suite import (
    AdamW,
    BertBackbone,
    CharacterTokenizer,
    ElmoBackbone,
    SegmentPacker,
    TextClassifier,
    TokenClassifier,
    WordPieceTokenizer,
    export_onnx,
    open_runtime,
)

ORIGINAL = Path(__file__).parents[1] / "models" / "elmo_bilm"
SIZES = {"num_layers": 1, "units": 6, "projection_dim": 4}
CHARACTERS = {"filters": [(1, 3), (2, 4)], "embedding_dim": 2, "max_characters": 8}
ROWS = [["Ann", "lives", "in", "Ulm"], ["no", "one"], ["Bob", "met", "Eve"], ["hm"]]
TAGS = [["PER", "O", "O", "LOC"], ["O", "O"], ["PER", "O", "PER"], ["O"]]


def list_characters(token, size):
    """`UnicodeCharsVocabulary` of data.py, and the 1 that `Batcher` adds to its ids."""
    word = np.full(size, 260)
    word[0] = 258
    if token in ("<S>", "</S>"):
        word[1], word[2] = {"<S>": 256, "</S>": 257}[token], 259
    else:
        encoded = token.encode("utf-8", "ignore")[: size - 2]
        word[1 : len(encoded) + 1] = list(encoded)
        word[len(encoded) + 1] = 259
    return (word + 1).tolist()


def make_texts(number):
    rng = random.Random(0)
    alphabet = [
        "a",
        "B",
        " ",
        "\t",
        "\u3000",
        ",",
        "-",
        "é",
        "猫",
        "\x00",
        "\x1c",
        "\u2028",
        "𝒳",
        "[",
    ]
    return ["".join(rng.choices(alphabet, k=rng.randrange(30))) for _ in range(number)]


def make_packer(size=8, length=6):
    return SegmentPacker(CharacterTokenizer(max_characters=size), length)


def test_rows_of_the_original():
    tokenizer = CharacterTokenizer(split_punctuation=False)
    text = "Zürich's <S> " + "long" * 20 + " x"
    wanted = [list_characters(word, 50) for word in text.split()]
    wanted[1] = tokenizer.tokenize_words(["<S>"])[0][0].tolist()  # A text has no special token.
    assert tokenizer.tokenize(text) == wanted and wanted[1] != list_characters("<S>", 50)
    rows = [list_characters(token, 50) for token in ("<S>", "</S>")]
    assert tokenizer.special_rows.tolist() == [*rows, [0] * 50]
    assert tokenizer.detokenize(tokenizer.tokenize("Zürich is")) == ["Zürich", "is"]
    ids, lengths = tokenizer.tokenize_flat(["a b", "", "c"])
    assert (ids.shape, ids.dtype, lengths.tolist()) == ((3, 50), np.int32, [2, 0, 1])
    ids, lengths = tokenizer.tokenize_words(["New York", "", "x"])
    assert lengths.tolist() == [1, 0, 1] and ids[0].tolist() == list_characters("New York", 50)


def test_words_and_offsets():
    tokenizer = CharacterTokenizer()
    for text in make_texts(300):
        ids, offsets, starts = tokenizer.tokenize_with_offsets(text)
        words = [text[begin:end] for begin, end in offsets]
        assert ids == tokenizer.tokenize(text) == [list_characters(word, 50) for word in words]
        assert all(starts) and "".join(words) == "".join(text.split())
    _, offsets, _ = tokenizer.tokenize_with_offsets("It's 猫猫.")
    assert offsets == [(0, 2), (2, 3), (3, 4), (5, 6), (6, 7), (7, 8)]


@pytest.mark.parametrize("splits", [True, False])
def test_the_graph_equals_python(splits):
    tf = pytest.importorskip("tensorflow")
    tokenizer = CharacterTokenizer(max_characters=6, split_punctuation=splits)
    texts = make_texts(500)
    got = tokenizer.tokenize(tf.constant(texts))
    ids, lengths = tokenizer.tokenize_flat(texts)
    np.testing.assert_array_equal(got.row_lengths(), lengths)
    np.testing.assert_array_equal(got.flat_values, ids)
    _, *places, word_starts = tokenizer.tokenize_with_offsets(tf.constant(texts))
    assert all(word_starts.flat_values)
    begins, ends = (rows.to_list() for rows in places)
    for text, (_, offsets, _), *spans in zip(
        texts, tokenizer.tokenize_with_offsets(texts), begins, ends, strict=True
    ):
        in_bytes = [tuple(len(text[:place].encode()) for place in span) for span in offsets]
        assert list(zip(*spans, strict=True)) == in_bytes
    words = ["New York", "", "a-b", "long word", "猫猫"]
    got = tokenizer.tokenize_words(tf.constant(words))
    ids, lengths = tokenizer.tokenize_words(words)
    np.testing.assert_array_equal(got.row_lengths(), lengths)
    np.testing.assert_array_equal(got.flat_values, ids)
    packer = SegmentPacker(tokenizer, 7)
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(500).map(packer)
    wanted = packer(texts)
    for name, array in next(iter(dataset)).items():
        np.testing.assert_array_equal(array, wanted[name])


def test_packed_rows():
    packed = make_packer().pack(["a b", "a b c d e f"], ["c", "g"])
    assert packed.keys() == {"character_ids", "padding_mask"}
    rows = [["<S>", "a", "b", "</S>", "c", "</S>"], ["<S>", "a", "b", "</S>", "g", "</S>"]]
    wanted = [[list_characters(token, 8) for token in row] for row in rows]
    assert packed["character_ids"].tolist() == wanted
    packed = make_packer().pack(["a b c", "a"])
    assert packed["padding_mask"].tolist() == [[1] * 5, [1] * 3 + [0] * 2]
    assert (packed["character_ids"][1, 3:] == 0).all() and (packed["character_ids"][0] > 0).all()
    windows = make_packer().pack_windows(["a b c d e f"], stride=2)
    assert windows["character_ids"].shape[1:] == (6, 8)
    assert windows["token_indices"].tolist() == [[-1, 0, 1, 2, 3, -1], [-1, 2, 3, 4, 5, -1]]


def test_copies(tmp_path):
    tokenizer = CharacterTokenizer(max_characters=7, split_punctuation=False)
    ElmoBackbone(None, **SIZES, characters=CHARACTERS).save_to_preset(tmp_path)
    SegmentPacker(tokenizer, 9).save_to_preset(tmp_path)
    config = keras.saving.serialize_keras_object(tokenizer)
    for copy in (
        SegmentPacker.from_preset(tmp_path).tokenizer,
        pickle.loads(pickle.dumps(tokenizer)),
        keras.saving.deserialize_keras_object(config),
    ):
        assert type(copy) is CharacterTokenizer and copy.tokenize("a-b c") == tokenizer("a-b c")
        assert copy.digest == tokenizer.digest


def test_texts_and_words(tmp_path):
    backbone = ElmoBackbone(None, **SIZES, characters=CHARACTERS)
    tagger = TokenClassifier(backbone, label_names=["O", "PER", "LOC"], preprocessor=make_packer())
    tagger.compile(AdamW(1e-2))
    history = tagger.fit(ROWS * 4, TAGS * 4, epochs=2, verbose=0).history
    assert history["loss"][1] < history["loss"][0]
    rows = [*ROWS, "Ann lives in Ulm, and Bob does not."]
    assert list(map(len, tagger.predict_probabilities(rows, verbose=0))) == [4, 2, 3, 1, 10]
    tagger.save(tmp_path / "tagger.keras")
    again = keras.saving.load_model(tmp_path / "tagger.keras")
    probabilities = [task.predict_probabilities(ROWS, verbose=0) for task in (tagger, again)]
    for got, wanted in zip(*probabilities, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)
    classifier = TextClassifier(backbone, label_names=["no", "yes"], preprocessor=make_packer())
    classifier.compile(AdamW(1e-2))
    texts = ["a good film", "dull", "good , very good", "so dull a film"]
    classifier.fit(texts * 4, ["yes", "no"] * 8, epochs=1, verbose=0)
    assert classifier.predict(texts, verbose=0).shape == (4, 2)


def test_a_task_of_the_original_files():
    classifier = TextClassifier.from_preset(ORIGINAL, label_names=["no", "yes"], sequence_length=12)
    tokenizer = classifier.preprocessor.tokenizer
    assert (type(tokenizer), tokenizer.max_characters) == (CharacterTokenizer, 50)
    assert classifier.predict(["a good film", "Dull!"], verbose=0).shape == (2, 2)


@pytest.mark.backend("tensorflow")
@called_or_saved
def test_signatures_take_strings(open_signatures, tmp_path):
    tf = pytest.importorskip("tensorflow")
    backbone = ElmoBackbone(None, **SIZES, characters=CHARACTERS)
    classifier = TextClassifier(backbone, label_names=["no", "yes"], preprocessor=make_packer())
    classifier.input_names = ("text",)
    texts = ["a good film", "Dull !"]
    signatures = open_signatures(classifier, tmp_path)
    got = signatures["serving_default"](text=tf.constant(texts))["probabilities"]
    wanted = classifier.predict_probabilities(texts, verbose=0)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)
    got = signatures["serve_ids"](**make_packer().pack(texts))["probabilities"]
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)


@pytest.mark.backend("tensorflow")
@pytest.mark.long("serving")
def test_a_runtime_reads_characters(tmp_path):
    pytest.importorskip("tf2onnx")
    pytest.importorskip("onnxruntime")
    backbone = ElmoBackbone(None, **SIZES, characters=CHARACTERS)
    tagger = TokenClassifier(backbone, label_names=["O", "PER", "LOC"], preprocessor=make_packer())
    rows = [*ROWS, "Ann lives in Ulm, and Bob does not."]
    wanted = tagger.predict_probabilities(rows, verbose=0)
    export_onnx(tagger, tmp_path / "tagger")
    got = open_runtime(tmp_path / "tagger").predict_probabilities(rows)
    for ours, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def test_what_does_not_fit():
    backbone = ElmoBackbone(None, **SIZES, characters=CHARACTERS)
    words = SegmentPacker(WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]), 6)
    for encoder, packer in (
        (backbone, words),
        (ElmoBackbone(300, **SIZES), make_packer()),
        (BertBackbone.from_size("tiny", 300), make_packer()),
    ):
        with pytest.raises(ValueError, match=r"has no use for a (Word|Char).*with `characters`"):
            TextClassifier(encoder, 2, preprocessor=packer)
    tokenizer = CharacterTokenizer()
    with pytest.raises(ValueError, match="reads the characters of each word, got the added_tokens"):
        tokenizer.add_tokens(["[E]"])
    with pytest.raises(ValueError, match="transformers has no ELMo"):
        tokenizer.hugging_face_config()
    with pytest.raises(ValueError, match="max_characters must be .* got 2"):
        CharacterTokenizer(max_characters=2)
