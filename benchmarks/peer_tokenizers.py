"""The tokenizers of other libraries, and the vocabularies that both sides have."""

import io
import json
import tempfile
from pathlib import Path

import keras_hub
import sentencepiece
import tokenizers
import transformers

from keras_bert_suite.checkpoints import write_tokenizer


def make_keras_hub_tokenizer(vocabulary):
    """KerasHub's tokenizer of the pieces of an uncased BERT."""
    return keras_hub.tokenizers.WordPieceTokenizer(vocabulary, lowercase=True, strip_accents=True)


def make_rust_tokenizer(vocabulary):
    """The tokenizer of `tokenizers` of the same pieces."""
    ids = {piece: id for id, piece in enumerate(vocabulary)}
    model = tokenizers.models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=200)
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return tokenizer


def make_fast_tokenizer(tokenizer):
    """The Rust tokenizer that transformers makes of the files of ours."""
    with tempfile.TemporaryDirectory() as folder:
        write_tokenizer(tokenizer, 512, Path(folder))  # The length changes no ids.
        return transformers.AutoTokenizer.from_pretrained(folder).backend_tokenizer


def make_encoders(fast):
    """Two functions from a batch to its ids, by the two methods of a Rust tokenizer."""

    def encode(batch):
        return [row.ids for row in fast.encode_batch(batch, add_special_tokens=False)]

    def encode_fast(batch):
        return [row.ids for row in fast.encode_batch_fast(batch, add_special_tokens=False)]

    return encode, encode_fast


def train_byte_pairs(texts, special_tokens):
    """(dict of piece -> id, list of merges), 8,000 pieces."""
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=8000,
        special_tokens=special_tokens,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [" ".join(merge) for merge in model["merges"]]


def train_sentence_pieces(texts, albert=False, xlnet=False):
    """bytes, a model of 8,000 pieces, with the special tokens of XLM-RoBERTa or another model."""
    output = io.BytesIO()
    ids = {"unk_id": 0, "bos_id": 1, "eos_id": 2}
    if albert:
        ids = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1}
        ids["control_symbols"] = ["[CLS]", "[SEP]", "[MASK]"]
    if xlnet:
        ids["control_symbols"] = ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"]
        ids["user_defined_symbols"] = ["<eop>"]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=output,
        vocab_size=8000,
        hard_vocab_limit=False,
        character_coverage=0.999,
        num_threads=1,
        minloglevel=2,
        **ids,
    )
    return output.getvalue()
