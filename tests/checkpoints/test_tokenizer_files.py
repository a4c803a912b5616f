"""What a checkpoint says about its tokenizer."""

import contextlib
import json

import pytest
import tokenizers
import transformers
from small_byte_pairs import MERGES, make_vocabulary

from keras_bert_suite.checkpoints import check_vocabulary
from keras_bert_suite.checkpoints.tokenizer_files.byte_pair import read_hugging_face_byte_pairs
from keras_bert_suite.checkpoints.tokenizer_files.fast_word_piece import write_fast_tokenizer
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import (
    read_google_tokenizer,
    read_hugging_face_tokenizer,
)
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.tokenizers import BytePairTokenizer, WordPieceTokenizer, open_tokenizer

UNCASED = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##c", "é", "<S>", "!"]
CASED = [*UNCASED, "##Bc"]
BYTE_PAIR_FILES = {"vocabulary": "vocab.json", "merges": "merges.txt"}
TEXTS = ["a b abc!", "A bB ABc é È", "x [SEP] abc"]


def write(directory, vocabulary=None, **files):
    if vocabulary:
        (directory / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    for name, content in files.items():
        (directory / f"{name}.json").write_text(json.dumps(content))


def fast_tokenizer(pieces=UNCASED, **normalizer):
    return {
        "model": {"type": "WordPiece", "vocab": {piece: i for i, piece in enumerate(pieces)}},
        "normalizer": {"type": "BertNormalizer", "handle_chinese_chars": True, **normalizer},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
    }


@pytest.mark.parametrize(
    "folder, lowercase",
    [
        ("bert-base-uncased", True),
        ("bert-base-cased", False),
        ("bert-base-chinese", True),
        ("bert-base-multilingual-cased", False),
    ],
)
def test_case_of_the_public_vocabularies(shared_data, folder, lowercase):
    path = shared_data / "vocab" / folder
    assert read_google_tokenizer(path) == {
        "vocabulary": str(path / "vocab.txt"),
        "lowercase": lowercase,
    }


@pytest.mark.parametrize("pieces, lowercase", [(UNCASED, True), (CASED, False)])
def test_case_without_any_setting(tmp_path, pieces, lowercase):
    write(tmp_path, pieces)
    expected = {"vocabulary": str(tmp_path / "vocab.txt"), "lowercase": lowercase}
    assert read_google_tokenizer(tmp_path) == expected
    assert read_hugging_face_tokenizer(tmp_path) == {**expected, "max_word_length": 100}


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_tokenizer_config_comes_first(tmp_path, do_lower_case):
    config = {"do_lower_case": do_lower_case}
    write(
        tmp_path,
        UNCASED,
        tokenizer_config=config,
        tokenizer=fast_tokenizer(lowercase=not do_lower_case),
    )
    assert read_hugging_face_tokenizer(tmp_path)["lowercase"] is do_lower_case


@pytest.mark.parametrize("lowercase", [True, False])
def test_normalizer_comes_second(tmp_path, lowercase):
    pieces = UNCASED if not lowercase else [*UNCASED, "##B!"]
    write(tmp_path, pieces, tokenizer=fast_tokenizer(pieces, lowercase=lowercase))
    assert read_hugging_face_tokenizer(tmp_path)["lowercase"] is lowercase


def test_texts_that_are_cut_at_their_beginning(tmp_path):
    write(tmp_path, UNCASED, tokenizer_config={"truncation_side": "left"})
    with pytest.warns(UserWarning, match="truncation_side .* is 'left'.*head_length=0"):
        read_hugging_face_tokenizer(tmp_path)
    packer = SegmentPacker(WordPieceTokenizer(UNCASED), 4, truncation="head_tail", head_length=0)
    assert packer.pack(["a b!"])["token_ids"].tolist() == [[2, 6, 10, 3]]


@pytest.mark.parametrize("added", [[], ["NATO"]])  # A token that is found before lowercasing.
@pytest.mark.parametrize(
    "pieces, lowercase, warning",
    [
        ([*CASED, "COVID"], True, "lowercases text, but 2 pieces .* such as '##Bc', 'COVID'"),
        # As m3e-base, whose vocabulary is that of bert-base-chinese.
        ([*UNCASED, *"eiou"], False, r"each word with a capital becomes \[UNK\].*lowercase=True"),
        ([*UNCASED, *"eiou"], True, None),
        ([*UNCASED, *"eiouE"], False, None),
        # Without letters there is nothing to lowercase.
        ([*UNCASED[:5], "京"], False, None),
    ],
)
def test_a_vocabulary_of_another_case(tmp_path, pieces, lowercase, warning, added):
    def wanted(message):
        return pytest.warns(UserWarning, match=message) if message else contextlib.nullcontext()

    write(tmp_path, pieces, tokenizer_config={"do_lower_case": lowercase})
    if added:
        write(tmp_path, added_tokens={token: len(pieces) for token in added})
    with wanted(warning):
        open_tokenizer(tmp_path)
    # The remedy ends the warning.
    if warning and not lowercase:
        assert open_tokenizer(tmp_path, lowercase=True).tokenize("A") == [UNCASED.index("a")]


def test_a_vocabulary_that_is_not_that_of_tokenizer_json(tmp_path):
    write(tmp_path, [*UNCASED[:-1], "?"], tokenizer=fast_tokenizer())
    with pytest.raises(ValueError, match=r"have different pieces, such as '!', .*reads tokenizer"):
        read_hugging_face_tokenizer(tmp_path)


def test_a_class_that_config_json_names(tmp_path):
    """As those of cl-tohoku/bert-base-japanese."""
    (tmp_path / "vocab.txt").write_text("\n".join(UNCASED))
    write(tmp_path, tokenizer_config={"word_tokenizer_type": "mecab", "do_lower_case": False})
    with pytest.raises(ValueError, match="word_tokenizer_type in tokenizer_config.json is 'mecab'"):
        read_hugging_face_tokenizer(tmp_path)
    write(tmp_path, tokenizer_config={}, config={"tokenizer_class": "BertJapaneseTokenizer"})
    with pytest.raises(ValueError, match="tokenizer_class .* is 'BertJapaneseTokenizer'"):
        read_hugging_face_tokenizer(tmp_path)


def test_files_that_contradict_each_other_about_a_token(tmp_path):
    token = {"content": "x-y", "id": 11, "single_word": True}
    files = {"tokenizer": {**fast_tokenizer(), "added_tokens": [token]}}
    write(tmp_path, UNCASED, added_tokens={"x-y": 12}, **files)
    with pytest.raises(ValueError, match=r"token 'x-y': added_tokens.json has id 12, another"):
        read_hugging_face_tokenizer(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        {"do_lower_case": True},
        {"do_lower_case": False},
        {"do_lower_case": True, "strip_accents": False},
        {"do_lower_case": False, "strip_accents": True},
    ],
)
def test_tokenizer_saved_by_transformers(tmp_path, arguments):
    """transformers 5 writes no vocab.txt."""
    write(tmp_path, [*CASED, "e"])
    vocabulary = {piece: i for i, piece in enumerate([*CASED, "e"])}
    theirs = transformers.BertTokenizer(vocab=vocabulary, **arguments)
    theirs.save_pretrained(tmp_path / "saved")
    assert not (tmp_path / "saved" / "vocab.txt").exists()

    found = read_hugging_face_tokenizer(tmp_path / "saved")
    assert found["vocabulary"] == [*CASED, "e"]
    ours = WordPieceTokenizer(**found)
    texts = [text for text in TEXTS if "[" not in text]
    expected = [theirs(text, add_special_tokens=False)["input_ids"] for text in texts]
    assert ours.tokenize(texts) == expected


def test_other_special_tokens(tmp_path):
    pieces = ["<pad>", "<unk>", *UNCASED[2:]]
    write(
        tmp_path,
        pieces,
        tokenizer_config={
            "pad_token": {"content": "<pad>", "lstrip": False},
            "unk_token": "<unk>",
            "cls_token": "[CLS]",
        },
    )
    found = read_hugging_face_tokenizer(tmp_path)
    assert (found["pad_token"], found["unknown_token"]) == ("<pad>", "<unk>")
    assert "start_token" not in found
    assert WordPieceTokenizer(**found).unknown_token_id == 1


@pytest.mark.parametrize("kind", ["DistilBert", "Electra"])
@pytest.mark.parametrize("ending", ["Tokenizer", "TokenizerFast"])
def test_classes_of_transformers_4_that_split_text_as_bert_does(tmp_path, kind, ending):
    files = {"tokenizer_config": {"tokenizer_class": kind + ending}, "tokenizer": fast_tokenizer()}
    write(tmp_path, UNCASED, **files)
    found = read_hugging_face_tokenizer(tmp_path)
    assert found["vocabulary"] == str(tmp_path / "vocab.txt")
    with pytest.raises(ValueError, match=f"not RoBERTa's, .*{kind}{ending}"):
        read_hugging_face_byte_pairs(tmp_path)


@pytest.mark.parametrize("ending", ["Tokenizer", "TokenizerFast"])
def test_classes_of_transformers_4_that_split_text_as_roberta_does(tmp_path, ending):
    BytePairTokenizer(make_vocabulary(), MERGES).save_assets(tmp_path)
    write(tmp_path, tokenizer_config={"tokenizer_class": f"Longformer{ending}"})
    wanted = {name: str(tmp_path / file) for name, file in BYTE_PAIR_FILES.items()}
    assert read_hugging_face_byte_pairs(tmp_path) == wanted


def test_added_tokens_come_last(tmp_path):
    fast = fast_tokenizer()
    fast["added_tokens"] = [{"content": "zork", "id": 11}, {"content": "[CLS]", "id": 2}]
    write(tmp_path, tokenizer=fast)
    found = read_hugging_face_tokenizer(tmp_path)
    assert found["vocabulary"] == UNCASED
    tokenizer = WordPieceTokenizer(**found)
    assert tokenizer.get_vocabulary() == [*UNCASED, "zork"]
    assert tokenizer.tokenize("azorka") == [5, 11, 5]


def test_texts_that_sentence_transformers_lowercases(tmp_path):
    """`str.lower`, which leaves accents where they are."""
    write(
        tmp_path,
        CASED,
        tokenizer_config={"do_lower_case": False},
        sentence_bert_config={"max_seq_length": 8, "do_lower_case": True},
    )
    found = read_hugging_face_tokenizer(tmp_path)
    assert found["lowercase"] is True
    ours = WordPieceTokenizer(**{"strip_accents": None, **found})
    theirs = WordPieceTokenizer(CASED, lowercase=False)
    texts = ["A b", "É a", "ABC!"]
    assert ours.tokenize(texts) == theirs.tokenize([text.lower() for text in texts])


TWICE = {"type": "Sequence", "pretokenizers": [{"type": "BertPreTokenizer"}] * 2}


@pytest.mark.parametrize(
    "files, message",
    [
        ({"tokenizer_config": {"tokenizer_class": "BertJapaneseTokenizer"}}, "tokenizer_class"),
        ({"tokenizer_config": {"tokenize_chinese_chars": False}}, "tokenize_chinese_chars"),
        ({"tokenizer_config": {"do_basic_tokenize": False}}, "do_basic_tokenize"),
        ({"tokenizer_config": {"never_split": ["xx"]}}, "never_split"),
        ({"tokenizer_config": {"padding_side": "left"}}, "padding_side"),
        ({"tokenizer_config": {"wordpieces_prefix": "@@"}}, "wordpieces_prefix"),
        ({"tokenizer": fast_tokenizer(handle_chinese_chars=False)}, "handle_chinese_chars"),
        ({"tokenizer": {**fast_tokenizer(), "model": {"type": "BPE"}}}, "model type.*'BPE'"),
        ({"tokenizer": {**fast_tokenizer(), "normalizer": {"type": "NFKC"}}}, "normalizer.*'NFKC'"),
        ({"tokenizer": {**fast_tokenizer(), "normalizer": None}}, "normalizer in"),
        (
            {"tokenizer": {**fast_tokenizer(), "pre_tokenizer": TWICE}},
            r"steps of the pre_tokenizer .* \['Bert.*', 'Bert.*'\], wanted \['BertPreTokenizer'\]",
        ),
        (
            {"tokenizer": fast_tokenizer(fold=True)},
            "fold of the normalizer BertNormalizer in tokenizer.json is True, wanted 'nothing'",
        ),
        (
            {"tokenizer": {**fast_tokenizer(), "post_processor": {"type": "Rows"}}},
            r"single of the post_processor in tokenizer.json is 'Rows', wanted '\[CLS\] A \[SEP\]'",
        ),
        (
            {
                "tokenizer_config": {"tokenizer_class": "PreTrainedTokenizerFast"},
                "tokenizer": fast_tokenizer(),
            },
            "post_processor in tokenizer.json is None, wanted 'TemplateProcessing'",
        ),
    ],
)
def test_other_tokenizers_are_refused(tmp_path, files, message):
    write(tmp_path, UNCASED, **files)
    with pytest.raises(ValueError, match=f"not BERT's, .*{message}"):
        read_hugging_face_tokenizer(tmp_path)


@pytest.mark.parametrize(
    "vocabulary", [None, [], {"a": 0, "b": 2}, {"a": 0, "b": 0}, {"a": "x", "b": 1}]
)
def test_broken_vocabulary_in_tokenizer_json(tmp_path, vocabulary):
    write(
        tmp_path,
        tokenizer={**fast_tokenizer(), "model": {"type": "WordPiece", "vocab": vocabulary}},
    )
    with pytest.raises(ValueError, match="tokenizer.json"):
        read_hugging_face_tokenizer(tmp_path)


def test_missing_vocabulary(tmp_path):
    with pytest.raises(FileNotFoundError, match="no vocab.txt or tokenizer.json"):
        read_hugging_face_tokenizer(tmp_path)


@pytest.mark.parametrize(
    "tokens, rows", [(17, 24), *((30522, rows) for rows in (30522, 30528, 30592, 30720))]
)
def test_vocabulary_that_fits(tokens, rows):
    check_vocabulary(tokens, rows)


@pytest.mark.parametrize(
    "tokens, rows",
    [(17964, 18000), (31102, 32102), (30521, 50000), (21128, 21130), (15, 24), (17, 20), (17, 18)],
)
def test_more_rows_than_tokens(tokens, rows):
    """As in public checkpoints, which transformers loads."""
    with pytest.warns(UserWarning, match=f"{tokens} tokens.* for {rows}.* last {rows - tokens}"):
        check_vocabulary(tokens, rows)


@pytest.mark.parametrize("tokens, rows", [(30523, 30522), (30522, 28996)])
def test_vocabulary_that_does_not_fit_names_both_sizes(tokens, rows):
    with pytest.raises(ValueError, match=f"{tokens} tokens.* for {rows}"):
        check_vocabulary(tokens, rows)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"max_word_length": 3},
        {"lowercase": False},
        {"strip_accents": False},
        {"lowercase": False, "strip_accents": True},
        {"unknown_token": "<S>"},
    ],
)
def test_a_written_fast_tokenizer_has_every_setting(settings, tmp_path):
    """The library tokenizers reads it as it was, also words that are longer than its default."""
    tokenizer = WordPieceTokenizer(CASED, **settings)
    write_fast_tokenizer(tokenizer, 160, tmp_path)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in (*TEXTS[:2], "a" + "c" * 120):
        ids = [*tokenizer.tokenize(text)]
        assert theirs.encode(text).ids == [2, *ids, 3], text
    assert len(theirs.encode("a " * 200).ids) == 160
