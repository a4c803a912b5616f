"""What the readers of all formats have."""


class Checkpoint:
    """A checkpoint of another library. No tensor is read before `tensor` is called.

    Attributes:
        path: `pathlib.Path` of the directory, or the prefix of the files.
        model_type: `ModelType` of the model.
        name_table: `NameTable` of its tensors.
        backbone_config: dict of keyword arguments of the backbone.
        classifier_config: dict of keyword arguments of `TextClassifier` if the model classifies
            texts, else None.
        token_classifier_config: dict of keyword arguments of `TokenClassifier` if the model labels
            tokens, else None.
        multiple_choice_config: dict of keyword arguments of `MultipleChoice` if the model chooses
            among texts, else None.
        has_modules: bool, whether the directory is one of sentence-transformers.
        sequence_length: int, the length to which texts are cut, or None.
        decoder_start_token_id: int, the token that begins the rows of a decoder, or None.
        tokenizer_class: str, the class of the tokenizer.
        tokenizer_config: dict of arguments of the tokenizer. Reading it raises FileNotFoundError if
            there is no tokenizer, and ValueError if it does not split text as ours does.
    """

    classifier_config = None
    token_classifier_config = None
    multiple_choice_config = None
    has_modules = False
    sequence_length = None
    decoder_start_token_id = None

    @property
    def encoder_config(self):
        """dict of keyword arguments of the model that reads texts: the backbone, or its encoder."""
        return self.backbone_config.get("encoder_arguments", self.backbone_config)

    @property
    def label_names(self):
        """list of str in id order if the model classifies texts, else None."""
        return (self.classifier_config or {}).get("label_names")

    def tensor_shapes(self):
        """dict of tensor name -> shape, read from headers."""
        return self._tensors.shapes()

    def tensor(self, name):
        """The tensor called `name`, as a NumPy array in its stored dtype."""
        return self._tensors.tensor(name)


def classifier_arguments(checkpoint):
    """The arguments of a `TextClassifier` whose head is the classification layer of a checkpoint.

    Args:
        checkpoint: a checkpoint from `open_checkpoint`.

    Returns:
        dict: `label_names`; `problem_type`, `dropout`, `activation` and `thresholds`, if the
        checkpoint names them.

    Raises:
        ValueError: if there is no such layer, or it is not the head of a `TextClassifier`.
    """
    return _require(checkpoint, checkpoint.classifier_config, "texts")


def token_classifier_arguments(checkpoint):
    """The arguments of a `TokenClassifier`, as from `classifier_arguments`."""
    return _require(checkpoint, checkpoint.token_classifier_config, "tokens")


def multiple_choice_arguments(checkpoint):
    """dict of arguments of a `MultipleChoice`, empty if a checkpoint has no such layer."""
    return dict(checkpoint.multiple_choice_config or {})


def _require(checkpoint, arguments, what):
    if arguments is None:
        raise ValueError(
            f"{checkpoint.path} has no classification layer for {what}. Pass `num_classes` or "
            "`label_names` to get a new layer."
        )
    return dict(arguments)
