"""Vocabularies of byte pairs and unigrams, learned from texts."""

import pytest
import sentencepiece
from small_sentence_pieces import XLNET_TOKENS
from small_texts import make_reviews

from keras_bert_suite.tokenizers import (
    AlbertTokenizer,
    BytePairTokenizer,
    XLNetTokenizer,
    open_tokenizer,
    train_byte_pairs,
    train_sentence_pieces,
)

TEXTS = [
    f"{text.capitalize()}, said Éva in {1990 + i % 40}."
    for i, text in enumerate(make_reviews(200, 0)[0])
]
UNSEEN = ["An unseen GOOD film, 2031!", "Éva said café 能", "the  film\nwas"]


def test_byte_pairs(tmp_path):
    transformers = pytest.importorskip("transformers")
    vocabulary, merges = train_byte_pairs(TEXTS, size=330)
    assert len(vocabulary) == 330 and list(vocabulary)[:3] == ["<s>", "<pad>", "</s>"]
    for name, content in BytePairTokenizer(vocabulary, merges).asset_contents().items():
        (tmp_path / name).write_bytes(content)
    ours = open_tokenizer(tmp_path)
    theirs = transformers.RobertaTokenizer.from_pretrained(str(tmp_path))
    for text in [*TEXTS[:20], *UNSEEN]:
        ids = ours.tokenize(text)
        assert ids == theirs(text, add_special_tokens=False)["input_ids"]
        assert ours.detokenize(ids) == text and len(ids) < len(text.encode())
    assert theirs.mask_token_id == ours.mask_token_id == 4
    # The same texts in another order, and in twos.
    assert train_byte_pairs(TEXTS[::-1], size=330) == (vocabulary, merges)
    with pytest.raises(ValueError, match="size.*261.*260"):
        train_byte_pairs(TEXTS, size=260)


@pytest.mark.parametrize("least", [1, 2, 3, 4])
def test_rare_byte_pairs(least):
    vocabulary, merges = train_byte_pairs(["dull"] * 3, size=300, min_frequency=least)
    assert ("dull" in vocabulary) is bool(merges) is (least <= 3)


@pytest.mark.parametrize("lowercase", [True, False])
def test_unigrams(tmp_path, lowercase):
    transformers = pytest.importorskip("transformers")
    rules = {"lowercase": lowercase, "strip_accents": lowercase}
    model = train_sentence_pieces(TEXTS, size=120, **rules)
    (tmp_path / "spiece.model").write_bytes(model)
    ours = open_tokenizer(tmp_path / "spiece.model", **rules)
    assert isinstance(ours, AlbertTokenizer)
    assert ours.get_vocabulary()[:5] == ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    assert 60 < ours.vocabulary_size() <= 120
    theirs = transformers.AlbertTokenizer.from_pretrained(
        str(tmp_path), do_lower_case=lowercase, keep_accents=not lowercase
    )
    for text in [*TEXTS[:20], *UNSEEN[:1]]:
        ids = ours.tokenize(text)
        assert ids == theirs(text, add_special_tokens=False)["input_ids"]
        assert ours.unknown_token_id not in ids[:-1]
    assert any("É" in piece for piece in ours.get_vocabulary()) is not lowercase
    assert train_sentence_pieces(TEXTS, size=120, **rules) == model


def test_unigrams_of_xlnet(tmp_path):
    """The special tokens have the ids of the released models, and text those of SentencePiece."""
    model = train_sentence_pieces(TEXTS, size=120, model_type="xlnet")
    (tmp_path / "spiece.model").write_bytes(model)
    tokenizer = open_tokenizer(tmp_path / "spiece.model")
    assert isinstance(tokenizer, XLNetTokenizer)
    assert tokenizer.get_vocabulary()[: len(XLNET_TOKENS) + 1] == [*XLNET_TOKENS, "<eop>"]
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    for text in ["a great film", "dull acting, good plot"]:
        assert tokenizer.tokenize(text) == processor.encode(text)
    with pytest.raises(ValueError, match="model_type must be .*'bert'"):
        train_sentence_pieces(TEXTS, model_type="bert")


@pytest.mark.parametrize(
    ("lowercase", "strip_accents", "letter"), [(True, False, "é"), (False, True, "E")]
)
def test_one_rule_for_characters_without_the_other(lowercase, strip_accents, letter):
    """The texts have no E and no accent but those of Éva."""
    model = train_sentence_pieces(TEXTS[:40], 80, lowercase=lowercase, strip_accents=strip_accents)
    pieces = "".join(AlbertTokenizer(model).get_vocabulary()[5:])
    assert {*pieces} & {*"EÉé"} == {letter}


@pytest.mark.parametrize("coverage", [1.0, 0.98])
def test_rare_characters_have_a_piece_if_all_are_wanted(coverage):
    model = train_sentence_pieces([*TEXTS, "能"], size=120, character_coverage=coverage)
    pieces = AlbertTokenizer(model).get_vocabulary()
    assert any("能" in piece for piece in pieces) is (coverage == 1.0)


def test_too_few_tokens_or_texts():
    with pytest.raises(ValueError, match="could not learn 14 tokens: .*another `size`"):
        train_sentence_pieces(TEXTS, size=14)
    with pytest.raises(ValueError, match="Pass more texts"):
        train_sentence_pieces([])


@pytest.mark.parametrize("train", [train_byte_pairs, train_sentence_pieces])
def test_a_single_text_is_not_taken_for_its_characters(train):
    with pytest.raises(ValueError, match="Received a single one: 'low low'"):
        train("low low", 300)
