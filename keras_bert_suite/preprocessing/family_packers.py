"""The packers that KerasHub makes for presets of backbones other than BERT's."""

import keras

from keras_bert_suite.models import ModernBertBackbone, RobertaBackbone
from keras_bert_suite.preprocessing.preset_files import (
    PREPROCESSOR_CONFIG_FILE,
    find_class,
    read_config,
)
from keras_bert_suite.preprocessing.segment_packer import SegmentPacker
from keras_bert_suite.tokenizers import BytePairTokenizer, ModernBertTokenizer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class RobertaSegmentPacker(SegmentPacker):
    """The `SegmentPacker` that KerasHub makes for a preset of a `RobertaBackbone`.

    KerasHub finds the preprocessor and the tokenizer of a backbone by these two attributes.
    """

    backbone_cls: type = RobertaBackbone
    tokenizer_cls: type = BytePairTokenizer

    @classmethod
    def _add_missing_kwargs(cls, loader, kwargs):
        # KerasHub would not read the settings of a `SegmentPacker`, because it is another class.
        saved = read_config(loader.preset, PREPROCESSOR_CONFIG_FILE)
        if saved is not None and issubclass(find_class(saved), SegmentPacker):
            names = (
                *("sequence_length", "truncation", "head_length", "padding_lengths"),
                "add_special_tokens",
            )
            config = saved["config"]  # An older file may lack a setting.
            kwargs = {**{name: config[name] for name in names if name in config}, **kwargs}
        return super()._add_missing_kwargs(loader, kwargs)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ModernBertSegmentPacker(RobertaSegmentPacker):
    """The `SegmentPacker` that KerasHub makes for a preset of a `ModernBertBackbone`."""

    backbone_cls = ModernBertBackbone
    tokenizer_cls = ModernBertTokenizer
