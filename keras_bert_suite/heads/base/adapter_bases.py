"""Opens the base of an adapter: a checkpoint, or the encoder of another task."""

from typing import Any

import keras

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Config, Dtype, PathLike
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.heads.base import adapter_folder
from keras_bert_suite.heads.base.card_facts import describe_base
from keras_bert_suite.heads.base.keras_presets import take_preprocessor
from keras_bert_suite.models import BACKBONES


def open_base(
    base: Any, description: Config, dtype: Dtype | None, path: PathLike
) -> tuple[Any, Any, Any]:
    """(backbone, preprocessor, facts of the card) of a base: a checkpoint, a backbone or a task."""
    if not isinstance(base, keras.Model):
        preset = checkpoints.preset_name(base)
        checkpoint = checkpoints.open_checkpoint(preset)
        arguments = {} if dtype is None else {"dtype": dtype}
        packer = None
        if description["preprocessor"] is not None:
            packer = take_preprocessor({}, preset, checkpoint, None, None)
        kind = description["base"]["class"]
        if kind not in BACKBONES:
            raise ValueError(
                f"The adapter was trained on a backbone of the class {kind}, which is not of this "
                "package. Open it, and pass it as `base`."
            )
        settings = {**description["base"]["settings"], **arguments}
        with adapter_folder.building_from(path, "base.settings"):
            backbone = BACKBONES[kind].from_preset(base, **settings)
        if description["base"]["is_quantized"]:
            backbone.quantize("int8")
        card = describe_base(preset, checkpoint.path if checkpoint else preset)
        return backbone, packer, card
    if dtype is not None:
        raise ValueError(f"dtype={dtype!r} is for a checkpoint, got {with_article(base)}.")
    if hasattr(base, "backbone"):
        return base.backbone, base.preprocessor, dict(getattr(base, "card", {}))
    return base, None, {}
