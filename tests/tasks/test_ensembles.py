"""Several tasks answer together: the mean of what each of them says."""

import keras
import numpy as np
import pytest
from heads.cases import CASES
from peer_weights import randomize
from scipy.special import expit, log_softmax, softmax
from sklearn.ensemble import VotingClassifier
from sklearn.preprocessing import LabelEncoder
from small_tasks import BYTE_PAIRS, assert_close, make_task, predicted_columns
from small_texts import make_reviews
from tables import short_for

import keras_bert_suite as kbs
from keras_bert_suite.heads.attributes.answers import AttributeAnswers
from keras_bert_suite.heads.attributes.data import AttributeLabels
from keras_bert_suite.heads.base import ensemble as ensemble_module
from keras_bert_suite.heads.base.answers import ClassAnswers, LabelSetAnswers
from keras_bert_suite.heads.base.averages import from_form, to_form
from keras_bert_suite.heads.base.ensemble_weights import choose_metric, select_greedily
from keras_bert_suite.heads.base.labels import Classes, LabelSets
from keras_bert_suite.heads.spans.answers import EntitySpanAnswers
from keras_bert_suite.heads.spans.labels import EntitySpans
from keras_bert_suite.heads.vectors.answers import VectorAnswers

SHARES = [0.5, 0.3, 0.2]


def make_tasks(name, kinds=("SegmentPacker",) * 3):
    tasks = []
    for seed, kind in enumerate(kinds):
        keras.utils.set_random_seed(seed)
        tasks.append(randomize(make_task(name, kind)[0], seed))
    return tasks


def ask(name, task):
    return predicted_columns(task, CASES[name].rows)


def find_outputs(task, x):
    return task.predict_with(lambda outputs, rows: np.array(outputs), x, verbose=0)


def mean(arrays):
    return sum(share * array for share, array in zip(SHARES, arrays, strict=True))


def choose_part(function):
    """`function` of the two labels of an attribute, and of the three of another one."""
    return lambda x: np.concatenate([function(x[:, :2]), function(x[:, 2:])], axis=1)


def to_length(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def log_odds(p):
    return np.log(p / (1 - p))


def same(x):
    return x


#: name of a case -> ("average", function to what is averaged, function back to outputs).
RULES = {
    "texts": ("probabilities", lambda x: softmax(x, -1), np.log),
    "label sets": ("probabilities", expit, log_odds),
    "numbers": ("numbers", same, same),
    "attributes": ("probabilities", choose_part(lambda x: softmax(x, -1)), np.log),
    "words": ("probabilities", lambda x: softmax(x, -1), np.log),
    "chains": ("logits", same, same),
    "spans": ("probabilities", expit, lambda p: log_odds(np.clip(p, 1e-30, None))),
    "relations": ("probabilities", lambda x: softmax(x, -1), np.log),
    "questions": ("logits", same, same),
    "choices": ("probabilities", lambda x: softmax(x, -1), np.log),
    "rankings": ("logits", same, same),
    "documents": ("probabilities", lambda x: softmax(x, -1), np.log),
    "vectors": ("vectors", to_length, to_length),
}


#: name of a case -> (its answers, the shape of outputs).
ANSWERS = {
    "classes": (ClassAnswers(Classes("abc")), (4, 3)),
    "probabilities of classes": (ClassAnswers(Classes("abc"), are_logits=False), (4, 3)),
    "label sets": (LabelSetAnswers(LabelSets("abc")), (4, 3)),
    "attributes": (AttributeAnswers(AttributeLabels({"a": "xy", "b": "xyz"})), (4, 5)),
    "spans": (EntitySpanAnswers(EntitySpans("ab")), (4, 2, 3, 3)),
    "vectors": (VectorAnswers(), (4, 5)),
}


# The others have the answers and the mean of one of these.
@pytest.mark.parametrize(
    "name",
    short_for(
        RULES,
        *("texts", "label sets", "numbers", "attributes", "words", "chains", "spans", "vectors"),
        part="combinations",
    ),
)
def test_the_mean_of_outputs(name):
    average, there, back = RULES[name]
    tasks = make_tasks(name)
    ensemble = kbs.Ensemble(tasks, [5, 3, 2])
    assert ensemble.average == average and ensemble.weights == pytest.approx(SHARES)
    x = ask(name, tasks[0])
    parts = [find_outputs(task, x) for task in tasks]
    assert np.abs(parts[0] - parts[1]).max() > 1e-3
    wanted = back(mean([there(part.astype("float64")) for part in parts]))
    got = find_outputs(ensemble, x)
    places = np.abs(wanted) < 50  # Scores of places that are no span are as low as can be.
    np.testing.assert_allclose(got[places], wanted[places], atol=1e-5)


# Vectors are brought to the length 1 once more, which changes their last digits.
ONE_TASK = [*(name for name in RULES if name != "vectors"), "exits", "patterns", "entailments"]


@pytest.mark.parametrize(
    "name",
    short_for(
        ONE_TASK,
        *("texts", "label sets", "numbers", "attributes", "words", "spans", "questions"),
        *("rankings", "exits"),
        part="combinations",
    ),
)
def test_an_ensemble_of_one_task_answers_and_scores_as_the_task(name):
    """By each method: the mean of its own logits is what the task has."""
    (task, *_), case = make_tasks(name), CASES[name]
    forms = task.answers.mean_forms
    ensemble = kbs.Ensemble([task], average="logits" if "logits" in forms else forms[0])
    asked = {method: (ask(name, task),) for method in {"predict", *case.answering}}
    scored = {method: (case.rows, case.labels) for method in case.scoring}
    methods = {**asked, **scored}
    with np.printoptions(precision=4, suppress=True):
        for method in methods.keys() & {*ensemble_module._ANSWERING}:
            arguments = methods[method]
            found, wanted = (getattr(each, method)(*arguments) for each in (ensemble, task))
            assert str(found) == str(wanted), method


def test_classes_are_those_of_a_soft_vote():
    tasks = make_tasks("texts")
    texts, labels = CASES["texts"].rows, CASES["texts"].labels

    class Fitted:
        def __init__(self, task):
            self.predict_proba = lambda x: task.predict_probabilities(list(x), verbose=0)

    peer = VotingClassifier([("a", None), ("b", None), ("c", None)], voting="soft", weights=SHARES)
    peer.estimators_ = [Fitted(task) for task in tasks]
    peer.le_ = LabelEncoder().fit(["no", "yes"])
    peer.classes_ = peer.le_.classes_
    ensemble = kbs.Ensemble(tasks, SHARES)
    assert_close(ensemble.predict_probabilities(texts, verbose=0), peer.predict_proba(texts))
    chosen = peer.predict(texts)
    assert ensemble.predict_labels(texts, verbose=0) == chosen.tolist()
    assert ensemble.score(texts, labels)["accuracy"] == np.mean(chosen == np.array(labels))
    wrong = ensemble.inspect(texts, labels)
    assert {w.row for w in wrong} == {*np.flatnonzero(chosen != np.array(labels))}


def test_logits_may_be_averaged():
    tasks = make_tasks("texts")
    got = kbs.Ensemble(tasks, SHARES, average="logits").predict(CASES["texts"].rows, verbose=0)
    assert_close(got, mean([task.predict(CASES["texts"].rows, verbose=0) for task in tasks]))


def test_relevances_are_averaged_as_probabilities_if_asked():
    tasks, rows = make_tasks("rankings"), CASES["rankings"].asked(None, CASES["rankings"].rows)
    single = [1 / (1 + np.exp(-task.predict(rows, verbose=0))) for task in tasks]
    got = kbs.Ensemble(tasks, SHARES, average="probabilities").predict(rows, verbose=0)
    assert_close(got, log_odds(mean(single)))


@pytest.mark.every_backend
@pytest.mark.parametrize("name", ANSWERS)
def test_the_mean_of_tensors_is_that_of_arrays(name):
    """A graph averages tensors, and `predict` arrays."""
    answers, shape = ANSWERS[name]
    draw = np.random.default_rng(0).normal(0, 3, (2, *shape)).astype("float32")
    draw = draw if answers.are_logits else softmax(draw, -1)
    tensors = [keras.ops.convert_to_tensor(part) for part in draw]
    for form in answers.mean_forms:
        means = []
        for parts, xp in ((draw, np), (tensors, keras.ops)):
            mean = sum(to_form(answers, part, form, xp) / 2 for part in parts)
            means.append(np.array(keras.ops.convert_to_numpy(from_form(answers, mean, form, xp))))
        np.testing.assert_allclose(*means, atol=2e-5)
        back = from_form(answers, to_form(answers, draw[0], form, np), form, np)
        same = to_form(answers, back, form, np)
        np.testing.assert_allclose(same, to_form(answers, draw[0], form, np), atol=1e-6)
        assert np.abs(means[0] - from_form(answers, draw[0] * 0 + 0.5, form, np)).max() > 0.1


@pytest.mark.every_backend
def test_a_call_is_a_prediction():
    ensemble = kbs.Ensemble(make_tasks("attributes")[:2], [3, 1])
    packed = ensemble.data.pack_texts((CASES["attributes"].rows,))
    wanted = find_outputs(ensemble, CASES["attributes"].rows)
    assert_close(keras.ops.convert_to_numpy(ensemble(packed)), wanted)


def permute_labels(task, order):
    """The same task with its labels in another order."""
    config = task.get_config()
    names = [task.label_names[i] for i in order]
    other = type(task).from_config(
        {**config, "backbone": task.backbone, "label_names": names, "num_classes": None}
    )
    other.preprocessor = task.preprocessor
    places = {id(w) for w in task.backbone.weights}
    own = [w for w in task.weights if id(w) not in places]
    others = [w for w in other.weights if id(w) not in places]
    for old, new in zip(own, others, strict=True):
        array = keras.ops.convert_to_numpy(old)
        for axis, size in enumerate(array.shape):
            if size == len(names):
                array = np.take(array, order, axis=axis)
        new.assign(array)
    return other


@pytest.mark.parametrize("name", ["texts", "words", "chains", "label sets"])
def test_labels_are_aligned_by_their_names(name):
    task = make_tasks(name)[0]
    order = [1, 0] if len(task.label_names) == 2 else [2, 0, 1]
    other = permute_labels(task, order)
    x = ask(name, task)
    assert np.abs(find_outputs(task, x) - find_outputs(other, x)).max() > 1e-3
    alone = kbs.Ensemble([task])
    for tasks in ([task, other], [task, task, other]):
        both = kbs.Ensemble(tasks)
        assert_close(find_outputs(both, x), find_outputs(alone, x))
        if hasattr(task, "predict_tags"):
            assert both.predict_tags(x, verbose=0) == task.predict_tags(x, verbose=0)
            probabilities = (t.predict_probabilities(x, verbose=0) for t in (both, task))
            assert_close(*map(list, probabilities))


class Noted(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.calls = []

    def on_predict_begin(self, logs=None):
        self.calls.append(self.model)

    def on_predict_batch_begin(self, batch, logs=None):
        self.calls.append(batch)


@pytest.mark.parametrize("name", ["texts", "spans"])  # The answers of spans are condensed.
def test_each_task_gets_the_arguments_of_predict(name, capsys):
    tasks, noted = make_tasks(name)[:2], Noted()
    kbs.Ensemble(tasks).predict(ask(name, tasks[0]), 4, verbose=0, callbacks=[noted])
    assert noted.calls == [tasks[0], 0, 1, 2, tasks[1], 0, 1, 2]
    assert not capsys.readouterr().out


def test_transitions_are_averaged():
    tasks = make_tasks("chains")
    ensemble = kbs.Ensemble(tasks, SHARES)
    x = ask("chains", tasks[0])
    before = ensemble.predict_probabilities(x, verbose=0)
    wanted = mean([np.array(task.crf.read_scores()[2]) for task in tasks])
    np.testing.assert_allclose(ensemble.crf.read_scores()[2], wanted, atol=1e-6)
    tasks[0].crf.transitions.assign_add(np.eye(2) * 4)  # The task was trained further.
    after = ensemble.predict_probabilities(x, verbose=0)
    assert max(np.abs(a - b).max() for a, b in zip(before, after, strict=True)) > 1e-2


def test_other_tokenizers_where_answers_are_per_text():
    tasks = make_tasks("texts", ("SegmentPacker", BYTE_PAIRS))
    texts = CASES["texts"].rows
    ensemble = kbs.Ensemble(tasks)
    parts = [task.predict_probabilities(texts, verbose=0) for task in tasks]
    assert_close(ensemble.predict_probabilities(texts, verbose=0), np.mean(parts, axis=0))
    with pytest.raises(ValueError, match="make other arrays of texts, got packed arrays"):
        ensemble.predict(tasks[0].preprocessor(texts), verbose=0)
    tasks = make_tasks("words", ("SegmentPacker", BYTE_PAIRS))
    message = r"tasks\[1\] has another tokenizer than tasks\[0\]. .*stand at tokens"
    with pytest.raises(ValueError, match=message):
        kbs.Ensemble(tasks)


def test_spans_of_many_rows(monkeypatch):
    """The scores of all pairs of tokens are not kept for all rows at once."""
    rows = [text.split() for text in make_reviews(20)[0]]
    ensemble = kbs.Ensemble(make_tasks("spans")[:2])
    wanted = ensemble.predict(rows, verbose=0)
    monkeypatch.setattr(ensemble_module, "_ROWS_AT_ONCE", 3)
    got = ensemble.predict(rows, verbose=0)
    assert [[(e.start, e.end) for e in row] for row in got] == [
        [(e.start, e.end) for e in row] for row in wanted
    ]
    assert len({len(row) for row in got}) > 1


def test_thresholds_are_tuned_for_the_ensemble(tmp_path):
    tasks = make_tasks("texts")
    texts, labels = CASES["texts"].rows, CASES["texts"].labels
    ensemble = kbs.Ensemble(tasks, SHARES)
    tuned = ensemble.tune_thresholds(texts, labels)
    assert ensemble.thresholds == list(tuned.values()) != [0.5, 0.5]
    assert all(task.thresholds is None for task in tasks)
    ensemble.save_to_preset(tmp_path / "saved")
    opened = kbs.Ensemble.from_preset(tmp_path / "saved")
    assert (opened.thresholds, opened.weights) == (ensemble.thresholds, ensemble.weights)
    assert opened.score(texts, labels) == ensemble.score(texts, labels)
    assert_close(opened.predict(texts, verbose=0), ensemble.predict(texts, verbose=0))
    card = (tmp_path / "saved" / "model_card.md").read_text()
    assert "probabilities of 3 tasks" in card and "0.5, 0.3, 0.2" in card
    with pytest.raises(ValueError, match="saved is the folder of an ensemble. Open it by Ensemble"):
        kbs.TextClassifier.from_preset(tmp_path / "saved")
    part = kbs.TextClassifier.from_preset(tmp_path / "saved" / "1")
    assert_close(part.predict(texts, verbose=0), tasks[1].predict(texts, verbose=0))
    tasks[1].thresholds = [0.3, 0.7]
    with pytest.raises(ValueError, match=r"tasks\[1\] thresholds=.*tune_thresholds` of the ens"):
        kbs.Ensemble(tasks)


def test_thresholds_of_questions():
    tasks = make_tasks("questions")
    rows, spans = CASES["questions"].rows, CASES["questions"].labels
    ensemble = kbs.Ensemble(tasks)
    threshold = ensemble.tune_threshold(rows, spans)
    assert ensemble.no_answer_threshold == threshold != tasks[0].no_answer_threshold
    ensemble.no_answer_threshold = 100.0
    assert all(answer.text for answer in ensemble.predict(rows, verbose=0))
    ensemble.no_answer_threshold = -100.0
    assert not any(answer.text for answer in ensemble.predict(rows, verbose=0))


def greedy_by_the_paper(values, wanted, rounds):
    """Caruana et al., 2004, section 2: a bag of models, to which the best one is added."""
    bag, best, chosen = [], -1, None
    for _ in range(rounds):
        scores = [np.mean((np.mean([values[m] for m in [*bag, new]], axis=0) > 0.5) == wanted)
                  for new in range(len(values))]  # fmt: skip
        ties = [new for new, score in enumerate(scores) if score == max(scores)]
        bag.append(min(ties, key=lambda new: (bag.count(new), new)))
        if max(scores) >= best:
            best, chosen = max(scores), list(bag)
    return [chosen.count(m) / len(chosen) for m in range(len(values))], best


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_weights_are_selected_greedily(seed):
    rng = np.random.default_rng(seed)
    wanted = rng.random(60) > 0.5
    values = np.clip(wanted + rng.normal(0, [[0.4], [0.6], [0.7], [3.0]], (4, 60)), 0, 1)

    def measure(weights):
        return float(np.mean((np.tensordot(weights, values, 1) > 0.5) == wanted))

    weights = select_greedily(measure, 4, 12)
    by_hand, best = greedy_by_the_paper(values, wanted, 12)
    assert weights == pytest.approx(by_hand) and measure(weights) == best
    assert best >= max(measure(row) for row in np.eye(4))


def test_metrics():
    scores = {"classes": {}, "accuracy": 0.5, "mean_squared_error": 2.0}
    assert choose_metric(scores) == 0.5
    assert choose_metric(scores, "mean_squared_error") == -2.0
    assert choose_metric({"precision": 0.1, "f1": 0.3}) == 0.3
    with pytest.raises(ValueError, match="metric must be one of accuracy, mean_squared_error, got"):
        choose_metric(scores, "classes")
    with pytest.raises(ValueError, match="No weights have a score that is a number"):
        select_greedily(lambda weights: float("nan"), 2, 2)


@pytest.mark.parametrize("name", ["texts", "chains", "rankings", "vectors"])
def test_weights_of_tasks(name):
    tasks, case = make_tasks(name), CASES[name]
    ensemble = kbs.Ensemble(tasks)
    asked, predict_with = [], tasks[0].predict_with

    def count(*args, **kwargs):
        asked.append(args)
        return predict_with(*args, **kwargs)

    vars(tasks[0])["predict_with"] = count
    weights = ensemble.fit_weights(case.rows, case.labels, rounds=4)
    assert len(asked) <= 2, "outputs are computed once"
    assert weights == ensemble.weights and sum(weights) == pytest.approx(1)
    assert {round(weight * 12, 6) % 1 for weight in weights} == {0}
    best = choose_metric(ensemble.score(case.rows, case.labels))
    alone = [kbs.Ensemble([task]) for task in tasks]
    assert best >= max(choose_metric(e.score(case.rows, case.labels)) for e in alone) - 1e-6


def make_classifier(**arguments):
    return make_task("texts")[0].__class__(
        make_task("texts")[0].backbone, **{"label_names": ["no", "yes"], **arguments}
    )


def shorten(task):
    task.preprocessor = kbs.SegmentPacker(task.preprocessor.tokenizer, 8)
    return task


def name_texts(task, names):
    task.input_names = names
    return task


def make_patterns(pattern):
    task = make_task("texts")[0]
    verbalizers = {"yes": "good", "no": "bad"}
    return kbs.PatternClassifier(
        task.backbone, pattern=pattern, verbalizers=verbalizers, preprocessor=task.preprocessor
    )


def make_zero_shot(seed, names=("good", "bad"), **arguments):
    task = make_tasks("texts", ("SegmentPacker",) * (seed + 1))[seed]
    return task.__class__(
        task.backbone, label_names=["entailment", "contradiction"], preprocessor=task.preprocessor
    ).zero_shot(list(names), **arguments)


def test_labels_that_rows_bring():
    tasks = [randomize(make_zero_shot(seed), seed) for seed in range(2)]
    for task in tasks:
        task.classifier.kernel.assign(50 * task.classifier.kernel)
    ensemble, texts = kbs.Ensemble(tasks), CASES["texts"].rows
    for arguments in ({}, {"labels": ["a film", "a plot", "actors"]}):
        parts = [task.predict(texts, verbose=0, **arguments) for task in tasks]
        assert np.abs(parts[0] - parts[1]).max() > 1e-3
        assert_close(ensemble.predict(texts, verbose=0, **arguments), np.mean(parts, axis=0))
    assert ensemble.predict_labels(texts, verbose=0)[0] in ("good", "bad")


REFUSED = {
    "nothing": (lambda: [], "needs at least one task, got none"),
    "a path": (lambda: ["model.keras"], r"made of tasks, got a str as tasks\[0\]"),
    "no mean": (lambda: make_tasks("masks"), "The answers of a MaskedLM have no mean"),
    "towers": (
        lambda: [kbs.TwoTowerRanker(make_task("texts")[0].backbone)],
        "The answers of a TwoTowerRanker have no mean.* rankings of a TextRanker",
    ),
    "labels in an order": (
        lambda: [make_zero_shot(0), make_zero_shot(0, ("bad", "good"))],
        r"labels good, bad, and tasks\[1\] bad, good, in another order.* Set `tasks\[1\].label",
    ),
    "kinds": (
        lambda: [make_task(name)[0] for name in ("texts", "words")],
        r"tasks\[0\] is a TextClassifier, and tasks\[1\] a TokenClassifier",
    ),
    "problems": (
        lambda: [make_task(name)[0] for name in ("texts", "label sets")],
        r"tasks\[0\] has problem_type='single_label_cl.*, and tasks\[1\] problem_type='multi_label"
        ".*Leave one of the tasks out, or build and train both with one problem_type",
    ),
    "patterns": (
        lambda: [make_patterns("{text} {mask}"), make_patterns("{mask} {text}")],
        r"pattern='{mask} {text}'. Leave one of the tasks out, or build .* with one pattern\.",
    ),
    "templates": (
        lambda: [make_zero_shot(0), make_zero_shot(0, template="{} ?")],
        r"template='{} \?'. Leave one of the tasks out, or build .* with one template\.",
    ),
    "labels": (
        lambda: [make_classifier(), make_classifier(label_names=["no", "perhaps", "yes"])],
        r"has 2 labels, and tasks\[1\] 3: tasks\[1\] alone has perhaps. The labels of all tasks",
    ),
    "lengths": (
        lambda: [make_task("words")[0], shorten(make_task("words")[0])],
        r"tasks\[0\] has sequence_length=16, and tasks\[1\] 8. The answers of a TokenClassifier",
    ),
    "windows": (
        lambda: [make_task("questions")[0], name_stride(make_task("questions")[0])],
        r"tasks\[0\] has stride=None, and tasks\[1\] 2. The answers of a QuestionAnswerer stand",
    ),
    "texts": (
        lambda: [
            name_texts(make_task("texts")[0], names) for names in (("title", "body"), ("b", "t"))
        ],
        r"have the texts title, body, and those of tasks\[1\] b, t",
    ),
    "widths": (
        lambda: [make_task("vectors")[0], make_embedder(4)],
        r"vectors of tasks\[0\] have 16 numbers, and those of tasks\[1\] 4",
    ),
}


def name_stride(task):
    task.stride = 2
    return task


def make_embedder(dimensions):
    return kbs.TextEmbedder(make_task("vectors")[0].backbone, dimensions=dimensions)


@pytest.mark.parametrize("name", REFUSED)
def test_tasks_that_do_not_go_together(name):
    make, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        kbs.Ensemble(make())


@pytest.mark.parametrize("explain", [kbs.integrated_gradients, kbs.attended_tokens])
def test_an_ensemble_has_no_tokens_of_its_own(explain):
    with pytest.raises(ValueError, match=r"encoder for each of its tasks.* ensemble.tasks\[0\]"):
        explain(kbs.Ensemble(make_tasks("texts")), CASES["texts"].rows)


def test_bad_arguments(tmp_path):
    tasks = make_tasks("texts")
    for weights, message in (
        ([1, 2], "a number for each of 3 tasks"),
        ([1, -1, 1], "at least 0"),
        ([0, 0, 0], "one of them above 0"),
        ([1, float("nan"), 1], "finite"),
        (5, "a list of numbers, one for each of 3 tasks, got 5"),
        (["a", "b", "c"], "must be numbers of at least 0, got 'a' in them"),
    ):
        with pytest.raises(ValueError, match=message):
            kbs.Ensemble(tasks, weights)
    with pytest.raises(
        ValueError, match="average must be one of probabilities, logits, got 'mean'"
    ):
        kbs.Ensemble(tasks, average="mean")
    with pytest.raises(ValueError, match="tasks must be a list of tasks, got <Text.* Put a single"):
        kbs.Ensemble(tasks[0])
    ensemble = kbs.Ensemble(tasks)
    for method in ("fit", "compile", "quantize"):
        with pytest.raises(AttributeError, match=f"An Ensemble has no {method!r}. It answers"):
            getattr(ensemble, method)
    with pytest.raises(AttributeError, match="no 'label_names' to set. Set it of its tasks"):
        ensemble.label_names = ["a", "b"]
    with pytest.raises(ValueError, match="Wanted rows in memory"):
        ensemble.predict(iter([["a"]]))
    with pytest.raises(FileNotFoundError, match=r"ensemble.json is missing, so .* is no ensemble"):
        kbs.Ensemble.from_preset(tmp_path)
    (tmp_path / "ensemble.json").write_text('{"tasks": ["guest>Scorer"], "weights": [1]}')
    with pytest.raises(ValueError, match="ensemble.json"):
        kbs.Ensemble.from_preset(tmp_path)
    said = '{"tasks": ["guest>Scorer"], "weights": [1], "average": "logits"}'
    (tmp_path / "ensemble.json").write_text(said)
    with pytest.raises(ValueError, match=r"class 'guest>Scorer' of tasks\[0\], which is not known"):
        kbs.Ensemble.from_preset(tmp_path)


def test_half_precision():
    tasks = [make_task("texts", dtype="mixed_bfloat16")[0] for _ in range(2)]
    got = kbs.Ensemble(tasks).predict_probabilities(CASES["texts"].rows, verbose=0)
    parts = [task.predict_probabilities(CASES["texts"].rows, verbose=0) for task in tasks]
    assert got.dtype == "float32"
    np.testing.assert_allclose(got, np.mean(parts, axis=0), atol=1e-6)


def test_probabilities_instead_of_logits():
    texts = CASES["texts"].rows
    tasks = [make_classifier(activation=activation) for activation in ("softmax", None)]
    for task in tasks:
        task.preprocessor = make_task("texts")[0].preprocessor
    wanted = np.log(tasks[0].predict(texts, verbose=0)) / 2
    wanted = wanted + log_softmax(tasks[1].predict(texts, verbose=0), -1) / 2
    got = kbs.Ensemble(tasks, average="logits").predict(texts, verbose=0)
    assert_close(got, softmax(wanted, -1))


def test_thresholds_set_after_are_no_folder_that_does_not_open(tmp_path):
    packer = make_task("texts")[0].preprocessor
    tasks = [make_classifier(preprocessor=packer) for _ in range(2)]
    ensemble = kbs.Ensemble(tasks)
    tasks[0].thresholds = [0.1, 0.9]
    with pytest.raises(ValueError, match=r"tasks\[0\] has thresholds="):
        ensemble.save_to_preset(tmp_path / "ensemble")
    assert not (tmp_path / "ensemble").exists()
