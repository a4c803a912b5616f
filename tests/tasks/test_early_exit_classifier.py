"""Where rows leave an `EarlyExitClassifier`, against the rules of the papers, row by row."""

import functools

import keras
import numpy as np
import pytest
from peer_weights import randomize, to_numpy
from scipy.special import log_softmax, softmax
from scipy.stats import entropy
from small_texts import TINY, VOCABULARY, make_reviews
from tables import everywhere_for

import keras_bert_suite as kbs
from keras_bert_suite.heads.exits.losses import ExitDistillation, ExitLoss
from keras_bert_suite.models import BACKBONES
from keras_bert_suite.training import ClassCrossentropy

NUM_LAYERS = 5
NAMES = ["no", "maybe", "yes"]
TEXTS, LABELS = make_reviews(24)
#: method -> thresholds by which some rows leave at different exits, and none.
THRESHOLDS = {"pabee": (1, 2, NUM_LAYERS), "deebert": (0.8, 0.0), "fastbert": (0.6, 0.0)}


def make_packer():
    return kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 16, padding_lengths=(16,))


def make_backbone(**arguments):
    return kbs.BertBackbone(**{**TINY, "num_layers": NUM_LAYERS, "dropout": 0.0, **arguments})


def make_task(method="pabee", backbone=None, **arguments):
    arguments = {"label_names": NAMES, "preprocessor": make_packer(), "dropout": 0.0, **arguments}
    task = kbs.EarlyExitClassifier(backbone or make_backbone(), method=method, **arguments)
    randomize(task)
    for weight in task.weights:  # Larger products, so that the answers depend on the texts.
        if len(weight.shape) > 1:
            weight.assign(4 * to_numpy(weight))
    return task


def find_all_logits(task):
    """float32 (N, E, C), by the model that is trained."""
    return to_numpy(task(task.preprocessor.pack(TEXTS), training=False))


def leave_by_patience(logits, patience, are_same):
    """(exit, logits) of one row (E, C), as in the loop of PABEE."""
    before, count = None, 0
    for place, found in enumerate(logits):  # noqa: B007
        count = count + 1 if before is not None and are_same(before, found) else 0
        before = found
        if count == patience:
            break
    return place, found


def leave_by_entropy(logits, threshold, base):
    for place, found in enumerate(logits):  # noqa: B007
        if entropy(softmax(found), base=base) < threshold:
            break
    return place, found


def leave(method, logits, threshold):
    if method == "pabee":
        return leave_by_patience(logits, threshold, lambda a, b: a.argmax() == b.argmax())
    return leave_by_entropy(logits, threshold, len(NAMES) if method == "fastbert" else None)


@pytest.mark.parametrize("method", everywhere_for(THRESHOLDS, "fastbert"))
def test_each_row_leaves_where_its_rule_says(method):
    task = make_task(method)
    logits = find_all_logits(task)
    for threshold in THRESHOLDS[method]:
        task.threshold = threshold
        exits, wanted = zip(*(leave(method, row, threshold) for row in logits), strict=True)
        found, layers = task.predict(TEXTS, return_layers=True, verbose=0)
        np.testing.assert_array_equal(layers, np.array(exits) + 1)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=5e-6)
        all_layers = threshold in (0.0, NUM_LAYERS)
        assert (set(layers) == {NUM_LAYERS}) if all_layers else len(set(layers)) > 1


def test_a_row_does_not_depend_on_the_rows_of_its_batch():
    task = make_task("deebert", threshold=0.8)
    wanted, layers = task.predict(TEXTS, return_layers=True, verbose=0)
    for size in (1, 5):
        found, again = task.predict(TEXTS, size, return_layers=True, verbose=0)
        np.testing.assert_array_equal(again, layers)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6)
    batches = iter([TEXTS[:7], TEXTS[7:]])
    np.testing.assert_allclose(task.predict(batches, verbose=0), wanted, rtol=1e-5, atol=2e-6)
    assert task.predict([], verbose=0).shape == (0, len(NAMES))


def test_layers_compute_the_rows_that_go_on_alone():
    task = make_task("deebert", threshold=0.8)
    seen, stages = [], task.find_stages()

    def note(run):
        def call(x):
            seen.append(len(keras.tree.flatten(x)[0]))
            return run(x)

        return call

    stages._run = [note(run) for run in stages._run]
    _, layers = task.predict(TEXTS, len(TEXTS), return_layers=True, verbose=0)
    assert seen == [int((layers >= layer).sum()) for layer in range(1, max(layers) + 1)]
    assert seen[-1] < len(TEXTS)


def test_numbers_leave_once_they_change_little():
    task = make_task("pabee", label_names=["score"], problem_type="regression", tolerance=0.7)
    logits = find_all_logits(task)
    task.threshold = 1
    wanted = [leave_by_patience(row, 1, lambda a, b: abs(a - b) < 0.7) for row in logits]
    found, layers = task.predict(TEXTS, return_layers=True, verbose=0)
    np.testing.assert_array_equal(layers, [place + 1 for place, _ in wanted])
    np.testing.assert_allclose(found, [number for _, number in wanted], rtol=0, atol=1e-6)
    assert len(set(layers)) > 1


def make_classifier():
    classifier = kbs.TextClassifier(
        make_backbone(), label_names=["no", "yes"], preprocessor=make_packer(), dropout=0.0
    )
    return randomize(classifier)


def test_without_exits_it_answers_as_the_classifier():
    classifier = make_classifier()
    task = kbs.EarlyExitClassifier.from_classifier(classifier, "fastbert", exit_layers=[2, 3])
    task.threshold = 0.0
    for name in ("predict", "predict_probabilities"):
        found, wanted = (getattr(t, name)(TEXTS, verbose=0) for t in (task, classifier))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)
    assert task.predict_labels(TEXTS) == classifier.predict_labels(TEXTS)
    assert task.score(TEXTS, LABELS) == classifier.score(TEXTS, LABELS)


Y = np.array([2, 0, 1])
OUTPUTS = np.random.default_rng(0).normal(size=(3, 4, 3)).astype("float32")


@pytest.mark.every_backend
def test_losses_are_those_of_the_papers():
    logs = log_softmax(OUTPUTS.astype("float64"), axis=-1)
    losses = -logs[np.arange(3), :, Y]
    cases = {
        "pabee": sum(j * losses[:, j - 1] for j in (1, 2, 3, 4)) / 10,
        "deebert": losses[:, 0] + losses[:, 1] + losses[:, 2],
        "fastbert": sum(
            (np.exp(logs[:, 3]) * (logs[:, 3] - logs[:, j])).sum(axis=-1) for j in range(3)
        ),
    }
    for method, wanted in cases.items():
        task = make_task(method, make_backbone(num_layers=4))
        found = to_numpy(task.make_loss().call(keras.ops.array(Y), keras.ops.array(OUTPUTS)))
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    halves = make_task("pabee", exit_layers=[1, 4]).make_loss()
    assert halves.weights == [0.1, 0.4, 0.5]


def test_losses_are_saved():
    for loss in (
        ExitLoss(ClassCrossentropy(from_logits=True), [0.5, 1.0, 0, 2]),
        ExitDistillation(),
    ):
        again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
        given = keras.ops.array(Y), keras.ops.array(OUTPUTS)
        np.testing.assert_array_equal(again.call(*given), loss.call(*given))


@pytest.mark.parametrize("method", ["deebert", "fastbert"])
def test_the_exits_of_a_classifier_learn_alone(method):
    classifier = make_classifier()
    of_classifier = classifier.get_weights()
    task = kbs.EarlyExitClassifier.from_classifier(classifier, method)
    task.compile(keras.optimizers.Adam(1e-2))
    pooler = to_numpy(classifier.backbone.pooler.kernel)
    np.testing.assert_array_equal(to_numpy(task.exit_poolers[0].kernel), pooler)
    last = find_all_logits(task)[:, -1]
    losses = task.fit(TEXTS, LABELS, batch_size=12, epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    np.testing.assert_array_equal(find_all_logits(task)[:, -1], last)
    assert not np.array_equal(to_numpy(task.exit_poolers[0].kernel), pooler)
    for found, wanted in zip(classifier.get_weights(), of_classifier, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_files_keep_the_threshold_and_what_is_frozen(tmp_path):
    task = kbs.EarlyExitClassifier.from_classifier(make_classifier(), "deebert", exit_layers=[1, 4])
    task.threshold = np.float32(0.4)  # As quantiles of NumPy are.
    wanted = task.predict(TEXTS, return_layers=True, verbose=0)
    task.save(tmp_path / "task.keras")
    task.save_to_preset(tmp_path / "preset")
    for again in (
        keras.saving.load_model(tmp_path / "task.keras"),
        kbs.EarlyExitClassifier.from_preset(tmp_path / "preset"),
    ):
        for found, array in zip(again.predict(TEXTS, return_layers=True), wanted, strict=True):
            np.testing.assert_allclose(found, array, rtol=0, atol=1e-6)
        assert len(again.trainable_variables) == 2 * 4
    again.fit(TEXTS, LABELS, verbose=0)
    new = kbs.EarlyExitClassifier.from_preset(tmp_path / "preset", num_classes=3)
    assert new.threshold is None and new.exit_layers == (1, 4)


def test_exits_of_a_classifier_with_an_adapter_learn_alone(tmp_path):
    """Also after they were loaded, and where the encoder has the adapters of two tasks."""
    classifier = make_classifier()
    classifier.adapt(kbs.LoRA(2), "mine", verbose=False)
    randomize(classifier)
    classifier.backbone.add_adapter(kbs.LoRA(2), "other")
    task = kbs.EarlyExitClassifier.from_classifier(classifier, "deebert", exit_layers=[1, 4])
    assert task.adapter == "mine"
    task.threshold = 0.0
    np.testing.assert_allclose(task.predict(TEXTS), classifier.predict(TEXTS), atol=1e-6)
    task.fit(TEXTS, LABELS, verbose=0)
    task.save(tmp_path / "task.keras")
    again = keras.saving.load_model(tmp_path / "task.keras")
    assert again.adapter == "mine" and len(again.trainable_variables) == 2 * 4
    assert len(again.optimizer.variables) == len(task.optimizer.variables)
    assert again.optimizer.iterations == task.optimizer.iterations
    again.fit(TEXTS, LABELS, verbose=0)
    np.testing.assert_allclose(find_all_logits(again)[:, -1], classifier.predict(TEXTS), atol=1e-6)


def test_exits_read_the_text_behind_prompts():
    """In training and where rows leave."""
    task = make_task(threshold=1)
    task.adapt(kbs.PromptTuning(3), verbose=False)
    exits, wanted = zip(*(leave("pabee", row, 1) for row in find_all_logits(task)), strict=True)
    found, layers = task.predict(TEXTS, return_layers=True, verbose=0)
    np.testing.assert_array_equal(layers, np.array(exits) + 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=5e-6)
    assert len(set(layers)) > 1


def test_the_curve_is_what_predict_does():
    task = make_task("deebert", label_names=["no", "yes"])
    curve = task.tune_exits(TEXTS, LABELS, max_loss=0.1)
    chosen = task.threshold
    assert curve[0].threshold == 0.0 and curve[0].layers == NUM_LAYERS
    assert len(curve) > 10
    for point in curve[:: len(curve) // 5]:
        task.threshold = point.threshold
        assert task.score(TEXTS, LABELS)["accuracy"] == pytest.approx(point.score)
        layers = task.predict(TEXTS, return_layers=True, verbose=0)[1]
        assert layers.mean() == pytest.approx(point.layers)
    within = [point for point in curve if point.score >= curve[0].score - 0.1]
    assert chosen in [p.threshold for p in within if p.layers == min(q.layers for q in within)]
    assert min(point.layers for point in within) < NUM_LAYERS
    patient = make_task("pabee", label_names=["no", "yes"])
    assert [p.threshold for p in patient.measure_exits(TEXTS, LABELS)] == [5, 4, 3, 2, 1]


#: What an encoder needs beside the sizes of a BERT.
MORE = {
    "LongformerBackbone": {"attention_window": 4},
    "ModernBertBackbone": {"local_attention": 4},
}


@pytest.mark.parametrize(
    "name",
    [n for n, cls in sorted(BACKBONES.items()) if issubclass(cls, kbs.BertBackbone)],
)
def test_every_encoder_is_cut_between_its_layers(name):
    """The last stage of an encoder that is not cut would compute all layers again."""
    cls = BACKBONES[name]
    sizes = {**TINY, "num_layers": 3, "dropout": 0.0, **MORE.get(name, {})}
    task = kbs.EarlyExitClassifier(cls(**sizes), num_classes=2, threshold=2)
    randomize(task)
    ids = np.random.default_rng(0).integers(5, len(VOCABULARY), (6, 8))
    mask = (np.arange(8) < [[8], [7], [6], [5], [8], [3]]).astype("int32")
    zeros = np.zeros((6, 8), "int32")
    arrays = {"token_ids": ids.astype("int32") * mask, "padding_mask": mask, "segment_ids": zeros}
    inputs = {name: arrays.get(name, zeros) for name in task.input}
    logits = to_numpy(task(inputs, training=False))
    found, layers = task.predict(inputs, return_layers=True, verbose=0)
    wanted = [leave_by_patience(r, 2, lambda a, b: a.argmax() == b.argmax()) for r in logits]
    np.testing.assert_array_equal(layers, [place + 1 for place, _ in wanted])
    np.testing.assert_allclose(found, [row for _, row in wanted], rtol=0, atol=1e-5)
    for stage in task.find_stages().models[1:]:
        blocks = [op for op in stage.operations if op in task.backbone.transformer_layers]
        assert len(blocks) == 1


def make_other(change):
    classifier = make_classifier()
    return kbs.TextClassifier(
        classifier.backbone, num_classes=2, preprocessor=classifier.preprocessor, **change
    )


@functools.cache
def share_backbone():
    return make_backbone()


def make_wrong(method="pabee", backbone=None, **arguments):
    """A task that is refused reads no weights, so all of them share a backbone."""
    backbone = backbone or share_backbone()
    arguments = {"label_names": NAMES, "preprocessor": make_packer(), **arguments}
    return kbs.EarlyExitClassifier(backbone, method=method, **arguments)


REFUSED = {
    "patience": (lambda: make_wrong(threshold=6), "at most 5 with 5 exits.*got 6"),
    "no patience": (lambda: make_wrong(threshold=0.5), "threshold must be an integer.*0.5"),
    "entropy": (lambda: make_wrong("deebert", threshold=1.2), "nats, at most 1.09861.*got 1.2"),
    "share": (lambda: make_wrong("fastbert", threshold=-0.1), "at most 1 .*got -0.1"),
    "method": (lambda: make_wrong("elbert"), "method must be one of pabee, .*'elbert'"),
    "beyond": (lambda: make_wrong(exit_layers=[2, 5]), r"1 to 4, .*got \[2, 5\]"),
    "order": (lambda: make_wrong(exit_layers=[3, 1]), r"increasing .*\[3, 1\]"),
    "none": (lambda: make_wrong(exit_layers=[]), r"got \[\]"),
    "one": (lambda: make_wrong(exit_layers=1), "exit_layers must be a list of layers, got 1"),
    "one layer": (lambda: make_wrong(backbone=make_backbone(num_layers=1)), "of 1 layers"),
    "sets": (
        lambda: make_wrong(problem_type="multi_label_classification"),
        "for classes and numbers, got problem_type='multi_label",
    ),
    "entropy of numbers": (
        lambda: make_wrong("deebert", problem_type="regression"),
        "method='deebert' .* Pass method='pabee'",
    ),
    "tolerance": (lambda: make_wrong(tolerance=0.1), "tolerance=0.1 is for numbers"),
    "lstm": (
        lambda: make_wrong(backbone=kbs.ElmoBackbone(len(VOCABULARY), units=6, projection_dim=4)),
        "An ElmoBackbone does not name its transformer layers",
    ),
    "pooling": (
        lambda: kbs.EarlyExitClassifier.from_classifier(make_other({"pooling": "mean"})),
        "has pooling=.*Train one without pooling",
    ),
    "activation": (
        lambda: kbs.EarlyExitClassifier.from_classifier(make_other({"activation": "softmax"})),
        "activation='softmax'",
    ),
    "another task": (
        lambda: kbs.EarlyExitClassifier.from_classifier(make_wrong()),
        "takes a TextClassifier .*got an EarlyExitClassifier",
    ),
    "untuned": (lambda: make_wrong().predict(TEXTS), "no threshold.*tune_exits.* 5 is for all"),
    "not frozen": (
        lambda: make_wrong("deebert").fit(TEXTS, [0] * len(TEXTS)),
        "would change .*embedding.*from_classifier",
    ),
    "loss": (lambda: make_wrong().tune_exits(TEXTS, LABELS, max_loss=2), "max_loss .*got 2"),
    "adapter": (
        lambda: make_wrong("deebert").adapt(kbs.LoRA(2)),
        "method='deebert' trains the exits alone.*`from_classifier` after it; .*'pabee'",
    ),
    "no loss": (lambda: make_wrong().tune_exits(TEXTS, LABELS, max_loss="x"), "max_loss .*'x'"),
    "keras' loss": (lambda: make_wrong().compile("adam", "mse"), "Leave `loss` out"),
    "metric": (lambda: make_wrong().compile("adam", metrics=["accuracy"]), "`score` and `tune_ex"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_an_encoder_of_keras_hub_is_refused():
    from kerashub_models import MODELS

    backbone, _ = next(iter(MODELS.values()))()
    with pytest.raises(ValueError, match="does not name its transformer layers and their states"):
        kbs.EarlyExitClassifier(backbone, num_classes=2)


def test_rows_leave_in_bfloat16():
    task = make_task("deebert", make_backbone(dtype="mixed_bfloat16"))
    logits = find_all_logits(task)
    task.threshold = 0.8
    wanted = [leave("deebert", row, 0.8) for row in logits]
    found, layers = task.predict(TEXTS, return_layers=True, verbose=0)
    assert found.dtype == np.float32
    # The products of fewer rows may be rounded to another neighbour.
    same = layers == [place + 1 for place, _ in wanted]
    assert same.mean() > 0.8 and len(set(layers)) > 1
    np.testing.assert_allclose(found[same], np.array([a for _, a in wanted])[same], atol=0.1)
