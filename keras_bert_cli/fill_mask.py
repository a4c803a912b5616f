"""Show the guesses of a pretrained model for masked tokens.

The generator of an ELECTRA makes its guesses.

Example:
  keras-bert fill-mask --model run/model --text 'Paris is the [MASK] of France.'

  # The probabilities of two words.
  keras-bert fill-mask --model run/model --text 'The film was [MASK].' --targets good,bad
"""

from .command_flags import REQUIRED
from .model_paths import check_model
from .saved_tasks import find_task, open_task


def define_flags(flags):
    """Defines the flags of this command."""
    explanation = (
        "A .keras file, the folder of a preset or of a checkpoint with its head, or hf://..."
    )
    flags.path("model", REQUIRED, explanation)
    explanation = (
        "Text with [MASK] or, for RoBERTa and XLNet, <mask> instead of some tokens. The flag may "
        "be given more than once."
    )
    flags.text("text", REQUIRED, explanation, action="append")
    flags.integer("top_k", None, "Guesses for each mask. Default: 5, or all of --targets.")
    explanation = (
        "The only words that are guessed, joined by commas: good,bad. Each is one token. Default: "
        "all tokens."
    )
    flags.list("targets", None, explanation)


def run(values):
    """Loads, guesses, prints."""
    check_model(values.model)
    if not has_masked_lm(values.model):
        raise ValueError(
            f"{values.model} has no head that guesses masked tokens, and a new one would guess at "
            "random. Pass a checkpoint with its head, or train one: keras-bert pretrain "
            f"--checkpoint {values.model}"
        )
    print_guesses(values.model, values.text, values.top_k, values.targets)


def has_masked_lm(path):
    """Whether a model has a head that guesses masked tokens. A `.keras` file is not opened."""
    return path.endswith(".keras") or find_task(path) in (
        "Pretrainer",
        "ElectraPretrainer",
        "MaskedLM",
    )


def print_guesses(path, texts, top_k=None, targets=None):
    """Prints the guesses of the model at a path, a line for each mask."""
    model = open_task(path, "MaskedLM")
    if targets is None:
        top_k = top_k or 5
    answers = model.predict(texts, top_k=top_k, targets=targets, verbose=0)
    for text, masks in zip(texts, answers, strict=True):
        print(text)
        for guesses in masks:
            print("  " + "  ".join(f"{token} {probability:.3f}" for token, probability in guesses))
