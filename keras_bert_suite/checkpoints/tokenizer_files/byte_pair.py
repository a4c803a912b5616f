"""Reads the byte-pair tokenizer of a checkpoint from its files."""

from keras_bert_suite.checkpoints.tokenizer_files.added_tokens import read_special_map
from keras_bert_suite.checkpoints.tokenizer_files.settings import (
    FAST_FILE,
    name_special_tokens,
    read_ids,
)
from keras_bert_suite.checkpoints.tokenizer_files.tokenizer_kind import (
    TokenizerFiles,
    TokenizerKind,
)
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import SPECIAL_TOKENS
from keras_bert_suite.files.messages import reading

#: Hugging Face's classes that split text as RoBERTa does. transformers 4 has classes for BART and
#: Longformer, too.
_CLASSES = (
    *("BartTokenizerFast", "BartTokenizer"),
    *("LongformerTokenizerFast", "LongformerTokenizer"),
    *("RobertaTokenizerFast", "RobertaTokenizer"),
)
_ROBERTA = TokenizerKind(
    "RoBERTa",
    _CLASSES,
    name_special_tokens("<unk>", "<s>", "</s>", "<pad>", "<mask>"),
    num_separators=2,
)
_MODERN_BERT = TokenizerKind("ModernBERT", _CLASSES, SPECIAL_TOKENS)


def read_hugging_face_byte_pairs(directory):
    """The arguments of a `BytePairTokenizer` for a Hugging Face checkpoint of RoBERTa.

    Without vocab.json and merges.txt, "vocabulary" and "merges" are from tokenizer.json, a dict and
    a list.
    """
    files = TokenizerFiles(directory, _ROBERTA, ("vocab.json", "merges.txt"))
    if files.has_vocabulary:
        vocabulary, merges = files.paths
        arguments = {"vocabulary": str(vocabulary), "merges": str(merges)}
    else:
        arguments = _read_fast(files)
    # Whether a text that begins without a space gets one.
    adds_space = files.config.get("add_prefix_space")
    if files.follows_fast("add_prefix_space"):
        own = files.read_steps("pre_tokenizer").get("add_prefix_space", False)
        files.require("add_prefix_space", None, own)
        adds_space = own
    if adds_space:
        arguments["add_prefix_space"] = True
    return {**arguments, **files.list_arguments(), **_read_mask(files)}


def read_modern_bert_tokenizer(directory):
    """The arguments of a `ModernBertTokenizer` for a checkpoint, from its tokenizer.json."""
    files = TokenizerFiles(directory, _MODERN_BERT)
    return {
        **_read_fast(files),
        "normalization": files.read_steps("normalizer").get("type"),
        # transformers reads this tokenizer from tokenizer.json alone.
        "add_prefix_space": files.read_steps("pre_tokenizer").get("add_prefix_space", False),
        **files.list_arguments(),
        **_read_mask(files),
    }


def _read_mask(files):
    """dict of `mask_takes_space`, False, if the mask token does not take the space before it."""
    named = files.config.get("mask_token"), read_special_map(files.directory).get("mask_token")
    masks = files.added.get(files.tokens["mask_token"]), *named
    mask = next((mask for mask in masks if isinstance(mask, dict)), {"lstrip": True})
    return {} if mask.get("lstrip", False) else {"mask_takes_space": False}


def _read_fast(files):
    path = files.directory / FAST_FILE
    with reading(path):
        merges = list(files.fast["model"]["merges"])
    return {"vocabulary": read_ids(files.fast, path), "merges": merges}
