"""The folder of checkpoints from which a fine-tuning resumes."""

import contextlib
import shutil

from keras_bert_suite.files import folder_lock

from .run_settings import (
    FILE_NAME,
    check_settings,
    holds_files,
    list_missing,
    read_settings,
    remove_empty,
    write_settings,
)


@contextlib.contextmanager
def claim_folder(folder, settings, idle_flags=()):
    """Keeps the checkpoints of a run until its result is written.

    The folder is locked while the block runs, so that no second run writes to it. If the block
    raises and a checkpoint has been written, the folder stays. `drop_folder` removes it.

    Args:
        folder: `pathlib.Path`.
        settings: dict of flag name -> value that JSON can hold. A run that resumes needs the same
            settings.
        idle_flags: names of flags that do not count, because the run does not read them. Runs of
            older versions have some of them.

    Raises:
        ValueError: if the folder holds a run with other settings.
        FileExistsError: if the folder holds other files.
        BlockingIOError: if another process has the folder.
    """
    made = list_missing(folder)
    before = read_settings(folder)
    if before:
        advice = "Give it the same flags to resume it, or delete the folder to begin anew."
        before = {name: value for name, value in before.items() if name not in idle_flags}
        check_settings(folder, before, settings, advice)
    elif folder.exists() and (not folder.is_dir() or holds_files(folder)):
        raise FileExistsError(
            f"{folder} is no folder of checkpoints of keras-bert finetune. Choose another place "
            "with --checkpoint_dir."
        )
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with folder_lock.lock_folder(folder):
            if not before:
                write_settings(folder, settings)
            try:
                yield
            except BaseException:
                if not any(folder.glob("checkpoints/*")):
                    drop_folder(folder)
                raise
    except BaseException:
        remove_empty([folder, *made[1:]])
        raise


def drop_folder(folder):
    """Removes the files of a run from its folder, and the folder if it is then empty."""
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    for name in ("epochs.json", FILE_NAME):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()
