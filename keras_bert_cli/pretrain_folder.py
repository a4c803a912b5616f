"""The folder of a pretraining: the settings of the run, and how far its model has got."""

from keras_bert_suite.files import messages

from .command_flags import UsageError
from .run_settings import FILE_NAME, check_settings, holds_files, read_settings

#: The setting with the digest and the share of each corpus.
CORPUS_DIGESTS = "corpus (SHA-256)"


def read_run(output):
    """Reads the settings of the run in a folder.

    Args:
        output: `pathlib.Path`.

    Returns:
        dict of the run's flags, and `finished`, the steps of its model; empty if there is no run.
    """
    settings = read_settings(output)
    with messages.reading(output / FILE_NAME):
        counts = ("steps", "finished") if settings else ()
        return {**settings, **{name: int(settings[name]) for name in counts}}


def check_run(output, before, settings):
    """Raises unless a folder is new, or holds the run with these settings."""
    if before:
        is_same = before.get(CORPUS_DIGESTS) == settings[CORPUS_DIGESTS]
        if not is_same and before.get("corpus") == settings["corpus"]:
            raise ValueError(
                f"The run in {output} began with another corpus: the manifest.json of --corpus "
                "differs. Restore the corpus, or choose another --output."
            )
        # The folder may have been moved, and so may the corpora.
        moved = ("output", CORPUS_DIGESTS, *(["corpus"] if is_same else []))
        before = {
            **before,
            **{name: settings[name] for name in moved},
            "steps": max(before["steps"], settings["steps"]),
        }
        advice = (
            "Give it the same flags to resume it, raise --steps to prolong it, or choose another "
            "--output."
        )
        check_settings(output, before, settings, advice)
    elif holds_files(output):
        raise FileExistsError(
            f"{output} holds files, but no run of keras-bert pretrain. Choose another path."
        )


def find_report_every(steps, wanted):
    """Steps from one line of the log to the next.

    Args:
        steps: int, of the whole run.
        wanted: int, or None for about 50 lines of equal length.

    Raises:
        UsageError: if `wanted` does not divide `steps`.
    """
    if wanted is None:
        return next(n for n in range(max(1, steps // 50), 0, -1) if steps % n == 0)
    if steps % wanted:
        raise UsageError(
            f"--report_every={wanted} does not divide --steps={steps}; choose --steps="
            f"{steps + wanted - steps % wanted}, or for a new run --report_every="
            f"{find_report_every(steps, None)}"
        )
    return wanted
