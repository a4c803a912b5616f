"""Folders with all settings of tokenizers: the ids of transformers, or a refusal.

The oracle is `AutoTokenizer` of transformers. No text has special tokens, which ours cannot hold.
"""

import itertools
import json
import warnings

import pytest
import transformers
from small_byte_pairs import MERGES, make_vocabulary
from small_sentence_pieces import make_xlm_roberta
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from keras_bert_suite import SegmentPacker
from keras_bert_suite.tokenizers import BytePairTokenizer, open_tokenizer

PIECES = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##a", "##b", "A", "##A", "B", "É"),
    *("é", "e", "E", "##e", "##é", "1", "##1", "2", "##2", ".", "!", "你", "好", "##好", "你好"),
    *("a1", "[unused1]", "good", "Good", "##\x01", "@@a", "[", "]", "/", "x", "##x", "1.2"),
]
TEXTS = [
    *("a b ab aab Ab AB", "É é e\u0301 E good Good GOOD", "a1b2 1.2 a.b! 12", "你好 a你好b", ""),
    *("a\x01b a\tb\u3000a", "a" * 12, "ab" * 60, "ab" * 110, "[E1] a [/E1]b ab-x AB-X xab-x"),
    *("[unused1] a<x>b", "the low  lower é good", " the", "low<e1> good <e1>the"),
]
IDS = {piece: index for index, piece in enumerate(PIECES)}
EDGES = (("[SEP]", 3), ("[CLS]", 2))
GENERIC = "PreTrainedTokenizerFast"


def template(single, pair, **ids):
    special = [("[CLS]", 2), ("[SEP]", 3)]
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=special)


USUAL = template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")


def make_fast(path, normalizer=None, splitter=None, post=USUAL, added=(), **model):
    tokenizer = Tokenizer(models.WordPiece(IDS, unk_token="[UNK]", **model))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = splitter
    if post is not None:
        tokenizer.post_processor = post
    tokenizer.add_special_tokens(PIECES[:5])
    for token in added:
        tokenizer.add_tokens([token])
    tokenizer.save(str(path / "tokenizer.json"))


def write_json(path, **files):
    for name, content in files.items():
        (path / f"{name}.json").write_text(json.dumps(content))


BERT = normalizers.BertNormalizer
BASIC = pre_tokenizers.BertPreTokenizer

NORMALIZERS = [
    *(BERT(), BERT(lowercase=False), BERT(clean_text=False), BERT(handle_chinese_chars=False)),
    *(BERT(strip_accents=False), BERT(lowercase=False, strip_accents=True), None),
    *(normalizers.NFKC(), normalizers.Lowercase(), normalizers.Sequence([BERT()])),
    normalizers.Sequence([normalizers.NFC(), BERT()]),
]
SPLITTERS = [
    *(None, pre_tokenizers.Whitespace(), pre_tokenizers.WhitespaceSplit()),
    pre_tokenizers.Sequence([BASIC(), pre_tokenizers.Digits(individual_digits=True)]),
    *(pre_tokenizers.Punctuation(), pre_tokenizers.Split(Regex("a"), "isolated")),
]
MODELS = [
    *({"max_input_chars_per_word": n} for n in (10, 100, 150, 200)),
    *({"continuing_subword_prefix": prefix} for prefix in ("", "@@")),
]
POSTS = [
    *(None, processors.BertProcessing(*EDGES), processors.RobertaProcessing(*EDGES)),
    *(template("$A [SEP]", "$A [SEP] $B:1 [SEP]:1"), template("[CLS] $A", "[CLS] $A $B:1")),
    template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]"),
    template("[CLS] $A [SEP]", "[CLS] $A [SEP] [SEP] $B:1 [SEP]:1"),
]
ADDED = [
    [AddedToken("ab-x")],
    [AddedToken("[E1]", special=True), AddedToken("[/E1]", normalized=False)],
    [AddedToken("AB-X"), AddedToken("<x>", single_word=True), AddedToken("ab", single_word=True)],
    [AddedToken("ab", lstrip=True, rstrip=True), AddedToken("a你", normalized=True)],
    [AddedToken("[unused1]", special=True), AddedToken("好")],
]


def list_fast_folders():
    """Yields functions that write a folder of BERT."""
    usual = {"normalizer": BERT(), "splitter": BASIC()}
    changes = [
        *({"normalizer": n} for n in NORMALIZERS),
        *({"splitter": s} for s in SPLITTERS),
        *MODELS,
        *({"post": p} for p in POSTS),
        *({"added": tokens} for tokens in ADDED),
    ]
    configs = (
        {"tokenizer_class": GENERIC},
        {"tokenizer_class": "BertTokenizer", "do_lower_case": True},
        None,
    )
    for change, config in itertools.product(changes, configs):

        def write(path, change=change, config=config):
            make_fast(path, **{**usual, **change})
            files = {} if config is None else {"tokenizer_config": config}
            write_json(path, config={"model_type": "bert"}, **files)

        yield write


def list_contradictions():
    """Yields functions that write folders whose files say different things of letters and class."""
    absent = object()
    for lower, strip, fast_lower, fast_strip, cls in itertools.product(
        (absent, True, False),
        (absent, True, False),
        (True, False),
        (None, True, False),
        ("BertTokenizer", GENERIC),
    ):

        def write(path, values=(lower, strip), fast=(fast_lower, fast_strip), cls=cls):
            make_fast(path, BERT(lowercase=fast[0], strip_accents=fast[1]), BASIC())
            names = ("do_lower_case", "strip_accents")
            config = {n: v for n, v in zip(names, values, strict=True) if v is not absent}
            other = GENERIC if cls == "BertTokenizer" else "BertTokenizer"
            write_json(
                path,
                config={"model_type": "bert", "tokenizer_class": other},
                tokenizer_config={"tokenizer_class": cls, **config},
            )

        yield write


def list_vocabulary_folders():
    """Yields functions that write folders as transformers 4 does, with a vocab.txt."""
    flags = {"lstrip": False, "rstrip": False, "single_word": False, "special": False}
    token = {"content": "ab-x", "normalized": True, **flags}
    marker = {"content": "[E1]", "normalized": False, **flags, "special": True}
    size = len(PIECES)
    lower = {"do_lower_case": True}
    settings = [
        {"tokenizer_config": lower},
        {"tokenizer_config": {**lower, "strip_accents": False}},
        {"tokenizer_config": {"do_lower_case": False}},
        {"tokenizer_config": {**lower, "tokenize_chinese_chars": False}},
        {"tokenizer_config": lower, "added_tokens": {"ab-x": size}},
        {"tokenizer_config": lower, "added_tokens": {"[E1]": size + 1, "ab-x": size}},
        {"tokenizer_config": lower, "added_tokens": {"ab-x": size + 3}},
        {
            "tokenizer_config": lower,
            "added_tokens": {"[E1]": size},
            "special_tokens_map": {"additional_special_tokens": ["[E1]"]},
        },
        {
            "tokenizer_config": lower,
            "special_tokens_map": {"additional_special_tokens": ["[/E1]", {**marker}]},
        },
        {"tokenizer_config": {**lower, "added_tokens_decoder": {str(size): token}}},
        {"tokenizer_config": {**lower, "added_tokens_decoder": {str(size): marker}}},
        {"tokenizer_config": {**lower, "added_tokens_decoder": {str(size + 2): marker}}},
        {"tokenizer_config": {**lower, "additional_special_tokens": ["[E1]", "<x>"]}},
        {"tokenizer_config": {**lower, "extra_special_tokens": ["[/E1]"]}},
        {"tokenizer_config": {**lower, "bos_token": "<x>"}},
    ]
    for files in settings:

        def write(path, files=files):
            (path / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
            write_json(path, config={"model_type": "bert"}, **files)

        yield write


def list_saved_folders():
    """Yields functions that write folders by `save_pretrained` of this version."""
    arguments = [
        {"do_lower_case": lower, "strip_accents": strip}
        for lower, strip in itertools.product((True, False), (None, True, False))
    ]
    for values, added in itertools.product(arguments, [[], *ADDED]):

        def write(path, values=values, added=added):
            theirs = transformers.BertTokenizer(vocab=IDS, **values)
            theirs.add_tokens(added)
            theirs.save_pretrained(path)
            write_json(path, config={"model_type": "bert"})

        yield write


def list_byte_pair_folders():
    """Yields functions that write folders of RoBERTa."""
    roberta = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    bert = processors.BertProcessing(("</s>", 2), ("<s>", 0))
    byte_level = pre_tokenizers.ByteLevel
    rows = [
        *({"splitter": byte_level(add_prefix_space=space)} for space in (True, False)),
        {"splitter": byte_level(add_prefix_space=False, use_regex=False)},
        {"splitter": pre_tokenizers.Sequence([pre_tokenizers.Digits(), byte_level()])},
        *({"normalizer": n} for n in (normalizers.NFC(), normalizers.Lowercase())),
        *({"post": post} for post in (None, bert, processors.ByteLevel())),
        *({"dropout": 1.0}, {"ignore_merges": True}, {"fuse_unk": True}),
        *(
            {"added": [AddedToken("<e1>", **flags)]}
            for flags in (
                {"special": True},
                {"lstrip": True},
                {"rstrip": True, "normalized": False},
                {"single_word": True},
            )
        ),
        {"added": [AddedToken("low"), AddedToken("good", single_word=True)]},
    ]
    configs = (
        {"tokenizer_class": GENERIC},
        {"tokenizer_class": "RobertaTokenizer"},
        {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": True},
    )
    for row, config in itertools.product(rows, configs):

        def write(path, row=row, config=config):
            row = dict(row)
            parts = {"normalizer": None, "splitter": byte_level(add_prefix_space=False)}
            parts.update(
                {name: row.pop(name) for name in ("normalizer", "splitter") if name in row}
            )
            post, added = row.pop("post", roberta), row.pop("added", ())
            merges = [tuple(merge.split()) for merge in MERGES]
            tokenizer = Tokenizer(models.BPE(make_vocabulary(), merges, **row))
            if parts["normalizer"] is not None:
                tokenizer.normalizer = parts["normalizer"]
            tokenizer.pre_tokenizer = parts["splitter"]
            if post is not None:
                tokenizer.post_processor = post
            tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
            tokenizer.add_tokens(list(added))
            tokenizer.save(str(path / "tokenizer.json"))
            write_json(path, config={"model_type": "roberta"}, tokenizer_config=config)

        yield write


def list_old_byte_pair_folders():
    """Yields functions that write folders of RoBERTa as transformers 4 does."""
    size = len(make_vocabulary())
    for files in (
        {},
        {"added_tokens": {"<e1>": size, "ab-x": size + 1}},
        {
            "added_tokens": {"<e1>": size},
            "special_tokens_map": {"additional_special_tokens": ["<e1>"]},
        },
        {"tokenizer_config": {"add_prefix_space": True}, "added_tokens": {"low": 261}},
        {"tokenizer_config": {"additional_special_tokens": ["<e1>"], "add_prefix_space": True}},
    ):

        def write(path, files=files):
            BytePairTokenizer(make_vocabulary(), MERGES).save_assets(path)
            write_json(path, config={"model_type": "roberta"}, **files)

        yield write


@pytest.mark.parametrize("takes_space", [True, False])
def test_a_mask_that_takes_the_space_before_it(tmp_path, takes_space):
    BytePairTokenizer(make_vocabulary(), MERGES).save_assets(tmp_path)
    flags = {"rstrip": False, "normalized": False, "single_word": False}
    mask = {"content": "<mask>", "lstrip": takes_space, **flags}
    files = {"special_tokens_map": {"mask_token": mask}, "config": {"model_type": "roberta"}}
    write_json(tmp_path, **files)
    theirs, ours = transformers.AutoTokenizer.from_pretrained(tmp_path), open_tokenizer(tmp_path)
    wanted = theirs("low  <mask> low", add_special_tokens=False)["input_ids"]
    before, after = map(ours.tokenize, ours.split_at_masks("low  <mask> low"))
    assert [*before, ours.mask_token_id, *after] == wanted


def change_json(path, change):
    file = path / "tokenizer.json"
    content = json.loads(file.read_text("utf-8"))
    change(content)
    file.write_text(json.dumps(content))


def list_sentence_piece_folders():
    """Yields functions that write folders of XLM-RoBERTa."""

    def splitter(**settings):
        def change(content):
            content["pre_tokenizer"]["pretokenizers"][1].update(settings)

        return change

    changes = [
        lambda content: None,
        splitter(prepend_scheme="first"),
        splitter(prepend_scheme="never"),
        splitter(replacement="_"),
        lambda content: content.update(pre_tokenizer=content["pre_tokenizer"]["pretokenizers"][1]),
        lambda content: content.update(normalizer={"type": "NFKC"}),
        lambda content: content.update(normalizer={"type": "Lowercase"}),
        lambda content: content["model"].update(byte_fallback=True),
        lambda content: content["post_processor"]["single"].pop(),
    ]
    added = [[], *ADDED[:4], [AddedToken("low"), AddedToken("é", single_word=True)]]
    for change, tokens, cls in itertools.product(changes, added, ("XLMRobertaTokenizer", GENERIC)):
        if change is not changes[0] and tokens:
            continue

        def write(path, change=change, tokens=tokens, cls=cls):
            (path / "sentencepiece.bpe.model").write_bytes(make_xlm_roberta())
            theirs = transformers.XLMRobertaTokenizer.from_pretrained(path)
            theirs.add_tokens(tokens)
            theirs.save_pretrained(path)
            (path / "sentencepiece.bpe.model").unlink(missing_ok=True)
            change_json(path, change)
            config = json.loads((path / "tokenizer_config.json").read_text())
            config["tokenizer_class"] = cls
            write_json(path, config={"model_type": "xlm-roberta"}, tokenizer_config=config)

        yield write


FOLDERS = {
    "fast": list_fast_folders,
    "contradictions": list_contradictions,
    "vocabulary": list_vocabulary_folders,
    "saved": list_saved_folders,
    "byte_pairs": list_byte_pair_folders,
    "old_byte_pairs": list_old_byte_pair_folders,
    "sentence_pieces": list_sentence_piece_folders,
}


def read_both(path):
    """(ids and segments of transformers, ours), each None where the folder is refused."""
    try:
        theirs = transformers.AutoTokenizer.from_pretrained(path)
        wanted = theirs(TEXTS, add_special_tokens=False)["input_ids"]
        pair = theirs(TEXTS[0], TEXTS[1], return_token_type_ids=True)
    except Exception:
        return None, None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = open_tokenizer(path)
    except ValueError as error:
        assert str(path) in str(error)
        return wanted, None
    packed = SegmentPacker(ours, 512, padding_lengths=None).pack(TEXTS[:1], TEXTS[1:2])
    names = {"input_ids": "token_ids", "token_type_ids": "segment_ids"}
    rows = {name: packed[own][0].tolist() for name, own in names.items() if own in packed}
    return [wanted, {name: pair[name] for name in rows}], [ours.tokenize(TEXTS), rows]


#: How many folders of each kind are read, at least. The others are refused.
READ = {"fast": 40, "contradictions": 90, "vocabulary": 10, "saved": 36, "byte_pairs": 25}
READ |= {"sentence_pieces": 10, "old_byte_pairs": 4}


#: The kinds with more than thirty folders. Of these `make test` reads every fifth: no number of
#: settings is a multiple of five, so each setting comes with each other.
MANY = ("fast", "contradictions", "saved", "byte_pairs", "sentence_pieces")


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        *((kind, 5 if kind in MANY else 1) for kind in FOLDERS),
        *(pytest.param(kind, 1, marks=pytest.mark.long("texts")) for kind in MANY),
    ],
)
def test_equal_or_refused(tmp_path, kind, step):
    wrong, num_read, total = [], 0, 0
    for number, write in enumerate(itertools.islice(FOLDERS[kind](), 0, None, step)):
        path = tmp_path / str(number)
        path.mkdir()
        write(path)
        wanted, got = read_both(path)
        total += 1
        num_read += got is not None
        if got is not None and got != wanted:
            wrong.append(number)
    assert not wrong
    assert num_read >= READ[kind] // step, (num_read, total)
