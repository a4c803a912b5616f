"""The folder of a run. It keeps the flags of the run, so that the same command resumes it."""

import contextlib
import shutil
import signal

from keras_bert_suite.files import atomic_file, folder_lock

FILE_NAME = "settings.json"


def read_settings(folder):
    """The settings of the run in a folder, dict of flag -> value; empty if there is none."""
    file = folder / FILE_NAME
    if not file.is_file():
        return {}
    try:
        return atomic_file.parse_sealed_json(file.read_bytes())
    except ValueError as error:
        raise ValueError(
            f"{file} {error}. It is damaged: restore it, or move {folder} away to begin anew. If "
            f"it was changed on purpose, remove its entry {atomic_file.SEAL!r}."
        ) from None


def write_settings(folder, settings):
    """Writes the settings of a run, which JSON can hold, to its folder."""
    atomic_file.write_sealed_json(folder / FILE_NAME, settings)


def check_run(folder, before, settings):
    """Raises an error unless a folder is new, or holds the run with these settings.

    `before` comes from `read_settings`. Other settings are a ValueError that names each flag, and
    files of something else a FileExistsError.
    """
    if not before and holds_files(folder):
        raise FileExistsError(f"{folder} holds files, but no run. Choose another folder.")
    differences = [
        f"--{name} was {before.get(name)!r} and is {value!r}"
        for name, value in sorted(settings.items())
        if before and before.get(name) != value
    ]
    if differences:
        raise ValueError(
            f"{folder} holds a run with other settings: {'; '.join(differences)}. Give the same "
            "flags to resume it, choose another folder, or delete this one to begin anew."
        )


def holds_files(folder):
    """Whether a folder holds more than the files of a run that was killed as it began."""
    return folder.exists() and any(
        path.name != folder_lock.LOCK_FILE
        and not (path.name.startswith(f".{FILE_NAME}.") and path.suffix == atomic_file.ASIDE)
        for path in folder.iterdir()
    )


@contextlib.contextmanager
def claim_folder(folder, before, settings):
    """Writes the settings of a run to its folder, which is locked while the block runs.

    So no second run writes to it. If the block raises, and there is neither a checkpoint nor a
    model, the files of the run are removed, and so are the folders that were made for it. So a
    command with other settings can take their place. The block gets the settings. If another
    process has the folder, that is a BlockingIOError.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with folder_lock.lock_folder(folder):
            if settings != before:
                write_settings(folder, settings)
            try:
                yield settings
            except BaseException:
                if not any(folder.glob("checkpoints/*")) and not (folder / "model").exists():
                    drop_run(folder)
                raise
    except BaseException:
        with contextlib.suppress(OSError):  # A folder with files stays.
            for path in made:
                path.rmdir()
        raise


def drop_run(folder):
    """Removes the checkpoints, the logs and the settings of a run from its folder."""
    for name in ("checkpoints", "tensorboard"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("log.csv", FILE_NAME):
        (folder / name).unlink(missing_ok=True)


def report_stop():
    """Says that SIGTERM has stopped a training, and returns 143.

    A shell reports this status for a process that SIGTERM has ended. So a command after `&&` does
    not run. No model was written.
    """
    print("stopped; the same command resumes the run")
    return 128 + signal.SIGTERM
