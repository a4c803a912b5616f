"""The flags of a model that a pretraining begins with, and the model."""

import inspect

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.checkpoints.model_types.table import ALL_TYPES

from .command_flags import SIZES, UsageError
from .memory_flags import check_remembers, choose_memory

#: Kinds that do not only read: they write, or are not pretrained.
_OTHERS = {"bart", "encoder-decoder", "static"}
_first = {}
for _kind in ALL_TYPES.values():
    _first.setdefault(_kind.backbone, _kind.name)

#: The kinds of model that read, by their names in `ALL_TYPES`: the first of each class of backbone.
READERS = tuple(name for name in _first.values() if name not in _OTHERS)
MODELS = (*READERS, "bart")

#: The flags of a new model. A checkpoint brings its model.
MODEL_FLAGS = ("model", "size", "dropout", "initializer_range", "token_parts")

#: The value of --token_parts that is no file.
CHARACTERS = "characters"

#: The arguments of backbones that --dropout sets.
DROPOUTS = ("dropout", "attention_dropout", "embedding_dropout", "mlp_dropout")


def define_model_flags(flags):
    """Defines the flags."""
    explanation = (
        "Kind of a new model. Default: the kind that the tokenizer of the corpus was made for, or "
        "the only one that has the objective and this tokenizer."
    )
    flags.choice("model", None, MODELS, explanation)
    explanation = "Size of a new model. A kind without this size takes that of BERT."
    sizes = (*SIZES, "xlarge", "xxlarge")
    flags.choice("size", "base", sizes, explanation)
    explanation = (
        "Dropout rate of a new model, for hidden states and attention. Default: that of the kind."
    )
    flags.number("dropout", None, explanation, at_most=1)
    flags.number(
        "initializer_range", 0.02, "Standard deviation of a new model's weights.", at_most=1
    )
    explanation = (
        f"Parts of the tokens, which a new model embeds beside them: {CHARACTERS}, or a file, such "
        "as of the radicals of Chinese characters, with a token, a tab and its parts in each line."
    )
    flags.path("token_parts", None, explanation)


def check_model_flags(values):
    """Raises a `UsageError` if flags of a new model are given, and the model is a checkpoint."""
    given = [f"--{name}" for name in MODEL_FLAGS if name in values.given]
    if values.checkpoint and given:
        raise UsageError(
            f"--checkpoint {values.checkpoint} has a model of its own, on which "
            f"{' and '.join(given)} would have no effect; leave "
            f"{'it' if len(given) == 1 else 'them'} out, or leave out --checkpoint"
        )


def make_backbone(values, objective, tokenizer):
    """A new backbone, of --model and --size, for an `Objective` and the tokenizer of the corpus.

    Both sides of an encoder-decoder have this size.

    A kind that has no such size, needs segment ids that the tokenizer does not make, or cannot be
    trained with the objective, is a `UsageError`.
    """
    from keras_bert_suite.models import BertBackbone, BertEncoderDecoder

    kinds = [
        kind
        for kind in objective.models or READERS
        if tokenizer.has_segment_ids or "segment_ids" not in find_backbone(kind).input_names
    ]
    classes = [find_backbone(kind) for kind in kinds]
    cls = find_backbone(values.model) if values.model else tokenizer.backbone_cls
    if not values.model and cls not in classes and len(classes) == 1:
        (cls,) = classes
    if cls not in classes:
        remedy = f"choose --model among {', '.join(kinds)}, or " if kinds else ""
        raise UsageError(
            f"--objective {values.objective} cannot train {with_article(cls)} with "
            f"{with_article(tokenizer)}; {remedy}prepare the corpus with a vocab.txt"
        )
    place = getattr(tokenizer, "summary_place", "first")
    if getattr(cls, "summary_place", place) not in (None, place):
        raise UsageError(
            f"{with_article(cls)} reads the summary token of a row {cls.summary_place}, and "
            f"{with_article(tokenizer)} puts it {place}; prepare the corpus with the tokenizer of "
            f"such a model, for an XLNet by keras-bert prepare --vocab spiece.model, or choose "
            "another --model"
        )
    memory = choose_memory(values, objective)
    check_remembers(cls, memory)
    # A kind without attention has sizes of its own alone.
    sizes = {**(BertBackbone.sizes if takes(cls, "num_heads") else {}), **cls.sizes}
    if values.size not in sizes:
        raise UsageError(
            f"--size={values.size} is no size of {with_article(cls)}; choose one of "
            f"{', '.join(sizes)}"
        )
    arguments = {
        "vocabulary_size": tokenizer.vocabulary_size(),
        **sizes[values.size],
        **choose_arguments(cls, values, tokenizer),
        "initializer_range": values.initializer_range,
        **objective.backbone_arguments,
        **memory,
    }
    if values.max_characters is not None:
        arguments["vocabulary_size"] = None
        arguments["characters"] = {"max_characters": values.max_characters}
    if values.token_parts is not None:
        arguments["part_embeddings"] = make_part_embeddings(values, objective, cls, tokenizer)
    if objective.encoder_decoder and cls is BertBackbone:
        return BertEncoderDecoder(arguments, arguments, dtype=values.dtype)
    return cls(**arguments, dtype=values.dtype)


def make_part_embeddings(values, objective, cls, tokenizer):
    """The `PartEmbeddings` of --token_parts. A kind without them is a `UsageError`."""
    import keras_bert_suite as kbs

    if not takes(cls, "part_embeddings") or objective.encoder_decoder:
        raise UsageError(
            f"--token_parts is for encoders with the embeddings of BERT or ModernBERT; leave it "
            f"out for {with_article(cls)} and --objective {values.objective}"
        )
    if values.token_parts == CHARACTERS:
        found = kbs.spell_tokens(tokenizer)
    else:
        found = kbs.read_token_parts(values.token_parts, tokenizer)
    return kbs.PartEmbeddings(found.parts, found.num_parts)


def find_backbone(kind):
    """The class of a kind of model, one of `MODELS`."""
    from keras_bert_suite.models import BACKBONES

    return BACKBONES[ALL_TYPES[kind].backbone]


def choose_arguments(cls, values, tokenizer):
    """dict of the arguments that only some classes of backbones take."""
    longest = find_default(cls, "max_sequence_length")
    arguments = {
        "max_sequence_length": longest and max(longest, values.sequence_length),
        "separator_id": tokenizer.end_token_id,
        # A `Pretrainer` has the global tokens of transformers' head for masked tokens.
        "global_tokens": "none",
    }
    if values.dropout is not None:
        arguments |= dict.fromkeys(DROPOUTS, values.dropout)
    return {name: value for name, value in arguments.items() if takes(cls, name)}


def takes(cls, name):
    """Whether the constructor of a backbone has an argument."""
    from keras_bert_suite.argument_checks import list_arguments

    return name in list_arguments(cls)


def find_default(cls, name):
    """The default of an argument of a class or one of its base classes; None without one."""
    constructors = (vars(base)["__init__"] for base in cls.__mro__ if "__init__" in vars(base))
    parameters = (inspect.signature(constructor).parameters for constructor in constructors)
    return next((named[name].default for named in parameters if name in named), None)
