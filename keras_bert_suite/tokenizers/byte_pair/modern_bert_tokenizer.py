"""ModernBERT's tokenizer: byte pairs with the special tokens of BERT."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.models import ModernBertBackbone
from keras_bert_suite.tokenizers.added_tokens import AddedToken, add_tokens
from keras_bert_suite.tokenizers.byte_pair.byte_pair_tokenizer import BytePairTokenizer
from keras_bert_suite.tokenizers.text_tokenizer import TextTokenizer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ModernBertTokenizer(BytePairTokenizer):
    """Text to ids by byte-level byte-pair encoding, as ModernBERT has it.

    Text is composed (NFC), runs of spaces are tokens, and the special tokens are BERT's. Ids equal
    transformers', but for special tokens in a text: "[MASK]" in a text is six characters, as
    everywhere in this package.

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
        from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

        vocabulary, ids = self._checked_vocabulary(), self._numbered.ids
        fast = Tokenizer(models.BPE(vocabulary.ids, list(vocabulary.merges)))
        if self.normalization:
            fast.normalizer = normalizers.NFC()
        fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=self.add_prefix_space)
        fast.decoder = decoders.ByteLevel()
        first, last = self.start_token, self.end_token
        fast.post_processor = processors.TemplateProcessing(
            single=f"{first} $A {last}",
            pair=f"{first} $A {last} $B {last}",
            special_tokens=[(token, ids[token]) for token in (first, last)],
        )
        # No text may hold these.
        control = [
            AddedToken(
                token, special=True, lstrip=token == self.mask_token and self.mask_takes_space
            )
            for token in self.special_tokens
        ]
        added = sorted([*control, *self.added_tokens], key=lambda token: ids[token.content])
        add_tokens(fast, added)
        return {"tokenizer.json": fast.to_str().encode()}
