"""The names of activation functions in the files of other libraries."""

#: Our name of a function -> its names in Hugging Face's, Google's and KerasHub's files. All names
#: are read, and the first is written.
#:
#: Google's "gelu" is the tanh approximation, and Hugging Face's the exact function. Google's files
#: have names of bert4keras too, "gelu_tanh" and "gelu_erf". KerasHub's names are functions that are
#: built into its models.
_ACTIVATIONS = {
    "gelu_tanh": (
        ("gelu_new", "gelu_fast", "gelu_pytorch_tanh"),
        ("gelu", "gelu_tanh", "gelu_new"),
        ("gelu_tanh",),
    ),
    "gelu_erf": (("gelu", "gelu_python"), ("gelu_erf",), ("gelu_erf",)),
    "relu": (("relu",), ("relu",), ()),
    "silu": (("silu", "swish"), (), ()),
    "tanh": (("tanh",), ("tanh",), ()),
}

#: Our name -> the names of one library, without the functions that it lacks.
HUGGING_FACE, GOOGLE, KERAS_HUB = (
    {ours: names[library] for ours, names in _ACTIVATIONS.items() if names[library]}
    for library in range(3)
)


def find_ours(activations):
    """dict of their name of an activation -> our name, for a table such as `HUGGING_FACE`."""
    return {name: ours for ours, names in activations.items() for name in names}


def find_theirs(activation, activations, owner):
    """Their name of an activation function of this package or of Keras.

    `owner` is the owner of the format in messages, such as "Google's BERT".
    """
    name = getattr(activation, "__name__", type(activation).__name__)
    ours = "gelu_erf" if name == "gelu" else name  # keras.activations.gelu is exact by default.
    if ours not in activations:
        raise ValueError(
            f"{owner} has no activation {name!r}; wanted one of {', '.join(activations)}. Use "
            "`model.save`."
        )
    return activations[ours][0]
