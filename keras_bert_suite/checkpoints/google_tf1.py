"""Checkpoints of the original google-research/bert."""

from keras_bert_suite.checkpoints.config_values import ConfigValues, read_backbone_config
from keras_bert_suite.checkpoints.name_tables import GOOGLE_TF1
from keras_bert_suite.checkpoints.tensor_bundle import TensorBundle
from keras_bert_suite.checkpoints.tokenizer_files import read_google_tokenizer

#: `hidden_act` -> our name. Their "gelu" is the tanh approximation.
ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "tanh": "tanh"}

#: That of tf.contrib's layer_norm, built in.
LAYER_NORM_EPSILON = 1e-12

# What TensorFlow 2's `tf.train.Checkpoint` writes beside the tensors.
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


class GoogleCheckpoint:
    """A bert_config.json and a vocab.txt beside a TensorFlow 1 checkpoint.

    Args:
        prefix: `pathlib.Path` of the checkpoint's files, such as
            `uncased_L-12_H-768_A-12/bert_model.ckpt`.

    Attributes:
        path: the prefix.
        name_table: `NameTable` of its tensors.
        backbone_config: dict of keyword arguments of `BertBackbone`.
        label_names: None, for it stores none.
        sequence_length: None, for it stores none.

    Raises:
        FileNotFoundError: if bert_config.json or a part of the checkpoint is missing.
        ValueError: if bert_config.json is not that of a BERT, or the files are damaged.
    """

    name_table = GOOGLE_TF1
    label_names = None
    sequence_length = None

    def __init__(self, prefix):
        self.path = prefix
        config_path = prefix.parent / "bert_config.json"
        if not config_path.is_file():
            raise FileNotFoundError(
                f"{prefix.parent} has the checkpoint {prefix.name} but no bert_config.json. Copy "
                "bert_config.json and vocab.txt from the checkpoint it was fine-tuned from."
            )
        self.backbone_config = read_backbone_config(
            ConfigValues(config_path), ACTIVATIONS, LAYER_NORM_EPSILON
        )
        self._tensors = TensorBundle(prefix)
        if _OBJECT_GRAPH in self._tensors.shapes():
            raise ValueError(
                f"{prefix} is a checkpoint of TensorFlow 2 objects, wanted one of TensorFlow 1 "
                "variables. Convert it to the Hugging Face format with the library that wrote it."
            )

    @property
    def tokenizer_config(self):
        """dict of arguments of `WordPieceTokenizer`; see `read_google_tokenizer`."""
        return read_google_tokenizer(self.path.parent)

    def tensor_shapes(self):
        """dict of tensor name -> shape, read from the index."""
        return self._tensors.shapes()

    def tensor(self, name):
        """The tensor called `name`, as NumPy array in its stored dtype."""
        return self._tensors.tensor(name)
