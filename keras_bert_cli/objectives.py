"""The objectives that `keras-bert pretrain` trains with, one row each.

A row says which data an objective takes, how their tokens are masked, and which task is trained.
Another objective is another row. Nothing else in the command asks for the name of an objective.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from .command_flags import UsageError
from .masker_flags import MASKER_FLAGS, make_masker
from .new_models import MODELS, make_backbone

#: The values of --mode whose sequences are pairs of texts, with the number of their relations.
PAIR_MODES = {"pairs": 2, "sop": 2, "relations": 3}
MODES = (*PAIR_MODES, "full_sentences", "doc_sentences")


def make_shuffler(values, corpus, tokenizer):
    """A `TokenShuffler` around the `TokenMasker` of the flags. Arguments: as of `make_masker`."""
    import keras_bert_suite as kbs

    return kbs.TokenShuffler(make_masker(values, corpus, tokenizer))


def make_mixture(values, corpus, tokenizer):
    """A `LanguageModelMixture` around the `TokenMasker` of the flags."""
    import keras_bert_suite as kbs

    return kbs.LanguageModelMixture(make_masker(values, corpus, tokenizer))


def make_next_tokens(values, corpus, tokenizer):
    """The `NextTokenTargets` of a tokenizer. No flag is about them."""
    import keras_bert_suite as kbs

    return kbs.NextTokenTargets(tokenizer)


@dataclasses.dataclass(frozen=True)
class Objective:
    """How a model is pretrained.

    Attributes:
        defaults: dict of the name of a flag -> its value, if the flag is not given.
        choices: dict of the name of a flag -> the values that it may have, if it has a value.
        idle_flags: tuple of str, the flags that it does not read. To give one is an error.
        make_masker: function (values, corpus, tokenizer) -> masker of the batches.
        task: str, the class of the task.
        task_arguments: dict of further arguments of the task.
        backbone_arguments: dict of further arguments of a new backbone. The backbone of a
            checkpoint becomes one with the same `attention_pattern`, which is "bidirectional" if
            there is none here.
    """

    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    choices: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    idle_flags: tuple[str, ...] = ("generator_width",)
    make_masker: Callable = make_masker
    task: str = "Pretrainer"
    task_arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    backbone_arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)


OBJECTIVES = {
    # BERT, https://arxiv.org/abs/1810.04805
    "masked_lm": Objective(),
    # SpanBERT, https://arxiv.org/abs/1907.10529
    "span_boundary": Objective(
        defaults={"mode": "doc_sentences", "unit": "span", "short_seq_prob": 0.0},
        task_arguments={"span_boundary": True},
    ),
    # StructBERT, https://arxiv.org/abs/1908.04577
    "word_order": Objective(
        defaults={"mode": "relations"},
        make_masker=make_shuffler,
    ),
    # ELECTRA, https://arxiv.org/abs/2003.10555
    "replaced_tokens": Objective(
        defaults={
            "mode": "full_sentences",
            "learning_rate": 2e-4,  # Of the base model, the default of --size.
            "mask_token_rate": 0.85,
            "random_token_rate": 0.0,
            "model": "electra",
        },
        choices={"mode": ("full_sentences", "doc_sentences"), "model": ("electra",)},
        idle_flags=(),
        task="ElectraPretrainer",
    ),
    # UniLM, https://arxiv.org/abs/1905.03197
    "unilm": Objective(
        defaults={"model": "bert"},
        choices={"mode": tuple(PAIR_MODES), "model": ("bert",)},
        make_masker=make_mixture,
        backbone_arguments={"attention_pattern": "unilm", "num_segments": 6},
    ),
    # GPT, Radford et al., 2018
    "left_to_right": Objective(
        defaults={"mode": "full_sentences"},
        choices={
            "mode": ("full_sentences", "doc_sentences"),
            # The windows of a Longformer and of a ModernBERT look to both sides.
            "model": tuple(name for name in MODELS if name not in ("modernbert", "longformer")),
        },
        idle_flags=("generator_width", *MASKER_FLAGS),
        make_masker=make_next_tokens,
        backbone_arguments={"attention_pattern": "left_to_right"},
    ),
}


def list_defaults():
    """str, the defaults of flags by objective, where they differ from those of the flags."""
    rows = (
        f"{name}: " + " ".join(f"--{flag} {value}" for flag, value in objective.defaults.items())
        for name, objective in OBJECTIVES.items()
        if objective.defaults
    )
    return "; ".join(rows)


def choose_objective(values):
    """The row of --objective. Flags that were not given get its defaults.

    A flag, or a value, that it has no use for is a `UsageError`.
    """
    objective = OBJECTIVES[values.objective]
    idle = [f"--{name}" for name in objective.idle_flags if name in values.given]
    if idle:
        raise UsageError(
            f"--objective {values.objective} has no use for {' and '.join(idle)}; leave "
            f"{'it' if len(idle) == 1 else 'them'} out"
        )
    for name, value in objective.defaults.items():
        if name not in values.given:
            setattr(values, name, value)
    for name, choices in objective.choices.items():
        if getattr(values, name) not in (None, *choices):
            raise UsageError(
                f"--objective {values.objective} takes --{name} {' or '.join(choices)}, got "
                f"{getattr(values, name)}"
            )
    return objective


def make_task_arguments(objective, values):
    """dict of the arguments of the task, other than backbone and preprocessor."""
    arguments = dict(objective.task_arguments)
    if objective.task == "Pretrainer":
        # A checkpoint may have heads that are not for this objective.
        arguments.setdefault("span_boundary", False)
        arguments["next_sentence"] = values.mode in PAIR_MODES
        if values.mode in PAIR_MODES:
            arguments["sentence_relations"] = PAIR_MODES[values.mode]
    # A checkpoint has a width of its own.
    elif not values.checkpoint or "generator_width" in values.given:
        arguments["generator_width"] = values.generator_width
    return arguments


def build_pretrainer(values, objective, tokenizer):
    """Loads the task of the objective from --checkpoint, or makes a new one of --size."""
    import keras_bert_suite as kbs

    cls = getattr(kbs, objective.task)
    arguments = make_task_arguments(objective, values)
    if values.checkpoint:
        pretrainer = cls.from_preset(
            values.checkpoint,
            sequence_length=values.sequence_length,
            dtype=values.dtype,
            **arguments,
        )
        check_tokenizer(values, tokenizer, pretrainer.preprocessor.tokenizer)
        return set_pattern(values, objective, pretrainer)
    backbone = make_backbone(values, objective, tokenizer)
    packer = kbs.SegmentPacker(tokenizer, values.sequence_length)
    return cls(backbone, preprocessor=packer, **arguments)


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
