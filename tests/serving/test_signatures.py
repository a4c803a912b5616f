"""Every signature of a SavedModel, asked by a server without Python."""

import random
import sys

import numpy as np
import pytest
from keras import ops
from serving.traced import call_signatures
from small_tasks import make_task
from small_texts import make_reviews

from keras_bert_suite import (
    TextClassifier,
    export_saved_model,
)

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")
read_warmup_requests = pytest.importorskip("serving.native_server").read_warmup_requests

pytestmark = pytest.mark.backend("tensorflow")

TEXTS, _ = make_reviews(20)

#: Heads whose requests for warm-up are answered here. The others have a test of their own.
OTHER_HEADS = ("vectors", "documents", "chains", "spans", "label sets", "numbers")

HOSTILE = [
    *("", " ", "\t\r\n", "\x00", "a\x00b", "\ufffd", "\ufeffgood", "good\u200bfilm", "\u00ad"),
    *("[CLS]", "[SEP] [MASK] [PAD]", "[UNK]", "##ly", "#", "unly", "'" * 500, "<script>", "%s%n"),
    *("GOOD", "g\u0301ood", "\u0301", "\u0301" * 1000, "e" + "\u0301" * 300, "\u1e9e", "\u0130"),
    *("好电影", "好 good 电影", "\U00020000", "\U0010ffff", "\ue000", "\u0378", "ﬁne", "ＧＯＯＤ"),
    *("👩‍👩‍👧", "🇩🇪", "\u202egood\u202c", "अच्छा", "ภาพยนตร์", "영화", "ひどい", "ﷺ", "\u2028"),
    *("a" * 200, "a" * 201, "a" * 100_000, "good " * 10_000, "," * 10_000, "好" * 10_000),
    *(chr(code) for code in range(0x00, 0x30)),
]
BROKEN_UTF8 = [b"\xff", b"good \xc3", b"\xed\xa0\x80film", b"\xf4\x90\x80\x80", b"\x80good\xfe"]


def random_texts(count):
    """Characters of all of Unicode, most of them of its lower planes, with words between."""
    rng = random.Random(0)

    def character():
        code = rng.randrange(rng.choice([0x80, 0x800, 0x10000, sys.maxunicode + 1]))
        return "\ufffe" if 0xD800 <= code < 0xE000 else chr(code)

    return [
        "".join(rng.choice([character(), " ", "good", "un"]) for _ in range(rng.randint(1, 40)))
        for _ in range(count)
    ]


def make_example(text):
    value = tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))
    features = tf.train.Features(feature={"text": value})
    return tf.train.Example(features=features).SerializeToString()


def test_every_signature_gives_the_numbers_of_the_task(classifier, saved_model, native_server):
    packed = classifier.preprocessor(TEXTS)
    logits = classifier.predict(packed, batch_size=len(TEXTS), verbose=0)
    probabilities = ops.convert_to_numpy(ops.softmax(logits))
    label_ids = probabilities.argmax(axis=-1)
    assert set(label_ids) == {0, 1}, "answers that are all alike prove little"

    *classified, embedded = native_server.ask(
        saved_model,
        [
            ("serving_default", {"text": TEXTS}),
            ("serve_ids", packed),
            ("serve_examples", {"examples": [make_example(text) for text in TEXTS]}),
            ("embed", {"text": TEXTS}),
        ],
    )
    for answer in classified:
        assert set(answer) == {"probabilities", "label_ids", "labels"}
        np.testing.assert_allclose(answer["probabilities"], probabilities, atol=1e-5)
        np.testing.assert_array_equal(answer["label_ids"], label_ids)
        assert [name.decode() for name in answer["labels"]] == [
            classifier.label_names[i] for i in label_ids
        ]

    longest = packed["padding_mask"].sum(axis=-1).max()
    for name in ("token_ids", "padding_mask"):
        np.testing.assert_array_equal(embedded[name], packed[name][:, :longest])
    vectors = classifier.backbone.predict(packed, batch_size=len(TEXTS), verbose=0)
    np.testing.assert_allclose(embedded["pooled_output"], vectors["pooled_output"], atol=1e-5)
    tokens = embedded["padding_mask"].astype(bool)
    np.testing.assert_allclose(
        embedded["sequence_output"][tokens],
        vectors["sequence_output"][:, :longest][tokens],
        atol=1e-5,
    )


@pytest.mark.long("serving")
def test_any_text_gets_the_ids_of_the_eager_tokenizer(classifier, saved_model, native_server):
    assert len(HOSTILE) + len(BROKEN_UTF8) >= 100
    texts = [*HOSTILE, *BROKEN_UTF8, *random_texts(1000)]
    embedded, classified = native_server.ask(
        saved_model, [("embed", {"text": texts}), ("serving_default", {"text": texts})]
    )
    packed = classifier.preprocessor(texts)
    length = embedded["token_ids"].shape[1]
    for name in ("token_ids", "padding_mask"):
        np.testing.assert_array_equal(embedded[name], packed[name][:, :length])
    probabilities = classified["probabilities"]
    assert probabilities.shape == (len(texts), 2)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, atol=1e-5)


@pytest.fixture(
    params=[
        "saved_model",
        *(pytest.param(n, marks=pytest.mark.long("serving")) for n in ("pair_model", *OTHER_HEADS)),
    ]
)
def served_model(request, tmp_path):
    """`pathlib.Path` of a SavedModel, of a fixture or of `OTHER_HEADS`."""
    if request.param not in OTHER_HEADS:
        return request.getfixturevalue(request.param)
    return export_saved_model(make_task(request.param)[0], tmp_path / request.param)


def test_warmup_requests_are_of_every_signature(classifier, served_model):
    requests = read_warmup_requests(served_model)
    assert {name for name, _, _ in requests} == {served_model.parent.name}
    names = {"serving_default", "serve_ids", "serve_examples", "embed"}
    if served_model.parent.name == "vectors":
        names |= {"similarity", "rank"}
    if served_model.parent.name == "documents":
        names.remove("embed")
    assert {signature for _, signature, _ in requests} == names
    token_ids = [inputs["token_ids"] for _, name, inputs in requests if name == "serve_ids"]
    assert max(ids.shape[-1] for ids in token_ids) == classifier.preprocessor.sequence_length


@pytest.mark.long("serving")
def test_every_warmup_request_is_answered(native_server, served_model):
    native_server.answer_warmup(served_model)


def test_an_example_without_the_text_is_refused(saved_model):
    serve = tf.saved_model.load(str(saved_model)).signatures["serve_examples"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="text"):
        serve(examples=tf.constant([tf.train.Example().SerializeToString()]))


def test_label_sets_and_numbers(classifier):
    arguments = {"label_names": ["a", "b", "c"], "problem_type": "multi_label_classification"}
    labeller = TextClassifier(
        classifier.backbone,
        preprocessor=classifier.preprocessor,
        thresholds=[0.3, 0.5, 0.6],
        **arguments,
    )
    rng = np.random.default_rng(0)
    # The vectors of a small model are much alike.
    labeller.classifier.kernel.assign(20 * rng.normal(size=labeller.classifier.kernel.shape))
    middle = np.median(labeller.predict(TEXTS, verbose=0), axis=0)
    labeller.classifier.bias.assign_sub(middle)
    got = call_signatures(labeller)["serving_default"](text=tf.constant(TEXTS))
    logits = labeller.predict(TEXTS, verbose=0)
    shares = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(got["probabilities"], shares, atol=1e-5)
    np.testing.assert_array_equal(got["is_label"], shares > [0.3, 0.5, 0.6])
    wanted = labeller.predict_labels(TEXTS, verbose=0)
    found = [[name.decode() for name in row if name] for row in got["labels"].numpy()]
    assert found == [list(row) for row in wanted]
    assert len({tuple(row) for row in found}) > 1, "answers that are all alike prove little"
    assert got["num_labels"].numpy().tolist() == [len(row) for row in wanted]

    rater = TextClassifier(
        classifier.backbone,
        num_classes=2,
        problem_type="regression",
        preprocessor=classifier.preprocessor,
    )
    scores = call_signatures(rater)["serving_default"](text=tf.constant(TEXTS))
    assert set(scores) == {"scores"}
    np.testing.assert_allclose(scores["scores"], rater.predict(TEXTS, verbose=0), atol=1e-5)
