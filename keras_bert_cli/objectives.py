"""The flags of an objective of `keras-bert pretrain`, and the task that it trains.

Objectives are rows of `keras_bert_suite.pretraining.objectives`. Nothing here asks for the name of
an objective.
"""

from keras_bert_suite.pretraining.objectives import OBJECTIVES

from .command_flags import UsageError
from .masker_flags import (
    CHARACTER_FLAGS,
    MASKER_FLAGS,
    NOISE_FLAGS,
    PLAIN_ARGUMENTS,
    list_masker_flags,
)
from .memory_flags import (
    check_memory_flags,
    choose_memory,
    give_memory,
    list_idle_memory_flags,
)
from .new_models import make_backbone
from .saved_tasks import find_task

#: The flags of arguments that only some tasks have.
TASK_FLAGS = ("generator_width",)


def list_flags(objective):
    """dict of the name of a flag -> the value that an objective has, if the flag is not given."""
    flags = {**objective.instances}
    for name, value in (objective.masking or {}).items():
        flags[PLAIN_ARGUMENTS.get(name, name)] = value
    if objective.models and len(objective.models) == 1:
        (flags["model"],) = objective.models
    return flags


def list_choices(objective):
    """dict of the name of a flag -> the values that it may have, if it has a value."""
    choices = {"mode": objective.modes}
    return {**choices, "model": objective.models} if objective.models else choices


def list_idle_flags(objective):
    """list of str, the flags that an objective does not read. To give one is an error."""
    idle = [name for name in TASK_FLAGS if name not in objective.task_options]
    idle += list_idle_memory_flags(objective)
    read = list_masker_flags(objective)
    flags = (*MASKER_FLAGS, *NOISE_FLAGS, *CHARACTER_FLAGS)
    return idle + [name for name in flags if name not in read]


def list_defaults():
    """str, the defaults of flags by objective, where they differ from the general defaults."""
    rows = (
        f"{name}: " + " ".join(f"--{flag} {_show(value)}" for flag, value in flags.items())
        for name, flags in zip(OBJECTIVES, map(list_flags, OBJECTIVES.values()), strict=True)
        if flags
    )
    return "; ".join(rows)


def _show(value):
    return f"{value:.3g}" if isinstance(value, float) else value


def choose_objective(values):
    """The `Objective` of --objective. Flags that were not given get its values.

    A flag, or a value, that it has no use for is a `UsageError`.
    """
    objective = OBJECTIVES[values.objective]
    idle = [f"--{name}" for name in list_idle_flags(objective) if name in values.given]
    if idle:
        raise UsageError(
            f"--objective {values.objective} has no use for {' and '.join(idle)}; leave "
            f"{'it' if len(idle) == 1 else 'them'} out"
        )
    check_memory_flags(values)
    for name, value in list_flags(objective).items():
        if name not in values.given:
            setattr(values, name, value)
    for name, choices in list_choices(objective).items():
        if getattr(values, name) not in (None, *choices):
            raise UsageError(
                f"--objective {values.objective} takes --{name} {' or '.join(choices)}, got "
                f"{getattr(values, name)}"
            )
    return objective


def build_pretrainer(values, objective, tokenizer):
    """Loads the task of the objective from --checkpoint, or makes a new one of --size."""
    import keras_bert_suite as kbs

    options = {
        name: getattr(values, name)
        for name in objective.task_options
        # A checkpoint has its options.
        if not values.checkpoint or name in values.given
    }
    if values.checkpoint:
        if may_read_characters(objective) and find_task(values.checkpoint) != objective.task:
            options |= name_vocabulary(tokenizer)  # The files of bilm-tf have no softmax.
        pretrainer = objective.task_class.from_preset(
            values.checkpoint,
            sequence_length=values.sequence_length,
            dtype=values.dtype,
            **objective.choose_arguments(values.mode),
            **options,
        )
        if not reads_characters(values, pretrainer):
            check_tokenizer(values, tokenizer, pretrainer.preprocessor.tokenizer)
        pretrainer = set_pattern(values, objective, pretrainer)
        memory = choose_memory(values, objective)
        remembered = getattr(pretrainer.backbone, "memory_length", None)
        if remembered and objective.lanes and not values.memory_length:
            raise ValueError(
                f"{values.checkpoint} remembers {remembered} states of the batch before. Pass "
                f"--memory_length {remembered}, or another length."
            )
        return give_memory(pretrainer, memory) if memory else pretrainer
    backbone = make_backbone(values, objective, tokenizer)
    if values.max_characters is not None:
        # The pretraining predicts tokens of the corpus, and reads their characters.
        options |= name_vocabulary(tokenizer)
        tokenizer = kbs.CharacterTokenizer(max_characters=values.max_characters)
    packer = kbs.SegmentPacker(tokenizer, values.sequence_length)
    return objective.make_task(backbone, values.mode, preprocessor=packer, **options)


def may_read_characters(objective):
    """Whether the model of an objective may read the characters of tokens."""
    return "max_characters" in (objective.masking_options or ())


def name_vocabulary(tokenizer):
    """dict of the arguments of an `ElmoPretrainer` that say which tokens it predicts."""
    import keras_bert_suite as kbs

    sha256 = kbs.BidirectionalTargets(tokenizer).vocabulary_sha256
    return {"vocabulary_size": tokenizer.vocabulary_size(), "vocabulary_sha256": sha256}


def reads_characters(values, pretrainer):
    """Whether --checkpoint reads the characters of tokens, as many as --max_characters.

    A `ValueError` if only one of them does. The masker sees whether it predicts the tokens of the
    corpus.
    """
    wanted = getattr(pretrainer.preprocessor.tokenizer, "max_characters", None)
    if values.max_characters != wanted:
        remedy = "Leave out the flag" if wanted is None else f"Pass --max_characters {wanted}"
        raise ValueError(
            f"{values.checkpoint} reads {'no' if wanted is None else wanted} characters of a "
            f"token, got --max_characters {values.max_characters}. {remedy}."
        )
    return wanted is not None


def check_tokenizer(values, tokenizer, other):
    """Raises a `ValueError` unless the tokenizers of the corpus and of --checkpoint are equal."""
    # A vocab.txt is read without the spaces around a piece. That of bert-base-chinese has one that
    # ends in a line separator, which its tokenizer.json keeps.
    pieces, wanted_pieces = (
        [piece.strip() for piece in each.get_vocabulary()] for each in (tokenizer, other)
    )
    is_same = pieces == wanted_pieces
    # A vocab.txt does not say from which length on a word is unknown, and files of Hugging Face do.
    # Words of 100 characters are no reason to prepare a corpus again.
    own, wanted = (
        {name: value for name, value in each.settings.items() if name != "max_word_length"}
        for each in (tokenizer, other)
    )
    if not is_same or own != wanted:
        raise ValueError(
            f"The corpus and {values.checkpoint} have tokenizers of different "
            f"{'settings' if is_same else 'vocabulary'}. Prepare the corpus with the tokenizer of "
            "the checkpoint."
        )


def set_pattern(values, objective, pretrainer):
    """The task of --checkpoint, with the attention pattern of the objective."""
    plain = {"attention_pattern": "bidirectional"}
    wanted = {**plain, **objective.backbone_arguments}
    pattern = wanted["attention_pattern"]
    # The backbone of another library may have no pattern. Such a backbone looks to both sides.
    if getattr(pretrainer.backbone, "attention_pattern", "bidirectional") != pattern:
        if hasattr(pretrainer, "change_pattern"):
            pretrainer = pretrainer.change_pattern(pattern)
    config = {**plain, **pretrainer.backbone.get_config()}
    for name, value in wanted.items():
        if config.get(name) != value:
            raise ValueError(
                f"--objective {values.objective} trains a backbone with {name}={value!r}, and "
                f"{values.checkpoint} has {name}={config.get(name)!r}. Leave out --checkpoint, or "
                "choose another objective."
            )
    return pretrainer
