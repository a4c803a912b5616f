"""What the readers of all formats have."""


class Checkpoint:
    """A checkpoint of another library. No tensor is read before `tensor` is called.

    Attributes:
        path: `pathlib.Path` of the directory, or the prefix of the files.
        model_type: `ModelType` of the model.
        names_its_type: bool, whether a file has the name of a `ModelType`.
        name_table: `NameTable` of its tensors.
        backbone_config: dict of keyword arguments of the backbone.
        classifier_config: dict of keyword arguments of `TextClassifier` if the model classifies
            texts, else None.
        classifier_problem: str that says why there is no `classifier_config`, or None.
        token_classifier_config: dict of keyword arguments of `TokenClassifier` if the model labels
            tokens, else None.
        multiple_choice_config: dict of keyword arguments of `MultipleChoice` if the model chooses
            among texts, else None.
        sequence_length: int, the length to which texts are cut, or None.
        tokenizer_class: str, the class of the tokenizer.
        tokenizer_config: dict of arguments of the tokenizer. Reading it raises FileNotFoundError if
            there is no tokenizer, and ValueError if it does not split text as ours does.
    """

    names_its_type = False
    token_classifier_config = None
    multiple_choice_config = None
    sequence_length = None

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
