"""Reads checkpoints of the original google-research/bert."""

from keras_bert_suite.checkpoints import activation_names
from keras_bert_suite.checkpoints.config_fields import GOOGLE_FIELDS, read_fields
from keras_bert_suite.checkpoints.config_values import ConfigValues
from keras_bert_suite.checkpoints.model_types import BERT
from keras_bert_suite.checkpoints.name_tables import GOOGLE_TF1
from keras_bert_suite.checkpoints.tensor_bundle import TensorBundle
from keras_bert_suite.checkpoints.tokenizer_files import read_google_tokenizer
from keras_bert_suite.files.messages import list_names, shorten

#: A field of ours beside `hidden_act` "gelu". False means the exact function. The other readers of
#: the format, bert4keras and the converter of transformers, take "gelu" for the exact function, and
#: ignore unknown fields.
GELU_APPROXIMATE = "gelu_approximate"

#: Dials of models that are not BERT but use its files: ALBERT, and the BERTs of brightmart.
DIALS = (
    ("num_hidden_groups", ()),
    ("inner_group_num", ()),
    ("ln_type", ("postln",)),
    (GELU_APPROXIMATE, (False, True)),
)

#: The epsilon that is built into tf.contrib's layer_norm.
LAYER_NORM_EPSILON = 1e-12

# The entry that TensorFlow 2's `tf.train.Checkpoint` writes beside the tensors.
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


class GoogleCheckpoint:
    """A bert_config.json and a vocab.txt beside a TensorFlow 1 checkpoint.

    Args:
        prefix: `pathlib.Path` of the checkpoint's files, such as
            `uncased_L-12_H-768_A-12/bert_model.ckpt`.

    Attributes:
        path: `prefix`.
        model_type: `ModelType` of the model.
        name_table: `NameTable` of its tensors.
        backbone_config: dict of keyword arguments of `BertBackbone`.
        classifier_config: dict of keyword arguments of `TextClassifier` if there is the
            classification layer of run_classifier.py, else None.
        classifier_problem: str that says why there is no `classifier_config`, or None.
        token_classifier_config, multiple_choice_config: None, because the format has no head for
            tokens or choices.
        label_names: list of the class ids as str, or None. The names are not stored.
        sequence_length: None, because it is not stored.

    Raises:
        FileNotFoundError: if bert_config.json or a part of the checkpoint is missing.
        ValueError: if bert_config.json does not describe a BERT, or the files are damaged.
    """

    model_type = BERT
    name_table = GOOGLE_TF1
    sequence_length = None
    token_classifier_config = None
    multiple_choice_config = None

    def __init__(self, prefix):
        self.path = prefix
        self.backbone_config = _read_config(ConfigValues(_find_config(prefix)))
        self._tensors = TensorBundle(prefix)
        if _OBJECT_GRAPH in self._tensors.shapes():
            raise ValueError(
                f"{prefix} is a checkpoint of TensorFlow 2 objects, wanted a checkpoint of "
                "TensorFlow 1 variables. Convert it to the Hugging Face format with the library "
                "that wrote it."
            )
        self.classifier_config, self.classifier_problem = _read_classifier(
            self._tensors.shapes().get("output_weights")
        )
        self.label_names = (self.classifier_config or {}).get("label_names")

    @property
    def tokenizer_config(self):
        """dict of arguments of `WordPieceTokenizer`; see `read_google_tokenizer`."""
        return read_google_tokenizer(self.path.parent)

    @property
    def tokenizer_class(self):
        """str, the class of the tokenizer."""
        return self.model_type.tokenizer

    def tensor_shapes(self):
        """dict of tensor name -> shape, read from the index."""
        return self._tensors.shapes()

    def tensor(self, name):
        """The tensor called `name`, as a NumPy array in its stored dtype."""
        return self._tensors.tensor(name)


def _find_config(prefix):
    """The path of bert_config.json, or of the only file whose name begins with bert_config."""
    configs = sorted(prefix.parent.glob("bert_config*.json"))
    configs = [path for path in configs if path.name == "bert_config.json"] or configs
    if len(configs) == 1:
        return configs[0]
    if configs:
        raise ValueError(
            f"{prefix.parent} has {list_names(path.name for path in configs)}. Rename the file "
            f"that belongs to {prefix.name} to bert_config.json."
        )
    raise FileNotFoundError(
        f"{prefix.parent} has the checkpoint {prefix.name} but no bert_config.json. Copy "
        "bert_config.json and vocab.txt from the checkpoint that was fine-tuned."
    )


def _read_config(config):
    config.check_dials(DIALS)
    kwargs = read_fields(config, GOOGLE_FIELDS, activation_names.GOOGLE)
    kwargs["layer_norm_epsilon"] = LAYER_NORM_EPSILON
    if config.get("hidden_act") == "gelu" and config.get(GELU_APPROXIMATE) is False:
        kwargs["activation"] = "gelu_erf"
    # In bert4keras, embeddings and hidden states may differ in width.
    embedding_dim = config.size("embedding_size", kwargs["hidden_dim"])
    if embedding_dim != kwargs["hidden_dim"]:
        kwargs["embedding_dim"] = embedding_dim
    return kwargs


def _read_classifier(shape):
    """`(arguments, problem)` for a classification layer of this shape.

    They are as from `hugging_face_config.read_classifier`.
    """
    if shape is None:
        return None, "has no classification layer"
    if len(shape) != 2 or shape[0] < 2:
        return None, (
            f"has a classification layer of shape {shorten(shape)}, wanted two labels or more: "
            "one output is a regression"
        )
    return {"label_names": [str(i) for i in range(shape[0])]}, None
