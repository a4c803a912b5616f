"""Begins or resumes a pretraining: its settings, and the folder of the run."""

import contextlib

from keras_bert_suite.files.checksums import find_digest

from .command_flags import UsageError
from .corpus_shares import read_shares
from .devices import is_leader
from .model_paths import check_model, digest_corpus
from .new_models import CHARACTERS, MODEL_FLAGS, check_model_flags
from .run_settings import check_run, claim_folder, read_settings

#: Flags that may change from one start of a run to the next. The manifests of the corpora stand for
#: their folders.
MAY_CHANGE = (
    *("corpus", "output", "keep", "checkpoint_every", "tensorboard", "sequence_packing", "devices"),
    *("backend", "traceback", "given"),
)


def begin_run(values, output):
    """Checks the flags before Keras is imported, and claims the folder of the run.

    Returns:
        a context manager, as of `claim_folder`, with the settings of the run.
    """
    before = read_settings(output)
    # A checkpoint is made for one distance between lines of the log. So a run that is prolonged
    # keeps its distance.
    wanted = values.report_every or before.get("report_every")
    report_every = find_report_every(values.steps, wanted)
    check_accumulate(values.steps, values.accumulate)
    check_model_flags(values)
    if values.checkpoint:
        check_model(values.checkpoint)
    settings = {
        **settings_of(values),
        "report_every": report_every,
        "finished": before.get("finished", 0),  # The steps of the model, 0 if there is none.
    }
    if not is_leader(values):
        return contextlib.nullcontext(settings)
    may_grow = {"steps": max(before["steps"], values.steps)} if before else {}
    check_run(output, {**before, **may_grow}, settings)
    return claim_folder(output, before, settings)


def find_report_every(steps, wanted):
    """Steps from one line of the log to the next. They divide all steps.

    They are `wanted`, or for None make about 50 lines of equal length.
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


def check_accumulate(steps, accumulate):
    """Raises a `UsageError` if the last steps would make no update."""
    if steps % accumulate:
        raise UsageError(
            f"--accumulate={accumulate} does not divide --steps={steps}, and the last "
            f"{steps % accumulate} steps would make no update; choose "
            f"--steps={steps + accumulate - steps % accumulate}"
        )


def settings_of(values):
    """dict of the settings that a run must keep: flags, and the hashes of small files."""
    left_out = (*MAY_CHANGE, *(MODEL_FLAGS if values.checkpoint else ()))
    settings = {name: value for name, value in vars(values).items() if name not in left_out}
    corpora = read_shares(values.corpus).items()
    settings["corpus (SHA-256)"] = [[digest_corpus(folder), share] for folder, share in corpora]
    for name in ("lexicon", "similar_words", "token_parts"):
        if (path := getattr(values, name)) not in (None, CHARACTERS):
            settings[f"{name} (SHA-256)"] = find_digest(path)
    return settings
