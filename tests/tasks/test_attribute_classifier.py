import re
from pathlib import Path

import keras
import numpy as np
import pandas
import pytest
import torch
from peer_weights import randomize
from small_texts import ONE_LAYER, VOCABULARY

import keras_bert_suite as kbs
from keras_bert_suite import (
    AttributeClassifier,
    BertBackbone,
    SegmentPacker,
    TextClassifier,
    WordPieceTokenizer,
)
from keras_bert_suite.heads.base.label_scores import score_classes
from keras_bert_suite.training import AttributeAccuracy, AttributeLoss

ATTRIBUTES = {"tone": ["good", "bad"], "what": ["plot", "film", "acting"]}
TEXTS = [f"{a} {b}" for a in ATTRIBUTES["tone"] for b in ATTRIBUTES["what"]] * 16
LABELS = {"tone": [t.split()[0] for t in TEXTS], "what": [t.split()[1] for t in TEXTS]}
#: Each row lacks one of its labels.
PARTLY = {
    "tone": [name if row // 6 % 2 else None for row, name in enumerate(LABELS["tone"])],
    "what": ["" if row // 6 % 2 else name for row, name in enumerate(LABELS["what"])],
}


def make_classifier(initializer_range=0.02, **kwargs):
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 8, padding_lengths=(8,))
    return AttributeClassifier(
        BertBackbone(**{**ONE_LAYER, "dropout": 0.0}, initializer_range=initializer_range),
        **{"attributes": ATTRIBUTES, "preprocessor": packer, **kwargs},
    )


def test_it_learns_from_half_of_the_labels():
    keras.utils.set_random_seed(0)
    # Smaller weights need longer to leave the answer that is the same for all texts.
    classifier = make_classifier(dropout=0.0, initializer_range=0.3)
    classifier.compile(keras.optimizers.Adam(1e-2))
    classifier.fit(TEXTS, PARTLY, batch_size=16, epochs=12, verbose=0)
    assert classifier.score(TEXTS, LABELS)["accuracy"] == 1


def run_recipe(folder, *callbacks):
    """The weights that the recipe of docs/encoder.md trains, in few steps, and its batches."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "encoder.md").read_text("utf-8")
    (code,) = re.findall(r"## One encoder, several data sets.*?```python\n(.*?)```", page, re.S)[:1]
    for written, smaller in (
        ('kbs.AttributeClassifier.from_preset("path/to/checkpoint", ', "make_classifier("),
        ("callbacks=[checkpoint]", "callbacks=[checkpoint, *callbacks], verbose=0"),
        ('"checkpoints/both", every=100', "folder, every=2"),
        ("steps_per_epoch=1000, epochs=3", "steps_per_epoch=4, epochs=2"),
        ("batch_size=32", "batch_size=2"),
    ):
        assert written in code
        code = code.replace(written, smaller)
    keras.utils.set_random_seed(0)
    names = {"kbs": kbs, "make_classifier": make_classifier, "folder": folder}
    names["callbacks"] = callbacks
    exec(code, names)
    return names["both"].get_weights(), names["batches"]


def kill(batch, logs=None):
    if batch == 2:
        raise KeyboardInterrupt


def test_several_data_sets_in_turn(tmp_path):
    wanted, batches = run_recipe(tmp_path / "whole")
    labels = [batches[i][1] for i in range(10)]
    assert [(row["tone"][0] is None, row["topic"][0] is None) for row in labels].count(
        (False, True)
    ) == 7
    with pytest.raises(KeyboardInterrupt):
        run_recipe(tmp_path / "killed", keras.callbacks.LambdaCallback(on_train_batch_end=kill))
    found, _ = run_recipe(tmp_path / "killed")
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_loss_and_the_accuracy():
    """Both are those of PyTorch, which leaves out the index of a missing label."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(6, 5)).astype("float32")
    ids = np.array([[0, 2], [1, -1], [-1, 0], [-1, -1], [1, 1], [0, 0]], "int32")
    parts, weights = (logits[:, :2], logits[:, 2:]), (2.0, 0.5)
    wanted = sum(
        weight
        * torch.nn.functional.cross_entropy(
            torch.tensor(part), torch.tensor(column).long(), ignore_index=-1, reduction="none"
        )
        for part, column, weight in zip(parts, ids.T, weights, strict=True)
    )
    loss = AttributeLoss([2, 3], weights)
    np.testing.assert_allclose(float(loss(ids, logits)), wanted.mean().item(), rtol=1e-5)
    row_weights = np.arange(6, dtype="float32")
    metric = AttributeAccuracy([2, 3])
    metric.update_state(ids, logits, row_weights)
    right = np.stack([part.argmax(-1) for part in parts], axis=1) == ids
    counts = (ids >= 0) * row_weights[:, None]
    np.testing.assert_allclose(float(metric.result()), (right * counts).sum() / counts.sum())


def test_the_answers():
    """Each part is that of a `TextClassifier` with the weights of the attribute."""
    classifier = randomize(make_classifier())
    logits = classifier.predict(TEXTS[:6], verbose=0)
    shares = classifier.predict_probabilities(TEXTS[:6], verbose=0)
    kernel, bias = classifier.attribute_classifier.get_weights()
    for name, part in (("tone", slice(0, 2)), ("what", slice(2, 5))):
        alone = TextClassifier(
            classifier.backbone,
            label_names=ATTRIBUTES[name],
            preprocessor=classifier.preprocessor,
            activation="softmax",
        )
        alone.classifier.set_weights([kernel[:, part], bias[part]])
        np.testing.assert_allclose(shares[name], alone.predict(TEXTS[:6], verbose=0), atol=1e-5)
        assert logits[name].shape == shares[name].shape
        wanted = alone.predict_labels(TEXTS[:6], verbose=0)
        assert classifier.predict_labels(TEXTS[:6], verbose=0)[name] == wanted


def test_scores_leave_out_missing_labels():
    classifier = randomize(make_classifier())
    scores = classifier.score(TEXTS, PARTLY)
    named = classifier.predict_labels(TEXTS, verbose=0)
    right = 0
    for name, labels in ATTRIBUTES.items():
        pairs = [(a, b) for a, b in zip(PARTLY[name], named[name], strict=True) if a]
        ids = np.array([[labels.index(name) for name in pair] for pair in pairs])
        wanted = score_classes(*ids.T, labels)
        assert scores["attributes"][name]["macro_f1"] == pytest.approx(wanted["macro_f1"])
        assert scores["attributes"][name]["rows"] == len(pairs) == 48
        right += (ids[:, 0] == ids[:, 1]).sum()
    assert scores["accuracy"] == pytest.approx(right / 96)
    alone = classifier.score(TEXTS, {**LABELS, "what": [None] * len(TEXTS)})
    assert set(alone["attributes"]) == {"tone"}


def test_every_form_of_labels():
    encode = make_classifier().data.labels
    wanted = [[0, 2], [-1, 1], [1, -1]]
    for labels in (
        {"what": ["acting", "film", None], "tone": ["good", "", "bad"]},
        {"what": [2.0, 1.0, float("nan")], "tone": [b"good", None, b"bad"]},
        pandas.DataFrame({"tone": [0, None, 1], "what": ["acting", "film", None]}),
        pandas.DataFrame({"tone": [0, None, 1], "what": ["acting", "film", None]}).astype(
            {"what": "string", "tone": "Int64"}
        ),
    ):
        assert encode.encode(encode.read(labels)).tolist() == wanted


def test_wrong_labels():
    classifier = make_classifier()
    classifier.compile()
    nothing = {**LABELS, "what": [None] * len(TEXTS)}
    unknown = {**LABELS, "what": [None, "song", *LABELS["what"][2:]]}
    for labels, message in (
        (nothing, "The attribute 'what' has no label in any of 96 rows. Label some"),
        (unknown, "The attribute 'what': Label 'song' at row 1 is not one of.*`attributes`"),
        (LABELS["tone"], "must be a dict or a DataFrame .* tone, what, and no others; got list"),
        ({"tone": LABELS["tone"]}, "tone, what, and no others; got the columns tone"),
    ):
        with pytest.raises(ValueError, match=message):
            classifier.fit(TEXTS, labels, verbose=0)


def test_a_batch_may_lack_an_attribute():
    classifier = make_classifier()
    classifier.compile()
    rows = TEXTS[:2], {"tone": ["good", "bad"], "what": [None, None]}
    assert np.isfinite(classifier.train_on_batch(*rows)[0])
    assert np.isfinite(classifier.evaluate(*rows, verbose=0)[0])
    history = classifier.fit(TEXTS, LABELS, validation_data=rows, verbose=0).history
    assert np.isfinite(history["val_loss"][0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"attributes": {}}, "must be a dict of the name of an attribute"),
        ({"attributes": {"size": []}}, "'size' needs a list of 2 or more different labels"),
        ({"attributes": {"size": "small"}}, "'size' needs a list"),
        ({"attributes": {"a": ["x", "y"], "a_probabilities": ["x", "y"]}}, "Choose another"),
        ({"attribute_weights": {"color": 1.0}}, "for tone, what, got 'color'"),
        ({"attribute_weights": {"tone": -1.0}}, "of at least 0 .* got 'tone': -1.0"),
        ({"attribute_weights": {"tone": "half"}}, "of at least 0 .* got 'tone': 'half'"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_classifier(**arguments)


def test_weights_of_attributes():
    """An attribute of weight 0 adds nothing."""
    rows = (TEXTS[:6], {name: column[:6] for name, column in LABELS.items()})
    losses = []
    for weights in (None, {"what": 0.0}, {"tone": 0.0}):
        keras.utils.set_random_seed(0)
        classifier = make_classifier(attribute_weights=weights)
        classifier.compile()
        losses.append(classifier.evaluate(*rows, verbose=0, return_dict=True)["loss"])
    assert losses[0] == pytest.approx(losses[1] + losses[2], rel=1e-5)


def test_another_head_on_a_preset(tmp_path):
    classifier = make_classifier()
    classifier.save_to_preset(tmp_path / "preset")
    again = AttributeClassifier.from_preset(tmp_path / "preset")
    assert again.attributes == ATTRIBUTES
    with pytest.warns(match="It is left out"):
        other = AttributeClassifier.from_preset(
            tmp_path / "preset", attributes={"size": ["s", "m", "l", "xl"]}
        )
    assert other.label_names == ["size=s", "size=m", "size=l", "size=xl"]
    assert other.predict(["a film"], verbose=0)["size"].shape == (1, 4)
