"""The objectives of pretraining by their names: which rows and masks, and which task.

This module needs the standard library alone until an objective makes something, so that the command
line reads it before Keras is imported.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

#: Each mode of `PretrainingBatches` with pairs of texts -> the number of their relations.
PAIR_MODES = {"pairs": 2, "sop": 2, "relations": 3}
ROW_MODES = ("full_sentences", "doc_sentences")
MODES = (*PAIR_MODES, *ROW_MODES)
#: The mode of rows of a context and a pair, which only `PermutationTargets` takes.
CONTEXT_MODE = "context_pairs"


@dataclasses.dataclass(frozen=True)
class Objective:
    """The task of a model in a pretraining.

    ```python
    objective = kbs.objectives.get("span_boundary")
    masker = objective.make_masker(tokenizer, max_predictions=20)
    batches = PretrainingBatches(corpus, masker, 128, batch_size=256, **objective.instances)
    pretrainer = objective.make_task(backbone, preprocessor=packer)
    pretrainer.fit(batches)
    ```

    An objective of your own is `kbs.objectives.OBJECTIVES["name"] = Objective(...)`. It names
    classes and functions of yours in the place of `masker` and `task`.

    Attributes:
        instances: dict of arguments of `PretrainingBatches` that differ from their defaults.
        modes: tuple of str, the values that `mode` may have.
        masking: dict of arguments of the masker that differ from their defaults; None for a
            masker or a corruption without arguments.
        masking_options: tuple of str, the arguments of the masker that are to be chosen; None for
            those of a `TokenMasker`.
        masker: name of a class of `keras_bert_suite.masking`, or function(tokenizer, **masking)
            that returns a masker or corruption.
        wrapper: the same, of a masker; it returns the masker of the batches. None for no wrapper.
        task: name of a task of this package, or a class.
        task_arguments: dict of arguments of the task. The heads of a "Pretrainer" for pairs of
            texts follow from the mode.
        task_options: tuple of str, the arguments of the task that are to be chosen.
        models: tuple of str, the kinds of backbone, by the names of `model_type` in a config.json;
            None for all kinds.
        backbone_arguments: dict of arguments of the backbone.
        lanes: name of a class of `keras_bert_suite.pretraining`, the batches of a model with a
            memory; None without such batches.
        reversible: bool, whether the masker takes `backward`, for rows that are read from the end.
        encoder_decoder: bool, whether the backbone is an encoder-decoder. Of a kind that only
            reads, it is then two of them.
    """

    instances: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    modes: tuple[str, ...] = MODES
    masking: Mapping[str, Any] | None = dataclasses.field(default_factory=dict)
    masking_options: tuple[str, ...] | None = None
    masker: str | Callable = "TokenMasker"
    wrapper: str | Callable | None = None
    task: str | type = "Pretrainer"
    task_arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    task_options: tuple[str, ...] = ()
    models: tuple[str, ...] | None = None
    backbone_arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    lanes: str | None = None
    reversible: bool = False
    encoder_decoder: bool = False

    def make_masker(self, tokenizer: Any, **masking: Any) -> Any:
        """The masker or corruption of the batches.

        Args:
            tokenizer: a tokenizer of this package.
            **masking: arguments of the masker. They replace the objective's.
        """
        from keras_bert_suite import masking as maskers

        masker = _find(maskers, self.masker)(tokenizer, **{**(self.masking or {}), **masking})
        return masker if self.wrapper is None else _find(maskers, self.wrapper)(masker)

    def make_lanes(self, corpus: Any, masker: Any, **arguments: Any) -> Any:
        """The batches of a model with a memory, from the masker of the objective.

        Args:
            corpus: `TokenCorpus`.
            masker: from `make_masker`. `LaneBatches` needs its tokenizer alone.
            **arguments: `sequence_length`, `batch_size` and `seed`.
        """
        from keras_bert_suite import pretraining

        assert self.lanes is not None
        source = masker.tokenizer if self.lanes == "LaneBatches" else masker
        return getattr(pretraining, self.lanes)(corpus, source, **arguments)

    @property
    def task_class(self) -> Any:
        """The class of the task."""
        from keras_bert_suite import heads

        return _find(heads, self.task)

    def choose_arguments(self, mode: str | None = None) -> dict[str, Any]:
        """dict of the arguments of the task for a mode of rows, by default the objective's."""
        if self.task != "Pretrainer":
            return dict(self.task_arguments)
        relations = PAIR_MODES.get(mode or self.instances.get("mode", MODES[0]))
        heads: dict[str, Any] = {"next_sentence": False}
        if relations is not None:
            heads = {"next_sentence": True, "sentence_relations": relations}
        return {"span_boundary": False, **heads, **self.task_arguments}

    def make_task(self, backbone: Any, mode: str | None = None, **arguments: Any) -> Any:
        """The task.

        Args:
            backbone: as for the task. It must have the `backbone_arguments` of the objective.
            mode: str, the mode of the batches.
            **arguments: further arguments of the task.
        """
        return self.task_class(backbone, **{**self.choose_arguments(mode), **arguments})


def _find(module, given):
    return getattr(module, given) if isinstance(given, str) else given


OBJECTIVES = {
    # BERT, https://arxiv.org/abs/1810.04805
    "masked_lm": Objective(),
    # SpanBERT, https://arxiv.org/abs/1907.10529
    "span_boundary": Objective(
        instances={"mode": "doc_sentences", "short_seq_prob": 0.0},
        masking={"unit": "span"},
        task_arguments={"span_boundary": True},
    ),
    # StructBERT, https://arxiv.org/abs/1908.04577
    "word_order": Objective(instances={"mode": "relations"}, wrapper="TokenShuffler"),
    # ELECTRA, https://arxiv.org/abs/2003.10555, and google-research/electra for the rates
    "replaced_tokens": Objective(
        instances={"mode": "full_sentences"},
        modes=ROW_MODES,
        masking={"mask_token_rate": 0.85, "random_token_rate": 0.0},
        task="ElectraPretrainer",
        task_options=("generator_width",),
        models=("electra",),
    ),
    # UniLM, https://arxiv.org/abs/1905.03197
    "unilm": Objective(
        modes=tuple(PAIR_MODES),
        wrapper="LanguageModelMixture",
        models=("bert",),
        backbone_arguments={"attention_pattern": "unilm", "num_segments": 6},
    ),
    # XLNet, https://arxiv.org/abs/1906.08237
    "permutation": Objective(
        instances={"mode": CONTEXT_MODE, "short_seq_prob": 0.0},
        modes=(CONTEXT_MODE, *ROW_MODES),
        masking={"rate": 1 / 6},
        masking_options=(
            *("rate", "max_predictions", "dynamic", "seed"),
            *("span_unit", "reuse_length"),
        ),
        masker="PermutationTargets",
        models=("xlnet",),
        backbone_arguments={"attention_pattern": "permuted"},
        lanes="ContextLaneBatches",
        reversible=True,
    ),
    # GPT, Radford et al., 2018
    "left_to_right": Objective(
        instances={"mode": "full_sentences"},
        modes=ROW_MODES,
        masking=None,
        masker="NextTokenTargets",
        # The windows of a Longformer and of a ModernBERT look to both sides.
        models=(
            *("bert", "roberta", "distilbert", "electra"),
            *("ernie", "albert", "roformer", "nezha", "xlnet"),
        ),
        backbone_arguments={"attention_pattern": "left_to_right"},
        lanes="LaneBatches",
    ),
    # ELMo, https://arxiv.org/abs/1802.05365
    "bidirectional_language_model": Objective(
        instances={"mode": "full_sentences"},
        modes=ROW_MODES,
        masking_options=("max_characters",),
        masker="BidirectionalTargets",
        task="ElmoPretrainer",
        models=("elmo",),
    ),
    # BART, https://arxiv.org/abs/1910.13461
    "denoising": Objective(
        instances={"mode": "doc_sentences", "short_seq_prob": 0.0},
        modes=ROW_MODES,
        masking_options=(
            *("noises", "unit", "word_segmenter", "starts_with_end"),
            *("dynamic", "seed"),
        ),
        masker="DenoisingCorruption",
        task="Seq2SeqPretrainer",
        # The preset of a MASS reads at given positions, and a BART writes from the first one.
        task_arguments={"decoder_positions": False},
        models=("bert", "bart"),
        encoder_decoder=True,
    ),
    # MASS, https://arxiv.org/abs/1905.02450
    "mass": Objective(
        instances={"mode": "doc_sentences", "short_seq_prob": 0.0},
        modes=ROW_MODES,
        masking={"rate": 0.5},
        masking_options=("rate", "mask_token_rate", "random_token_rate", "dynamic", "seed"),
        masker="MassCorruption",
        task="Seq2SeqPretrainer",
        task_arguments={"decoder_positions": True},
        models=("bert",),
        encoder_decoder=True,
    ),
}


def get(name: str) -> Objective:
    """An objective.

    Args:
        name: str, a key of `OBJECTIVES`, such as "replaced_tokens".

    Raises:
        ValueError: if there is no such objective.
    """
    if name not in OBJECTIVES:
        raise ValueError(f"name must be one of {', '.join(OBJECTIVES)}, got {name!r}.")
    return OBJECTIVES[name]
