"""ELMo, in the files of its original code."""

from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.name_table import NameTable, same


def in_one_row(tensor):
    """The transform of filters (1, W, D, N), which the code applies to images of one row."""
    return tensor[0] if tensor.ndim == 4 else tensor[None]


_CHARACTERS = "character_embeddings"

NAMES = NameTable(
    rows=(
        (f"{_CHARACTERS}/character_embedding/embeddings", "char_embed", same),
        (f"{_CHARACTERS}/convolution_{{i}}/kernel", "CNN/W_cnn_{i}", in_one_row),
        (f"{_CHARACTERS}/convolution_{{i}}/bias", "CNN/b_cnn_{i}", same),
        *(
            row
            for gate in ("carry", "transform")
            for row in (
                (f"{_CHARACTERS}/highway_{{i}}_{gate}/kernel", f"CNN_high_{{i}}/W_{gate}", same),
                (f"{_CHARACTERS}/highway_{{i}}_{gate}/bias", f"CNN_high_{{i}}/b_{gate}", same),
            )
        ),
        (f"{_CHARACTERS}/projection/kernel", "CNN_proj/W_proj", same),
        (f"{_CHARACTERS}/projection/bias", "CNN_proj/b_proj", same),
        *(
            (f"{ours}_lstm_{{i}}/cell/{name}", f"{theirs}/Cell{{i}}/LSTMCell/{end}", same)
            for ours, theirs in (
                ("forward", "RNN_0/RNN/MultiRNNCell"),
                ("backward", "RNN_1/RNN/MultiRNNCell"),
            )
            for name, end in (("kernel", "W_0"), ("bias", "B"), ("projection", "W_P_0"))
        ),
    ),
)

#: `MODEL_TYPES` has the kinds of transformers, which has no ELMo.
ELMO = ModelType(
    name="elmo",
    title="ELMo",
    backbone="ElmoBackbone",
    tokenizer="CharacterTokenizer",
    names=NAMES,
    classes="Elmo",
    fields=(),
)
