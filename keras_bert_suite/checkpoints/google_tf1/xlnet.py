"""XLNet in the format of zihangdai/xlnet, which is read, and not written."""

from keras_bert_suite.checkpoints.google_tf1.released_models import (
    GOOGLE,
    OPTIMIZER_STATES,
    GoogleModel,
)
from keras_bert_suite.checkpoints.model_types.config_fields import Field
from keras_bert_suite.checkpoints.model_types.name_table import NameTable, same
from keras_bert_suite.checkpoints.model_types.xlnet import (
    BIASES,
    FIELDS,
    XLNET,
    as_vector,
    make_rows,
    read_xlnet,
)
from keras_bert_suite.checkpoints.tokenizer_files.sentence_piece import read_google_xlnet

_SCOPE = "model/transformer/"
#: The variables that are stacked over the layers, and how many axes they have in one layer.
_STACKED = {_SCOPE + name: 2 for _, name in BIASES} | {_SCOPE + "seg_embed": 3}


class StackedLayers:
    """The tensors of a file, with a tensor for each layer where the file has one for all.

    Layers that share a tensor have it under the name of the first.
    """

    def __init__(self, tensors):
        self._tensors = tensors
        self._places, self.shapes = {}, {}
        for name, shape in tensors.shapes.items():
            axes = _STACKED.get(name)
            if axes is None:
                self.shapes[name] = shape
                continue
            for i in range(shape[0] if len(shape) > axes else 1):
                own = name.replace(_SCOPE, f"{_SCOPE}layer_{i}/")
                self._places[own] = name, i if len(shape) > axes else None
                self.shapes[own] = shape[len(shape) - axes :]

    def tensor(self, name):
        """The tensor called `name`."""
        stacked, layer = self._places.get(name, (name, None))
        value = self._tensors.tensor(stacked)
        return value if layer is None else value[layer]


def _read_more(config):
    """`read_xlnet`, and whether the layers share their biases."""
    return {**read_xlnet(config), "share_biases": not config.read("flag", "untie_r", False)}


XLNET_TF1 = GoogleModel(
    kind=XLNET,
    config="xlnet_config",
    checkpoint="xlnet_model.ckpt",
    fields=(
        Field("vocabulary_size", "n_token", "size"),
        *(f for f in FIELDS if f.argument not in ("vocabulary_size", "layer_norm_epsilon")),
    ),
    names=NameTable(
        rows=(
            *GOOGLE.rows(
                ("embeddings/token_embedding", f"{_SCOPE}word_embedding/lookup_table"),
                # The spelling of the original code.
                ("pooler", "model/sequnece_summary/summary"),
                ("classifier", "model/logits_proj"),
            ),
            ("embeddings/mask_embedding", f"{_SCOPE}mask_emb/mask_emb", as_vector),
            *make_rows(
                GOOGLE,
                _SCOPE + "layer_{i}/",
                "rel_attn/{}/kernel",
                ("rel_attn/LayerNorm", "ff/layer_1", "ff/layer_2", "ff/LayerNorm"),
                "{}",
            ),
            ("masked_lm/bias", "model/lm_loss/bias", same),
        ),
        # The name of the task is part of the name of its head.
        aliases=((r"^model/(classification|regression)_[^/]+/logit/", "model/logits_proj/"),),
        ignored=OPTIMIZER_STATES,
        # The search for answers of run_squad.py.
        others=(r"model/(start_logits|end_logits|answer_class)/.*",),
    ),
    dials=(),
    read_tokenizer=read_google_xlnet,
    open_tensors=StackedLayers,
    read_more=_read_more,
)
