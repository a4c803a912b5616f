import keras
import numpy as np
import pandas
import pytest
from peer_weights import randomize
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    AdamW,
    BertBackbone,
    LinearWarmupDecay,
    RankingLoss,
    SegmentPacker,
    TextClassifier,
    TextRanker,
    WordPieceTokenizer,
)
from keras_bert_suite.checkpoints import save_hugging_face
from keras_bert_suite.heads.vectors.vector_search import SearchHit

LENGTH = 20


def make_rows(num_rows, seed=0):
    """Lists of 2 to 4 candidates. The relevant one has "good"."""
    rng = np.random.default_rng(seed)
    queries = make_reviews(num_rows, seed)[0]
    texts = [text.replace("good", "bad") for text in make_reviews(4 * num_rows, seed + 1)[0]]
    lists, labels = [], []
    for row in range(num_rows):
        size = int(rng.integers(2, 5))
        relevant = int(rng.integers(size))
        labels.append([float(i == relevant) for i in range(size)])
        lists.append(texts[4 * row : 4 * row + size])
        lists[-1][relevant] = f"good {lists[-1][relevant]}"
    return (queries, lists), labels


ROWS, LABELS = make_rows(96)


def make_ranker(**kwargs):
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), LENGTH, padding_lengths=(LENGTH,))
    return TextRanker(BertBackbone(**ONE_LAYER), preprocessor=packer, dropout=0.0, **kwargs)


@pytest.fixture(scope="module")
def ranker():
    return randomize(make_ranker())


def test_it_learns():
    keras.utils.set_random_seed(0)
    ranker = make_ranker()
    ranker.compile(AdamW(LinearWarmupDecay(5e-3)))
    history = ranker.fit(
        ROWS, LABELS, batch_size=16, epochs=12, validation_split=0.25, verbose=0
    ).history
    assert set(history) == {"loss", "ndcg", "val_loss", "val_ndcg"}
    held_out = tuple(column[72:] for column in ROWS), LABELS[72:]
    scores = ranker.score(*held_out)
    assert scores["ndcg@10"] == pytest.approx(history["val_ndcg"][-1], abs=1e-5)
    assert scores["mrr"] > 0.9 and scores["recall@5"] == 1


@pytest.mark.long("combinations")
def test_another_loss_learns_from_packed_rows():
    keras.utils.set_random_seed(0)
    ranker = make_ranker()
    ranker.compile(AdamW(LinearWarmupDecay(5e-3)), loss=RankingLoss("pairwise"))
    ranker.fit(ROWS, LABELS, batch_size=16, epochs=18, sequence_packing=True, verbose=0)
    assert ranker.score(ROWS, LABELS)["mrr"] > 0.9


def test_a_batch_of_lists_is_its_pairs(ranker):
    """The loss of lists of different lengths is that of the scores of their pairs, one by one."""
    rows = tuple(column[:7] for column in ROWS)
    scores = [ranker.predict(([q] * len(t), t), verbose=0) for q, t in zip(*rows, strict=True)]
    wanted = [
        -np.log(np.exp(s) / np.exp(s).sum())[np.argmax(y)]
        for s, y in zip(scores, LABELS, strict=False)
    ]
    ranker.compile()
    losses = ranker.evaluate(rows, LABELS[:7], batch_size=7, verbose=0)
    assert losses[0] == pytest.approx(np.mean(wanted), rel=1e-4)
    weights = [1, 0, 2, 1, 1, 1, 3]
    losses = ranker.evaluate(rows, LABELS[:7], batch_size=7, sample_weight=weights, verbose=0)
    assert losses[0] == pytest.approx(np.average(wanted, weights=weights), rel=1e-4)


def test_rank(ranker):
    query, texts = ROWS[0][0], ["a dull plot", "good acting", "bad", "good"]
    scores = ranker.predict(([query] * 4, texts), verbose=0)
    assert scores.shape == (4,) and scores.dtype == "float32"
    order = np.argsort(-scores)
    hits = ranker.rank(query, texts)
    assert [hit.id for hit in hits] == order.tolist() and type(hits[0]) is SearchHit
    np.testing.assert_allclose([hit.score for hit in hits], scores[order], atol=1e-6)
    several = ranker.rank([query, ROWS[0][1]], [texts, texts[:1]], top_k=2)
    assert [hit.id for hit in several[0]] == order[:2].tolist() and len(several[1]) == 1


def test_scores_of_other_depths(ranker):
    scores = ranker.score(ROWS, LABELS, top_k=(2, 3))
    assert set(scores) == {"mrr", *(f"{name}@{k}" for name in ("recall", "ndcg") for k in (2, 3))}
    ranks = [
        [hit.id for hit in row].index(int(np.argmax(labels)))
        for row, labels in zip(ranker.rank(*ROWS), LABELS, strict=True)
    ]
    for k in (2, 3):
        assert scores[f"recall@{k}"] == pytest.approx(np.mean([rank < k for rank in ranks]))


def test_every_form_of_rows(ranker):
    ranker.compile()
    rows, labels = tuple(column[:8] for column in ROWS), LABELS[:8]
    wanted = ranker.evaluate(rows, labels, verbose=0)
    table = pandas.DataFrame({"text": rows[1], "query": rows[0]})
    same = [[texts[0], texts[1]] for texts in rows[1]]
    two = [labels[:2] for labels in labels]
    for x in (table, dict(table)):
        assert ranker.evaluate(x, labels, verbose=0) == pytest.approx(wanted, abs=1e-5)
    wanted = ranker.evaluate((rows[0], same), two, verbose=0)
    packed = ranker.data.pack(ranker.data.read((rows[0], same), two), labelled=True)[0]
    packed = {name: array.reshape(8, 2, -1) for name, array in packed.items()}
    for x, y in ((packed, np.array(two)), ((rows[0], np.array(same)), two)):
        assert ranker.evaluate(x, y, verbose=0) == pytest.approx(wanted, abs=1e-5)
    batches = [((rows[0][i : i + 4], rows[1][i : i + 4]), labels[i : i + 4]) for i in (0, 4)]
    assert np.isfinite(ranker.fit(iter(batches), steps_per_epoch=2, verbose=0).history["loss"])


def test_lists_of_one_length_share_a_batch(ranker):
    rows = ranker.data.read(ROWS, LABELS)
    sizes = np.array([len(texts) for texts in ROWS[1]])
    order = np.argsort(ranker.data.lengths(rows), kind="stable")
    assert (np.diff(sizes[order]) >= 0).all() and len(set(sizes)) == 3


@pytest.mark.parametrize(
    ("x", "y", "error"),
    [
        (
            (["q", "r"], [["a", "b"], ["c"]]),
            [[0, 1], [1]],
            "Row 1, 'r', has one candidate, as have",
        ),
        ((["q"], [["a", "b"]]), [[1, 1]], "the same relevance, so there is no order to learn"),
        (
            (["q"], [["a", "b"]]),
            [[1]],
            "labels of row 0 are .1., wanted a relevance for each of its 2",
        ),
        ((["q"], [["a", "b"]]), [[1, float("nan")]], "labels of row 0 .* a finite number above 0"),
        ((["q"], [["a", "b"]]), [[1, -1]], "labels of row 0 .* a finite number above 0"),
        ((["q"], [["a", "b"]]), [1], "labels of row 0 are 1, wanted a relevance for each"),
        ((["q"], [["a", "b"]]), [[1, 0], [1, 0]], "the same number of rows, got 1 and 2"),
        ((["q"], [["a", None]]), [[1, 0]], "Row 0 of 'text' is .*None.*, wanted a list of texts"),
        ((["q"], [[]]), [[]], "Row 0 of 'text' is '..', wanted a list of texts"),
        ((["q"], ["a"]), [1], "Row 0 of 'text' is 'a', wanted a list .* read_rankings"),
        (
            (["q"], [["a", "b"], ["c", "d"]]),
            [[1, 0], [1, 0]],
            "the same number of rows, got 1 and 2",
        ),
        ((["q"], [["a", "b"]]), None, "a label for each row"),
        (["q"], [1], "Wanted a tuple of two columns"),
    ],
)
def test_wrong_rows_take_no_step(ranker, x, y, error):
    ranker.compile()
    before = ranker.get_weights()
    with pytest.raises(ValueError, match=error):
        ranker.fit(x, y, verbose=0)
    assert all(map(np.array_equal, before, ranker.get_weights()))


def test_what_else_is_refused(ranker):
    with pytest.raises(ValueError, match="predict takes pairs, .* Call `rank"):
        ranker.predict(ROWS, verbose=0)
    advice = "the loss 'mse'. It would count the places after"
    with pytest.raises(ValueError, match=advice):
        ranker.compile(loss="mse")
    with pytest.raises(ValueError, match="a relevant candidate in one of them, got 0 such"):
        ranker.score((["q"], [["a", "b"]]), [[0, 0]])
    one = ((["q"], [["a"]]), [[1]])
    ranker.compile(loss=RankingLoss("pointwise"))
    before = ranker.get_weights()
    assert np.isfinite(ranker.fit(*one, verbose=0).history["loss"])
    ranker.set_weights(before)


def test_logits_are_those_of_transformers(ranker, tmp_path):
    """Of a classifier with one output, as the cross-encoders of sentence-transformers are."""
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForSequenceClassification

    save_hugging_face(ranker, tmp_path / "hf")
    reference = AutoModelForSequenceClassification.from_pretrained(tmp_path / "hf").eval()
    assert type(reference).__name__ == "BertForSequenceClassification"
    pairs = (ROWS[0][:6], [texts[0] for texts in ROWS[1][:6]])
    packed = ranker.preprocessor.pack(*pairs)
    tensors = {name: torch.tensor(np.array(array)) for name, array in packed.items()}
    with torch.no_grad():
        wanted = reference(
            tensors["token_ids"],
            attention_mask=tensors["padding_mask"],
            token_type_ids=tensors["segment_ids"],
        ).logits.numpy()[:, 0]
    np.testing.assert_allclose(ranker.predict(pairs, verbose=0), wanted, atol=1e-5)
    twin = TextRanker.from_preset(tmp_path / "hf", sequence_length=LENGTH)
    np.testing.assert_allclose(twin.predict(pairs, verbose=0), wanted, atol=1e-5)


def test_checkpoints_with_another_head(tmp_path):
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), LENGTH)
    classifier = TextClassifier(BertBackbone(**ONE_LAYER), num_classes=3, preprocessor=packer)
    save_hugging_face(classifier, tmp_path / "classes")
    save_hugging_face(classifier.backbone, tmp_path / "encoder", packer.tokenizer)
    for name in ("classes", "encoder"):
        with pytest.warns(UserWarning, match="layer with one output.* random. Train them before"):
            ranker = TextRanker.from_preset(tmp_path / name)
        assert ranker.classifier.kernel.shape[-1] == 1


def test_no_queries_and_no_hits(ranker):
    assert ranker.rank([], []) == []
    with pytest.raises(ValueError, match="top_k must be an integer of at least 1, got -1"):
        ranker.rank("good", ["a", "b"], top_k=-1)
