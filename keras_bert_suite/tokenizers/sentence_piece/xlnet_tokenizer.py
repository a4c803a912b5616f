"""XLNet's tokenizer."""

from typing import Any

import keras

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.models import XLNetBackbone
from keras_bert_suite.tokenizers.sentence_piece.albert_tokenizer import AlbertTokenizer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class XLNetTokenizer(AlbertTokenizer):
    """Text to ids as XLNet has it: an `AlbertTokenizer` with other special tokens and rows.

    Rows are `A <sep> B <sep> <cls>` with padding on the left. The texts are in the segments 0 and
    1, and `<cls>` is in segment 2. The rules for text are those of `AlbertTokenizer`. By default
    letters are not lowered, as in the released models.

    `<eop>`, the end of a paragraph, is a piece of the released models that a text may hold. The
    control pieces, such as `<eod>`, the end of a document, are not found in a text.

    ```python
    tokenizer = XLNetTokenizer("spiece.model")
    tokenizer.tokenize("Hello world")
    ```

    The oracle is `prepro_utils.py` of zihangdai/xlnet with the library `sentencepiece`.
    transformers has a Rust tokenizer alone, with the differences of its tokenizer of ALBERT. It
    pads with segment 3, here padding has segment 0. Padding is masked, so no output depends on it.

    Args:
        vocabulary: path of a `spiece.model`, or its bytes. None leaves the tokenizer empty until
            `set_vocabulary` or `load_assets`.
        lowercase: bool, as the checkpoint was trained. The released models were trained without.
        strip_accents: bool, as the checkpoint was trained. The released models were trained with.
        **kwargs: other arguments of `AlbertTokenizer`.

    Source: Yang et al., 2019 (https://arxiv.org/abs/1906.08237), and zihangdai/xlnet.
    """

    backbone_cls = XLNetBackbone
    default_tokens = ("<unk>", "<cls>", "<sep>", "<pad>", "<mask>")
    summary_place = "last"
    summary_segment = 2
    padding_side = "left"

    def __init__(
        self,
        vocabulary: PathLike | bytes | None = None,
        lowercase: bool = False,
        strip_accents: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocabulary, lowercase, strip_accents, **kwargs)

    def hugging_face_config(self) -> dict[str, Any]:
        return {
            **super().hugging_face_config(),
            "bos_token": "<s>",
            "eos_token": "</s>",
            "padding_side": self.padding_side,
            # Else version 5 of transformers leaves the segments out.
            "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
            "tokenizer_class": "XLNetTokenizer",
        }
