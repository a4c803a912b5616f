"""The kinds whose answers are texts that a model writes."""

from ..ask_saved_model import SavedModel
from ..command_flags import UsageError
from .kind import Kind, format_json

#: The flags of `predict` for models that write texts, arguments of their `predict`.
SAMPLING = ("top_k", "top_p", "temperature", "seed")


class WritingKind(Kind):
    """The base of `Seq2SeqKind` and `CausalLMKind`."""

    #: The name of an answer.
    answer_name: str
    #: The flags of `predict` that are arguments of the `predict` of the task.
    asking_flags: tuple = SAMPLING

    def find_compile_arguments(self):
        if self.values.num_beams == 1:
            return {"sampler": "greedy"}
        import keras_hub

        return {"sampler": keras_hub.samplers.BeamSampler(num_beams=self.values.num_beams)}

    def predict_rows(self, columns):
        given = self.values.given
        asked = {name: getattr(self.values, name) for name in self.asking_flags if name in given}
        return self.model.predict(self.order_texts(columns), self.values.batch_size, **asked)

    def predict(self, columns):
        if isinstance(self.model, SavedModel):
            written = [text.decode() for text in self.answer(columns, "texts")["texts"]]
        else:
            written = self.predict_rows(columns)
        if self.values.format == "jsonl":
            return format_json(columns, ({self.answer_name: text} for text in written))
        # Without the tabs and line ends of a text.
        return [f"{self.answer_name}\n", *(f"{' '.join(text.split())}\n" for text in written)]


def define_asking_flags(flags):
    """Defines the flags of `predict` for models that write texts."""
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
    asked = {"max_length", "stop", *SAMPLING} & values.given
    if asked and isinstance(kind.model, SavedModel):
        raise UsageError(
            f"--{min(asked)} is not for {values.model}, an export, whose answers do not change. "
            "Ask the model that it was exported from"
        )
    if wrong := asked - set(getattr(kind, "asking_flags", ())):
        wanted = "write" if min(wrong) in SAMPLING else "continue"
        raise UsageError(
            f"--{min(wrong)} is for models that {wanted} texts, not for --task {kind.name}"
        )
