"""Runs of the command line that are killed, stopped and disturbed; for faults.py.

One process imports everything, and forks a child for each attempt, see `tests/forks.py`.

A pretraining writes a trace: where each attempt begins, and the number and the loss so far of each
batch, to the bit. The traces and the last checkpoint are compared with those of a run that nothing
disturbs. A run of `keras-bert prepare` is compared with an undisturbed run by all of its files.
"""

import contextlib
import dataclasses
import os
import random
import signal
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from forks import fork, num_lines, wait

WORDS = "the film was good bad very not a and of it plot acting great awful dull fine".split()
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##s", ".", ",", "!"]

#: Batches of a pretraining, and batches from one of its checkpoints to the next.
STEPS = 60
EVERY = 3


@dataclasses.dataclass
class Counts:
    """What came of the faults of a part. The first five counts of outcomes must be 0.

    Attributes:
        faults: int, how many were injected.
        unresumable: int, runs or attempts that failed by themselves, without or after a fault.
        silent: int, wrong results without an error.
        skipped, repeated: int, batches that are not, or twice, in the history of the weights.
        hung: int, processes that did not end within their limit after another was lost.
        found: int, faults that an error or a warning has named.
        harmless: int, faults that changed nothing.
    """

    faults: int = 0
    unresumable: int = 0
    silent: int = 0
    skipped: int = 0
    repeated: int = 0
    hung: int = 0
    found: int = 0
    harmless: int = 0

    @property
    def bad(self):
        """int, the outcomes that must not be."""
        return self.unresumable + self.silent + self.skipped + self.repeated + self.hung


def write_corpus(folder, seed=0):
    """Writes `corpus.txt`, some documents, and `vocab.txt`."""
    rng = random.Random(seed)
    documents = [
        "\n".join(" ".join(rng.choices(WORDS, k=rng.randint(3, 8))) for _ in range(6))
        for _ in range(200)
    ]
    (folder / "corpus.txt").write_text("\n\n".join(documents) + "\n")
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")


def prepare_command(folder, output, workers=1):
    """The arguments of `keras-bert prepare` for the corpus of a folder: 14 shards."""
    inputs = "--input", str(folder / "corpus.txt"), "--vocab", str(folder / "vocab.txt")
    return ["prepare", *inputs, "--output", str(output), f"--workers={workers}", "--slice_mb=0.003"]


def pretrain_command(corpus, output):
    """The arguments of `keras-bert pretrain` for a model that a process trains in seconds."""
    sizes = "--size=tiny", "--batch_size=4", "--sequence_length=16", "--max_predictions=3"
    steps = f"--steps={STEPS}", "--report_every=20", f"--checkpoint_every={EVERY}"
    return [
        *("pretrain", "--corpus", str(corpus), "--output", str(output)),
        *(*sizes, *steps, "--held_out=0.2", "--evaluation_batches=2"),
    ]


def import_everything():
    """Imports what the commands import, and lets pretrainings write traces."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot  # noqa: F401

    import keras_bert_cli.pretraining_report  # noqa: F401
    import keras_bert_suite.corpus
    import keras_bert_suite.pretraining  # noqa: F401
    from keras_bert_suite import TrainingCheckpoint

    begin, end = TrainingCheckpoint.on_train_begin, TrainingCheckpoint.on_train_batch_end

    def on_train_begin(self, logs=None):
        begin(self, logs)
        _append(self, f"from {self.progress.batches}")

    def on_train_batch_end(self, batch, logs=None):
        end(self, batch, logs)
        _append(self, f"{self.progress.batches} {float(logs['loss']).hex()}")

    TrainingCheckpoint.on_train_begin = on_train_begin
    TrainingCheckpoint.on_train_batch_end = on_train_batch_end


def trace_file(output):
    """`pathlib.Path` of the trace of a run, beside its folder."""
    return output.with_name(f"{output.name}.trace")


def _append(checkpoint, line):
    # Of processes that share a run, the one that writes the checkpoints writes the trace.
    if os.environ.get("RANK", "0") != "0":
        return
    with open(trace_file(checkpoint.directory.parent), "ab", buffering=0) as file:
        file.write(line.encode() + b"\n")


def read_trace(output):
    """[(batches done at the start, {number of a batch: its loss})] of each attempt of a run.

    Raises:
        ValueError: if the batches of an attempt do not follow one another.
    """
    attempts, file = [], trace_file(output)
    for line in file.read_text().splitlines() if file.exists() else ():
        number, _, loss = line.partition(" ")
        if number == "from":
            attempts.append((int(loss), {}))
            continue
        first, losses = attempts[-1]
        if int(number) != first + len(losses) + 1:
            raise ValueError(f"{file}: batch {number} after {first + len(losses)}")
        losses[int(number)] = loss
    return attempts


def fork_command(command, log, disturb=contextlib.nullcontext):
    """Runs a command in a child.

    Args:
        command: list of str, the arguments of `keras-bert`.
        log: `pathlib.Path` of a file for its output.
        disturb: function that returns a context manager, in which the child runs the command.

    Returns:
        int, the process id.
    """
    return fork(_run_command, command, log, disturb)


def _run_command(command, log, disturb):
    from keras_bert_cli import main

    write_output_to(log)
    with disturb():
        return main(command)


def write_output_to(log):
    """Lets this process write its output and its errors to a new file."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)


class Run:
    """A run of the command line that is disturbed, and goes on.

    Args:
        command: list of str, the arguments of `keras-bert`.
        output: `pathlib.Path`, the folder of the run.
    """

    def __init__(self, command, output):
        self.command, self.output = command, output
        self.log = output.with_name(f"{output.name}.log")

    def start(self, disturb=contextlib.nullcontext):
        """The process id of one more attempt."""
        return fork_command(self.command, self.log, disturb)

    def judge(self, status, counts):
        """Counts what came of an attempt that was to be killed, and has not ended with 0."""
        counts.unresumable += status != -signal.SIGKILL

    def finish(self, counts):
        """Goes on without disturbance to the end, and counts what is wrong."""
        status = wait(self.start())
        if status:
            counts.unresumable += 1
            print(f"{self.output} ended with {status}:\n{self.log.read_text()}", file=sys.stderr)
        else:
            self.compare(counts)


class Pretraining(Run):
    """A run of `keras-bert pretrain`, which is disturbed, and the run that is not.

    Args:
        command, output: as of `Run`.
        undisturbed: `Pretraining`, or None for the undisturbed run.
    """

    def __init__(self, command, output, undisturbed=None):
        super().__init__(command, output)
        self.undisturbed = undisturbed

    def num_lines(self):
        """int, the lines of the trace."""
        return num_lines(trace_file(self.output))

    def compare(self, counts):
        """Counts what differs from the undisturbed run."""
        self._compare_traces(counts)
        found, wanted = self.read_result(), self.undisturbed.read_result()
        others = sorted(n for n in found.keys() | wanted if found.get(n) != wanted.get(n))
        if others:
            counts.silent += 1
            print(f"{self.output} has other values of {', '.join(others)}", file=sys.stderr)

    def has_wrong_losses(self, losses, wanted):
        """Whether a loss of an attempt is not that of the undisturbed run, to the bit."""
        return any(wanted[number] != loss for number, loss in losses.items())

    def _compare_traces(self, counts):
        wanted = {}
        for _, losses in read_trace(self.undisturbed.output):
            wanted |= losses
        done = 0
        for first, losses in read_trace(self.output):
            counts.skipped += max(0, first - done)
            # At most the checkpoint that was being written is lost, and the one before it.
            counts.repeated += max(0, done - 2 * EVERY - first)
            counts.silent += self.has_wrong_losses(losses, wanted)
            done = max(done, first + len(losses))
        counts.skipped += STEPS - done

    def read_result(self):
        """dict of name -> bytes, the variables at the end and the arrays of the model."""
        import h5py

        content = self.read_variables()

        def read(name, item):
            if isinstance(item, h5py.Dataset):
                content[f"model/{name}"] = item[()].tobytes()

        with h5py.File(self.output / "model" / "model.weights.h5") as file:
            file.visititems(read)
        return content

    def read_variables(self):
        """dict of name -> bytes, all variables of the last checkpoint."""
        from keras_bert_suite.runs.run_checkpoints import find_checkpoint, read_arrays

        path, _ = find_checkpoint(self.output / "checkpoints")
        arrays = read_arrays(path)
        return {name: arrays[name].tobytes() for name in arrays}


class Preparation(Run):
    """A run of `keras-bert prepare`, which is disturbed.

    Args:
        command, output: as of `Run`. `output` is the folder of the shards.
        undisturbed: dict from `read_folder`.
    """

    def __init__(self, command, output, undisturbed):
        super().__init__(command, output)
        self.undisturbed = undisturbed

    def judge(self, status, counts):
        """The same. If a worker was killed, the parent says so, and that the command goes on."""
        if status > 0 and "A worker process ended" in self.log.read_text():
            return
        super().judge(status, counts)

    def compare(self, counts):
        """Counts what differs from the undisturbed run."""
        counts.silent += read_folder(self.output) != self.undisturbed


def check_status(run, status):
    """Ends the benchmark if an undisturbed run has failed."""
    if status:
        sys.exit(f"The undisturbed run ended with {status}:\n{run.log.read_text()}")


def read_folder(folder):
    """dict of name -> content of the files of a folder that are not hidden."""
    return {
        path.name: path.read_bytes()
        for path in sorted(Path(folder).iterdir())
        if not path.name.startswith(".")
    }
