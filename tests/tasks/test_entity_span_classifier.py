import warnings

import keras
import numpy as np
import pytest
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    AdamW,
    BertBackbone,
    EntityF1,
    EntitySpanClassifier,
    GlobalPointer,
    LinearWarmupDecay,
    SegmentPacker,
    WordPieceTokenizer,
    read_conll,
)
from keras_bert_suite.heads.tags.entities import Entity

LABELS = ["POS", "PLOT"]


def find(words):
    """Each "good" is an entity, and so is "good" with the word before it: nested entities."""
    spans = [(i, i + 1, "POS") for i, word in enumerate(words) if word == "good"]
    return spans + [(start - 1, end, "PLOT") for start, end, _ in spans if start]


ROWS = [text.split() for text in make_reviews(48)[0]]
ROWS[3] = ["good", "the", "\x01", "films", "filmsly"] * 12
ROWS[4] = []
SPANS = [find(row) for row in ROWS]


def make_finder(sequence_length=16, **kwargs):
    packer = SegmentPacker(
        WordPieceTokenizer(VOCABULARY), sequence_length, padding_lengths=(sequence_length,)
    )
    kwargs.setdefault("label_names", LABELS)
    return EntitySpanClassifier(BertBackbone(**ONE_LAYER), preprocessor=packer, **kwargs)


def places(answers):
    return [[(e.start, e.end, e.label) for e in row] for row in answers]


def cut(finder, rows, spans):
    return finder.data.window(finder.data.read(rows, spans))


def fit(finder, rows=ROWS, spans=SPANS, epochs=25):
    finder.compile(AdamW(LinearWarmupDecay(1e-2)))
    return finder.fit(rows, spans, batch_size=16, epochs=epochs, verbose=0).history


@pytest.fixture(scope="module")
def finder():
    keras.utils.set_random_seed(0)
    finder = make_finder()
    finder.history_of_fit = fit(finder)
    return finder


def test_an_entity_ends_at_words_with_a_token(finder):
    rows, spans = [["a", "\u200b", "good", "\u200b", "film", "\u200b"]], [[(1, 6, "POS")]]
    labels = finder.data.read(rows, spans).labels
    windows = cut(finder, rows, spans)
    found = [np.column_stack([row, np.ones(len(row))]) for row in windows.labels]
    assert places(finder.answers.decode(found, windows)) == [[(2, 5, "POS")]]
    assert finder.answers.score(found, windows, labels)["f1"] == 1


#: A span of the text -> the characters that `fit` learns.
MISALIGNED = {
    (9, 14): (9, 13),  # A space at its end,
    (8, 13): (9, 13),  # at its begin,
    (8, 14): (9, 13),  # and at both.
    (10, 12): (9, 13),  # Within a word.
    (5, 11): (4, 13),  # Parts of two words.
    (9, 13): (9, 13),
}


@pytest.mark.parametrize(("span", "wanted"), MISALIGNED.items())
def test_misaligned_spans_are_scored_as_they_are_learned(finder, span, wanted):
    rows = ["the very good film"]
    assert rows[0][slice(*wanted)] in ("good", "very good")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        windows = cut(finder, rows, [[(*span, "POS")]])
        labels = finder.data.read(rows, [[(*span, "POS")]]).labels
        found = [np.column_stack([row, np.ones(len(row))]) for row in windows.labels]
        assert finder.answers.score(found, windows, labels)["f1"] == 1
    assert places(finder.answers.decode(found, windows)) == [[(*wanted, "POS")]]
    verbs = [str(w.message).partition(" as the whole")[0].split()[-1] for w in caught]
    assert verbs == ([] if span == wanted else ["learned", "scored"])


def test_it_finds_nested_entities(finder):
    history = finder.history_of_fit
    assert set(history) == {"loss"} and history["loss"][-1] < history["loss"][0] / 10
    scores = finder.score(ROWS, SPANS)
    assert scores["f1"] > 0.9 and set(scores["types"]) == {*LABELS}
    (found,) = finder.predict([["a", "very", "good", "film"]], verbose=0)
    assert [(e.start, e.end, e.label, e.text) for e in found] == [
        (1, 3, "PLOT", "very good"), (2, 3, "POS", "good"),
    ]  # fmt: skip
    assert all(0.5 < e.score <= 1 for e in found)
    text = "  a\tvery GOOD film. " + "the " * 40 + "good."
    found, of_bytes, *empty = finder.predict([text, text.encode(), "", []], verbose=0)
    assert of_bytes == found and empty == [[], []]
    # No review is so long: which other words a window finds differs from one processor to the next.
    assert {(e.start, e.text) for e in found} >= {
        (4, "very GOOD"), (9, "GOOD"), (176, "the good"), (180, "good"),
    }  # fmt: skip
    assert [e.text for e in found] == [text[e.start : e.end] for e in found]
    assert finder.predict([], verbose=0) == []


def test_a_new_head_for_other_types(finder, tmp_path):
    finder.save_to_preset(str(tmp_path / "preset"))
    with pytest.warns(UserWarning, match="left out"):
        other = EntitySpanClassifier.from_preset(tmp_path / "preset", num_classes=3)
    assert type(other.head) is type(finder.head) and other.head.num_classes == 3
    assert other.label_names == ["0", "1", "2"]


def test_what_it_predicts_is_a_label(finder):
    """Also spans of characters, ids of labels, and arrays."""
    texts = [" ".join(row) for row in ROWS[:3]]
    of_texts = finder.predict(texts, verbose=0)
    assert finder.score(texts, of_texts)["f1"] == 1
    of_words = finder.predict(ROWS[:3], verbose=0)
    wanted = finder.evaluate(ROWS[:3], of_words, verbose=0)
    ids = [np.array([(e.start, e.end, LABELS.index(e.label)) for e in row]) for row in of_words]
    ids = [spans if len(spans) else [] for spans in ids]
    assert finder.evaluate(ROWS[:3], ids, verbose=0) == pytest.approx(wanted, abs=1e-6)
    assert finder.evaluate(texts, of_texts, verbose=0) == pytest.approx(wanted, abs=1e-6)


def test_windows_find_what_a_whole_row_has():
    """Scores without context: those of windows are those of the whole row, entity by entity."""
    finders = [make_finder(n, head=GlobalPointer(2, head_dim=4, name="head")) for n in (12, 64)]
    rng = np.random.default_rng(4)
    for name in ("position_embedding", "output_projection"):
        for finder in finders:
            for weight in finder.weights:
                if name in weight.path:
                    weight.assign(np.zeros(weight.shape))
    finders[1].set_weights(finders[0].get_weights())
    for weight in finders[0].head.weights:
        weight.assign(rng.normal(size=weight.shape) * 2)
    finders[1].head.set_weights(finders[0].head.get_weights())
    rows = [[word for word in row if word != "\x01"][:20] for row in ROWS]
    in_windows, whole = (finder.predict(rows, verbose=0) for finder in finders)
    short = [[e for e in row if e.end - e.start <= 3] for row in whole]
    assert sum(map(len, short)) > 100
    for got, wanted, of_row in zip(*map(places, (in_windows, short, whole)), strict=True):
        assert {*wanted} <= {*got} <= {*of_row}
        assert len({*got}) == len(got)


def test_a_window_learns_what_it_sees_as_a_whole():
    finder = make_finder(12)
    row = ["the", "good", "filmsly", "plot"] * 5  # 6 tokens a round, and windows of 10 tokens
    spans = [(1, 3, "POS"), (2, 3, "PLOT"), (0, 20, "PLOT")]
    with pytest.warns(UserWarning, match="1 entities are in no window .* row 0 that is 30 tokens"):
        windows = cut(finder, [row], [spans])
    assert windows.labels[0].tolist() == [[2, 3, 0], [3, 3, 1]]
    assert all(len(labels) == 0 for labels in windows.labels[1:])


def test_packed_arrays_and_datasets(finder):
    packed = finder.preprocessor.pack(["very good film", "good"])
    labels = np.array([[[1, 2, 1], [2, 2, 0]], [[1, 1, 0], [-1, -1, -1]]])
    rows = [["very", "good", "film"], ["good"]]
    spans = [find(row) for row in rows]
    weights = np.array([1.0, 3.0])
    for given in (None, weights):
        got = finder.evaluate(packed, labels, sample_weight=given, verbose=0)
        assert got == pytest.approx(
            finder.evaluate(rows, spans, sample_weight=given, verbose=0), abs=1e-6
        )
    assert finder.predict(packed, verbose=0).shape == (2, 2, 16, 16)

    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            part = slice(16 * index, 16 * index + 16)
            return ROWS[part], SPANS[part]

    wanted = finder.evaluate(ROWS, SPANS, batch_size=16, verbose=0)
    assert finder.evaluate(Batches(), verbose=0) == pytest.approx(wanted, rel=1e-3)
    batches = ((ROWS[i : i + 16],) for i in (0, 16))
    assert places(finder.predict(batches, steps=2, verbose=0)) == places(
        finder.predict(ROWS[:32], verbose=0)
    )


def test_scores_after_each_epoch(finder):
    before = finder.get_weights()
    callbacks = [EntityF1(ROWS[:8], SPANS[:8])]
    history = finder.fit(ROWS, SPANS, 24, 2, callbacks=callbacks, verbose=0).history
    scores = finder.score(ROWS[:8], SPANS[:8])
    finder.set_weights(before)
    assert scores["f1"] > 0.5
    for name in ("f1", "precision", "recall"):
        assert history[f"val_entity_{name}"][1] == scores[name]
    assert len(history["val_entity_f1"]) == 2


@pytest.mark.long("combinations")
def test_without_rotary_positions_f1_falls():
    """An entity is a pair of brackets. Without positions, any two brackets look like a pair."""
    rng = np.random.default_rng(0)
    rows, spans = [], []
    for _ in range(96):
        row, found = [], []
        for _ in range(4):
            row += ["a"] * rng.integers(1, 4)
            found.append((len(row), len(row) + 2, "PAIR"))
            row += ["good", "bad"]
        rows.append(row)
        spans.append(found)
    f1 = {}
    for rotary in (True, False):
        keras.utils.set_random_seed(0)
        finder = make_finder(
            32, label_names=["PAIR"], head=GlobalPointer(1, head_dim=8, rotary=rotary)
        )
        # The encoder's own positions would tell as well.
        finder.backbone.trainable = False
        for weight in finder.backbone.weights:
            if "position_embedding" in weight.path or "output_projection" in weight.path:
                weight.assign(np.zeros(weight.shape))
        fit(finder, rows, spans, epochs=25)
        f1[rotary] = finder.score(rows, spans)["f1"]
    assert f1[True] > 0.9 > 0.6 > f1[False]


@pytest.mark.parametrize(
    ("x", "y", "error"),
    [
        ([["a"]], [[(0, 2, "POS")]], "span of row 0 ends at word 2, and the row has 1 words"),
        (["a b"], [[(0, 9, "POS")]], r"\[0, 9\] of row 0 has no word in it, or ends behind"),
        (["a  b"], [[(1, 3, "POS")]], r"\[1, 3\] of row 0 has no word in it"),
        ([["a"]], [[(0, 1, "LOC")]], "Label 'LOC' at row 0 is not one of"),
        ([["a"], ["b"]], [[], [(1, 1, 0)]], "row 1 must be .* 0 <= start < end .* got .1, 1"),
        ([["a"]], [["B-POS"]], r"must be \(start, end, type\), .* got B-POS. Tags become spans"),
        ([["a"]], [[(0.5, 1, "POS")]], "two whole numbers with 0"),
        ([["a"]], [(0, 1, "POS")], "span of row 0 must be"),
        ([["a"]], None, "a label for each"),
    ],
)
def test_wrong_input_takes_no_step(finder, x, y, error):
    before = finder.get_weights()
    with pytest.raises(ValueError, match=error):
        finder.fit(x, y, verbose=0)
    assert all(map(np.array_equal, before, finder.get_weights()))


def test_other_wrong_arguments(finder, tmp_path):
    with pytest.raises(ValueError, match="has scores for 3 types, and there are 2 label_names"):
        make_finder(head=GlobalPointer(3))
    with pytest.raises(ValueError, match="needs 1 or more different labels"):
        make_finder(label_names=[])
    packed = finder.preprocessor.pack(["good"])
    with pytest.raises(ValueError, match=r"integers \(N, M, 3\)"):
        finder.evaluate(packed, np.zeros((1, 2, 2), "int32"), verbose=0)
    with pytest.raises(ValueError, match=r"first token, last token .*: \[\[2, 1, 0\]\]"):
        finder.evaluate(packed, np.array([[[2, 1, 0]]]), verbose=0)
    with pytest.warns(
        UserWarning, match="1 spans begin or end inside of a word.* learned .* 0 to 4 as 0 to 5"
    ):
        cut(finder, ["films"], [[(0, 4, 0)]])


def test_chinese_characters_in_entities_out(tmp_path):
    tagged = "北 B-ORG\n京 M-ORG\n大 M-ORG\n学 E-ORG\n教 B-TITLE\n授 E-TITLE\n\n"
    (tmp_path / "train.bmes").write_text(tagged * 4, encoding="utf-8")
    train = read_conll(tmp_path / "train.bmes", scheme="spans")
    rows, spans = train.x, [[*row, (0, 2, "LOC")] for row in train.y]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"北京大学教授"]
    finder = EntitySpanClassifier(
        BertBackbone(**{**ONE_LAYER, "vocabulary_size": len(vocabulary)}),
        label_names=["LOC", "ORG", "TITLE"],
        preprocessor=SegmentPacker(WordPieceTokenizer(vocabulary), 16, padding_lengths=(16,)),
    )
    fit(finder, rows, spans, epochs=20)
    (found,) = finder.predict(["北京大学教授"], verbose=0)
    assert found == [
        Entity(label, text, start, end, found[i].score)
        for i, (label, text, start, end) in enumerate(
            [("LOC", "北京", 0, 2), ("ORG", "北京大学", 0, 4), ("TITLE", "教授", 4, 6)]
        )
    ]


def test_losses_of_keras_are_refused():
    with pytest.raises(ValueError, match="cannot be trained with the loss 'binary_cross"):
        make_finder().compile(loss="binary_crossentropy")
