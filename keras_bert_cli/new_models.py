"""The flags of a model that a pretraining begins with, and the model."""

from absl import flags

from .command_flags import SIZES, UsageError

#: The kinds of model. The names are those of `model_type` in a config.json.
MODELS = (
    *("bert", "roberta", "distilbert", "electra", "ernie"),
    *("albert", "roformer", "nezha", "modernbert", "longformer"),
)

#: The arguments of backbones that --dropout sets.
DROPOUTS = ("dropout", "attention_dropout", "embedding_dropout", "mlp_dropout")


def define_model_flags(values):
    """Defines the flags.

    Args:
        values: `absl.flags.FlagValues`.
    """
    explanation = (
        "Kind of a new model. Default: the kind that the tokenizer of the corpus was made for."
    )
    flags.DEFINE_enum("model", None, MODELS, explanation, flag_values=values)
    explanation = "Size of a new model. A kind without this size has that of BERT."
    sizes = (*SIZES, "xlarge", "xxlarge")
    flags.DEFINE_enum("size", "base", sizes, explanation, flag_values=values)
    explanation = (
        "Dropout of a new model, of hidden states and of attention. Default: as the kind has it."
    )
    flags.DEFINE_float("dropout", None, explanation, 0, 1, flag_values=values)
    explanation = "Standard deviation of a new model's weights."
    flags.DEFINE_float("initializer_range", 0.02, explanation, 0, 1, flag_values=values)


def make_backbone(values, tokenizer, **arguments):
    """A new backbone, of --model and --size.

    Args:
        values: the flags of the command.
        tokenizer: tokenizer of the corpus.
        **arguments: further arguments of the backbone.

    Raises:
        UsageError: if the kind has no such size, or cannot read what the tokenizer writes.
    """
    from keras_bert_suite.argument_checks import list_arguments
    from keras_bert_suite.checkpoints.model_types.table import MODEL_TYPES
    from keras_bert_suite.models import BACKBONES, BERT_SIZES, BertBackbone

    cls = tokenizer.backbone_cls
    if values.model:
        cls = BACKBONES[MODEL_TYPES[values.model].backbone]
    if "segment_ids" in cls.input_names and not tokenizer.has_segment_ids:
        raise UsageError(
            f"a {cls.__name__} tells texts apart by segment ids, which a "
            f"{type(tokenizer).__name__} has not; choose --model=roberta or modernbert, or "
            "prepare the corpus with another --vocab"
        )
    if values.size not in cls.sizes and values.size not in BERT_SIZES:
        raise UsageError(
            f"--size={values.size} is no size of a {cls.__name__}; choose one of "
            f"{', '.join({**BERT_SIZES, **cls.sizes})}"
        )
    size = cls.sizes.get(values.size) or BertBackbone.sizes[values.size]
    rates = {name: values.dropout for name in DROPOUTS if name in list_arguments(cls)}
    return cls(
        vocabulary_size=tokenizer.vocabulary_size(),
        **size,
        max_sequence_length=max(512, values.sequence_length),
        **({} if values.dropout is None else rates),
        initializer_range=values.initializer_range,
        dtype=values.dtype,
        **arguments,
    )
