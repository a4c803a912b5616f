"""The flags of a pretraining with memory, and of rows that are read from the end."""

from keras_bert_suite.argument_checks import with_article

from .command_flags import UsageError

#: The flags that `PermutationTargets` reads, which has arguments of these names.
PERMUTATION_FLAGS = ("span_unit", "reuse_length")

#: The flags of rows that stand alone.
ROW_FLAGS = ("mode", "short_seq_prob", "shuffle_blocks", "sequence_packing")


def define_memory_flags(flags):
    """Defines the flags."""
    explanation = (
        "States that an XLNet remembers from batch to batch. Each sequence then continues one of "
        "the batch before (Transformer-XL, XLNet). Default: no memory."
    )
    flags.integer("memory_length", None, explanation)
    explanation = (
        "Tokens of the first part of a sequence, the context, with --objective permutation. A "
        "memory keeps these. Default: half of --sequence_length."
    )
    flags.integer("reuse_length", None, explanation)
    explanation = "What the spans of --objective permutation are counted in."
    flags.choice("span_unit", "piece", ("piece", "word"), explanation)
    explanation = "Read half of each batch from the end, with --objective permutation."
    flags.switch("both_directions", False, explanation)


def list_idle_memory_flags(objective):
    """list of str, the flags of this module that an `Objective` does not read."""
    idle = [name for name in PERMUTATION_FLAGS if name not in (objective.masking_options or ())]
    if objective.lanes is None:
        idle.append("memory_length")
    return idle if objective.reversible else [*idle, "both_directions"]


def check_memory_flags(values):
    """Raises a `UsageError` if flags do not go together."""
    given = [f"--{name}" for name in ROW_FLAGS if name in values.given]
    if values.memory_length and given:
        raise UsageError(
            f"with --memory_length each sequence continues one of the batch before, so that "
            f"{' and '.join(given)} would have no effect; leave out "
            f"{'it' if len(given) == 1 else 'them'}, or --memory_length"
        )
    if values.both_directions and values.batch_size % 2:
        raise UsageError(
            f"--both_directions reads half of a batch from the end, got --batch_size="
            f"{values.batch_size}; choose an even one"
        )


def choose_memory(values, objective):
    """dict of the arguments of an `XLNetBackbone` that the flags set; empty without such flags."""
    from keras_bert_suite.masking.permutation_targets import default_reuse_length

    if not (values.memory_length or values.both_directions):
        return {}
    reuse_length = None
    if values.memory_length and "reuse_length" not in list_idle_memory_flags(objective):
        reuse_length = values.reuse_length or default_reuse_length(values.sequence_length)
    return {
        "memory_length": values.memory_length,
        "reuse_length": reuse_length,
        "reversed_rows": values.both_directions,
    }


def check_remembers(cls, arguments):
    """Raises a `UsageError` if a class of backbones does not take arguments of `choose_memory`."""
    from .new_models import takes

    if not all(takes(cls, name) for name in arguments):
        raise UsageError(
            f"--memory_length and --both_directions are for an XLNet, and the model is "
            f"{with_article(cls)}; leave them out, or prepare the corpus with the spiece.model of "
            "an XLNet: keras-bert prepare --vocab spiece.model"
        )


def give_memory(pretrainer, arguments):
    """A copy of the `Pretrainer` of a checkpoint whose backbone has these arguments, too."""
    from keras_bert_suite.heads.pretraining.pretraining_heads import copy_pretrainer

    backbone = pretrainer.backbone
    check_remembers(type(backbone), arguments)
    if all(getattr(backbone, name) == value for name, value in arguments.items()):
        return pretrainer
    copy = type(backbone).from_config({**backbone.get_config(), **arguments})
    copy.set_weights(backbone.get_weights())
    return copy_pretrainer(pretrainer, copy)[0]
