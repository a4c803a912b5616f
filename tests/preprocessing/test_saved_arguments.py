"""Every argument of every tokenizer, packer and masker is kept where its layer is saved.

The oracle is what the layer does: with another value than the default it does something else, and
so does its copy. The table is complete, or the first test fails.
"""

import inspect
import itertools
import json
import pickle

import keras
import keras_hub
import numpy as np
import pytest
from small_byte_pairs import MERGES, SPECIAL, make_vocabulary
from small_sentence_pieces import (
    PIECES,
    XLNET_DEFINED,
    XLNET_TOKENS,
    make_albert,
    make_xlm_roberta,
    make_xlnet,
)
from small_texts import VOCABULARY, make_reviews
from tables import short_for

from keras_bert_suite import (
    AlbertTokenizer,
    BidirectionalTargets,
    BytePairTokenizer,
    CharacterTokenizer,
    FrameMasker,
    FramePacker,
    LanguageModelMixture,
    MBartTokenizer,
    ModernBertBackbone,
    ModernBertTokenizer,
    NextTokenTargets,
    PermutationTargets,
    RobertaBackbone,
    SegmentPacker,
    SentencePieceTokenizer,
    TokenMasker,
    TokenShuffler,
    WordPieceTokenizer,
    XLMRobertaTokenizer,
    XLNetTokenizer,
)
from keras_bert_suite.preprocessing.family_packers import (
    ModernBertSegmentPacker,
    RobertaSegmentPacker,
)
from keras_bert_suite.tokenizers.characters.character_rows import CHARACTERS

ROOMS = tuple(f"keras_bert_suite.{room}" for room in ("tokenizers", "preprocessing", "masking"))
TEXTS = ["Café cafe good GOOD", " the  low film aaaa", "e\u0301 x龥 z lowd", "[SEP] <mask>"]
WORDS = [*VOCABULARY, "cafe", "café", "z", *"这部电影很好看"]
BERT_TOKENS = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]


@keras.saving.register_keras_serializable(package="test_saved_arguments")
def segment_film(text):
    return [part for part in text.replace("电影", "|电影|").split("|") if part]


def special(*pieces):
    """Other pieces in the place of the special tokens."""
    names = ("unknown_token", "start_token", "end_token", "pad_token", "mask_token")
    return dict(zip(names, pieces, strict=True))


def byte_pairs(special_tokens):
    return {"vocabulary": make_vocabulary(special=special_tokens), "merges": MERGES}


OF_BYTE_PAIRS = {
    "merges": [merge for merge in MERGES if merge not in ("a a", "aa a")],
    "add_prefix_space": True,
    "added_tokens": ["lo", "low"],
    "mask_takes_space": False,
    **special(*"zqdfb"),
}
OF_PIECES = {"added_tokens": ["film"], **special(*"zdfib")}
TOKENIZER = WordPieceTokenizer(WORDS)
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
LETTERS = WordPieceTokenizer([*BERT_TOKENS, *ALPHABET, *(f"##{letter}" for letter in ALPHABET)])

#: class -> (the arguments that it needs, other values than the defaults). Where a value shows only
#: beside others, it is the dict of all of them, and the default is compared beside them too.
TABLE = {
    CharacterTokenizer: (
        {},
        {"max_characters": 7, "split_punctuation": False, **special(*CHARACTERS[70:75])},
    ),
    WordPieceTokenizer: (
        {"vocabulary": WORDS},
        {
            "vocabulary": [*WORDS, "x"],
            "lowercase": False,
            "strip_accents": False,
            "max_word_length": 3,
            "added_tokens": ["film", {"content": "lowd", "single_word": True}],
            **special("z", "the", "a", "film", "it"),
        },
    ),
    BytePairTokenizer: (
        byte_pairs(SPECIAL),
        {
            "vocabulary": make_vocabulary(special=["more", *SPECIAL]),
            "normalization": "NFC",
            **OF_BYTE_PAIRS,
        },
    ),
    ModernBertTokenizer: (
        byte_pairs(BERT_TOKENS),
        {
            "vocabulary": make_vocabulary(special=["more", *BERT_TOKENS]),
            "normalization": None,
            **OF_BYTE_PAIRS,
        },
    ),
    SentencePieceTokenizer: (
        {"vocabulary": make_albert()},
        {"vocabulary": make_albert(pieces=PIECES[::-1]), **OF_PIECES},
    ),
    AlbertTokenizer: (
        {"vocabulary": make_albert()},
        {
            "vocabulary": make_albert(pieces=PIECES[::-1]),
            "lowercase": False,
            "strip_accents": False,
            **OF_PIECES,
        },
    ),
    XLNetTokenizer: (
        {"vocabulary": make_xlnet()},
        {
            "vocabulary": make_albert(XLNET_TOKENS, PIECES[::-1], defined=XLNET_DEFINED),
            "lowercase": True,
            "strip_accents": False,
            **OF_PIECES,
        },
    ),
    MBartTokenizer: (
        {"vocabulary": make_xlm_roberta()},
        {
            "vocabulary": make_albert(["<unk>", "<s>", "</s>"], PIECES[::-1]),
            "source_language": "de_DE",
            "target_language": "fr_XX",
            "num_languages": 50,
            **{name: value for name, value in OF_PIECES.items() if name != "start_token"},
        },
    ),
    XLMRobertaTokenizer: (
        {"vocabulary": make_xlm_roberta()},
        {"vocabulary": make_albert(["<unk>", "<s>", "</s>"], PIECES[::-1]), **OF_PIECES},
    ),
    **{
        cls: (
            {"tokenizer": tokenizer},
            {
                "tokenizer": other,
                "sequence_length": 7,
                "truncation": {"sequence_length": 7, "truncation": "tail"},
                "head_length": {
                    "sequence_length": 7,
                    "truncation": "head_tail",
                    "head_length": 3,
                },
                "padding_lengths": (72, 80),
                **({"segment_ids": (1, 0)} if tokenizer.has_segment_ids else {}),
                "add_special_tokens": False,
            },
        )
        for cls, tokenizer, other in (
            (SegmentPacker, TOKENIZER, WordPieceTokenizer(WORDS, lowercase=False)),
            (
                RobertaSegmentPacker,
                BytePairTokenizer(**byte_pairs(SPECIAL)),
                BytePairTokenizer(**byte_pairs(SPECIAL), add_prefix_space=True),
            ),
            (
                ModernBertSegmentPacker,
                ModernBertTokenizer(**byte_pairs(BERT_TOKENS)),
                ModernBertTokenizer(**byte_pairs(BERT_TOKENS), normalization=None),
            ),
        )
    },
    TokenMasker: (
        {"tokenizer": TOKENIZER},
        {
            "tokenizer": WordPieceTokenizer(WORDS, mask_token="z"),
            "rate": 0.4,
            "unit": "ngram",
            "mask_token_rate": 0.3,
            "random_token_rate": 0.2,
            "max_predictions": 2,
            "random_tokens": {"random_tokens": "vocabulary", "random_token_rate": 0.2},
            "word_segmenter": {"unit": "word", "word_segmenter": segment_film},
            "span_probability": {"unit": "span", "rate": 0.4, "span_probability": 0.9},
            "max_span_length": {"unit": "span", "rate": 0.4, "max_span_length": 1},
            "ngram_shares": {"unit": "ngram", "rate": 0.4, "ngram_shares": (0.1, 0.9)},
            "dynamic": False,
            "seed": 3,
            "phrases": {"unit": "word", "phrases": ["the film", "film was"]},
            "unit_weights": {"good": 9.0, "film": 9.0, "the": 0.1},
            "similar_words": {"unit": "word", "similar_words": {"good": "bad", "film": "plot"}},
        },
    ),
    NextTokenTargets: (
        {"tokenizer": TOKENIZER},
        {"tokenizer": WordPieceTokenizer(WORDS, lowercase=False), "dynamic": False},
    ),
    BidirectionalTargets: (
        {"tokenizer": TOKENIZER},
        {
            "tokenizer": WordPieceTokenizer(WORDS, lowercase=False),
            "max_characters": 5,
            "dynamic": False,
        },
    ),
    PermutationTargets: (
        {"tokenizer": TOKENIZER},
        {
            "tokenizer": WordPieceTokenizer(WORDS, lowercase=False),
            "rate": 0.5,
            "span_unit": {"span_unit": "word", "tokenizer": LETTERS},
            "max_gram": 2,
            "alpha": 3,
            "beta": 2,
            "reuse_length": 2,
            "perm_size": 3,
            "backward": True,
            "max_predictions": 2,
            "dynamic": False,
            "seed": 5,
        },
    ),
    LanguageModelMixture: (
        {"masker": TokenMasker(TOKENIZER)},
        {
            "masker": TokenMasker(TOKENIZER, seed=3),
            "shares": {"seq2seq": 0.9, "bidirectional": 0.1},
        },
    ),
    FramePacker: (
        {"frame_dim": 2, "sequence_length": 6},
        {"frame_dim": 3, "sequence_length": 5, "padding_lengths": (4,), "tokenizer": TOKENIZER},
    ),
    FrameMasker: (
        {},
        {
            "rate": 0.5,
            "span_length": 2,
            "zero_rate": 0.2,
            "random_frame_rate": 0.2,
            "seed": 3,
            "dynamic": False,
        },
    ),
    TokenShuffler: (
        {"masker": TokenMasker(TOKENIZER)},
        {"masker": TokenMasker(TOKENIZER, seed=3), "rate": 0.5, "group_length": 2},
    ),
}
#: Ids are int32, and names are Keras' own.
FIXED = {"dtype", "name", "self", "kwargs"}
CASES = [(cls, name) for cls, (_, others) in TABLE.items() for name in others]
#: To make the tables of their rules for letters takes seconds.
SLOW = [
    (AlbertTokenizer, "lowercase"),
    *((XLNetTokenizer, name) for name in ("vocabulary", "lowercase", "strip_accents")),
]
every_argument = pytest.mark.parametrize(
    ("cls", "name"),
    short_for(CASES, *(row for row in CASES if row not in SLOW), part="combinations"),
)


def test_the_table_has_every_class_and_argument():
    registered = {
        cls
        for cls in keras.saving.get_custom_objects().values()
        if getattr(cls, "__module__", "").startswith(ROOMS)
    }
    assert set(TABLE) == registered
    for cls, (base, others) in TABLE.items():
        # Byte pairs have no segments.
        has_segments = getattr(base.get("tokenizer"), "has_segment_ids", True)
        idle = FIXED if has_segments else {*FIXED, "segment_ids"}
        if cls is CharacterTokenizer:
            idle = {*FIXED, "added_tokens"}  # They are refused.
        if cls is MBartTokenizer:
            idle = {*FIXED, "start_token"}  # It is the language of the source.
        assert set(others) == list_arguments(cls) - idle, cls


def list_arguments(cls):
    """The names of the arguments of a class, with those that it hands to its bases of ours."""
    names = set()
    for base in cls.__mro__:
        if base.__module__.startswith(ROOMS) and "__init__" in vars(base):
            parameters = inspect.signature(base.__init__).parameters
            names |= set(parameters)
            if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
                break
    return names


def make(cls, name):
    """(the layer with another value of an argument, the layer without it)."""
    base, others = TABLE[cls]
    value = others[name]
    extra = value if isinstance(value, dict) and name in value else {name: value}
    return cls(**{**base, **extra}), cls(
        **{**base, **{k: v for k, v in extra.items() if k != name}}
    )


def make_frames(number, width):
    return np.random.default_rng(number).standard_normal((number, width))


def observe_frames(packer):
    """Of which lengths and widths rows are refused, and the shapes of batches."""
    found = [list(packer.allowed_lengths() or [])]
    if packer.tokenizer is not None:
        found.append(packer.tokenizer.get_vocabulary())
    for number, width in itertools.product((3, 5, 6), (2, 3)):
        try:
            found.append(list(packer([make_frames(number, width)])["frames"].shape))
        except ValueError as error:
            found.append(str(error)[:40])
    return found


def observe(layer):
    """What a layer does, in plain types."""
    if isinstance(layer, keras_hub.tokenizers.Tokenizer):
        rows = layer.tokenize(TEXTS)
        parts = layer.split_at_masks(f"a {layer.mask_token} b")
        templates = layer.row_template, layer.target_template
        return [layer.get_vocabulary(), rows, *templates, layer.special_token_ids, parts]
    if isinstance(layer, FramePacker):
        return observe_frames(layer)
    if isinstance(layer, FrameMasker):
        batch = FramePacker(2, 40)([make_frames(n, 2) for n in range(10, 40)])
        results = [layer(batch, np.arange(30), epoch=epoch) for epoch in (0, 1)]
        arrays = [{name: array.tolist() for name, array in r.items()} for r in results]
        return [*arrays, layer.dynamic]
    if isinstance(layer, SegmentPacker):
        texts = [*TEXTS, "a film that was good and not so bad"], [*TEXTS[::-1], "the film"]
        return {name: array.tolist() for name, array in layer.pack(*texts).items()}
    texts = make_reviews(24)[0]
    texts = [f"GOOD {text} 这部电影很好看" for text in texts]
    batch = SegmentPacker(layer.tokenizer, 48).pack(texts, texts[::-1])
    results = [layer(batch, np.arange(24), epoch=epoch) for epoch in (0, 1)]
    arrays = [{name: array.tolist() for name, array in result.items()} for result in results]
    # `PretrainingBatches` asks for it.
    return [*arrays, layer.dynamic]


def load_vocabulary(twin, layer, folder):
    """Keras keeps the files of a tokenizer among the assets of a model."""
    source = getattr(layer, "tokenizer", layer)
    if isinstance(layer, FrameMasker) or source is None:
        return
    source.save_assets(folder)
    getattr(twin, "tokenizer", twin).load_assets(folder)


@every_argument
def test_saved_and_sent(cls, name, tmp_path):
    layer, default = make(cls, name)
    wanted = observe(layer)
    assert wanted != observe(default)
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    twin = keras.saving.deserialize_keras_object(config)
    load_vocabulary(twin, layer, tmp_path)
    assert observe(twin) == wanted
    if not issubclass(cls, SegmentPacker | FramePacker):
        assert observe(pickle.loads(pickle.dumps(layer))) == wanted


@every_argument
def test_a_new_value_is_refused_or_holds(cls, name):
    """Packers read their arguments at each call. Others have read them when they were made."""
    layer, default = make(cls, name)
    before = observe(default)
    value = TABLE[cls][1][name]
    value = value[name] if isinstance(value, dict) and name in value else value
    if issubclass(cls, SegmentPacker | FramePacker):
        setattr(default, name, value)
        assert observe(default) == observe(layer)
        return
    with pytest.raises(AttributeError, match=f"^{name}=.* has built this {cls.__name__}"):
        setattr(default, name, value)
    assert observe(default) == before


SIZES = {"num_layers": 1, "num_heads": 1, "hidden_dim": 4, "intermediate_dim": 4}


@pytest.mark.parametrize("name", TABLE[RobertaSegmentPacker][1])
@pytest.mark.parametrize("backbone_cls", [RobertaBackbone, ModernBertBackbone])
def test_packers_in_presets(backbone_cls, name, tmp_path):
    """KerasHub looks for the preprocessor of a backbone; ours was saved as a `SegmentPacker`."""
    cls = RobertaSegmentPacker if backbone_cls is RobertaBackbone else ModernBertSegmentPacker
    special_packer, _ = make(cls, name)
    packer = SegmentPacker.from_config(
        {**special_packer.get_config(), "tokenizer": special_packer.tokenizer}
    )
    backbone_cls(packer.tokenizer.vocabulary_size(), **SIZES).save_to_preset(str(tmp_path))
    packer.save_to_preset(str(tmp_path))
    for opener in (SegmentPacker, keras_hub.models.TextClassifierPreprocessor, cls):
        assert observe(opener.from_preset(str(tmp_path))) == observe(packer)
