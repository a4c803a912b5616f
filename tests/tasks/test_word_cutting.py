"""Texts have the answers of their words, cut as the rows of `fit` are."""

import itertools

import keras
import numpy as np
import pytest
from peer_weights import randomize
from small_byte_pairs import MERGES, make_vocabulary
from small_sentence_pieces import make_xlm_roberta
from small_texts import ONE_LAYER, VOCABULARY
from tables import short_for

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import save_hugging_face

ENGLISH = [
    "the Coca-Cola film was good at St. Louis .".split(),
    "AT&T did n't like John 's plot in 1998 ...".split(),
]
CHINESE = [list("我在IBM工作，1998年增长3.5%。"), list("他是1人")]
TEXTS = {
    "English": (ENGLISH, ["The Coca-Cola of St. Louis, AT&T's.", "A film didn't ...", "", " "]),
    "Chinese": (CHINESE, ["他在IBM，2008年跌了1.5%。 iPhone15", "电影good", ""]),
}
WANTED = {
    "English": [
        "The Coca-Cola of St. Louis , AT&T 's .".split(),
        "A film did n't ...".split(),
        [],
        [],
    ],
    "Chinese": [list("他在IBM，2008年跌了1.5%。iPhone15"), list("电影good"), []],
}
TOKENIZERS = {
    "word pieces": lambda: kbs.WordPieceTokenizer(VOCABULARY),
    "byte pairs": lambda: kbs.BytePairTokenizer(make_vocabulary(), MERGES),
    "sentence pieces": lambda: kbs.XLMRobertaTokenizer(make_xlm_roberta()),
}
NAMES = ["O", "B-A", "I-A"]


def make_task(cls=kbs.TokenClassifier, tokenizer="word pieces", **arguments):
    keras.utils.set_random_seed(2)
    tokenizer = TOKENIZERS[tokenizer]()
    encoder = kbs.BertBackbone if tokenizer.has_segment_ids else kbs.RobertaBackbone
    backbone = encoder(**{**ONE_LAYER, "vocabulary_size": tokenizer.vocabulary_size()})
    packer = kbs.SegmentPacker(tokenizer, sequence_length=16)
    names = ["A"] if cls is kbs.EntitySpanClassifier else NAMES
    return cls(backbone, label_names=names, preprocessor=packer, **arguments)


def fit(task, rows=ENGLISH, **arguments):
    is_spans = isinstance(task, kbs.EntitySpanClassifier)
    labels = [[(0, 1, "A")] if is_spans else ["O"] * len(row) for row in rows]
    return task.fit(rows, labels, **{"verbose": 0, **arguments})


def find_words(task, text):
    return task.data.window(task.data.read([text])).tokenized.words[0]


@pytest.mark.parametrize(
    ("cls", "tokenizer", "language"),
    short_for(
        itertools.product(
            [kbs.TokenClassifier, kbs.CrfTokenClassifier, kbs.EntitySpanClassifier],
            TOKENIZERS,
            TEXTS,
        ),
        (kbs.TokenClassifier, "word pieces", "English"),
        (kbs.TokenClassifier, "sentence pieces", "Chinese"),
        (kbs.CrfTokenClassifier, "byte pairs", "Chinese"),
        (kbs.CrfTokenClassifier, "sentence pieces", "English"),
        (kbs.EntitySpanClassifier, "word pieces", "Chinese"),
        (kbs.EntitySpanClassifier, "byte pairs", "English"),
        part="combinations",
    ),
)
def test_a_text_has_the_entities_of_its_words(cls, tokenizer, language):
    """With other positions: those of a text count characters."""
    rows, texts = TEXTS[language]
    task = make_task(cls, tokenizer)
    fit(task, rows)
    randomize(task)
    if cls is kbs.EntitySpanClassifier:
        for weight in task.head.weights:
            weight.assign(np.random.default_rng(3).normal(size=weight.shape))
    else:
        task.token_classifier.bias.assign([-5.0, 0.0, 0.0])  # Entities in most texts.
    words = [find_words(task, text) for text in texts]
    assert words == WANTED[language]
    of_words = task.predict(words, verbose=0)
    of_texts = task.predict(texts, verbose=0)
    assert sum(map(len, of_texts)) > 1
    for text, row, wanted, found in zip(texts, words, of_words, of_texts, strict=True):
        places = [0]
        for word in row:
            places.append(text.index(word, places[-1]) + len(word))
        edges = [(places[n + 1] - len(word), places[n + 1]) for n, word in enumerate(row)]
        expected = [
            (e.label, edges[e.start][0], edges[e.end - 1][1], pytest.approx(e.score, abs=1e-5))
            for e in wanted
        ]
        assert [(e.label, e.start, e.end, e.score) for e in found] == expected
        assert all(e.text == text[e.start : e.end] for e in found)


def test_three_labels_of_one_name_become_one():
    """Before, `Coca-Cola` was three words, of which each had a tag."""
    task = make_task()
    text = "the Coca-Cola film"
    assert find_words(task, text) == ["the", "Coca", "-", "Cola", "film"]
    fit(task)
    assert find_words(task, text) == text.split()
    assert [len(tags) for tags in task.predict_tags([text], verbose=0)] == [3]


@pytest.mark.parametrize("cls", [kbs.TokenClassifier, kbs.EntitySpanClassifier])
def test_files_keep_it(cls, tmp_path):
    task = make_task(cls)
    fit(task)
    task.save(tmp_path / "task.keras")
    task.save_to_preset(tmp_path / "preset")
    twins = [keras.saving.load_model(tmp_path / "task.keras"), cls.from_preset(tmp_path / "preset")]
    if cls is kbs.TokenClassifier:
        save_hugging_face(task, tmp_path / "folder")
        twins.append(cls.from_preset(tmp_path / "folder"))
    for twin in twins:
        assert twin.word_cutting == task.word_cutting and twin.word_cutting.rules
    with pytest.warns(UserWarning, match="holds a classification layer"):
        new = cls.from_preset(tmp_path / "preset", label_names=["X", "Y"])
    assert new.word_cutting is None


def test_a_file_without_it_is_cut_by_the_tokenizer():
    config = make_task().get_config()
    del config["word_cutting"]
    assert kbs.TokenClassifier.from_config(config).word_cutting is None


def test_the_first_fit_sets_it_and_later_ones_keep_it(capsys):
    task = make_task()
    fit(task, verbose=2)
    assert "as these rows are: words such as Coca-Cola, St., AT&T stay" in capsys.readouterr().out
    cutting = task.word_cutting
    fit(task, CHINESE, verbose=2)
    said = capsys.readouterr().out
    assert task.word_cutting is cutting
    assert "of the words of these rows are cut otherwise" not in said  # Single characters stand.
    fit(task, [["one/two", "a"]], verbose=2)
    said = capsys.readouterr().out
    assert "50% of the words of these rows are cut otherwise in a text, such as one/two." in said
    assert "set `task.word_cutting = None` before `fit`" in said
    task.word_cutting = None
    fit(task, CHINESE)
    assert capsys.readouterr().out == ""
    assert task.word_cutting == kbs.WordCutting(["letters", "numbers"])


def test_the_cutting_of_a_user_holds():
    cutting = kbs.WordCutting(["numbers"])
    task = make_task(word_cutting=cutting)
    fit(task)
    assert task.word_cutting is cutting
    assert make_task(word_cutting=cutting.get_config()).word_cutting == cutting
    with pytest.raises(ValueError, match="must be a WordCutting"):
        task.word_cutting = "numbers"


def test_held_out_texts_are_cut_as_the_rows_are(monkeypatch):
    """Also by the `fit` that learns it."""
    finder = make_task(kbs.EntitySpanClassifier)
    data, cut = finder.data, type(finder.data).cut
    cuttings = []

    def note(data, rows):
        cuttings.append(data.word_cutting)
        return cut(data, rows)

    monkeypatch.setattr(type(data), "cut", note)
    fit(finder, validation_data=(["Coca-Cola fell"], [[(0, 9, "A")]]))
    assert cuttings and set(map(id, cuttings)) == {id(finder.word_cutting)}


def test_on_features():
    task = make_task()
    task.fit_on_features(ENGLISH, [["O"] * len(row) for row in ENGLISH], verbose=0)
    assert task.word_cutting == kbs.WordCutting.learn(ENGLISH)


def test_packed_arrays_and_texts_say_nothing_of_words():
    task = make_task()
    packed = task.preprocessor.pack(["a film"])
    task.fit(packed, np.zeros(packed["token_ids"].shape, "int32"), batch_size=1, verbose=0)
    assert task.word_cutting is None
    finder = make_task(kbs.EntitySpanClassifier)
    finder.fit(["a good film"], [[(2, 6, "A")]], verbose=0)
    assert finder.word_cutting is None


def test_a_dataset_says_nothing_of_words_and_texts_warn():
    task = make_task()
    batches = [(ENGLISH, [["O"] * len(row) for row in ENGLISH])]
    task.fit(iter(batches), steps_per_epoch=1, verbose=0)
    assert task.word_cutting is None
    task.predict(ENGLISH, verbose=0)
    with pytest.warns(UserWarning, match="2 rows are texts.*`task.word_cutting = WordCutting.lea"):
        task.predict(["Coca-Cola", "St. Louis"], verbose=0)
    task.word_cutting = kbs.WordCutting.learn(ENGLISH)
    task.predict(["Coca-Cola"], verbose=0)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_spans_of_characters_whatever_the_tokenizer(tokenizer):
    """No span of characters is widened, which the tokenizer's own words do."""
    text = "iPhone15于2008年good"
    spans = [(0, 6, "A"), (9, 11, "A"), (8, 9, "A"), (14, 16, "A")]
    finder = make_task(kbs.EntitySpanClassifier, tokenizer)
    with pytest.warns(UserWarning, match="begin or end inside of a word, or at a space"):
        finder.data.window(finder.data.read([text], [spans]))
    finder.word_cutting = kbs.WordCutting(["letters", "numbers"])
    windows = finder.data.window(finder.data.read([text], [spans]))
    assert windows.tokenized.words == [list(text)]
