"""ModernBERT's tokenizer: byte pairs with the special tokens of BERT."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.models import ModernBertBackbone
from keras_bert_suite.tokenizers.added_tokens import AddedToken
from keras_bert_suite.tokenizers.byte_pair.byte_pair_tokenizer import BytePairTokenizer
from keras_bert_suite.tokenizers.text_tokenizer import TextTokenizer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ModernBertTokenizer(BytePairTokenizer):
    """Text to ids by byte-level byte-pair encoding, as ModernBERT has it.

    Text is composed (NFC), runs of spaces are tokens, and the special tokens are those of BERT.
    Ids are those of transformers, but for special tokens in a text: "[MASK]" in a text is six
    characters, as everywhere in this package.

    Args:
        vocabulary, merges: as for `BytePairTokenizer`.
        add_prefix_space: as for `BytePairTokenizer`.
        normalization: "NFC", or None.
        added_tokens: as for `BytePairTokenizer`.
        unknown_token, start_token, end_token, pad_token, mask_token: as for `BytePairTokenizer`.
        dtype: "int32", as every Keras layer has one.

    Source: Warner et al., 2024 (https://arxiv.org/abs/2412.13663), section 2.1.
    """

    backbone_cls = ModernBertBackbone
    default_tokens = TextTokenizer.default_tokens
    num_separators = 1

    def __init__(
        self,
        vocabulary: PathLike | Mapping[str, int] | None = None,
        merges: PathLike | Sequence[str] | None = None,
        add_prefix_space: bool = False,
        normalization: str | None = "NFC",
        added_tokens: Sequence[str | dict[str, Any]] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(
            vocabulary, merges, add_prefix_space, normalization, added_tokens, **kwargs
        )

    def hugging_face_config(self) -> dict[str, Any]:
        return {
            "clean_up_tokenization_spaces": False,
            "model_input_names": ["input_ids", "attention_mask"],
            "tokenizer_class": "PreTrainedTokenizerFast",
        }

    def hugging_face_files(self) -> dict[str, bytes]:
        """dict of one file, tokenizer.json. transformers reads this tokenizer from no other."""
        return {"tokenizer.json": json.dumps(self._describe(), ensure_ascii=False).encode()}

    def _describe(self):
        """dict of a tokenizer.json."""
        vocabulary = self._checked_vocabulary()
        ids = self._numbered.ids
        # No text may hold these.
        control = [
            AddedToken(
                token, special=True, lstrip=token == self.mask_token and self.mask_takes_space
            )
            for token in self.special_tokens
            if token in ids
        ]
        added = sorted([*control, *self.added_tokens], key=lambda token: ids[token.content])
        byte_level = {
            "type": "ByteLevel",
            "add_prefix_space": self.add_prefix_space,
            "trim_offsets": True,
            "use_regex": True,
        }
        start, end = (
            {"SpecialToken": {"id": token, "type_id": 0}}
            for token in (self.start_token, self.end_token)
        )
        first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [{"id": ids[token.content], **token.flags()} for token in added],
            "normalizer": self.normalization and {"type": self.normalization},
            "pre_tokenizer": byte_level,
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [start, first, end],
                "pair": [start, first, end, second, end],
                "special_tokens": {
                    token: {"id": token, "ids": [ids[token]], "tokens": [token]}
                    for token in (self.start_token, self.end_token)
                },
            },
            "decoder": byte_level,
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": False,
                "vocab": {token: id for id, token in enumerate(vocabulary.tokens)},
                "merges": [list(merge) for merge in vocabulary.merges],
            },
        }
