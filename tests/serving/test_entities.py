"""The exports of the tasks of words give the entities of `predict`.

The windows of a text go through the graph in batches of a bounded size, here of a few windows;
those of `EntitySpanClassifier` do so in test_long_texts.py.
"""

import keras
import numpy as np
import pytest
from peer_weights import randomize
from portable_runtimes import PORTABLE
from serving.traced import call_signatures, called_or_saved, trace
from small_byte_pairs import MERGES, make_vocabulary
from small_sentence_pieces import make_albert, make_xlm_roberta
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    AlbertTokenizer,
    BertBackbone,
    BytePairTokenizer,
    CharacterTokenizer,
    CrfTokenClassifier,
    ElmoBackbone,
    EntitySpanClassifier,
    RobertaBackbone,
    SegmentPacker,
    TokenClassifier,
    WordCutting,
    WordPieceTokenizer,
    XLMRobertaTokenizer,
    export_saved_model,
)
from keras_bert_suite.heads.base import served_texts
from keras_bert_suite.heads.base.served import serve

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")

pytestmark = pytest.mark.backend("tensorflow")

TEXTS = [
    *make_reviews(20)[0],
    *("", " ", "GOOD\u200b film, filmsly!", "好 good 电影", "👩‍👩‍👧 good", "e\u0301 g\u0301ood"),
    "good " * 100,  # many windows
    "  it's  good,\n\tfilm.\u3000\xa0 filmsly ",  # spaces that are words to byte pairs
    "\x00\ufffdgood\u0301\u0301 \U0001f1e9 film",
    "good-film, St. film didn't U.S., 1998年 100€",
]
#: Rows of words that are cut otherwise than the tokenizers cut texts.
ROWS = ["well-known St. Louis did n't buy U.S. films of 1 9 9 8 for € 100 .".split()]
MOST_TOKENS = served_texts.MOST_TOKENS
BROKEN_UTF8 = [b"good \xff\xc3 film", b"\xed\xa0\x80good"]


@pytest.fixture(autouse=True, scope="module")
def small_batches():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(served_texts, "MOST_TOKENS", 50)
        yield


def make_tagger(backbone, tokenizer):
    """A task with entities in most texts."""
    keras.utils.set_random_seed(2)
    packer = SegmentPacker(tokenizer, sequence_length=16)
    names = ["O", "B-A", "I-A", "E-A", "S-B", "I-B", "NN"]
    with pytest.warns(UserWarning, match="'NN' as the type 'NN'"):
        task = TokenClassifier(backbone, label_names=names, preprocessor=packer)
    randomize(task)
    return task


@pytest.fixture(scope="module")
def tagger():
    """Not to be changed."""
    tagger = make_tagger(BertBackbone(**ONE_LAYER), WordPieceTokenizer(VOCABULARY))
    tagger.word_cutting = WordCutting.learn(ROWS)
    return tagger


@called_or_saved
def test_signatures_find_the_entities_of_predict(tagger, open_signatures, tmp_path):
    signatures = open_signatures(tagger, tmp_path)
    check_entities(tagger, signatures["serving_default"])
    check_token_ids(tagger, signatures["serve_ids"])


@pytest.mark.long("serving")
@pytest.mark.parametrize("kind", ["byte pairs", "sentence pieces", "ALBERT"])
def test_other_tokenizers(kind):
    tokenizer = {
        "byte pairs": lambda: BytePairTokenizer(make_vocabulary(), MERGES),
        "sentence pieces": lambda: XLMRobertaTokenizer(make_xlm_roberta()),
        "ALBERT": lambda: AlbertTokenizer(make_albert()),
    }[kind]()
    cls = BertBackbone if kind == "ALBERT" else RobertaBackbone
    backbone = cls(**{**ONE_LAYER, "vocabulary_size": tokenizer.vocabulary_size()})
    tagger = make_tagger(backbone, tokenizer)
    check_entities(tagger, trace(tagger))


@pytest.mark.long("serving")
@pytest.mark.parametrize("cut", [False, True], ids=["texts", "cut words"])
def test_words_of_characters(cut):
    characters = {"filters": [(1, 3), (2, 4)], "embedding_dim": 2, "max_characters": 8}
    backbone = ElmoBackbone(None, 1, 6, 4, characters=characters)
    tagger = make_tagger(backbone, CharacterTokenizer(max_characters=8))
    # With small weights the states of the LSTMs hardly differ, and a text is one entity.
    for weight in tagger.weights:
        weight.assign(weight * 20)
    if cut:
        tagger.word_cutting = WordCutting.learn(ROWS)
    check_entities(tagger, call_signatures(tagger)["serving_default"])


def test_the_best_paths_of_a_crf():
    """Texts of many windows have one path each. Here the windows go through a graph."""
    keras.utils.set_random_seed(2)
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), sequence_length=16)
    names = ["O", "B-A", "I-A", "E-A", "S-B", "B-B", "E-B"]
    tagger = CrfTokenClassifier(BertBackbone(**ONE_LAYER), label_names=names, preprocessor=packer)
    for weight in randomize(tagger).weights[-5:]:  # the emissions and the CRF
        weight.assign(np.random.default_rng(3).normal(size=weight.shape) * 2)
    tagger.token_classifier.bias.assign([-5.0, *[0.0] * 6])
    assert tagger.scheme == "BIOES"
    check_entities(tagger, trace(tagger))
    packed = packer.pack(TEXTS[:4])
    answer = serve(tagger).answer_ids(packed)
    assert set(answer) == {"emissions"}
    np.testing.assert_allclose(answer["emissions"], tagger.predict(packed, verbose=0), atol=1e-5)


@pytest.mark.parametrize(
    "tokenizer",
    ["word pieces", pytest.param("byte pairs", marks=pytest.mark.long("serving"))],
)
def test_spans(tokenizer, monkeypatch):
    """Entities within entities, in texts of many windows, in the order of `predict`."""
    monkeypatch.setattr(served_texts, "MOST_TOKENS", MOST_TOKENS)
    keras.utils.set_random_seed(2)
    backbone, tokenizer_of_texts = BertBackbone(**ONE_LAYER), WordPieceTokenizer(VOCABULARY)
    if tokenizer == "byte pairs":
        vocabulary = make_vocabulary()
        backbone = RobertaBackbone(**{**ONE_LAYER, "vocabulary_size": len(vocabulary)})
        tokenizer_of_texts = BytePairTokenizer(vocabulary, MERGES)
    finder = EntitySpanClassifier(
        backbone,
        label_names=["A", "B"],
        preprocessor=SegmentPacker(tokenizer_of_texts, sequence_length=16),
    )
    for weight in finder.head.weights:
        weight.assign(np.random.default_rng(3).normal(size=weight.shape))
    finder.head.type_dense.bias.assign([-3.0, -2.0, -3.0, -2.0])
    check_entities(finder, call_signatures(finder)["serving_default"])
    packed = finder.preprocessor.pack(TEXTS[:4])
    found, wanted = serve(finder).answer_ids(packed)["scores"], finder.predict(packed, verbose=0)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def check_entities(tagger, serve):
    """`serve`, a signature or a function like it, answers with the entities of `predict`."""
    texts = [*(text.encode() for text in TEXTS), *BROKEN_UTF8]
    wanted = tagger.predict([text.decode("utf-8", "ignore") for text in texts], verbose=0)
    assert sum(map(len, wanted)) > 50
    got = {name: value.numpy() for name, value in serve(text=tf.constant(texts)).items()}
    places = ("starts", "ends", "byte_starts", "byte_ends")
    assert set(got) == {"labels", *places, "scores", "num_entities"}
    assert got["num_entities"].tolist() == [len(entities) for entities in wanted]
    most = max(map(len, wanted))
    for row, entities in enumerate(wanted):
        text = texts[row].decode("utf-8", "ignore")
        edges = [(text[: e.start].encode(), text[: e.end].encode()) for e in entities]
        spans = [
            (e.label.encode(), e.start, e.end, *map(len, before))
            for e, before in zip(entities, edges, strict=True)
        ]
        spans += [(b"", -1, -1, -1, -1)] * (most - len(entities))
        columns = (got[name][row].tolist() for name in ("labels", *places))
        assert list(zip(*columns, strict=True)) == spans
        scores = [e.score for e in entities] + [0] * (most - len(entities))
        np.testing.assert_allclose(got["scores"][row], scores, atol=1e-5)
    assert serve(text=tf.constant([], tf.string))["labels"].shape == (0, 0)


def check_token_ids(tagger, serve):
    packed = tagger.preprocessor.pack(TEXTS[:4])
    logits = tagger.predict(packed, verbose=0)
    answer = serve(**{name: tf.constant(array) for name, array in packed.items()})
    wanted = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(answer["probabilities"], wanted, atol=1e-5)
    np.testing.assert_array_equal(answer["label_ids"], logits.argmax(axis=-1))
    names = np.array(tagger.label_names)[logits.argmax(axis=-1)]
    np.testing.assert_array_equal(answer["labels"].numpy().astype(str), names)


@pytest.mark.long("serving")
def test_every_signature_in_a_server(tagger, native_server, tmp_path):
    native_server.answer_warmup(export_saved_model(tagger, tmp_path / "tagger"))


@pytest.mark.long("serving")
@pytest.mark.parametrize("file_format", PORTABLE)
def test_portable_formats(tagger, file_format, tmp_path):
    export, run = PORTABLE[file_format]
    export(tagger, tmp_path / "tagger")
    packer = SegmentPacker(tagger.preprocessor.tokenizer, 16, padding_lengths=(16,))
    packed = packer.pack(TEXTS[:4])
    got = run(tmp_path / "tagger", packed)["probabilities"]
    logits = tagger.predict(packed, verbose=0)
    wanted = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(got, wanted, atol=1e-5)
