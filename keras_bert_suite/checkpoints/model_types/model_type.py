"""Describes a kind of model for the readers and writers of checkpoints."""

from collections.abc import Callable
from dataclasses import dataclass, field

from keras_bert_suite.checkpoints.model_types.config_fields import BERT_FIELDS
from keras_bert_suite.checkpoints.name_tables.bert import NameTable
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import read_hugging_face_tokenizer


@dataclass(frozen=True)
class KerasHubModel:
    """KerasHub's model of a kind.

    Args:
        backbone: str, the class of the encoder.
        names: `NameTable` of the tensors.
        tokenizer: str, our class that splits text as KerasHub's tokenizer does.
        built_in: dict of arguments of our backbone that are constants in KerasHub, and are not in
            its configuration.
        sizes: tuple of str, the sizes in its configuration that a BERT does not have.
    """

    backbone: str
    names: NameTable
    tokenizer: str
    built_in: dict
    sizes: tuple = ()

    @property
    def family(self):
        """str, what the names of KerasHub's classes of this kind begin with."""
        return self.backbone.removesuffix("Backbone")

    @property
    def classifier(self):
        """str, the class that classifies texts."""
        return f"{self.family}TextClassifier"


@dataclass(frozen=True)
class ModelType:
    """A kind of model. It holds names of classes, because `checkpoints` must not import classes.

    Args:
        name: str, the `model_type` of Hugging Face.
        title: str, the name of the kind in messages.
        backbone: str, the class of the encoder, a key of `models.BACKBONES`.
        tokenizer: str, the class of the tokenizer, a key of `tokenizers.TOKENIZERS`.
        read_tokenizer: function from the directory of a Hugging Face checkpoint to the arguments
            of the tokenizer.
        names: `NameTable` of Hugging Face's tensors.
        classes: str, what the names of the classes of transformers begin with, such as "Bert".
        classifier_names: the `NameTable` of a model that classifies texts. None is `names`.
        keras_hub: `KerasHubModel`, or None if KerasHub has no model that computes the same.
        position_offset: int, how many rows the position embedding has before the row of the first
            token.
        fields: tuple of `Field`, the fields of config.json that are arguments of the backbone.
        built_in: dict of arguments of the backbone that are constants in transformers, and are not
            in config.json.
        head_dropout: (the field of config.json for the dropout rate before a head, the rate if the
            field is absent). None is the rate of the encoder.
        head_dropouts: dict of the layer of a head -> its `head_dropout`, for heads that differ.
        head_checks: dict of the layer of a head -> function from `ConfigValues` to whether the head
            computes what ours does. If not, it is left out.
        read_more: function from `ConfigValues` to further arguments of the backbone, for fields
            that are no plain values.
        write_more: function from a backbone to the fields that `read_more` reads.
        copy_weights: function from a backbone and the dict of path -> weight that is written, to
            further such weights, for files that hold some weights twice.
        architecture: str, the class of transformers of all models of this kind. None: the class
            depends on the head.
        dials: configuration fields as in `dials.DIALS`, of this kind alone.
        file_tokenizers: tuple of (name of a file, class of a tokenizer, function as
            `read_tokenizer`). A Hugging Face checkpoint that has such a file has this tokenizer in
            place of `tokenizer`.
    """

    name: str
    title: str
    backbone: str
    names: NameTable
    classes: str
    tokenizer: str = "WordPieceTokenizer"
    read_tokenizer: Callable = read_hugging_face_tokenizer
    classifier_names: NameTable | None = None
    keras_hub: KerasHubModel | None = None
    position_offset: int = 0
    fields: tuple = BERT_FIELDS
    built_in: dict = field(default_factory=dict)
    head_dropout: tuple = ("classifier_dropout", None)
    head_dropouts: dict = field(default_factory=dict)
    dials: tuple = ()
    file_tokenizers: tuple = ()
    head_checks: dict = field(default_factory=dict)
    read_more: Callable = lambda config: {}
    write_more: Callable = lambda backbone: {}
    copy_weights: Callable = lambda backbone, weights: {}
    architecture: str | None = None

    @property
    def tokenizers(self):
        """tuple of str, the classes of tokenizers that checkpoints of this kind may have."""
        return (self.tokenizer, *(name for _, name, _ in self.file_tokenizers))

    def find_tokenizer(self, directory):
        """(class, function that reads it) of the tokenizer of a Hugging Face checkpoint."""
        for file, name, read in self.file_tokenizers:
            if (directory / file).is_file():
                return name, read
        return self.tokenizer, self.read_tokenizer

    def find_dropout(self, layer, encoder_dropout):
        """(field of config.json, default) of the dropout rate before the head of a layer."""
        name, default = self.head_dropouts.get(layer, self.head_dropout)
        return name, encoder_dropout if default is None else default

    def find_architecture(self, head):
        """The class of transformers for a model with a `HeadType`, or without a head."""
        return self.architecture or self.classes + (head.ending if head else "Model")
