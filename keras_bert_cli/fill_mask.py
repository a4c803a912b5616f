"""Show the guesses of a pretrained model for masked tokens.

The generator of an ELECTRA makes its guesses.

Example:
  keras-bert fill-mask --model run/model --text 'Paris is the [MASK] of France.'
"""

from .command_flags import REQUIRED
from .model_paths import check_model
from .saved_tasks import PRETRAINERS, find_task, open_task


def define_flags(flags):
    """Defines the flags of this command."""
    explanation = (
        "A .keras file, the folder of a preset or of a checkpoint with its head, or hf://..."
    )
    flags.path("model", REQUIRED, explanation)
    explanation = (
        "Text with [MASK] or, for RoBERTa, <mask> instead of some tokens. The flag may be given "
        "more than once."
    )
    flags.text("text", REQUIRED, explanation, action="append")
    flags.integer("top_k", 5, "Guesses for each mask.")


def run(values):
    """Loads, guesses, prints."""
    check_model(values.model)
    path = values.model
    if not path.endswith(".keras") and find_task(path) not in (*PRETRAINERS, "MaskedLM"):
        raise ValueError(
            f"{path} has no head that guesses masked tokens, and a new one would guess at random. "
            "Pass a checkpoint with its head, or train one: keras-bert pretrain "
            f"--checkpoint {path}"
        )
    model = open_task(path, "MaskedLM")
    answers = model.predict(values.text, top_k=values.top_k, verbose=0)
    for text, masks in zip(values.text, answers, strict=True):
        print(text)
        for guesses in masks:
            print("  " + "  ".join(f"{token} {probability:.3f}" for token, probability in guesses))
