"""The common parts of the readers of all formats."""

from typing import Any

from keras_bert_suite.checkpoints.head_types.records import HEADS_BY_LAYER, TEXTS


class Checkpoint:
    """A checkpoint of another library. No tensor is read before `tensor` is called.

    Attributes:
        path: `pathlib.Path` of the directory, or the prefix of the files.
        model_type: `ModelType` of the model.
        name_table: `NameTable` of its tensors.
        backbone_config: dict of keyword arguments of the backbone.
        heads: dict of the layer of each fine-tuned head -> keyword arguments of its task.
        has_modules: bool, whether the directory is one of sentence-transformers.
        embedder_settings: dict of the arguments of a `TextEmbedder` that a directory without such
            modules names.
        add_special_tokens: bool, whether rows have special tokens.
        sequence_length: int, the length to which texts are cut, or None.
        decoder_start_token_id: int, the token that begins the rows of a decoder, or None.
        generation_settings: dict of the settings with which a decoder was to write, which nobody
            applies.
        tokenizer_class: str, the class of the tokenizer.
        tokenizer_config: dict of arguments of the tokenizer. Reading it raises FileNotFoundError if
            there is no tokenizer, and ValueError if it does not split text as ours does.
    """

    heads: dict[str, dict] = {}
    has_modules = False
    embedder_settings: dict[str, Any] = {}
    add_special_tokens = True
    sequence_length = None
    decoder_start_token_id = None
    generation_settings: dict[str, Any] = {}

    @property
    def encoder_config(self):
        """dict of keyword arguments of the model that reads texts: the backbone, or its encoder."""
        return self.backbone_config.get("encoder_arguments", self.backbone_config)

    #: Whether the configuration names the class of the model, by which its head is known.
    names_class = True

    @property
    def label_names(self):
        """list of str in id order if the model classifies texts, else None."""
        return self.heads.get(TEXTS.layer, {}).get("label_names")

    def tensor_shapes(self):
        """dict of tensor name -> shape, read from headers."""
        return self._tensors.shapes

    def tensor(self, name):
        """The tensor called `name`, as a NumPy array in its stored dtype."""
        return self._tensors.tensor(name)


def head_arguments(checkpoint, layer):
    """The arguments of a task with the head of a checkpoint.

    Args:
        checkpoint: a checkpoint from `open_checkpoint`.
        layer: str, the name of the layer of the head, such as "classifier".

    Returns:
        dict: `label_names` for a head with labels; `problem_type`, `dropout`, `activation` and
        `thresholds`, if the checkpoint names them. It is empty if there is no such head, and the
        head has no labels.

    Raises:
        ValueError: if there is no such head, and the head has labels.
    """
    if layer in checkpoint.heads:
        return dict(checkpoint.heads[layer])
    head = HEADS_BY_LAYER[layer]
    if head.labels:
        names = checkpoint.model_type.classifier_names
        name, _ = names.their_name(head.path) or (None, None)
        ending = checkpoint.model_type.find_ending(head)
        kept = (
            f" If {name} is that layer, say so in config.json: "
            f'"architectures": ["{checkpoint.model_type.classes}{ending}"].'
            if name in checkpoint.tensor_shapes() and not checkpoint.names_class
            else ""
        )
        raise ValueError(
            f"{checkpoint.path} has no classification layer for {head.labels}. Pass `num_classes` "
            f"or `label_names` to get a new layer.{kept}"
        )
    return {}
