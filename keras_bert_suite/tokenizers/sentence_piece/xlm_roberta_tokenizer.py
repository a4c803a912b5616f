"""XLM-RoBERTa's tokenizer."""

from typing import Any

import keras

from keras_bert_suite.models import RobertaBackbone
from keras_bert_suite.tokenizers.sentence_piece.sentence_piece_tokenizer import (
    SentencePieceTokenizer,
)
from keras_bert_suite.tokenizers.sentence_piece.sentence_piece_vocabulary import FairseqVocabulary


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class XLMRobertaTokenizer(SentencePieceTokenizer):
    """Text to ids as XLM-RoBERTa has it: a `SentencePieceTokenizer` with the ids of fairseq.

    <s> is 0, <pad> 1, </s> 2, <unk> 3. The other pieces have the number in their file plus 1, and
    <mask> is last. A pair of texts is `<s> A </s></s> B </s>`.

    ```python
    tokenizer = XLMRobertaTokenizer("sentencepiece.bpe.model")
    tokenizer.tokenize("Hello world")            # XLM-RoBERTa's: [35378, 8999]
    ```

    The oracle is the `sentencepiece` library, as in fairseq and in the Python tokenizer of
    transformers before version 5. The Rust tokenizer of transformers normalizes some rare
    characters in another way.

    Args: as for `SentencePieceTokenizer`.
    """

    backbone_cls: type[keras.Model] = RobertaBackbone
    default_tokens = ("<unk>", "<s>", "</s>", "<pad>", "<mask>")
    num_separators = 2
    has_segment_ids = False
    asset_names = ("sentencepiece.bpe.model",)
    _vocabulary_cls = FairseqVocabulary

    def hugging_face_config(self) -> dict[str, Any]:
        return {**super().hugging_face_config(), "tokenizer_class": "XLMRobertaTokenizer"}
