"""The kinds whose answers are texts that a model writes."""

from ..ask_saved_model import SavedModel
from ..command_flags import UsageError
from .kind import Kind

#: The flags of `predict` for models that write texts, arguments of their `predict`.
SAMPLING = ("top_k", "top_p", "temperature", "seed")
#: The flags of rules for the texts of a `Seq2Seq`, arguments of the task and of its `predict`.
RULES = (
    *("max_target_length", "min_target_length", "no_repeat_ngram_size"),
    *("first_token", "last_token"),
)
#: The flags of the search for a text.
SEARCH = ("num_beams", "length_penalty")


class WritingKind(Kind):
    """The base of `Seq2SeqKind` and `CausalLMKind`."""

    #: The flags of `predict` that are arguments of the `predict` of the task.
    asking_flags: tuple = (*SEARCH, *SAMPLING)

    def find_compile_arguments(self):
        return {"sampler": make_sampler(self.values)}

    def find_asked(self):
        values, given = self.values, self.values.given
        names = [name for name in self.asking_flags if name in given and name not in SEARCH]
        return {name: getattr(values, name) for name in names}

    def find_answers(self, columns):
        if not self.values.given.isdisjoint(SEARCH):
            self.model.set_sampler(make_sampler(self.values))
        return super().find_answers(columns)

    def format_table(self, found):
        ((name, written),) = found.items()
        # Without the tabs and line ends of a text.
        return [f"{name}\n", *(f"{' '.join(text.split())}\n" for text in written)]


def make_sampler(values):
    """The sampler of --num_beams and --length_penalty. A penalty alone is a `UsageError`."""
    if values.num_beams in (None, 1):
        if "length_penalty" in values.given:
            raise UsageError("--length_penalty is for a beam search; pass --num_beams above 1, too")
        return "greedy"
    from keras_bert_suite import BeamSearch

    given = {name: getattr(values, name) for name in SEARCH if name in values.given}
    return BeamSearch(**given)


def define_rule_flags(flags, max_target_length=None, num_beams=None):
    """Defines the flags of `RULES` and `SEARCH`. A default that is None is that of the model."""
    explanation = "Maximum number of tokens in a written text, with --task seq2seq."
    flags.integer("max_target_length", max_target_length, explanation, at_least=2)
    explanation = "Minimum number of tokens in a written text, with --task seq2seq."
    flags.integer("min_target_length", None, explanation, at_least=0)
    explanation = (
        "So many tokens follow each other only once in a written text, with --task seq2seq."
    )
    flags.integer("no_repeat_ngram_size", None, explanation, at_least=0)
    explanation = "Token that begins each written text, such as the code of a language."
    flags.text("first_token", None, explanation)
    explanation = "Token that ends a written text that is as long as it may be, such as </s>."
    flags.text("last_token", None, explanation)
    explanation = (
        "Number of beams of the search for a text, with --task seq2seq or causal_lm. 1 is a greedy "
        "search."
    )
    flags.integer("num_beams", num_beams, explanation)
    explanation = "A search with beams prefers long texts above 0, and short texts below 0."
    flags.number("length_penalty", None, explanation, at_least=float("-inf"))


def define_asking_flags(flags):
    """Defines the flags of `predict` for models that write texts."""
    define_rule_flags(flags)
    flags.integer("max_length", None, "Most tokens that follow a text. Default: the model's.")
    explanation = "The text that follows ends before this string. The flag may be given several "
    flags.text("stop", None, f"{explanation}times.", action="append")
    explanation = "Draw the tokens of a text that is written, from so many of the most probable."
    flags.integer("top_k", None, explanation)
    explanation = "Draw tokens from the most probable ones that have this probability together."
    flags.number("top_p", None, explanation, at_most=1)
    explanation = "Draw tokens. Less than 1 draws probable ones more often."
    flags.number("temperature", None, explanation)
    flags.integer("seed", None, "Draw tokens, and the same ones with this seed.", at_least=0)


def check_asking_flags(values, kind):
    """Raises a `UsageError` if a flag of `define_asking_flags` is for other models."""
    asked = {"max_length", "stop", *RULES, *SEARCH, *SAMPLING} & values.given
    if asked and isinstance(kind.model, SavedModel):
        raise UsageError(
            f"--{min(asked)} is not for {values.model}, an export, whose answers do not change. "
            "Ask the model that it was exported from"
        )
    if wrong := asked - set(getattr(kind, "asking_flags", ())):
        wanted = "write" if min(wrong) in (*RULES, *SEARCH, *SAMPLING) else "continue"
        raise UsageError(
            f"--{min(wrong)} is for models that {wanted} texts, not for --task {kind.name}"
        )
