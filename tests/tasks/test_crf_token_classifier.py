import warnings

import keras
import numpy as np
import pytest
from peer_weights import randomize, to_numpy
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    AdamW,
    BertBackbone,
    CrfTokenClassifier,
    LinearWarmupDecay,
    SegmentPacker,
    TokenClassifier,
    WordPieceTokenizer,
    read_conll,
)
from keras_bert_suite.checkpoints import save_hugging_face
from keras_bert_suite.heads.tags.tag_schemes import convert_tags, find_entities

LABELS = ["O", "B-POS", "I-POS"]


def tag(words):
    """A run of "good" is an entity."""
    tags = ["B-POS" if word == "good" else "O" for word in words]
    return convert_tags([t.replace("B-", "I-") for t in tags], "BIO")


ROWS = [text.split() for text in make_reviews(48)[0]]
ROWS[3] = ["good", "good", "\x01", "films", "filmsly"] * 12
ROWS[4] = []
ROWS[5:15] = [[*row, "good", "good"] for row in ROWS[5:15]]
TAGS = [tag(row) for row in ROWS]


def make_tagger(sequence_length=16, **kwargs):
    tokenizer = WordPieceTokenizer(VOCABULARY)
    # One length, so that JAX compiles each step once.
    packer = SegmentPacker(tokenizer, sequence_length, padding_lengths=(sequence_length,))
    kwargs.setdefault("label_names", LABELS)
    backbone = BertBackbone(**ONE_LAYER)
    return CrfTokenClassifier(backbone, preprocessor=packer, **kwargs)


def fast_adamw():
    return AdamW(LinearWarmupDecay(3e-3), rate_multipliers=[("crf/", 10.0)])


@pytest.fixture(scope="module")
def tagger():
    keras.utils.set_random_seed(0)
    tagger = make_tagger()
    tagger.compile(fast_adamw())
    tagger.history_of_fit = tagger.fit(
        ROWS, TAGS, batch_size=16, epochs=12, validation_split=0.25, verbose=0
    ).history
    return tagger


def test_it_learns(tagger):
    history = tagger.history_of_fit
    assert set(history) == {"loss", "val_loss"}
    assert history["val_loss"][-1] < history["val_loss"][0] / 3
    assert tagger.score(ROWS, TAGS)["f1"] > 0.9
    assert all(np.abs(to_numpy(weight)).max() > 0.02 for weight in tagger.crf.weights)
    texts = ["", "a good good film " + "the " * 40 + "good"]
    found = tagger.predict(texts, verbose=0)
    assert [[e.text for e in entities] for entities in found] == [[], ["good good", "good"]]
    assert all(0 < e.score <= 1 for e in found[1])
    probabilities = tagger.predict_probabilities(ROWS, verbose=0)
    assert [len(row) for row in probabilities] == [len(row) for row in ROWS]
    np.testing.assert_allclose(np.concatenate(probabilities).sum(axis=-1), 1, atol=1e-5)
    assert tagger.predict_tags(ROWS[3:4], verbose=0)[0][2::5] == ["O"] * 12


@pytest.mark.parametrize(
    ("make_optimizer", "is_advised"),
    [
        (lambda: "auto", False),
        (lambda: AdamW(1e-3, rate_multipliers={"crf/": 1.0}), False),
        (lambda: AdamW(1e-3, rate_multipliers={"transitions": 10.0}), False),
        (lambda: AdamW(1e-3), True),
        (lambda: AdamW(1e-3, rate_multipliers={"classifier": 10.0}), True),
        (lambda: keras.optimizers.Adam(1e-3), True),
    ],
)
def test_a_lost_rate_of_the_crf_is_named(make_optimizer, is_advised, tmp_path):
    tagger = make_tagger()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tagger.compile(make_optimizer())
        tagger.save(tmp_path / "tagger.keras")
        keras.saving.load_model(tmp_path / "tagger.keras")
    found = [str(w.message) for w in caught if "weights of the CRF learn" in str(w.message)]
    assert len(found) == is_advised


def without_context(tagger):
    """Has every token the same emission wherever it stands."""
    randomize(tagger)
    for weight in tagger.weights:
        if "position_embedding" in weight.path or "output_projection" in weight.path:
            weight.assign(np.zeros(weight.shape))
        if weight.path.startswith(("crf/", "token_classifier/")):
            weight.assign(np.random.default_rng(1).normal(size=weight.shape) * 2)
    return tagger


def test_a_long_row_has_one_path():
    """Paths over the emissions of all windows, found by pytorch-crf's own decoder."""
    torchcrf = pytest.importorskip("torchcrf")
    import torch

    tagger, whole = (without_context(make_tagger(n, scheme=None)) for n in (8, 64))
    rows = [row[:30] for row in ROWS if len(row) > 5]
    rows = [[word for word in row if word != "\x01"] for row in rows]
    (*scores,) = tagger.crf.read_scores()
    twin = torchcrf.CRF(len(LABELS), batch_first=True)
    with torch.no_grad():
        for theirs, ours in zip(
            (twin.start_transitions, twin.end_transitions, twin.transitions), scores, strict=True
        ):
            theirs.copy_(torch.tensor(ours))
    tokenizer = tagger.preprocessor.tokenizer
    wanted = []
    for row in rows:
        _, counts = tokenizer.tokenize_words(row)
        first_tokens = 1 + np.cumsum(counts) - counts
        emissions = whole.predict(whole.preprocessor.pack([" ".join(row)]), verbose=0)
        (path,) = twin.decode(torch.tensor(emissions[:, first_tokens]))
        wanted.append([LABELS[label] for label in path])
    assert len({tag for row in wanted for tag in row}) == 3
    assert tagger.predict_tags(rows, verbose=0) == wanted


def test_the_loss_of_windows_is_that_of_the_chains_they_answer_for():
    tagger, whole = (without_context(make_tagger(n)) for n in (8, 64))
    row = ["the", "good", "filmsly", "plot", "good", "good", "was", "dull", "fine", "films"]
    tags = tag(row)
    windows = tagger.data.window(tagger.data.read([row]))
    assert len(windows) > 2
    _, counts = tagger.preprocessor.tokenizer.tokenize_words(row)
    first_tokens = np.cumsum(counts) - counts
    losses = []
    emissions = whole.predict(whole.preprocessor.pack([" ".join(row)]), verbose=0)[0, 1:]
    for number in range(len(windows)):
        begin = windows.starts[number]
        own = (first_tokens >= begin + windows.own_starts[number]) & (
            first_tokens < begin + windows.own_ends[number]
        )
        words = np.flatnonzero(own)
        labels = [LABELS.index(tags[word]) for word in words]
        borders = [-2 * (number > 0) or -1, *labels, -2 * (number < len(windows) - 1) or -1]
        scores = np.zeros((1, len(borders), 3), "float32")
        scores[0, 1:-1] = emissions[first_tokens[words]]
        losses.append(
            to_numpy(tagger.crf.negative_log_likelihood(np.array([borders]), scores)).item()
        )
    assert tagger.evaluate([row], [tags], verbose=0) == pytest.approx(np.mean(losses), abs=1e-4)


def test_the_scheme_holds_in_every_prediction():
    """An encoder without training tags at random, but by the scheme."""
    names = ["O", "B-A", "M-A", "E-A", "S-A", "B-B", "E-B"]
    tagger = make_tagger(label_names=names)
    assert tagger.scheme == "BMES"
    without_context(tagger)
    for tags in tagger.predict_tags(ROWS, verbose=0):
        assert convert_tags(tags, "BMES") == tags
    tagger = make_tagger(label_names=["DET", "NOUN", "VERB"])
    assert tagger.scheme is None and tagger.crf.allowed is None


def test_hugging_face_holds_the_emission_layer_alone(tagger, tmp_path):
    with pytest.raises(ValueError, match="cannot hold these weights .* crf/end_scores"):
        save_hugging_face(tagger, tmp_path / "hf")
    plain = TokenClassifier(tagger.backbone, label_names=LABELS, preprocessor=tagger.preprocessor)
    plain.token_classifier.set_weights(tagger.token_classifier.get_weights())
    save_hugging_face(plain, tmp_path / "hf", tagger.preprocessor.tokenizer)
    twin = CrfTokenClassifier.from_preset(tmp_path / "hf", sequence_length=16)
    assert not any(to_numpy(weight).any() for weight in twin.crf.weights)
    packed = tagger.preprocessor.pack(["a good plot"])
    np.testing.assert_allclose(
        twin.predict(packed, verbose=0), tagger.predict(packed, verbose=0), atol=1e-5
    )


def test_packed_arrays(tagger):
    """The labelled tokens are the chain."""
    packed = tagger.preprocessor.pack(["the good filmsly plot", "good"])
    labels = np.tile([-100, -1], (2, 8))
    labels[0, [1, 2, 3, 6]], labels[1, 1] = [0, 1, 0, 0], 1
    rows = [["the", "good", "filmsly", "plot"], ["good"]], [["O", "B-POS", "O", "O"], ["B-POS"]]
    weights = np.array([0.5, 2.0])
    for given in (None, weights):
        got = tagger.evaluate(packed, labels, sample_weight=given, verbose=0)
        assert got == pytest.approx(
            tagger.evaluate(*rows, sample_weight=given, verbose=0), abs=1e-5
        )
    assert tagger.score(packed, labels) == tagger.score(*rows)
    assert tagger.evaluate(*rows, sample_weight=np.zeros(2), verbose=0) == 0
    for predict in (tagger.predict_tags, tagger.predict_probabilities):
        with pytest.raises(ValueError, match="do not say which tokens the chain runs over"):
            predict(packed, verbose=0)
    with pytest.raises(ValueError, match=r"Wanted a weight for each row, got .* \(2, 16\)"):
        tagger.evaluate(packed, labels, sample_weight=np.ones((2, 16)), verbose=0)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"scheme": "IOB1"}, "scheme must be one of BIO, BIOES, BMES, got 'IOB1'"),
        ({"scheme": "BMES"}, "are not of the scheme BMES"),
        ({"label_names": ["NOUN", "VERB"], "scheme": "BIO"}, "are not of the scheme BIO"),
    ],
)
def test_wrong_schemes(arguments, error):
    with pytest.raises(ValueError, match=error):
        make_tagger(**arguments)


def test_wrong_input_takes_no_step(tagger):
    iob1 = [convert_tags(tags, "IOB1") for tags in TAGS]
    with pytest.raises(ValueError, match=r"word \d+, I-POS follows .* the scheme BIO forbids"):
        tagger.fit(ROWS, iob1, verbose=0)
    tagger.evaluate(ROWS, [*TAGS[:5], *iob1[5:7], *TAGS[7:]], verbose=0)  # Data have mistakes.
    with pytest.raises(ValueError, match="class_weight must be None"):
        tagger.fit(ROWS, TAGS, class_weight={"O": 2.0}, verbose=0)
    with pytest.raises(ValueError, match="is trained with `CrfLoss`, got loss='mse'"):
        tagger.compile(loss="mse")
    strict = make_tagger(constrained_training=True)
    with pytest.raises(ValueError, match="forbids; so do 1 of"):
        strict.fit([["a", "good"]] * 3, [["O", "I-POS"], ["O", "O"], ["O", "B-POS"]], verbose=0)


def test_a_row_may_not_end_within_an_entity():
    names = ["O", "B-X", "I-X", "E-X", "S-X"]
    strict = make_tagger(label_names=names, scheme="BIOES", constrained_training=True)
    with pytest.raises(ValueError, match="row 0, word 2, the border of the row follows B-X"):
        strict.fit([["a", "good"]], [["O", "B-X"]], verbose=0)


def test_chinese_characters_in_entities_out(tmp_path):
    """Files in the form of resume_zh and of weibo_zh."""
    characters = "高勇男科技大学教授北京"
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters, "0", "1", "##0", "##1"]
    tagged = [("高", "B-NAME"), ("勇", "E-NAME"), ("男", "O"), ("北", "B-ORG"), ("京", "M-ORG")]
    tagged += [("大", "M-ORG"), ("学", "E-ORG"), ("教", "B-TITLE"), ("授", "E-TITLE")]
    bmes = "".join(f"{character} {label}\n" for character, label in tagged) + "\n"
    bio = [label.replace("M-", "I-").replace("E-", "I-") for _, label in tagged]
    numbered = "".join(
        f"{c}{i % 2}\t{t}\n" for i, ((c, _), t) in enumerate(zip(tagged, bio, strict=True))
    )
    for name, text, scheme in (("resume", bmes, "BMES"), ("weibo", numbered + "\n", "BIO")):
        (tmp_path / name).write_text(text * 4, encoding="utf-8")
        train = read_conll(tmp_path / name)
        assert train.x[0] == [character for character, _ in tagged]
        backbone = BertBackbone(**{**ONE_LAYER, "vocabulary_size": len(vocabulary)})
        packer = SegmentPacker(WordPieceTokenizer(vocabulary), 16, padding_lengths=(16,))
        tagger = CrfTokenClassifier(backbone, label_names=train.label_names, preprocessor=packer)
        assert tagger.scheme == scheme
        tagger.compile(AdamW(LinearWarmupDecay(1e-2), rate_multipliers={"crf/": 1.0}))
        tagger.fit(train.x, train.y, epochs=12, verbose=0)
        (found,) = tagger.predict(["高勇男北京大学教授"], verbose=0)
        assert [(e.label, e.text) for e in found] == [
            ("NAME", "高勇"), ("ORG", "北京大学"), ("TITLE", "教授"),
        ]  # fmt: skip
        assert [(e.start, e.end) for e in found] == [e[1:] for e in find_entities(train.y[0])]
        if name == "resume":
            continue
        assert tagger.predict(train.x[:1], verbose=0)[0][1].text == "北京大学"
