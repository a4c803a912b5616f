import numpy as np
import pytest
from small_byte_pairs import MERGES, make_vocabulary
from small_sentence_pieces import make_albert, make_xlm_roberta
from small_texts import VOCABULARY

from keras_bert_suite import (
    AlbertTokenizer,
    BytePairTokenizer,
    WordPieceTokenizer,
    XLMRobertaTokenizer,
)
from keras_bert_suite.masking.maskable_units import (
    MaskVocabulary,
    UnitFinder,
    find_words,
    join_characters,
)


def flags(text):
    """ "10 1" -> [[True, False], [True]], as one array if the rows are of one length."""
    return np.array([[c == "1" for c in row] for row in text.split()])


def test_words_are_a_piece_and_its_continuations():
    #                                  [CLS] a ##s ##ly . [SEP] ##s ##s un [PAD]
    begins = find_words(eligible=flags("0111101110"), continues=flags("0011001100"))
    np.testing.assert_array_equal(begins, flags("1100111011"))


def test_words_do_not_reach_into_the_next_row():
    begins = find_words(eligible=flags("11 11"), continues=flags("01 11"))
    np.testing.assert_array_equal(begins, flags("10 10"))


@pytest.mark.parametrize(
    ("tokenizer", "chinese"),
    [
        (WordPieceTokenizer([*VOCABULARY, "lower", "一", "二"]), ["一", "二"]),
        (BytePairTokenizer(make_vocabulary(), MERGES), ["一", "二"]),
        (AlbertTokenizer(make_albert()), ["一二"]),
        (XLMRobertaTokenizer(make_xlm_roberta()), ["一二"]),
    ],
    ids=lambda value: getattr(value, "name", "words"),
)
def test_words_of_every_tokenizer(tokenizer, chinese):
    """Words end at punctuation and CJK characters, also if no space stands there."""
    ids = np.array([tokenizer.tokenize("the film, lower!\nfilm 一二 film,lower")])
    finder = UnitFinder(MaskVocabulary(tokenizer, ordinary_only=True))
    begins, _ = finder.find(ids, eligible=np.ones_like(ids, bool))
    words = np.split(ids[0], np.flatnonzero(begins[0])[1:])
    words = ["".join(tokenizer.detokenize(word.tolist()).split()) for word in words]
    assert words == ["the", "film", ",", "lower", "!", "film", *chinese, "film", ",", "lower"]


CHINESE = ["[PAD]", "[CLS]", "的", "电", "影", "好", "a"]


def split_after_film(text):
    return text.replace("电影", "电影|").replace("好", "好|").strip("|").split("|") if text else []


def test_characters_of_a_word_are_one_unit():
    token_ids = np.array([[1, 5, 3, 4, 2, 1, 4, 6, 3, 4], [3, 4, 3, 4, 1, 0, 0, 0, 0, 0]])
    cjk = (token_ids > 1) & (token_ids < 6)
    seen = []

    def segment(text):
        seen.append(text)
        return split_after_film(text)

    begins = join_characters(np.ones_like(cjk), token_ids, cjk, CHINESE, segment)
    assert seen == ["好电影的", "影", "电影", "电影电影"]
    #                                              C 好 电 影 的 C 影 a 电 影
    np.testing.assert_array_equal(begins, flags("1110111110 1010111111"))


@pytest.mark.parametrize("words", [["电"], ["电", "影", "好"], ["影电"], []])
def test_a_segmenter_that_changes_the_text_is_named(words):
    token_ids = np.array([[3, 4]])
    with pytest.raises(ValueError, match="word_segmenter must split '电影' into words that join"):
        join_characters(token_ids > 0, token_ids, token_ids > 0, CHINESE, lambda text: words)


def test_tables_of_a_vocabulary():
    pieces = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##s", "一", "##一"]
    tokenizer = WordPieceTokenizer([*pieces, "unused1", "[unused]"])
    vocabulary = MaskVocabulary(tokenizer, ordinary_only=True)
    assert np.flatnonzero(vocabulary.eligible).tolist() == [1, 6, 7, 8, 9, 10, 11]
    assert np.flatnonzero(vocabulary.continues).tolist() == [7, 9]
    assert np.flatnonzero(vocabulary.cjk).tolist() == [8]
    assert vocabulary.random_ids.tolist() == [6, 7, 8, 9, 10, 11]
    assert MaskVocabulary(tokenizer, ordinary_only=False).random_ids.tolist() == list(range(12))


def test_vocabularies_that_cannot_be_masked_with():
    with pytest.raises(ValueError, match=r"lacks the mask token, '\[MASK\]'"):
        MaskVocabulary(WordPieceTokenizer([t for t in VOCABULARY if t != "[MASK]"]), True)
    with pytest.raises(ValueError, match="All 5 tokens are special"):
        MaskVocabulary(WordPieceTokenizer(VOCABULARY[:5]), True)
