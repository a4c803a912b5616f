"""The exports of a `QuestionAnswerer` give the answers of `predict`."""

import keras
import numpy as np
import pytest
from peer_weights import randomize
from portable_runtimes import PORTABLE
from serving.traced import called_or_saved, save_signatures
from small_byte_pairs import MERGES, make_vocabulary
from small_sentence_pieces import make_xlm_roberta
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    BertBackbone,
    BytePairTokenizer,
    NezhaBackbone,
    QuestionAnswerer,
    RobertaBackbone,
    SegmentPacker,
    WordPieceTokenizer,
    XLMRobertaTokenizer,
    export_saved_model,
)

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")

pytestmark = pytest.mark.backend("tensorflow")

CONTEXTS = [
    *make_reviews(12)[0],
    *("", " ", "\x01", "GOOD\u200b film, filmsly!", "好 good 电影", "👩‍👩‍👧 good"),
    " ".join(text for text in make_reviews(12, seed=3)[0]),  # many windows
    "  it's  good,\n\tfilm.\u3000\xa0 filmsly ",  # spaces that are words to byte pairs
    "e\u0301 g\u0301ood \x00\ufffdgood\u0301\u0301 \U0001f1e9 film",
]
BROKEN_UTF8 = [b"good \xff\xc3 film", b"\xed\xa0\x80good"]
QUESTIONS = [text[: 14 * (row % 4)] for row, text in enumerate(make_reviews(23, seed=5)[0])]


def make_answerer(backbone, tokenizer, threshold):
    keras.utils.set_random_seed(2)
    packer = SegmentPacker(tokenizer, sequence_length=24)
    task = QuestionAnswerer(
        backbone, preprocessor=packer, query_length=5, max_answer_length=7, stride=6
    )
    randomize(task)
    task.no_answer_threshold = threshold
    return task


@pytest.fixture(scope="module")
def answerer():
    """Not to be changed."""
    task = make_answerer(BertBackbone(**ONE_LAYER), WordPieceTokenizer(VOCABULARY), 0.0)
    odds = [answer.null_odds for answer in task.predict((QUESTIONS[:12], CONTEXTS[:12]), verbose=0)]
    task.no_answer_threshold = float(np.mean(np.sort(odds)[5:7]))
    return task


@called_or_saved
def test_signatures_find_the_answers_of_predict(answerer, open_signatures, tmp_path):
    signatures = open_signatures(answerer, tmp_path)
    wanted = check_answers(answerer, signatures)
    check_token_ids(answerer, signatures)
    assert 5 < sum(bool(answer.text) for answer in wanted) < 18


@pytest.mark.long("serving")
@pytest.mark.parametrize("kind", ["byte pairs", "sentence pieces"])
def test_other_tokenizers(kind, tmp_path):
    """They always answer, unless there is no text. SentencePiece leaves control characters out."""
    empty = ["", " "] if kind == "byte pairs" else ["", " ", "\x01"]
    if kind == "byte pairs":
        tokenizer = BytePairTokenizer(make_vocabulary(), MERGES)
    else:
        tokenizer = XLMRobertaTokenizer(make_xlm_roberta())
    backbone = RobertaBackbone(**{**ONE_LAYER, "vocabulary_size": tokenizer.vocabulary_size()})
    answerer = make_answerer(backbone, tokenizer, None)
    wanted = check_answers(answerer, save_signatures(answerer, tmp_path))
    contexts = [*CONTEXTS, *BROKEN_UTF8]
    assert [c for c, answer in zip(contexts, wanted, strict=True) if not answer.text] == empty


class PaddedLeft(WordPieceTokenizer):
    summary_place, summary_segment, padding_side = "last", 2, "left"


class LastSummary(NezhaBackbone):
    summary_place = "last"


@pytest.mark.long("serving")
def test_a_summary_that_is_last(tmp_path):
    """No answer is at the last place of a row."""
    backbone = LastSummary(**{**ONE_LAYER, "num_segments": 3})
    answerer = make_answerer(backbone, PaddedLeft(VOCABULARY), 0.0)
    answers = answerer.predict((QUESTIONS[:12], CONTEXTS[:12]), verbose=0)
    answerer.no_answer_threshold = float(np.median([answer.null_odds for answer in answers]))
    check_answers(answerer, save_signatures(answerer, tmp_path))


def check_answers(answerer, signatures):
    """The texts have the answers of `predict`."""
    serve = signatures["serving_default"]
    contexts = [*(text.encode() for text in CONTEXTS), *BROKEN_UTF8]
    wanted = answerer.predict((QUESTIONS, contexts), verbose=0)
    inputs = {"question": tf.constant(QUESTIONS), "context": tf.constant(contexts)}
    got = {name: value.numpy() for name, value in serve(**inputs).items()}
    places = ("starts", "ends", "byte_starts", "byte_ends")
    assert set(got) == {"answers", *places, "scores", "null_odds"}
    assert [answer.decode() for answer in got["answers"]] == [answer.text for answer in wanted]
    assert got["starts"].tolist() == [answer.start for answer in wanted]
    assert got["ends"].tolist() == [answer.end for answer in wanted]
    for answer, context, start, end in zip(
        wanted, contexts, got["byte_starts"], got["byte_ends"], strict=True
    ):
        text = context.decode("utf-8", "ignore")
        edges = [len(text[:place].encode()) for place in (answer.start, answer.end)]
        assert [start, end] == (edges if answer.text else [-1, -1])
        assert text.encode()[start:end].decode() == answer.text
    np.testing.assert_allclose(got["scores"], [answer.score for answer in wanted], atol=1e-5)
    np.testing.assert_allclose(got["null_odds"], [a.null_odds for a in wanted], atol=1e-4)
    nothing = serve(**{name: tf.constant([], tf.string) for name in inputs})
    assert all(value.shape == (0,) for value in nothing.values())
    return wanted


def check_token_ids(answerer, signatures):
    packed = answerer.preprocessor.pack(QUESTIONS[:4], CONTEXTS[:4])
    answer = signatures["serve_ids"](**{name: tf.constant(array) for name, array in packed.items()})
    outputs = answerer.predict(packed, verbose=0)
    np.testing.assert_allclose(answer["start_logits"], outputs[:, 0], atol=1e-5)
    np.testing.assert_allclose(answer["end_logits"], outputs[:, 1], atol=1e-5)


@pytest.mark.long("serving")
def test_every_signature_in_a_server(answerer, native_server, tmp_path):
    folder = export_saved_model(answerer, tmp_path / "answerer")
    answered = native_server.answer_warmup(folder)
    assert {name for name, _, _ in answered} >= {"serving_default", "serve_ids", "serve_examples"}


@pytest.mark.long("serving")
@pytest.mark.parametrize("file_format", PORTABLE)
def test_portable_formats(answerer, file_format, tmp_path):
    export, run = PORTABLE[file_format]
    export(answerer, tmp_path / "answerer")
    packer = SegmentPacker(answerer.preprocessor.tokenizer, 24, padding_lengths=(24,))
    packed = packer.pack(QUESTIONS[:4], CONTEXTS[:4])
    answer = run(tmp_path / "answerer", packed)
    got = [answer["start_logits"], answer["end_logits"]]
    wanted = answerer.predict(packed, verbose=0)
    np.testing.assert_allclose(np.stack(got, axis=1), wanted, atol=1e-5)
