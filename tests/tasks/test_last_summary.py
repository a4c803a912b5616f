"""Tasks on rows whose summary token is last, with padding on either side.

Positions of the backbone are relative. So its outputs for the tokens of a row do not depend on the
side of the padding, and the answers and losses of a task must not, either.
"""

import keras
import numpy as np
import pytest
import small_tasks
from heads.cases import LENGTH, TASKS
from small_tasks import compile_model, make_task, predict, predicted_columns
from small_texts import ONE_LAYER, VOCABULARY
from tables import short_for

from keras_bert_suite import (
    BertBackbone,
    CausalLM,
    LastTokenPooling,
    RoFormerBackbone,
    SegmentPacker,
    Seq2Seq,
    TextClassifier,
    TextEmbedder,
    WordPieceTokenizer,
    XLNetBackbone,
    change_pattern,
)
from keras_bert_suite.heads.relations.relation_classifier import MARKERS

#: They read no rows that begin otherwise, or have no texts.
UNREAD = ("pretraining", "targets", "continuations")


class PaddedLeft(WordPieceTokenizer):
    summary_place, summary_segment, padding_side = "last", 2, "left"


class PaddedRight(PaddedLeft):
    padding_side = "right"


def make_packer(tokenizer_cls, task=None):
    packer = SegmentPacker(tokenizer_cls(VOCABULARY), LENGTH, padding_lengths=(LENGTH,))
    if task == "relations":
        packer.tokenizer.add_tokens(MARKERS, special=True)
    return packer


@pytest.fixture(autouse=True)
def last_summary(monkeypatch):
    """`make_task` makes tasks on an `XLNetBackbone`."""

    def make_parts(preprocessor, backbone_arguments):
        sizes = {**ONE_LAYER, "dropout": 0.0, "num_segments": 3, "max_sequence_length": None}
        return XLNetBackbone(**sizes, initializer_range=0.5), make_packer(PaddedLeft)

    monkeypatch.setattr(small_tasks, "make_parts", make_parts)


@pytest.mark.parametrize(
    "task",
    short_for(
        [name for name in TASKS if name not in UNREAD],
        *("texts", "pairs", "words", "spans", "questions", "choices", "documents", "masks"),
        part="combinations",
    ),
)
def test_the_side_of_padding_does_not_matter(task):
    model, (x, y) = make_task(task, "SegmentPacker")
    compile_model(model)
    found = []
    for tokenizer_cls in (PaddedLeft, PaddedRight):
        model.preprocessor = make_packer(tokenizer_cls, task)
        answers = predict(model, x=predicted_columns(model, x))
        # Masks are drawn for the places of tokens.
        losses = [] if task == "masks" else model.evaluate(x, y, verbose=0, return_dict=True)
        found.append((answers, losses))
    assert len(found[0][0])
    keras.tree.map_structure(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), *found
    )


def test_packed_rows_train_alike():
    """The layout of packed rows finds tokens behind padding."""
    model, (x, y) = make_task("pairs", "SegmentPacker")
    weights, losses = model.get_weights(), []
    for packing in (False, True):
        model.set_weights(weights)
        compile_model(model)
        history = model.fit(
            x, y, batch_size=12, epochs=2, shuffle=False, verbose=0, sequence_packing=packing
        )
        losses.append(history.history["loss"])
    np.testing.assert_allclose(*losses, rtol=1e-4)


def test_windows_of_long_rows():
    """Rows of several windows of different lengths, where no padding length is fixed."""
    for task in ("words", "spans", "questions"):
        model, (x, _) = make_task(task, "SegmentPacker")
        rows = (
            [row * n for row, n in zip(x, range(1, 13), strict=True)] if task != "questions" else x
        )
        found = []
        for tokenizer_cls in (PaddedLeft, PaddedRight):
            tokenizer = tokenizer_cls(VOCABULARY)
            model.preprocessor = SegmentPacker(tokenizer, 12, padding_lengths=None)
            found.append(predict(model, x=rows, batch_size=3))
        keras.tree.map_structure(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), *found
        )


def test_cls_is_the_summary_token():
    backbone = XLNetBackbone(**{**ONE_LAYER, "num_segments": 3})
    embedder = TextEmbedder(backbone, pooling="cls", preprocessor=make_packer(PaddedLeft))
    assert type(embedder.pooling) is LastTokenPooling and embedder.pooling_name == "last"
    states = np.arange(24.0, dtype="float32").reshape(2, 4, 3)
    mask = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])
    pooled = keras.ops.convert_to_numpy(LastTokenPooling()(states, mask))
    np.testing.assert_array_equal(pooled, states[[0, 1], [1, 3]])


def test_parts_that_do_not_fit():
    first, last = make_packer(WordPieceTokenizer), make_packer(PaddedLeft)
    with pytest.raises(
        ValueError, match="PaddedLeft puts .* last, and a RoFormerBackbone .* first"
    ):
        TextClassifier(RoFormerBackbone(**ONE_LAYER), 2, preprocessor=last)
    with pytest.raises(ValueError, match="WordPieceTokenizer puts .* first, and an XLNetBackbone"):
        TextClassifier(XLNetBackbone(**ONE_LAYER), 2, preprocessor=first)

    class LastOfBert(BertBackbone):
        summary_place = "last"

    with pytest.raises(ValueError, match="pads rows on the left, and the table of positions"):
        TextClassifier(LastOfBert(**ONE_LAYER), 2, preprocessor=last)
    TextClassifier(LastOfBert(**ONE_LAYER), 2, preprocessor=make_packer(PaddedRight))
    writes = LastOfBert(**ONE_LAYER, attention_pattern="seq2seq")
    with pytest.raises(ValueError, match="rows that begin with the start token .* a PaddedRight"):
        Seq2Seq(writes, preprocessor=make_packer(PaddedRight))
    writes = change_pattern(writes, "left_to_right")
    with pytest.raises(ValueError, match="rows that begin with the start token .* a PaddedRight"):
        CausalLM(writes, preprocessor=make_packer(PaddedRight))
    with pytest.raises(ValueError, match="The last token of a right_to_left backbone sees only"):
        TextClassifier(XLNetBackbone(**ONE_LAYER, attention_pattern="right_to_left"), 2)
    TextClassifier(XLNetBackbone(**ONE_LAYER, attention_pattern="left_to_right"), 2)
