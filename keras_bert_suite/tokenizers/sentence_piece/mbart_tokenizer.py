"""mBART's tokenizer."""

import dataclasses
from typing import Any

import keras

from keras_bert_suite.annotations import Config, PathLike
from keras_bert_suite.argument_checks import check_choice
from keras_bert_suite.models import BartBackbone
from keras_bert_suite.tokenizers.row_template import RowTemplate
from keras_bert_suite.tokenizers.sentence_piece.sentence_piece_vocabulary import (
    MBART_VOCABULARIES,
)
from keras_bert_suite.tokenizers.sentence_piece.xlm_roberta_tokenizer import XLMRobertaTokenizer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MBartTokenizer(XLMRobertaTokenizer):
    """Text to ids as mBART has it: an `XLMRobertaTokenizer` with a token for each language.

    Rows say in which language they are. With 25 languages (mBART) a row is `A </s> en_XX`, and the
    decoder begins with the last token: it reads `ro_RO B </s>` and writes `B </s> ro_RO`. With 50
    (mBART-50) a row is `en_XX A </s>`, as that of a BART with the code in the place of `<s>`. Two
    texts of a row stand side by side, without a separator.

    ```python
    tokenizer = MBartTokenizer.from_preset(
        "path/to/mbart", source_language="en_XX", target_language="ro_RO"
    )
    packer = SegmentPacker(tokenizer, sequence_length=128)
    translator = Seq2Seq.from_preset("path/to/mbart", preprocessor=packer)
    translator.fit(english, romanian)
    ```

    The codes have the ids behind the pieces, and <mask> is last. A text cannot hold a code: in
    transformers the word "en_XX" of a text becomes the code. The oracle is the `sentencepiece`
    library, as in version 4 of transformers. In version 5 `MBart50Tokenizer` makes a piece of a
    space at the end of a text.

    Args:
        vocabulary: path of a `sentencepiece.bpe.model`, or its bytes. None leaves the tokenizer
            empty until `set_vocabulary` or `load_assets`.
        source_language: str, the code of the language of texts, such as "en_XX".
        target_language: str, that of the targets of a `Seq2Seq`. None for the source's.
        num_languages: int, 25 for mBART, 50 for mBART-50, which has 52 codes.
        **kwargs: other arguments of `SentencePieceTokenizer`, without `start_token`.

    Raises:
        ValueError: if a language is none of the codes, or `num_languages` is another number.

    Source: Liu et al., 2020 (https://arxiv.org/abs/2001.08210), Tang et al., 2020, mBART-50
    (https://arxiv.org/abs/2008.00401), and `tokenization_mbart.py` and `tokenization_mbart50.py` of
    transformers.
    """

    backbone_cls = BartBackbone
    num_separators = 0
    rules = ("source_language", "target_language", "num_languages")

    def __init__(
        self,
        vocabulary: PathLike | bytes | None = None,
        source_language: str = "en_XX",
        target_language: str | None = None,
        num_languages: int = 25,
        **kwargs: Any,
    ) -> None:
        if num_languages not in MBART_VOCABULARIES:
            raise ValueError(
                f"num_languages must be 25, as in mBART, or 50, as in mBART-50, got "
                f"{num_languages!r}."
            )
        languages = MBART_VOCABULARIES[num_languages].languages
        check_choice("source_language", source_language, languages)
        if target_language is not None:
            check_choice("target_language", target_language, languages)
        if kwargs.get("start_token", source_language) != source_language:
            raise ValueError(
                f"The token at the edge of a row is the code of the language, got start_token="
                f"{kwargs['start_token']!r}. Pass source_language."
            )
        super().__init__(None, **{**kwargs, "start_token": source_language})
        self.source_language = source_language
        self.target_language = target_language
        self.num_languages = num_languages
        self.summary_place = "last" if num_languages == 25 else "first"
        self.set_vocabulary(vocabulary)

    def set_vocabulary(self, vocabulary: PathLike | bytes | None) -> None:
        if vocabulary is not None:
            self._vocabulary_cls = MBART_VOCABULARIES[self.num_languages]
        super().set_vocabulary(vocabulary)

    @property
    def special_tokens(self) -> list[str]:
        """As for the other tokenizers, with `<s>` and the codes of all languages."""
        codes = MBART_VOCABULARIES[self.num_languages].languages
        return list(dict.fromkeys([*super().special_tokens, "<s>", *codes]))

    @property
    def target_template(self) -> RowTemplate:
        """`RowTemplate` of a target, with the code of its language."""
        language = self.target_language or self.source_language
        return dataclasses.replace(self.row_template, start_token_id=self.token_to_id(language))

    def hugging_face_config(self) -> Config:
        return {
            **super().hugging_face_config(),
            **{"bos_token": "<s>", "cls_token": "<s>"},
            "src_lang": self.source_language,
            "tgt_lang": self.target_language,
            "tokenizer_class": f"MBart{50 if self.num_languages == 50 else ''}Tokenizer",
        }

    def get_config(self) -> Config:
        config = super().get_config()
        del config["start_token"]  # It is the language of the source.
        return config
