"""A `ZeroShotClassifier` gives the scores of transformers' pipeline, for labels of any kind."""

import numpy as np
import pytest
import torch
from small_tasks import make_task
from tables import everywhere_for
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertTokenizerFast,
    pipeline,
)

import keras_bert_suite as kbs

WORDS = "this example is . politics sports film a good the team about text ##s won".split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
LABELS = ["politics", "sports", "good film"]
LENGTH = 20
#: The last text is cut, and its statement is not.
TEXTS = ["a good film", "the teams won .", "", "a good team " * 9]
ORDERS = (
    ["contradiction", "neutral", "entailment"],
    ["ENTAILMENT", "NEUTRAL", "CONTRADICTION"],
    ["entailment", "not_entailment"],
)


@pytest.fixture(scope="module")
def peers(tmp_path_factory):
    """(folder of a checkpoint, its model, its tokenizer) for each order of the classes."""

    def make(order):
        folder = tmp_path_factory.mktemp("nli")
        (folder / "vocab.txt").write_text("\n".join(VOCABULARY), "utf-8")
        torch.manual_seed(1)
        config = BertConfig(
            vocab_size=len(VOCABULARY),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=LENGTH,
            initializer_range=0.5,
            id2label=dict(enumerate(order)),
            label2id={name: i for i, name in enumerate(order)},
        )
        model = BertForSequenceClassification(config).eval()
        model.save_pretrained(folder)
        tokenizer = BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=LENGTH)
        tokenizer.save_pretrained(folder)
        return folder, pipeline(
            "zero-shot-classification", model=model, tokenizer=tokenizer, device="cpu"
        )

    return {order[0]: make(order) for order in ORDERS}


def ask(pipe, texts, labels, **arguments):
    """The scores of transformers' pipeline, in the order of the labels."""
    rows = pipe([text or " " for text in texts], labels, **arguments)
    scores = [dict(zip(row["labels"], row["scores"], strict=True)) for row in rows]
    return np.array([[row[label] for label in labels] for row in scores])


@pytest.mark.parametrize("multi_label", [False, True], ids=["one", "several"])
@pytest.mark.parametrize("order", everywhere_for([order[0] for order in ORDERS], "contradiction"))
def test_the_scores_of_the_pipeline(peers, order, multi_label):
    folder, pipe = peers[order]
    classifier = kbs.TextClassifier.from_preset(folder).zero_shot(LABELS, multi_label=multi_label)
    wanted = ask(pipe, TEXTS, LABELS, multi_label=multi_label)
    np.testing.assert_allclose(classifier.predict(TEXTS), wanted, atol=1e-5)
    others = ["the team", "text"]
    wanted = ask(pipe, TEXTS, others, multi_label=multi_label)
    np.testing.assert_allclose(classifier.predict(TEXTS, labels=others), wanted, atol=1e-5)


def test_a_template_and_labels_of_each_row(peers):
    folder, pipe = peers["contradiction"]
    classifier = kbs.ZeroShotClassifier.from_preset(
        folder, label_names=LABELS, template="the text is about {} ."
    )
    lists = [LABELS, ["film", "team"], ["team", "sports", "good"], ["won", "text"]]
    for text, labels, scores in zip(TEXTS, lists, classifier.predict((TEXTS, lists)), strict=True):
        wanted = ask(pipe, [text], labels, hypothesis_template="the text is about {} .")
        np.testing.assert_allclose(scores, wanted[0], atol=1e-5)
    named = classifier.predict_labels((TEXTS, lists))
    scores = classifier.predict((TEXTS, lists))
    assert named == [row[s.argmax()] for row, s in zip(lists, scores, strict=True)]


def test_a_saved_classifier_takes_other_labels(peers, tmp_path):
    classifier = kbs.TextClassifier.from_preset(peers["contradiction"][0]).zero_shot(LABELS)
    wanted = classifier.predict(TEXTS)
    classifier.save_to_preset(tmp_path / "preset")
    opened = kbs.ZeroShotClassifier.from_preset(tmp_path / "preset")
    np.testing.assert_array_equal(opened.predict(TEXTS), wanted)
    other = kbs.ZeroShotClassifier.from_preset(tmp_path / "preset", label_names=LABELS[:2])
    opened.label_names = LABELS[:2]
    np.testing.assert_array_equal(opened.predict(TEXTS), other.predict(TEXTS))
    assert other.predict(TEXTS).shape == (len(TEXTS), 2)


def test_no_rows_have_the_width_of_the_labels():
    classifier, _ = make_task("entailments")
    assert classifier.predict([], verbose=0).shape == (0, len(classifier.label_names))
    assert classifier.predict([], labels=["a", "b", "c", "d"], verbose=0).shape == (0, 4)
    assert classifier.predict_labels([], verbose=0) == []


def test_labels_teach():
    classifier, (texts, labels) = make_task("entailments")
    classifier.compile(kbs.AdamW(3e-3))
    classifier.fit(texts, labels, batch_size=4, epochs=30, verbose=0)
    assert classifier.score(texts, labels)["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({"label_names": ["a", "b", "c"]}, {}, "a, b, c, of which none named entailment"),
        (
            {"label_names": ["entailment", "neutral", "other"]},
            {"multi_label": True},
            "none named contradiction",
        ),
        ({}, {"template": "no place"}, r"template must have one \{\}, .* got 'no place'"),
        ({}, {"template": 3}, r"template must have one \{\}, .* got 3. Such as 'This"),
        ({}, {"label_names": ["a"]}, "two or more labels.*multi_label=True"),
        ({}, {"label_names": "politics"}, "Wanted a list of two or more labels"),
        ({}, {"label_names": ["a", "a"]}, "different labels"),
    ],
)
def test_what_is_refused(peers, change, arguments, message):
    classifier = kbs.TextClassifier.from_preset(peers["contradiction"][0])
    for name, value in change.items():
        setattr(classifier, name, value)
    with pytest.raises(ValueError, match=message):
        classifier.zero_shot(**{"label_names": LABELS, **arguments})


def test_other_classifiers_are_refused(peers):
    folder = peers["contradiction"][0]
    classifier = kbs.TextClassifier.from_preset(folder, pooling="mean", num_classes=3)
    with pytest.raises(ValueError, match="pooling=.*natural language inference"):
        classifier.zero_shot(LABELS)
    classifier = kbs.TextClassifier.from_preset(folder).zero_shot(LABELS)
    with pytest.raises(ValueError, match="Wanted single texts, got rows of 2"):
        classifier.predict({"a": ["x"], "b": ["y"]})
    with pytest.raises(ValueError, match="cannot be trained on"):
        classifier.fit((["a"], [["b", "c"]]), [0])
    # Beside a label are 4 tokens of the statement, 3 special tokens and 1 of the text.
    for labels in (["a", "good " * 20], ["good " * 17, "a"]):
        with pytest.raises(ValueError, match="label 'good .*It must be at least 2[58];"):
            classifier.predict(["a"], labels=labels, verbose=0)
    packer = kbs.SegmentPacker(classifier.preprocessor.tokenizer, 16, truncation="tail")
    with pytest.raises(ValueError, match="truncation='tail'. Pass 'only_first'"):
        classifier.preprocessor = packer
