"""A file keeps the segmenter of a masker, or the task is refused before it is trained."""

import functools
import sys

import keras
import numpy as np
import pytest
from small_texts import ONE_LAYER

from keras_bert_suite import BertBackbone, MaskedLM, SegmentPacker, TokenMasker, WordPieceTokenizer

jieba = pytest.importorskip("jieba")

TEXTS = ["我来到北京清华大学", "他来到了网易杭研大厦"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(set("".join(TEXTS)))]


def make_task(**masking):
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), sequence_length=16)
    backbone = BertBackbone(**{**ONE_LAYER, "vocabulary_size": len(VOCABULARY)})
    return MaskedLM(backbone, preprocessor=packer, masking=masking)


@keras.saving.register_keras_serializable(package="test_word_segmenters")
def split_in_twos(text):
    return [text[i : i + 2] for i in range(0, len(text), 2)]


def split_unregistered(text):
    return split_in_twos(text)


def read_masks(task):
    masker = task.data.find_masker()
    packed = task.preprocessor(TEXTS * 20)
    return np.asarray(masker(packed, np.arange(2 * 20))["token_ids"])


@pytest.mark.parametrize(
    ("given", "kept"),
    [("jieba", "jieba"), (jieba.lcut, "jieba"), (split_in_twos, split_in_twos)],
)
def test_kept(given, kept, tmp_path):
    task = make_task(unit="word", word_segmenter=given)
    task.save(tmp_path / "task.keras")
    task.save_to_preset(tmp_path / "preset")
    loaded = keras.saving.load_model(tmp_path / "task.keras")
    for other in (loaded, MaskedLM.from_preset(tmp_path / "preset")):
        assert other.masking["word_segmenter"] == kept
        np.testing.assert_array_equal(read_masks(other), read_masks(task))
    assert (read_masks(task) != read_masks(make_task(unit="word"))).any()


def test_the_words_are_those_of_jieba():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    packed = SegmentPacker(tokenizer)(TEXTS)
    by_name, by_function = (
        TokenMasker(tokenizer, unit="word", word_segmenter=segmenter)
        # A function of one's own has no name.
        for segmenter in ("jieba", lambda text: jieba.lcut(text))
    )
    assert by_name.word_segmenter == "jieba"
    for a, b in zip(
        by_name(packed, [0, 1]).values(), by_function(packed, [0, 1]).values(), strict=True
    ):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "segmenter",
    [
        lambda text: jieba.lcut(text),
        jieba.lcut_for_search,
        functools.partial(jieba.lcut, HMM=False),
        split_unregistered,
    ],
)
def test_refused(segmenter):
    with pytest.raises(ValueError, match="word_segmenter=.* could not be loaded"):
        make_task(unit="word", word_segmenter=segmenter)


def test_a_segmenter_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(ImportError, match="'jieba' needs the package jieba: pip install jieba"):
        make_task(unit="word", word_segmenter="jieba")


def test_other_functions_and_names():
    with pytest.raises(ValueError, match="phrases=.* could not be loaded"):
        make_task(unit="word", phrases=lambda words: [])
    with pytest.raises(ValueError, match="word_segmenter must be 'jieba', or a function"):
        make_task(unit="word", word_segmenter="mecab")
