"""The folder of a pretraining: the settings of the run, and how far its model has got."""

import contextlib
import shutil

from keras_bert_suite.files import folder_lock, messages

from .command_flags import UsageError
from .new_models import MODEL_FLAGS
from .run_settings import (
    FILE_NAME,
    check_settings,
    holds_files,
    list_missing,
    read_settings,
    remove_empty,
    write_settings,
)

#: The setting with the digest and the share of each corpus. Runs of older versions do not have it.
CORPUS_DIGESTS = "corpus (SHA-256)"

#: The flags that runs of older versions do not name, with the values that these runs had.
FORMER_VALUES = {
    "objective": "masked_lm",
    "generator_width": 0.25,
    "model": None,
    "mask_token_rate": 0.8,
    "random_token_rate": 0.1,
    **dict.fromkeys(("ngram_shares", "lexicon", "rarity", "similar_words")),
    "shuffle_blocks": None,  # the whole corpus
}


def read_run(output):
    """Reads the settings of the run in a folder.

    Args:
        output: `pathlib.Path`.

    Returns:
        dict of the run's flags, and `finished`, the steps of its model; empty if there is no run.
    """
    settings = read_settings(output)
    with messages.reading(output / FILE_NAME):
        return _complete(output, settings)


def _complete(output, settings):
    """The settings of a run, with those that an older version did not write."""
    if settings:
        settings["report_every"] = find_report_every(settings["steps"], settings["report_every"])
        settings.setdefault("finished", settings["steps"] if (output / "model").exists() else 0)
        settings = {**FORMER_VALUES, **settings}
        if settings.get("checkpoint"):
            for name in MODEL_FLAGS:
                settings.pop(name, None)
    return settings


def keep_defaults(values, before):
    """Sets flags that were not given, and whose defaults have changed, to the values of the run.

    Args:
        values: the flags.
        before: dict, which `read_run` has returned.
    """
    for name in ("max_predictions", "dropout", "shuffle_blocks"):
        if name in before and values[name].using_default_value:
            values[name].value = before[name]


@contextlib.contextmanager
def claim_folder(output, before, settings):
    """Writes the settings of a new run, or compares them with the run in the folder.

    The folder is locked while the block runs, so that no second run writes to it. If the block
    raises, and there is neither a checkpoint nor a model, the files of the run are removed. So a
    command with other settings can take their place.

    Args:
        output: `pathlib.Path`.
        before: dict, which `read_run` has returned.
        settings: dict of the flags at hand. `steps` may be more than before.

    Yields:
        `settings` with `finished`, the steps of the run's model, 0 if there is none.

    Raises:
        ValueError: if the folder holds a run with other settings.
        FileExistsError: if the folder holds other files.
        BlockingIOError: if another process has the folder.
    """
    settings = {**settings, "finished": before.get("finished", 0)}
    made = list_missing(output)
    _check_run(output, before, settings)
    output.mkdir(parents=True, exist_ok=True)
    try:
        with folder_lock.lock_folder(output):
            if settings != before:
                write_settings(output, settings)
            try:
                yield settings
            except BaseException:
                if not any(output.glob("checkpoints/*")) and not (output / "model").exists():
                    drop_run(output)
                raise
    except BaseException:
        remove_empty(made)
        raise


def _check_run(output, before, settings):
    """Raises unless a folder is new, or holds the run with these settings."""
    if before:
        steps = max(before["steps"], settings["steps"])
        advice = (
            "Give it the same flags to resume it, raise --steps to prolong it, or choose another "
            "--output."
        )
        digests = settings[CORPUS_DIGESTS]
        # The folder may have been moved, and so may the corpora.
        moved = {"output": settings["output"], CORPUS_DIGESTS: digests}
        if before.get(CORPUS_DIGESTS) == digests:
            moved["corpus"] = settings["corpus"]
        elif CORPUS_DIGESTS in before:
            if before["corpus"] == settings["corpus"]:
                raise ValueError(
                    f"The run in {output} began with another corpus: the manifest.json of "
                    "--corpus differs. Restore the corpus, or choose another --output."
                )
            moved[CORPUS_DIGESTS] = before[CORPUS_DIGESTS]
        check_settings(output, {**before, **moved, "steps": steps}, settings, advice)
    elif holds_files(output):
        raise FileExistsError(
            f"{output} holds files, but no run of keras-bert pretrain. Choose another path."
        )


def drop_run(output):
    """Removes the files of a run that has neither a checkpoint nor a model."""
    for name in ("checkpoints", "tensorboard"):
        shutil.rmtree(output / name, ignore_errors=True)
    for name in ("log.csv", FILE_NAME):
        (output / name).unlink(missing_ok=True)


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
