"""Methods that answer or score rows keep to their `batch_size` and `steps`."""

import functools

import keras
import pytest
from heads.cases import CASES
from small_tasks import make_task

from keras_bert_suite import AnswerF1, EntityF1

#: Rows of a batch: fewer than the 12 rows of a task, and no divisor of 12.
SIZE = 5

#: Methods that answer rows: arguments (x, batch_size, steps).
ANSWERING = [(name, method) for name, case in CASES.items() for method in case.answering]
#: Methods that compare answers with labels: arguments (x, y, batch_size).
SCORING = [(name, method) for name, case in CASES.items() for method in case.scoring]
#: Methods that take other columns.
OTHERS = {
    "similarity": lambda model, x, y: model.similarity(*x, SIZE),
    "similarity_pairwise": lambda model, x, y: model.similarity_pairwise(*x, SIZE),
    "index": lambda model, x, y: model.index(x[0], SIZE),
    "search": lambda model, x, y: model.search(*x, 3, SIZE),
    "score_retrieval": lambda model, x, y: model.score_retrieval(
        *(dict(enumerate(column)) for column in x), {0: [1]}, batch_size=SIZE
    ),
    "rank": lambda model, x, y: model.rank(*x, batch_size=SIZE),
    "pseudo_perplexity": lambda model, x, y: model.pseudo_perplexity(x[:2], SIZE),
    "EntityF1": lambda model, x, y: end_epoch(model, EntityF1(x, y, SIZE)),
    "AnswerF1": lambda model, x, y: end_epoch(model, AnswerF1(x, y, SIZE)),
}


def end_epoch(model, callback):
    """The logs that a callback adds."""
    logs = {}
    callback.set_model(model)
    callback.on_epoch_end(0, logs)
    return logs


def call_method(name, model, x, y):
    if name in OTHERS:
        return OTHERS[name](model, x, y)
    if any(name == other for _, other in ANSWERING):
        return getattr(model, name)(x, SIZE, verbose=0)
    return getattr(model, name)(x, y, SIZE)


@functools.cache
def untrained(task):
    """(a task that no test trains, its columns)."""
    keras.utils.set_random_seed(0)
    return make_task(task, "SegmentPacker")


@pytest.mark.parametrize(
    ("task", "method"),
    [
        *ANSWERING,
        *SCORING,
        *[("vectors", name) for name in list(OTHERS)[:5]],
        *(("rankings", "rank"), ("masks", "pseudo_perplexity")),
        *(("words", "EntityF1"), ("questions", "AnswerF1")),
    ],
)
def test_every_method_keeps_to_its_batch_size(task, method, monkeypatch):
    model, (x, y) = untrained(task)
    sizes, pack = [], model.data.pack

    def note(rows, *arguments, **kwargs):
        sizes.append(len(rows))
        return pack(rows, *arguments, **kwargs)

    monkeypatch.setattr(model.data, "pack", note)
    call_method(method, model, x, y)
    assert max(sizes) == SIZE and sum(sizes) > SIZE


@pytest.mark.parametrize(("task", "method"), ANSWERING)
def test_every_answering_method_takes_steps(task, method):
    model, (x, _) = untrained(task)
    answers = getattr(model, method)(x, SIZE, 2, verbose=0)
    columns = answers.values() if isinstance(answers, dict) else [answers]
    assert [len(column) for column in columns] == [2 * SIZE] * len(columns)


def test_a_step_is_of_32_rows_where_no_size_is_given():
    model, (x, _) = untrained("texts")
    texts = [text for _ in range(6) for text in x]
    assert len(model.predict(texts, steps=2, verbose=0)) == 64 < len(texts)


@pytest.mark.parametrize("size", [0, -1, 2.0])
@pytest.mark.parametrize(
    ("task", "call"),
    [
        ("texts", lambda model, x, y, size: model.predict(x, size, verbose=0)),
        ("texts", lambda model, x, y, size: model.fit_on_features(x, y, size, verbose=0)),
        (
            "texts",
            lambda model, x, y, size: model.fit(
                x, y, verbose=0, validation_data=(x, y), validation_batch_size=size
            ),
        ),
        ("continuations", lambda model, x, y, size: model.predict(x, size)),
        ("continuations", lambda model, x, y, size: model.perplexity(x, size)),
        ("continuations", lambda model, x, y, size: model.score(x, size)),
        ("targets", lambda model, x, y, size: model.predict(x, size)),
        ("targets", lambda model, x, y, size: model.score(x, y, size)),
        ("masks", lambda model, x, y, size: model.pseudo_perplexity(x, size)),
    ],
)
def test_a_wrong_size_is_refused_by_name(task, call, size):
    """Also where a method counts its batches itself."""
    model, (x, y) = untrained(task)
    with pytest.raises(ValueError, match=f"batch_size must be .* at least 1, got {size}"):
        call(model, x, y, size)


@pytest.mark.parametrize("characters", [False, True, "korquad"])
def test_answers_are_scored_by_characters_after_an_epoch(characters):
    model, _ = make_task("questions", "SegmentPacker")
    model.no_answer_threshold = 1e9  # Each question has an answer.
    x = ["哪里"] * 2, ["我喜欢北京", "他们在上海"]
    # With a further character an answer is another word, which shares its characters.
    texts = [answer.text + "了" for answer in model.predict(x, verbose=0)]
    accepted = [{"text": [text], "answer_start": [-1]} for text in texts]
    logs = end_epoch(model, AnswerF1(x, accepted, characters=characters))
    scores = model.score(x, accepted, characters=characters)
    assert logs == {"val_exact_match": scores["exact_match"], "val_f1": scores["f1"]}
    assert (logs["val_f1"] > 0) is bool(characters)
