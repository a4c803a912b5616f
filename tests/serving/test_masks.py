"""The exports of a `MaskedLM` give the guesses of `predict`."""

import random
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from peer_weights import randomize
from portable_runtimes import PORTABLE
from serving.traced import called_or_saved
from small_byte_pairs import MERGES, make_vocabulary
from small_sentence_pieces import make_albert, make_xlm_roberta
from small_texts import ONE_LAYER, VOCABULARY

from keras_bert_suite import (
    AlbertTokenizer,
    BertBackbone,
    BytePairTokenizer,
    MaskedLM,
    SegmentPacker,
    WordPieceTokenizer,
    XLMRobertaTokenizer,
    export_saved_model,
)
from keras_bert_suite.heads.base.input_checks import EncoderInputs
from keras_bert_suite.heads.masks.data import pack_masked_texts
from keras_bert_suite.heads.masks.served import ServedMasks

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")

pytestmark = pytest.mark.backend("tensorflow")

LENGTH = 24
CHINESE = [*VOCABULARY, *"电影好看É"]
TEXTS = [
    "the [MASK] was good",
    "[MASK]",
    "[MASK][MASK] film [MASK] [MASK]",
    "GOOD film[MASK]ly, é e\u0301 电影[MASK]好[mask] [MASK",
    "\u200b [MASK]\x00 👩‍👩‍👧 <mask>\t[[MASK]]",
    "a [MASK] " + "film " * 40,  # too long, with the mask inside
]
BROKEN_UTF8 = b"good \xff [MA\xc3SK] film"
#: Pieces of texts that look like masks, split words, or go away.
PIECES = [
    *("[mask]", "[MA", "SK]", "[", "]", "<mask>", "<mask", "##s", "film", "Good"),
    *("É", "é", "e\u0301", "电影", "好", " ", "  ", "\t\n", "\u3000", "\x1c", "\x00", "\u200b"),
    *("\ufffd", "👩‍👩‍👧", "."),
]  # fmt: skip


def make_model(top_k=3):
    keras.utils.set_random_seed(3)
    packer = SegmentPacker(WordPieceTokenizer(CHINESE), LENGTH)
    backbone = BertBackbone(**{**ONE_LAYER, "vocabulary_size": len(CHINESE)})
    return MaskedLM(backbone, preprocessor=packer, top_k=top_k)


@pytest.fixture(scope="module")
def model():
    """Not to be changed."""
    model = make_model()
    randomize(model)
    return model


@called_or_saved
def test_signatures_make_the_guesses_of_predict(model, open_signatures, tmp_path):
    signatures = open_signatures(model, tmp_path)
    texts = [*(text.encode() for text in TEXTS), BROKEN_UTF8]
    wanted = model.predict(texts, verbose=0)
    assert {len(guesses) for row in wanted for guesses in row} == {3}
    got = {k: v.numpy() for k, v in signatures["serving_default"](text=tf.constant(texts)).items()}
    assert set(got) == {"tokens", "probabilities", "starts", "byte_starts", "num_masks"}
    assert got["num_masks"].tolist() == [1, 1, 4, 2, 2, 1, 1]
    for row, guesses in enumerate(wanted):
        number = len(guesses)
        tokens = [[token.decode() for token in slot] for slot in got["tokens"][row].tolist()]
        assert tokens[:number] == [[token for token, _ in slot] for slot in guesses]
        probabilities = [[probability for _, probability in slot] for slot in guesses]
        np.testing.assert_allclose(got["probabilities"][row, :number], probabilities, atol=1e-5)
        text = texts[row].decode("utf-8", "ignore")
        starts, byte_starts = got["starts"][row], got["byte_starts"][row]
        for start, byte_start in zip(starts[:number], byte_starts[:number], strict=True):
            assert text[start:].startswith("[MASK]")
            assert text.encode()[byte_start:].startswith(b"[MASK]")
        # After the last mask of a text there is nothing.
        assert (got["tokens"][row, number:] == b"").all()
        assert (got["probabilities"][row, number:] == 0).all()
        assert (starts[number:] == -1).all() and (byte_starts[number:] == -1).all()
    # A client that has token ids gets the same guesses.
    packed = pack_masked_texts(
        model.preprocessor,
        model.data.encoder,
        ([text.decode("utf-8", "ignore") for text in texts],),
    )
    positions = packed.pop("mask_positions")
    by_ids = signatures["serve_ids"](**{k: tf.constant(v) for k, v in packed.items()})
    np.testing.assert_array_equal(by_ids["tokens"], got["tokens"])
    np.testing.assert_array_equal(by_ids["mask_positions"], np.where(positions, positions, -1))


@called_or_saved
def test_texts_without_a_mask_and_masks_beyond_the_row_have_no_guesses(
    model, open_signatures, tmp_path
):
    """`predict` refuses them, but a server puts rows of several clients into one batch."""
    serve = open_signatures(model, tmp_path)["serving_default"]
    long = "[MASK] " + "film " * 40
    texts = ["a film", "", long + "[MASK]", "film " * 40 + "[MASK]"]
    answer = serve(text=tf.constant(texts))
    assert answer["num_masks"].numpy().tolist() == [0, 0, 1, 0]
    ((guesses,),) = model.predict([long], verbose=0)
    assert [token.decode() for token in answer["tokens"].numpy()[2, 0]] == [t for t, _ in guesses]
    assert answer["starts"].numpy().tolist() == [[-1], [-1], [0], [-1]]
    for texts, shape in ((["a film"], (1, 1, 3)), ([], (0, 1, 3))):
        assert serve(text=tf.constant(texts, tf.string))["tokens"].shape == shape


def test_literal_guesses():
    """The scores are the bias of the head, whatever the text."""
    if keras.config.backend() != "tensorflow":
        pytest.skip("A graph of TensorFlow runs the model.")
    model = make_model(top_k=2)
    model.masked_lm.layer_norm.gamma.assign(np.zeros(16))
    probabilities = np.full(len(CHINESE), 0.25 / (len(CHINESE) - 2))
    probabilities[[CHINESE.index("good"), CHINESE.index("电")]] = 0.25, 0.5
    model.masked_lm.bias.assign(np.log(probabilities))
    answers = ServedMasks(model).answer_texts((tf.constant(["é[MASK]电 [MASK]", "[MASK]"]),))
    guess = ["电".encode(), b"good"]
    assert answers["tokens"].numpy().tolist() == [[guess, guess], [guess, [b"", b""]]]
    wanted = [[[0.5, 0.25], [0.5, 0.25]], [[0.5, 0.25], [0, 0]]]
    np.testing.assert_allclose(answers["probabilities"], wanted, atol=1e-5)
    assert answers["starts"].numpy().tolist() == [[1, 9], [0, -1]]
    assert answers["byte_starts"].numpy().tolist() == [[2, 12], [0, -1]]
    assert answers["num_masks"].numpy().tolist() == [2, 1]


@pytest.mark.parametrize(
    "tokenizer",
    [
        WordPieceTokenizer(CHINESE),
        BytePairTokenizer(make_vocabulary(), MERGES),
        *(
            pytest.param(tokenizer, marks=pytest.mark.long("serving"))
            for tokenizer in (
                WordPieceTokenizer(CHINESE, lowercase=False),
                BytePairTokenizer(make_vocabulary(), MERGES, add_prefix_space=True),
                AlbertTokenizer(make_albert()),
                XLMRobertaTokenizer(make_xlm_roberta()),
            )
        ),
    ],
    ids=["uncased", "byte pairs", "cased", "byte pairs with a space", "ALBERT", "XLM-RoBERTa"],
)
def test_the_ids_of_hostile_texts_are_those_of_python(tokenizer):
    rng = random.Random(0)
    pieces = [*PIECES, *[tokenizer.mask_token] * 8]
    texts = ["".join(rng.choices(pieces, k=rng.randint(1, 9))) for _ in range(400)]
    texts = [text for text in texts if tokenizer.mask_token in text]
    packer = SegmentPacker(tokenizer, 256, padding_lengths=None)
    inputs = ["token_ids", "padding_mask"]
    encoder = EncoderInputs(tuple(inputs))
    task = SimpleNamespace(preprocessor=packer, data=SimpleNamespace(encoder=encoder))
    wanted = pack_masked_texts(packer, encoder, (texts,))
    got = ServedMasks(task).pack((tf.constant(texts),))
    assert len(texts) > 250
    for name in inputs:
        np.testing.assert_array_equal(got[name], wanted[name])


def test_no_guess_is_beyond_a_short_vocabulary():
    """Some embeddings have more rows than there are tokens."""
    packer = SegmentPacker(WordPieceTokenizer(CHINESE), LENGTH)
    backbone = BertBackbone(**{**ONE_LAYER, "vocabulary_size": len(CHINESE) + 40})
    model = MaskedLM(backbone, preprocessor=packer, top_k=len(CHINESE))
    got = ServedMasks(model).answer_texts((tf.constant(["a [MASK]"]),))
    assert {token.decode() for token in got["tokens"].numpy()[0, 0]} == {*CHINESE}
    ((wanted,),) = model.predict(["a [MASK]"], verbose=0)
    probabilities = [probability for _, probability in wanted]
    np.testing.assert_allclose(got["probabilities"][0, 0], probabilities, atol=1e-6)


@pytest.mark.long("serving")
def test_every_signature_in_a_server(model, native_server, tmp_path):
    answered = native_server.answer_warmup(export_saved_model(model, tmp_path / "guesses"))
    names = {name for name, _, _ in answered}
    assert names == {"serving_default", "serve_ids", "serve_examples", "embed"}
    for name, _, answer in answered:
        # The requests have masks, so the head is run.
        assert name == "embed" or (answer["num_masks"] == 1).all()


def test_bad_input():
    with pytest.raises(ValueError, match="top_k must be an integer of at least 1, got 0"):
        make_model(top_k=0)


@pytest.mark.long("serving")
@pytest.mark.parametrize("file_format", PORTABLE)
def test_portable_formats(model, file_format, tmp_path):
    """For LiteRT positions are padded to the length of a row, as token ids are."""
    export, run = PORTABLE[file_format]
    export(model, tmp_path / "model")
    packed = pack_masked_texts(model.preprocessor, model.data.encoder, (TEXTS[:4],))
    length = model.preprocessor.sequence_length
    padded = {
        name: np.pad(array, [(0, 0), (0, length - array.shape[1])])
        for name, array in packed.items()
    }
    inputs = padded if file_format == "LiteRT" else packed
    got = run(tmp_path / "model", inputs)["probabilities"][:, : packed["mask_positions"].shape[1]]
    wanted = keras.ops.convert_to_numpy(keras.ops.softmax(model.predict(packed, verbose=0)))
    np.testing.assert_allclose(got, wanted, atol=1e-5)
