"""The code of docs/extending.md runs, and does what the page says."""

import re
from pathlib import Path

import keras
import numpy as np
import pandas
import pytest
from peer_weights import randomize
from serving.traced import trace
from small_sentence_pieces import PIECES, make_albert
from small_tasks import assert_close
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    BertBackbone,
    SegmentPacker,
    TextClassifier,
    WordPieceTokenizer,
    change_pattern,
    encode_with_attention,
    export_onnx,
    export_saved_model,
    open_runtime,
)
from keras_bert_suite.heads import Classes, DictAnswers, DictLabels, NumberAnswers, Numbers
from keras_bert_suite.pretraining.pretraining_batches import name_arrays

PAGE = Path(__file__).resolve().parents[1] / "docs/extending.md"


def run_section(title, names):
    """Runs the code of a section, one block after the other, in the namespace `names`."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    for code in re.findall(r"^```python\n(.*?)^```", section, flags=re.DOTALL | re.MULTILINE):
        exec(compile(code, f"{PAGE.name}, {title}", "exec"), names)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    content = make_albert(["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>"], PIECES)
    (folder / "spiece.model").write_bytes(content)
    names = {"__name__": "extending"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run_section("A model", names)
    return names


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint") / "preset"
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 8)
    TextClassifier(BertBackbone(**ONE_LAYER), 2, preprocessor=packer).save_to_preset(folder)
    return folder


HEAD_TEXTS = ["the film was good", "a bad plot", "the plot"]


@pytest.fixture(scope="module")
def head(checkpoint):
    """(the names of the section, an ordinal classifier that was trained)."""
    names = {"__name__": "extending", "checkpoint": checkpoint}
    with pytest.warns(UserWarning, match="holds a backbone, but no"):
        run_section("A head", names)
        # A subclass has the `HEAD` of its base.
        subclass = names["register"](type("Stars", (names["OrdinalClassifier"],), {}))
        stars = subclass.from_preset(checkpoint, label_names=["a", "b", "c"])
    stars.fit(["a long film", "good", "bad"], ["a", "c", "b"], verbose=0)
    return names, randomize(stars)


def list_tasks(head):
    names, stars = head
    return {"stars": stars, "reader": names["reader"]}


@pytest.mark.parametrize("name", ["stars", "reader"])
def test_a_head_from_fit_to_files(head, name, tmp_path):
    task = list_tasks(head)[name]
    wanted = task.predict(HEAD_TEXTS, verbose=0)
    task.save(tmp_path / "task.keras")
    task.save_to_preset(tmp_path / "preset")
    for copy in (
        keras.saving.load_model(tmp_path / "task.keras"),
        type(task).from_preset(tmp_path / "preset"),
    ):
        assert_close(copy.predict(HEAD_TEXTS, verbose=0), wanted)
    if name == "stars":
        labels = task.predict_labels(HEAD_TEXTS)
        assert labels == ["abc"[(row > 0).sum()] for row in wanted]
        assert task.score(HEAD_TEXTS, labels)["accuracy"] == 1
        assert_close(task.answers.find_probabilities(wanted).sum(axis=-1), np.ones(3))
        assert not task.optimizer.decay_of(task.ordinal_head.first)


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize(
    "name", ["stars", pytest.param("reader", marks=pytest.mark.long("serving"))]
)
def test_a_head_in_runtimes(head, name, tmp_path):
    tf = pytest.importorskip("tensorflow")
    pytest.importorskip("tf2onnx")
    task = list_tasks(head)[name]
    wanted = task.predict(HEAD_TEXTS, verbose=0)
    if name == "stars":
        saved = tf.saved_model.load(str(export_saved_model(task, tmp_path / "saved")))
        served = saved.signatures["serving_default"](text=tf.constant(HEAD_TEXTS))
    else:
        served = trace(task)(text=tf.constant(HEAD_TEXTS))
    export_onnx(task, tmp_path / "onnx")
    runtime = open_runtime(tmp_path / "onnx")
    if name == "stars":
        assert_close(served["above"].numpy(), wanted)
        assert_close(runtime.predict(HEAD_TEXTS), wanted)
        labels = task.predict_labels(HEAD_TEXTS)
        assert labels == [str(label, "utf-8") for label in served["labels"].numpy()]
        assert labels == runtime.predict_labels(HEAD_TEXTS)
        return
    probabilities = np.exp(wanted["tone"]) / np.exp(wanted["tone"]).sum(-1, keepdims=True)
    assert_close(served["tone_probabilities"].numpy(), probabilities)
    assert_close(served["stars_scores"].numpy(), wanted["stars"])
    answers = runtime.predict(HEAD_TEXTS)
    assert_close(answers, {"tone": probabilities, "stars": wanted["stars"]})
    named = runtime.predict_labels(HEAD_TEXTS)
    assert named["tone"] == [str(tone, "utf-8") for tone in served["tone_labels"].numpy()]
    labels = {**named, "stars": wanted["stars"]}
    scores = task.score_with(task.answers.score, HEAD_TEXTS, labels)
    assert scores["tone"]["accuracy"] == 1 and scores["stars"]["mean_squared_error"] < 1e-9


def test_labels_of_several_outputs():
    labels = DictLabels({"tone": Classes(["no", "yes"]), "stars": Numbers(["stars"])})
    rows = {"stars": [1.5, 2], "tone": ["yes", "no"]}
    for columns in (rows, pandas.DataFrame(rows)):
        encoded = labels.encode(labels.read(columns))
        assert encoded["tone"].tolist() == [1, 0] and encoded["stars"].tolist() == [[1.5], [2.0]]
    for wrong, message in (
        ({"tone": [1, 0]}, "for each output, tone, stars, and no others; got the columns tone"),
        (["yes"], "for each output, tone, stars, and no others; got list"),
        ({**rows, "tone": ["yes", "maybe"]}, "The output 'tone': Label 'maybe' at row 1"),
    ):
        with pytest.raises(ValueError, match=message):
            labels.encode(labels.read(wrong))
    with pytest.raises(ValueError, match="'a_b' begins as outputs of 'a' in an export do"):
        DictAnswers({"a_b": NumberAnswers(None), "a": NumberAnswers(None)})


def test_a_reader(tmp_path):
    names = {"__name__": "extending"}
    run_section("A reader", names)
    rows = ['{"text": "a", "label": "yes"}', "", '{"text": "b"}', '{"text": "c", "label": "no"}']
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    examples = names["read_json_lines"](tmp_path / "rows.jsonl")
    assert (examples.x, examples.y) == (["a", "c"], ["yes", "no"])
    assert examples.label_names == ["no", "yes"] and examples.left_out == {"no label": [3]}
    assert examples.locate(1).endswith("rows.jsonl, line 4")


def test_rows_of_the_tokenizer(model):
    """`A <sep> B <sep> <cls>`, with the ids of XLNet's special tokens."""
    tokenizer, packer = model["tokenizer"], model["packer"]
    first, second = tokenizer.tokenize(["the film", "good"])
    packed = packer.pack(["the film", "a"], ["good", "of"])
    row = [*first, 4, *second, 4, 3]
    assert packed["token_ids"][0].tolist()[-len(row) :] == row
    segments = [0] * (len(first) + 1) + [1] * (len(second) + 1) + [2]
    assert packed["segment_ids"][0].tolist()[-len(row) :] == segments
    np.testing.assert_array_equal(packed["padding_mask"].sum(axis=1) > 0, True)
    np.testing.assert_array_equal(packed["token_ids"][packed["padding_mask"] == 0], 5)


def test_the_classifier_learns_and_is_saved(model, tmp_path):
    texts, labels = make_reviews(16)
    classifier = model["classifier"]
    history = classifier.fit(texts, labels, batch_size=8, epochs=1, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    wanted = classifier.predict(texts)
    classifier.save(tmp_path / "model.keras")
    copy = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(copy.predict(texts), wanted, atol=1e-5)
    # The last token alone reaches the head.
    packed = classifier.preprocessor.pack(texts[:1])
    encoded = classifier.backbone(packed, training=False)
    encoded = keras.ops.convert_to_numpy(encoded["sequence_output"])[:, -1]
    dense = [keras.ops.convert_to_numpy(w) for w in classifier.backbone.pooler.weights]
    pooled = np.tanh(encoded @ dense[0] + dense[1])
    kernel, bias = map(keras.ops.convert_to_numpy, classifier.classifier.weights)
    np.testing.assert_allclose(pooled @ kernel + bias, wanted[:1], atol=1e-4)


def test_ranks_of_a_masker_reach_the_model(model):
    pretrainer, masker, packer = model["pretrainer"], model["masker"], model["packer"]
    packed = packer.pack(make_reviews(8)[0])
    batch = name_arrays(masker(packed, np.arange(8)))
    assert set(batch[0]) == {*pretrainer.backbone.input, "mask_positions"} >= {"ranks"}
    pretrainer.compile()
    logs = pretrainer.train_on_batch(*batch, return_dict=True)
    assert np.isfinite(logs["loss"])
    ranks = batch[0]["ranks"]
    assert (ranks.max(axis=1) >= 0).all() and (ranks == -1).any(axis=1).all()
    # A token that nobody may see changes its own state only.
    backbone = pretrainer.backbone
    row, last = 0, ranks[0].argmax()
    changed = {**{n: batch[0][n] for n in backbone.input}}
    before = keras.ops.convert_to_numpy(backbone(changed)["sequence_output"])
    token_ids = changed["token_ids"].copy()
    token_ids[row, last] = 8
    after = keras.ops.convert_to_numpy(
        backbone({**changed, "token_ids": token_ids})["sequence_output"]
    )
    maps = encode_with_attention(backbone, changed)["attentions"]
    assert all(np.delete(of_layer[row, :, :, last], last, axis=1).max() == 0 for of_layer in maps)
    differs = np.abs(after - before).max(axis=-1) > 1e-6
    assert differs[row].nonzero()[0].tolist() == [last] and not differs[1:].any()


def test_texts_need_another_pattern(model):
    pretrainer = model["pretrainer"]
    classifier = type(model["classifier"])(
        pretrainer.backbone, 2, preprocessor=pretrainer.preprocessor
    )
    with pytest.raises(
        ValueError, match="the input 'ranks', which is not made of .*change_pattern"
    ):
        classifier.predict(["good"])
    assert "ranks" not in change_pattern(pretrainer.backbone, "bidirectional").input
