"""Describes a kind of model for the readers and writers of checkpoints."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from keras_bert_suite.checkpoints.model_types.config_fields import BERT_FIELDS
from keras_bert_suite.checkpoints.model_types.name_table import NameTable, of_two_layers
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import read_hugging_face_tokenizer


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
        fit_names: function from `names` and the number of heads of a model to its `NameTable`, for
            files whose kernels keep the heads apart.
        classes: str, the prefix of transformers' classes, such as "Bert".
        endings: dict of the layer of a head -> the end of the name of its class in transformers,
            where this is not that of its `HeadType`.
        two_layer_classifier: str, the name of the head of its class for texts if that has two
            layers, of which the first is our pooler. None for another head.
        position_offset: int, how many rows the position embedding has before the row of the first
            token.
        any_padding: bool, whether padding may have any id, although there are such rows.
        starts_with_end: bool, whether its decoder begins with the token that ends a row.
        fields: tuple of `Field`, the fields of config.json that are arguments of the backbone.
        built_in: dict of arguments of the backbone that are constants in transformers, and are not
            in config.json.
        head_dropout: (the field of config.json for the dropout rate before a head, the rate if the
            field is absent). None is the rate of the encoder.
        head_dropouts: dict of the layer of a head -> its `head_dropout`, for heads that differ.
        read_more: function from `ConfigValues` to further arguments of the backbone, for fields
            that are no plain values.
        write_more: function from a backbone to the fields that `read_more` reads.
        copy_weights: function from a backbone and the dict of path -> weight that is written, to
            further such weights, for files that hold some weights twice.
        causal_class: str, the class of transformers, after the prefix, of its models that read from
            left to right, such as "ForCausalLM". None if there are none.
        causal_fields: dict of the fields of config.json that such models have.
        architecture: str, the class of transformers of all models of this kind. None: the class
            depends on the head.
        dials: as `config_fields.DIALS`, of this kind alone.
        file_tokenizers: tuple of (name of a file, class of a tokenizer, function as
            `read_tokenizer`). A Hugging Face checkpoint that has such a file has this tokenizer
            instead of `tokenizer`.
        fits: function from a backbone to whether it is written as this kind, where two kinds have
            one class of backbone.
    """

    name: str
    title: str
    backbone: str
    names: NameTable
    classes: str
    tokenizer: str = "WordPieceTokenizer"
    read_tokenizer: Callable = read_hugging_face_tokenizer
    two_layer_classifier: str | None = None
    position_offset: int = 0
    any_padding: bool = False
    starts_with_end: bool = False
    fields: tuple = BERT_FIELDS
    built_in: dict = field(default_factory=dict)
    head_dropout: tuple = ("classifier_dropout", None)
    head_dropouts: dict = field(default_factory=dict)
    dials: tuple = ()
    file_tokenizers: tuple = ()
    fit_names: Callable = lambda names, num_heads: names
    endings: dict = field(default_factory=dict)
    read_more: Callable = lambda config: {}
    write_more: Callable = lambda backbone: {}
    copy_weights: Callable = lambda backbone, weights: {}
    causal_class: str | None = None
    causal_fields: Mapping[str, Any] = field(default_factory=lambda: {"is_decoder": True})
    architecture: str | None = None
    fits: Callable = lambda backbone: True

    @property
    def patterns(self):
        """tuple of str, the attention patterns that config.json can say."""
        return ("bidirectional", *(["left_to_right"] if self.causal_class else []))

    @property
    def classifier_names(self):
        """`NameTable` of the class for texts."""
        name = self.two_layer_classifier
        return self.names if name is None else of_two_layers(self.names, name)

    @property
    def pad_token_id(self):
        """int, the id of padding that transformers needs; None if it may have any id."""
        is_needed = self.position_offset and not self.any_padding
        return self.position_offset - 1 if is_needed else None

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

    def find_ending(self, head):
        """The end of the name of the class of transformers with a head, a `HeadType`."""
        return self.endings.get(head.layer, head.ending)

    def find_dropout(self, layer, encoder_dropout):
        """(field of config.json, default) of the dropout rate before the head of a layer."""
        name, default = self.head_dropouts.get(layer, self.head_dropout)
        return name, encoder_dropout if default is None else default
