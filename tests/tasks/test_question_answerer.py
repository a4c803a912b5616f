import dataclasses
import itertools

import keras
import keras_hub
import numpy as np
import pandas
import pytest
from small_byte_pairs import MERGES, make_vocabulary
from small_questions import NO_ANSWER, make_questions
from small_tasks import BYTE_PAIRS, SENTENCE_PIECES, make_task
from small_texts import ONE_LAYER, VOCABULARY

from keras_bert_suite import (
    AdamW,
    BertBackbone,
    BytePairTokenizer,
    LinearWarmupDecay,
    QuestionAnswerer,
    RobertaBackbone,
    SegmentPacker,
    WordPieceTokenizer,
)
from keras_bert_suite.checkpoints import save_google_tf1, save_hugging_face
from keras_bert_suite.heads.questions.scores import score_answers

QUESTIONS, CONTEXTS, SPANS = make_questions(64)
#: A context of many windows, and one without a token.
CONTEXTS[3] = " ".join(["bad"] * 60 + ["very", "good"] + ["the"] * 50)
SPANS[3] = (240, 249)
CONTEXTS[4], SPANS[4] = "\x01", NO_ANSWER
PAIRS = (QUESTIONS, CONTEXTS)
TEXTS = [
    "" if span == NO_ANSWER else context[slice(*span)]
    for context, span in zip(CONTEXTS, SPANS, strict=True)
]


def make_answerer(sequence_length=24, **kwargs):
    tokenizer = WordPieceTokenizer(VOCABULARY)
    # One length, so that JAX compiles each step once.
    packer = SegmentPacker(tokenizer, sequence_length, padding_lengths=(sequence_length,))
    settings = {"query_length": 4, "no_answer_threshold": 0.0, "preprocessor": packer, **kwargs}
    return QuestionAnswerer(BertBackbone(**ONE_LAYER), **settings)


@pytest.fixture(scope="module")
def answerer():
    keras.utils.set_random_seed(0)
    answerer = make_answerer()
    answerer.compile(AdamW(LinearWarmupDecay(5e-3)))
    answerer.history_of_fit = answerer.fit(
        PAIRS, SPANS, batch_size=16, epochs=16, validation_split=0.25, verbose=0
    ).history
    return answerer


def test_it_learns(answerer):
    history = answerer.history_of_fit
    assert set(history) == {"accuracy", "loss", "val_accuracy", "val_loss"}
    assert history["val_accuracy"][-1] > 0.9
    answers = answerer.predict(PAIRS, verbose=0)
    scores = answerer.score(PAIRS, SPANS)
    assert scores == score_answers(
        [[text] if text else [] for text in TEXTS], [answer.text for answer in answers]
    )
    assert scores["f1"] > 90 and scores["no_answer"]["questions"] == TEXTS.count("")
    assert answers[3].text == "very good" and answers[3].start == 240


def test_answers_are_parts_of_their_contexts(answerer):
    for context, answer in zip(CONTEXTS, answerer.predict(PAIRS, verbose=0), strict=True):
        assert 0 <= answer.score <= 1
        if answer.text:
            assert context[answer.start : answer.end] == answer.text
        else:
            assert (answer.start, answer.end) == NO_ANSWER
    nothing = answerer.predict(question="what", context="\x01")
    assert (nothing.text, nothing.score, nothing.null_odds) == ("", 1, 1e6)


def score_all_spans(answerer, question, context):
    """Every span of every window, written out; dict of (start, end) -> score; the null score."""
    packer, tokenizer = answerer.preprocessor, answerer.preprocessor.tokenizer
    packed = packer.pack_windows(
        [question], [context], stride=answerer.data.stride, query_length=answerer.data.query_length
    )
    inputs = {name: packed[name] for name in answerer.backbone.input}
    outputs = answerer.predict(inputs, verbose=0)
    offsets = tokenizer.tokenize_with_offsets(context)[1]
    windows = []  # for each a dict of token -> its place in the packed row
    for numbers in packed["token_indices"]:
        end_of_question = 1 + list(numbers[1:]).index(-1)
        places = range(end_of_question, len(numbers))
        windows.append({numbers[place]: place for place in places if numbers[place] >= 0})

    def context_around(token, tokens):
        return min(token - min(tokens), max(tokens) - token) + 0.01 * len(tokens)

    spans = {}
    for row, tokens in enumerate(windows):
        for first, last in itertools.product(tokens, tokens):
            if not first <= last < first + answerer.answers.max_answer_length:
                continue
            best = [context_around(first, other) if first in other else -1 for other in windows]
            if best.index(max(best)) == row:
                score = outputs[row, 0, tokens[first]] + outputs[row, 1, tokens[last]]
                spans[offsets[first][0], offsets[last][1]] = score
    return spans, min(outputs[:, 0, 0] + outputs[:, 1, 0])


@pytest.mark.parametrize("row", [0, 3, 9])
def test_answers_are_the_best_of_all_spans(answerer, row):
    question, context = QUESTIONS[row], f"{CONTEXTS[row]} {CONTEXTS[row]}"  # Each text twice.
    spans, null_score = score_all_spans(answerer, question, context)
    total = np.logaddexp.reduce([*spans.values(), null_score])
    ranked = answerer.predict_n_best(question=question, context=context, n_best=50)
    wanted, seen = [], set()
    for (start, end), score in sorted(spans.items(), key=lambda item: -item[1]):
        if context[start:end] not in seen:
            seen.add(context[start:end])
            wanted.append((context[start:end], np.exp(score - total)))
    wanted = sorted([*wanted, ("", np.exp(null_score - total))], key=lambda item: -item[1])[:50]
    assert [answer.text for answer in ranked] == [text for text, _ in wanted]
    assert [answer.score for answer in ranked] == pytest.approx([p for _, p in wanted], abs=1e-5)
    best = answerer.predict(question=question, context=context)
    assert best.null_odds == pytest.approx(null_score - max(spans.values()), abs=1e-4)


def test_every_form_of_rows(answerer):
    wanted = answerer.predict(PAIRS, verbose=0)
    table = pandas.DataFrame({"context": CONTEXTS, "question": QUESTIONS})
    for x in (table, dict(table), (table["question"], table["context"])):
        answers = answerer.predict(x, batch_size=8, verbose=0)
        assert [(a.text, a.start) for a in answers] == [(a.text, a.start) for a in wanted]
        assert [a.score for a in answers] == pytest.approx([a.score for a in wanted], abs=1e-5)
    columns = {"question": QUESTIONS, "context": CONTEXTS}
    assert [a.text for a in answerer.predict(**columns, verbose=0)] == [a.text for a in wanted]
    one = answerer.predict(question=QUESTIONS[0], context=CONTEXTS[0].encode())
    assert (one.text, one.start) == (wanted[0].text, wanted[0].start)
    asked_of_each = answerer.predict(question="was it", context=CONTEXTS[:2], verbose=0)
    assert asked_of_each == answerer.predict((["was it"] * 2, CONTEXTS[:2]), verbose=0)
    same = answerer.predict(question=["was it"] * 2, context=CONTEXTS[0], verbose=0)
    assert [answer.text for answer in same] == [one.text] * 2
    assert answerer.predict([], verbose=0) == answerer.predict(([], []), verbose=0) == []


def test_every_form_of_labels(answerer):
    wanted = answerer.evaluate(PAIRS, SPANS, verbose=0)
    starts, ends = map(list, zip(*SPANS, strict=True))
    squad = [
        {"text": [text] if text else [], "answer_start": [start] if text else []}
        for text, start in zip(TEXTS, starts, strict=True)
    ]
    flat = [
        {"text": text, "answer_start": start} for text, start in zip(TEXTS, starts, strict=True)
    ]
    table = pandas.DataFrame({"text": TEXTS, "answer_start": starts})
    for y in (np.array(SPANS), squad, flat, table, (starts, ends), pandas.Series(SPANS)):
        assert answerer.evaluate(PAIRS, y, verbose=0) == pytest.approx(wanted, abs=1e-6)
    assert answerer.score(PAIRS, squad) == answerer.score(PAIRS, SPANS)
    assert answerer.evaluate(PAIRS, SPANS, sample_weight=np.zeros(64), verbose=0)[0] == 0


def test_datasets(answerer):
    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            rows = slice(8 * index, 8 * index + 8)
            return (QUESTIONS[rows], CONTEXTS[rows]), SPANS[rows]

    wanted = answerer.evaluate(PAIRS, SPANS, verbose=0)
    before = answerer.get_weights()
    assert np.isfinite(answerer.fit(Batches(), verbose=0).history["loss"]).all()
    answerer.set_weights(before)
    # Batches of another size have other numbers of windows, and Keras weighs batches by size.
    assert answerer.evaluate(Batches(), verbose=0) == pytest.approx(wanted, abs=1e-4)
    answers = answerer.predict((((x,) for x, _ in Batches())), steps=8, verbose=0)
    assert [a.text for a in answers] == [a.text for a in answerer.predict(PAIRS, verbose=0)]


def test_data_loader_and_tensorflow(answerer):
    import torch

    wanted = answerer.evaluate(PAIRS, SPANS, verbose=0)
    rows = [((q, c), span) for q, c, span in zip(*PAIRS, SPANS, strict=True)]
    # Its own function makes two tensors of the pairs (start, end).
    loader = torch.utils.data.DataLoader(rows, 16)
    assert answerer.evaluate(loader, verbose=0) == pytest.approx(wanted, abs=1e-4)
    tf = pytest.importorskip("tensorflow")
    columns = {"question": QUESTIONS, "context": CONTEXTS}
    dataset = tf.data.Dataset.from_tensor_slices((columns, SPANS)).batch(16)
    assert answerer.evaluate(dataset, verbose=0) == pytest.approx(wanted, abs=1e-4)
    answers = answerer.predict(dataset.map(lambda x, y: x), verbose=0)
    assert [a.text for a in answers] == [a.text for a in answerer.predict(PAIRS, verbose=0)]


def test_packed_arrays(answerer):
    packed = answerer.preprocessor.pack(QUESTIONS[:4], CONTEXTS[:4])
    outputs = answerer.predict(packed, verbose=0)
    assert outputs.shape == (4, 2, 24)
    assert (outputs[:, 0][packed["padding_mask"] == 0] == -1e9).all()
    labels = np.array([[0, 0], [3, 4], [23, 23], [1, 1]])
    loss, _ = answerer.evaluate(packed, labels, verbose=0)
    rows = np.arange(4)[:, None]
    chosen = outputs[rows, [[0, 1]], labels]
    wanted = np.logaddexp.reduce(outputs, axis=-1) - chosen
    assert loss == pytest.approx(wanted.mean(), abs=1e-4)
    weights = np.array([1.0, 2.0, 0.0, 1.0])
    loss, _ = answerer.evaluate(packed, labels, sample_weight=weights, verbose=0)
    assert loss == pytest.approx((wanted * weights[:, None]).mean(), abs=1e-4)
    for y in ([[0, 24]] * 4, [[2, 1]] * 4, np.zeros((4, 3), int), [[0.0, 1.0]] * 4):
        with pytest.raises(ValueError, match="[Ww]anted|must be integers"):
            answerer.evaluate(packed, np.array(y), verbose=0)


def test_the_loss_does_not_depend_on_padding(answerer):
    short = {
        name: array[:, :12] for name, array in answerer.preprocessor.pack(["it"], ["bad"]).items()
    }
    loss = answerer.test_on_batch(short, np.array([[1, 1]]))
    answerer.reset_metrics()
    padded = {name: np.pad(array, ((0, 0), (0, 12))) for name, array in short.items()}
    assert answerer.test_on_batch(padded, np.array([[1, 1]])) == pytest.approx(loss, abs=1e-5)
    answerer.reset_metrics()


def test_threshold(answerer, tmp_path):
    before = answerer.no_answer_threshold
    threshold = answerer.tune_threshold(PAIRS, SPANS)
    best = answerer.score(PAIRS, SPANS)["f1"]
    answerer.save(tmp_path / "answerer.keras")
    twin = keras.saving.load_model(tmp_path / "answerer.keras")
    assert twin.no_answer_threshold == threshold and twin.data.query_length == 4
    assert twin.score(PAIRS, SPANS)["f1"] == best
    odds = [answer.null_odds for answer in answerer.predict(PAIRS, verbose=0)]
    for other in [*np.sort(odds)[::20], -1e9]:
        answerer.no_answer_threshold = other
        assert answerer.score(PAIRS, SPANS)["f1"] <= best
    answerer.no_answer_threshold = None
    answers = answerer.predict(PAIRS, verbose=0)
    assert [bool(answer.text) for answer in answers] == [context != "\x01" for context in CONTEXTS]
    with pytest.raises(ValueError, match="no_answer_threshold to 0.0"):
        answerer.evaluate(PAIRS, SPANS, verbose=0)
    answerer.no_answer_threshold = before


def test_a_threshold_by_characters(answerer):
    """Of an answer within a word no word is found, and each character is."""
    before = answerer.no_answer_threshold
    inner = [span if span == NO_ANSWER else (span[0] + 1, span[0] + 4) for span in SPANS]
    answerer.tune_threshold(PAIRS, inner, characters="korquad")
    best = answerer.score(PAIRS, inner, characters="korquad")["f1"]
    for other in (-1e9, 0.0, 1e9):
        answerer.no_answer_threshold = other
        assert answerer.score(PAIRS, inner, characters="korquad")["f1"] <= best
    answerer.no_answer_threshold = before


def test_mixed_precision_answers_in_float32():
    backbone = BertBackbone(**ONE_LAYER, dtype="mixed_bfloat16")
    answerer = QuestionAnswerer(backbone)
    assert {tensor.dtype for tensor in keras.tree.flatten(answerer.output)} == {"float32"}


@pytest.mark.parametrize("save", [save_hugging_face, save_google_tf1])
def test_checkpoints_of_others(answerer, save, tmp_path):
    save(answerer, tmp_path / "saved", answerer.preprocessor.tokenizer)
    settings = {"sequence_length": 24, "query_length": 4, "no_answer_threshold": 0.0}
    twin = QuestionAnswerer.from_preset(tmp_path / "saved", **settings)
    wanted = answerer.predict(PAIRS, verbose=0)
    answers = twin.predict(PAIRS, verbose=0)
    assert [(a.text, a.start) for a in answers] == [(a.text, a.start) for a in wanted]
    assert [a.score for a in answers] == pytest.approx([a.score for a in wanted], abs=1e-4)


def make_roberta():
    keras.utils.set_random_seed(1)
    vocabulary = make_vocabulary()
    backbone = RobertaBackbone(**{**ONE_LAYER, "vocabulary_size": len(vocabulary)})
    packer = SegmentPacker(BytePairTokenizer(vocabulary, MERGES), 32, padding_lengths=(32,))
    return QuestionAnswerer(backbone, preprocessor=packer, query_length=8)


def test_byte_pairs(tmp_path):
    """Answers have no space at their ends, and a label at a space is its word's."""
    model = make_roberta()
    context = "  the good  \u3000 film was\t  low . lower bad films by far, too"
    spans, _ = score_all_spans(model, "the lower", context)
    ranked = model.predict_n_best(question="the lower", context=context, n_best=10_000)
    assert len(ranked) > 100
    for answer in ranked:
        assert context[answer.start : answer.end] == answer.text == answer.text.strip()
    trimmed = {
        span: score
        for span, score in spans.items()
        if context[slice(*span)].strip() == context[slice(*span)] != ""
    }
    best = max(trimmed, key=trimmed.get)
    assert (ranked[0].start, ranked[0].end) == best
    windows = model.data.window(model.data.read((["the"], [context]), [(1, 11)]))
    (first, last) = windows.labels[0]
    packed = model.data.pack(windows)[0]
    pieces = [model.preprocessor.tokenizer.id_to_token(int(i)) for i in packed["token_ids"][0]]
    assert pieces[first : last + 1] == ["Ġthe", "Ġgood"]


@pytest.mark.parametrize("pieces", [BYTE_PAIRS, SENTENCE_PIECES])
def test_no_answer_begins_or_ends_with_a_token_without_text(pieces):
    task, _ = make_task("questions", pieces)
    task.no_answer_threshold = None
    (answers,) = task.predict_n_best((["good"], ["北京 good \0 İ"]), n_best=100, verbose=0)
    texts = [answer.text for answer in answers]
    assert "北京" in texts and all(text and text == text.strip() for text in texts)


def test_labels_of_windows(answerer):
    """Each window with the whole answer points to it, every other window to [CLS]."""
    befores = range(50, 70)  # So that each border of a window is once within an answer.
    contexts = [" ".join(["bad"] * n + ["very", "good"] + ["the"] * 50) for n in befores]
    spans = [(4 * n, 4 * n + 9) for n in befores]
    windows = answerer.data.window(answerer.data.read((["it"] * 20, contexts), spans))
    packed, labels, _ = answerer.data.pack(windows)
    tokenizer = answerer.preprocessor.tokenizer
    cuts = set()
    for ids, (first, last) in zip(packed["token_ids"], labels, strict=True):
        pieces = [tokenizer.id_to_token(int(id)) for id in ids]
        seen = tuple(piece for piece in ("very", "good") if piece in pieces)
        cuts.add(seen)
        if len(seen) == 2:
            assert pieces[first : last + 1] == ["very", "good"]
        else:
            assert (first, last) == (0, 0)
    assert cuts == {(), ("very",), ("good",), ("very", "good")}


def test_answers_that_no_window_holds_are_counted(answerer):
    words = ["bad"] * 60

    def cut(*lengths):
        contexts = [" ".join(words)] * len(lengths)
        spans = [NO_ANSWER if n is None else (0, 4 * n - 1) for n in lengths]
        return answerer.data.window(
            answerer.data.read((["it"] * len(lengths), contexts), spans, labelled=True)
        )

    longest = max(map(len, cut(None).inputs[1]))
    match = (
        f"2 of 5 answers are in no window .* of row 1 that is {longest + 1} tokens long. The "
        f"longest window has {longest} tokens"
    )
    with pytest.warns(UserWarning, match=match):
        windows = cut(longest, longest + 1, 60, 2, None)
    held = {
        int(row) for row, (first, _) in zip(windows.sources, windows.labels, strict=True) if first
    }
    assert held == {0, 3}


@pytest.mark.parametrize("truncate", ["round_robin", "waterfall"])
def test_a_preprocessor_of_kerashub_is_replaced_by_one_that_cuts_alike(answerer, truncate):
    preprocessor = keras_hub.models.BertTextClassifierPreprocessor(
        keras_hub.models.BertTokenizer(VOCABULARY), sequence_length=24, truncate=truncate
    )
    backbone = BertBackbone(**ONE_LAYER)
    if truncate == "waterfall":
        with pytest.raises(ValueError, match="Set `preprocessor` to a SegmentPacker"):
            QuestionAnswerer(backbone, preprocessor=preprocessor).predict(PAIRS)
        return
    packer = QuestionAnswerer(backbone, preprocessor=preprocessor).preprocessor
    assert isinstance(packer, SegmentPacker) and packer.truncation == "longest_first"


def test_generators_lose_no_batch(answerer):
    questions, contexts = QUESTIONS[:4], CONTEXTS[:4]
    pairs = zip(questions, contexts, strict=True)
    # An empty batch, as a filter may leave it, is no step.
    batches = (batch for q, c in pairs for batch in ((([], []),), (([q], [c]),)))
    got = [answerer.predict(batches, steps=2, verbose=0) for _ in range(2)]
    wanted = answerer.predict((questions, contexts), verbose=0)
    assert [a.text for answers in got for a in answers] == [a.text for a in wanted]


@pytest.mark.parametrize(
    ("x", "y", "error"),
    [
        ((["a"], ["the film"]), [(4, 9)], "label of row 0 is .*4, 9.* context has 8 characters"),
        ((["a"], ["the film"]), [(4, 4)], "label of row 0 is .*4, 4"),
        (
            (["a"], ["the film"]),
            [{"text": "film", "answer_start": 3}],
            "Row 0: the answer 'film' is not at character 3 of the context, but at 4",
        ),
        (
            (["a"], ["the film"]),
            [{"text": "plot", "answer_start": 4}],
            "at character 4 .* but at -1",
        ),
        (
            (["a"], ["the film"]),
            [{"text": ["film"], "answer_start": []}],
            "1 answers in 'text' and the",
        ),
        (
            (["a"], ["the film"]),
            [{"text": [""], "answer_start": []}],
            "1 answers in 'text' and the",
        ),
        (
            (["a"], ["the film"]),
            [{"text": ["film"], "answer_start": [float("nan")]}],
            r"the 'answer_start' \[nan\], wanted the first character",
        ),
        ((["a"], ["the film"]), ["film"], "label of row 0 is 'film', wanted"),
        ((["a"], ["the film"]), [None], "label of row 0 is 'None', wanted"),
        ((["a"], ["the film"]), [(0.5, 2)], "label of row 0"),
        ((["a"], ["the film"]), [(0, 3), (0, 3)], "label for each of 1 questions, got 2"),
        ((["a"], ["the \x01"]), [(4, 5)], "row 0, '.x01', has no token"),
        (["the film"], [(0, 3)], "is a question and a context, got rows of 1 texts"),
        ({"question": ["a"], "text": ["b"]}, [(0, 1)], "columns are named question, text"),
        ((["a"], ["the film"]), None, "a label for each row"),
        ((["a"], [None]), [(0, 1)], "at row 0 of 'segment 1'"),
        ((["a", "b"], ["c"]), [(0, 1)], "same number of rows"),
    ],
)
def test_wrong_input_takes_no_step(answerer, x, y, error):
    before = answerer.get_weights()
    with pytest.raises(ValueError, match=error):
        answerer.fit(x, y, verbose=0)
    assert all(map(np.array_equal, before, answerer.get_weights()))


def test_wrong_arguments(answerer):
    with pytest.raises(
        ValueError, match="max_answer_length must be an integer of at least 1, got 0"
    ):
        make_answerer(max_answer_length=0)
    for arguments in ({}, {"question": "a"}, {"x": PAIRS, "context": "b", "question": "a"}):
        with pytest.raises(ValueError, match="Pass rows as `x`, or the two arguments"):
            answerer.predict(**arguments)
    packed = answerer.preprocess_samples(PAIRS)
    with pytest.raises(ValueError, match="Packed arrays have no text, .* or call `evaluate`"):
        answerer.score(packed, SPANS)
    with pytest.raises(ValueError, match="stride must be from 1"):
        make_answerer(stride=100).predict(PAIRS)
    with pytest.raises(ValueError, match="class_weight must be None"):
        answerer.fit(PAIRS, SPANS, class_weight={0: 1.0})


def test_a_short_row_has_room_for_a_question_and_its_context():
    """The question gets at most two thirds of the 17 places, and windows overlap by half."""
    answerer = make_answerer(sequence_length=20, query_length=None)
    rows = (["the film " * 10] * 2, ["a bad film of the good plot", ""])
    windows = answerer.data.window(answerer.data.read(rows))
    questions, contexts = ([len(tokens) for tokens in column] for column in windows.inputs)
    assert (questions, contexts) == ([11, 11, 11], [6, 4, 0])
    assert windows.begins.tolist() == [0, 3, 0]
    assert [answer.text for answer in answerer.predict(rows, verbose=0)][1] == ""


def test_a_backbone_with_one_segment_is_refused():
    answerer = make_answerer()
    answerer.data.encoder = dataclasses.replace(answerer.data.encoder, num_segments=1)
    with pytest.raises(ValueError, match="embeddings for 1 segments, got rows of 2 texts"):
        answerer.predict((["it"], ["the film"]), verbose=0)
