"""The folder from which a fine-tuning that was killed goes on."""

import contextlib
import hashlib
import json
import shutil
import signal

from .standalone import atomic_file


@contextlib.contextmanager
def training_state(folder, settings):
    """Keeps what a run needs to go on, from before it begins until its result is written.

    The folder stays if the block raises and a checkpoint has been written; `drop_state`
    removes it.

    Args:
        folder: `pathlib.Path`.
        settings: dict, name of a flag -> what JSON can hold; those of the run to go on with
            must be the same.

    Raises:
        ValueError: if there is a run with other settings, naming them.
        FileExistsError: if there is something else.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    file = folder / "settings.json"
    if file.is_file():
        _compare(folder, json.loads(file.read_text(encoding="utf-8")), settings)
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(
            f"{folder} is no folder of checkpoints of keras-bert finetune. Choose another place "
            "with --checkpoint_dir."
        )
    else:
        folder.mkdir(parents=True, exist_ok=True)
        atomic_file.write_json(file, settings)
    try:
        yield
    except BaseException:
        if not any(folder.glob("checkpoints/*")):
            drop_state(folder)
            with contextlib.suppress(OSError):  # Another may have written to them meanwhile.
                for path in made[1:]:
                    path.rmdir()
        raise


def drop_state(folder):
    """Removes what a run has left in its folder, and the folder if that was all."""
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    for name in ("epochs.json", "settings.json"):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _compare(folder, before, now):
    differences = [
        f"--{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
    if differences:
        raise ValueError(
            f"{folder} holds the checkpoints of a run with other settings: "
            f"{'; '.join(differences)}. Give it the same flags to go on, or delete the folder to "
            "begin anew."
        )


def report_stop():
    """Says that SIGTERM has stopped a training.

    Returns:
        int, the exit status 143, as a shell has it for a process that SIGTERM ended: a command
        after `&&` must not run, since no model was written.
    """
    print("stopped; the same command goes on")
    return 128 + signal.SIGTERM


def find_digest(path):
    """The SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
