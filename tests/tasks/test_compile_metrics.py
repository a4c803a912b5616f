"""Metrics and losses of `compile` in `fit`, `evaluate`, callbacks and files, on every task."""

import keras
import numpy as np
import pytest
from heads.cases import CASES, FIRST
from small_tasks import make_task
from tables import everywhere_for, short_for

from keras_bert_suite import EntityF1, MacroF1

#: Rows of 1 to 4 words, so that batches have padding.
WORDS = [text.split()[: 1 + row % 4] for row, text in enumerate(FIRST)]
TAGS = [[int(word == "good") for word in row] for row in WORDS]
SCORED = [name for name, case in CASES.items() if case.metrics is not None]
REFUSED = [(name, *case.refused_metric) for name, case in CASES.items() if case.refused_metric]


def make(task, **arguments):
    keras.utils.set_random_seed(0)
    model, (x, y, *_) = make_task(task, "SegmentPacker")
    if task == "words":
        x, y = WORDS, TAGS
    model.set_weights([np.sin(np.arange(w.size)).reshape(w.shape) for w in model.get_weights()])
    model.compile(keras.optimizers.SGD(0.0), **arguments)
    return model, x, y


# The others have the metrics of one of these tasks.
@pytest.mark.parametrize(
    "task",
    short_for(
        SCORED,
        *("texts", "label sets", "numbers", "attributes", "rankings"),
        part="combinations",
    ),
)
def test_metrics_are_what_score_says(task, tmp_path):
    """In `evaluate`, in each epoch of a `fit`, and of a task that was loaded."""
    make_arguments, names = CASES[task].metrics
    model, x, y = make(task, **make_arguments())
    scores = model.score(x, y)
    wanted = {log: pytest.approx(scores[name], abs=1e-5) for name, log in names.items()}
    path = tmp_path / "task.keras"
    model.save(path)
    opened = keras.saving.load_model(path)
    for task, batch_size in ((model, 5), (opened, 12)):
        found = task.evaluate(x, y, batch_size, verbose=0, return_dict=True)
        del found["loss"]
        assert found == wanted
    opened.save(path)  # A metric that was loaded is read anew, and not twice.
    monitor = f"val_{next(iter(wanted))}"
    history = (
        keras.saving.load_model(path)
        .fit(
            *(x, y, 6),
            epochs=3,
            validation_data=(x, y),
            callbacks=[
                keras.callbacks.EarlyStopping(monitor, patience=1),  # Each has a direction.
                keras.callbacks.ModelCheckpoint(tmp_path / "best.keras", monitor, 0, True),
            ],
            verbose=0,
        )
        .history
    )
    assert {name: history[f"val_{name}"] for name in wanted} == {
        name: [value] * 2 for name, value in wanted.items()
    }
    assert {name: history[name][0] for name in wanted} == wanted
    assert (tmp_path / "best.keras").exists()


TOKEN_METRICS = {
    "accuracy": lambda tags, p: np.mean(tags == p.argmax(-1)),
    keras.metrics.Precision(thresholds=0.02, name="precision"): (
        lambda tags, p: np.mean(tags[p[:, 1] > 0.02])
    ),
    keras.metrics.Recall(class_id=0, name="recall"): (
        lambda tags, p: np.mean(p[tags == 0, 0] > 0.5)
    ),
    keras.metrics.SparseCategoricalCrossentropy(name="log_loss"): (
        lambda tags, p: -np.mean(np.log(p[np.arange(len(tags)), tags]))
    ),
}


def test_metrics_of_a_tagger_count_words(tmp_path):
    """A task that was trained with class weights counts each word once in `metrics`."""
    model, x, y = make("words", metrics=[*TOKEN_METRICS], weighted_metrics=[MacroF1()])
    p, tags = np.concatenate(model.predict_probabilities(x, verbose=0)), np.concatenate(y)
    names = [getattr(metric, "name", metric) for metric in TOKEN_METRICS]
    wanted = {
        name: pytest.approx(find(tags, p), rel=1e-4)
        for name, find in zip(names, TOKEN_METRICS.values(), strict=True)
    }
    path = tmp_path / "task.keras"
    model.save(path)
    opened = keras.saving.load_model(path)
    for task, batch_size in ((model, 1), (model, 12), (opened, 5)):
        found = task.evaluate(x, y, batch_size, verbose=0, return_dict=True)
        assert found.keys() - wanted.keys() == {"loss", "macro_f1"}
        assert {name: found[name] for name in wanted} == wanted
    history = opened.fit(x, y, 5, class_weight={1: 3.0}, verbose=0).history
    assert {name: history[name][0] for name in wanted} == wanted


def squares(y_true, y_pred):
    return keras.ops.square(keras.ops.cast(y_true, "float32") - y_pred[..., 1])


@pytest.mark.parametrize(
    "loss",
    [
        keras.losses.CategoricalFocalCrossentropy(from_logits=True),
        keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1),
        squares,
    ],
)
def test_losses_of_a_tagger_do_not_depend_on_padding(loss, tmp_path):
    model, x, y = make("words", loss=loss, metrics=[squares])
    whole = model.evaluate(x, y, 12, verbose=0)
    assert whole[0] == pytest.approx(np.mean(model.evaluate(x, y, 1, verbose=0)[0]), rel=1e-4)
    emissions = np.concatenate([np.log(p) for p in model.predict_probabilities(x, verbose=0)])
    if loss is not squares:
        one_hot = np.eye(2, dtype="float32")[np.concatenate(y)]
        assert whole[0] == pytest.approx(float(loss(one_hot, emissions)), rel=1e-4)
    else:
        assert whole[0] == pytest.approx(whole[1], rel=1e-4)
    model.save(tmp_path / "task.keras")
    twin = keras.saving.load_model(tmp_path / "task.keras", custom_objects={"squares": squares})
    assert twin.evaluate(x, y, 5, verbose=0) == pytest.approx(whole, rel=1e-4)


def whole_mean(y_true, y_pred):
    return keras.ops.mean(squares(y_true, y_pred))


def row_means(y_true, y_pred):
    return keras.ops.mean(squares(y_true, y_pred), axis=-1)


def test_metrics_of_the_user_for_rows_and_batches():
    model, x, y = make("words", metrics=[whole_mean, row_means])
    found = model.evaluate(x, y, 12, verbose=0, return_dict=True)
    assert found["whole_mean"] == pytest.approx(found["row_means"], rel=1e-4)
    history = model.fit(x, y, 4, class_weight={1: 3.0}, verbose=0).history
    assert history["whole_mean"] == pytest.approx(history["row_means"], rel=1e-4)


@pytest.mark.parametrize("loss", everywhere_for(["mse", "hinge", "poisson"], "mse"))
def test_class_ids_are_no_numbers(loss):
    model, x, y = make("texts", loss=loss)
    for batch_size in (1, 2, 5):
        with pytest.raises(ValueError, match="labels must have the shape of the outputs"):
            model.fit(x, y, batch_size, verbose=0)


@pytest.mark.parametrize(
    ("task", "loss"),
    short_for(
        [("texts", "kl_divergence"), ("label sets", "poisson"), ("label sets", "mse")],
        *(("texts", "kl_divergence"), ("label sets", "mse")),
        part="combinations",
    ),
)
def test_losses_of_probabilities_train(task, loss):
    model, x, y = make(task, loss=loss)
    losses = []
    for rate in (0.0, 0.02, 0.0):
        model.compile(keras.optimizers.Adam(rate), loss=loss)
        losses += model.fit(x, y, 4, epochs=20 if rate else 1, verbose=0).history["loss"]
    outputs = model.predict(x, verbose=0)
    leads = outputs if task == "label sets" else np.diff(outputs)
    assert losses[-1] < losses[0] and np.ptp(1 / (1 + np.exp(-leads))) > 0.3


@pytest.mark.parametrize("task", ["words", "questions", "choices"])
def test_losses_by_name(task, tmp_path):
    """A name, a function and a file stand for the loss of the scores of each place."""
    model, x, y = make(task)
    wanted = pytest.approx(model.evaluate(x, y, verbose=0, return_dict=True)["loss"], rel=1e-4)
    for loss in ("sparse_categorical_crossentropy", keras.losses.categorical_crossentropy):
        model.compile("sgd", loss=loss)
        assert model.evaluate(x, y, verbose=0, return_dict=True)["loss"] == wanted
    model.save(tmp_path / "task.keras")
    twin = keras.saving.load_model(tmp_path / "task.keras")
    assert twin.evaluate(x, y, verbose=0, return_dict=True)["loss"] == wanted
    with pytest.raises(ValueError, match="The outputs are logits, got the loss sparse_cat"):
        model.compile("sgd", loss=keras.losses.SparseCategoricalCrossentropy())


def test_the_accuracy_of_places():
    """Of first and last tokens, and of choices, as the tasks log it without metrics."""
    for task in ("questions", "choices", "relations", "masks", "targets"):
        model, x, y = make(task)
        wanted = model.evaluate(x, y, 5, verbose=0, return_dict=True)
        name = "mlm_accuracy" if task == "masks" else "accuracy"
        model.compile("sgd", metrics=["accuracy"])
        found = model.evaluate(x, y, 5, verbose=0, return_dict=True)
        assert found["accuracy"] == pytest.approx(wanted[name], abs=1e-6)
        assert "weighted_accuracy" not in found


@pytest.mark.parametrize("task", ["texts", "words"])
def test_one_metric_is_a_list_of_one(task, tmp_path):
    for metric in ("accuracy", MacroF1()):
        model, x, y = make(task, metrics=metric, weighted_metrics="mse" if task == "texts" else [])
        model.save(tmp_path / "task.keras")
        twin = keras.saving.load_model(tmp_path / "task.keras")
        found = twin.evaluate(x, y, verbose=0, return_dict=True)
        name = getattr(metric, "name", metric)
        assert found.keys() == {"loss", name, *(["mse"] if task == "texts" else [])}


def test_metrics_of_each_output():
    model, (x, y, weights) = make_task("pretraining", "none")
    for arguments in ({}, {"metrics": {"mlm": ["accuracy"], "nsp": ["acc", MacroF1()]}}):
        model.compile(keras.optimizers.SGD(0.0), **arguments)
        found = model.evaluate(x, y, sample_weight=weights, verbose=0, return_dict=True)
        if not arguments:
            wanted = found
    assert found["mlm_accuracy"] == pytest.approx(wanted["mlm_accuracy"], rel=1e-5)
    assert found["nsp_acc"] == pytest.approx(wanted["nsp_accuracy"], rel=1e-5)
    logits = model.predict(x, verbose=0)["nsp"]
    sklearn = pytest.importorskip("sklearn.metrics")
    f1 = sklearn.f1_score(y["nsp"], logits.argmax(-1), average="macro")
    assert found["nsp_macro_f1"] == pytest.approx(f1, abs=1e-5)


@pytest.mark.parametrize(("task", "metric", "error"), REFUSED)
def test_metrics_that_are_not_for_a_task(task, metric, error):
    model, _ = make_task(task, "SegmentPacker")
    with pytest.raises(ValueError, match=error):
        model.compile(metrics=[metric])


@pytest.mark.filterwarnings("ignore:The weights of the CRF learn at the same rate")
def test_a_metric_of_the_user_gets_the_outputs():
    seen = []

    def own(y_true, y_pred):
        seen.append((tuple(y_true.shape), tuple(y_pred.shape)))
        return keras.ops.mean(y_pred, axis=-1)

    model, x, y = make("label sets", metrics=[own])
    found = model.evaluate(x, y, 12, verbose=0, return_dict=True)
    assert seen[-1] == ((12, 3), (12, 3))
    assert found["own"] == pytest.approx(np.mean(model.predict(x, verbose=0)), rel=1e-4)
    model, x, y = make("chains", metrics=[lambda y_true, y_pred: y_pred[:, 0, 0]])
    model.fit(x, y, callbacks=[EntityF1(x, y)], verbose=0)


def test_features_have_the_metrics_of_the_user():
    model, x, y = make("words", metrics=["accuracy", MacroF1()])
    history = model.fit_on_features(x, y, epochs=2, verbose=0, validation_data=(x, y)).history
    assert {"accuracy", "val_accuracy", "val_macro_f1"} < history.keys()
    p, tags = np.concatenate(model.predict_probabilities(x, verbose=0)), np.concatenate(y)
    assert history["val_accuracy"][-1] == pytest.approx(np.mean(p.argmax(-1) == tags))
