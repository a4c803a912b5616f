"""Faults of the machine around a run: kills, full and slow disks, stops, clocks, a second run."""

import contextlib
import itertools
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from fault_runs import (
    Counts,
    Preparation,
    Pretraining,
    check_status,
    fork_command,
    prepare_command,
    pretrain_command,
    read_folder,
)
from forks import is_running, kill_later, list_children, wait, wait_until

#: Of the kills, the share that hits `keras-bert prepare`, and of these the share that hits a
#: preparation with two workers, whose start takes seconds.
PREPARE_SHARE, WORKERS_SHARE = 0.2, 0.1

#: A kill falls from 0 to so many seconds after the fork or, just as often, after the first batch.
SECONDS_TO_KILL = 1.5

#: Bytes of the disk that becomes full. A checkpoint of the runs takes 5 MB.
DISK_BYTES = 40 << 20


def kill_runs(bench, number, make, kill):
    """SIGKILL at random moments of runs; each goes on until it is done.

    Args:
        bench: `Bench`.
        number: int, kills.
        make: function of a name that returns a run.
        kill: function of a run and of the process id of an attempt. It kills a process of the
            attempt, or lets the attempt end.
    """
    counts = Counts()
    for run in bench.draw_runs(make, counts, number):
        while counts.faults < number and not counts.unresumable:
            child = run.start()
            kill(run, child)
            status = wait(child)
            if status == 0:
                break
            counts.faults += 1
            run.judge(status, counts)
    return counts


def kill_pretrainings(bench, number):
    """SIGKILL at random moments of pretrainings."""

    def kill(run, child):
        seconds = bench.rng.uniform(0, SECONDS_TO_KILL)
        if bench.rng.random() < 0.5:
            kill_later(child, seconds)
        else:
            lines = run.num_lines()
            kill_later(child, seconds / 2, lambda: run.num_lines() >= lines + 2)

    return kill_runs(bench, number, bench.make_pretraining, kill)


def kill_preparations(bench, number):
    """SIGKILL at random moments of preparations."""

    def kill(run, child):
        kill_later(child, bench.rng.uniform(0, bench.prepare_seconds))

    return kill_runs(bench, number, bench.make_preparation, kill)


def kill_workers(bench, number):
    """SIGKILL at random moments of preparations, of the parent or of one of its two workers."""

    def kill(run, child):
        seconds = bench.rng.uniform(0, bench.prepare_seconds + 12)
        if bench.rng.random() < 0.5:
            kill_later(child, seconds)
        elif wait_until(time.monotonic() + seconds, child):
            with contextlib.suppress(IndexError, ProcessLookupError):
                os.kill(list_children(child)[-1], signal.SIGKILL)

    return kill_runs(bench, number, lambda name: bench.make_preparation(name, workers=2), kill)


def fill_disk(bench, number):
    """Pretrainings on a disk that is full from time to time; None if none can be mounted."""
    counts = Counts()
    with tempfile.TemporaryDirectory() as place:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", place]
        if subprocess.run(mount, capture_output=True).returncode:
            return None
        try:
            for index in range(number):
                disk = Path(place) / str(index)
                disk.mkdir()
                run = bench.make_pretraining(f"{disk}/run")
                child = run.start()
                _fill_and_free(disk / "filler", child, bench.rng)
                status = wait(child)
                counts.faults += 1
                log = run.log.read_text()
                # A run may end, if it says why, or go on with a warning.
                if status:
                    counts.unresumable += "space" not in log
                    counts.found += 1
                run.finish(counts)
                subprocess.run(["rm", "-r", str(disk)])
        finally:
            subprocess.run(["umount", place], check=True)
    return counts


def _fill_and_free(filler, child, rng):
    """Fills the disk and makes room again, until a process ends."""
    while is_running(child):
        with contextlib.suppress(OSError), open(filler, "wb") as file:
            while True:
                file.write(bytes(1 << 16))
                file.flush()
        wait_until(time.monotonic() + rng.uniform(0, 1), child)
        filler.unlink()
        wait_until(time.monotonic() + rng.uniform(0, 0.5), child)


def slow_disks(bench, number):
    """Pretrainings whose flushes and renames take up to a tenth of a second, and one kill each."""
    return _disturb(bench, number, lambda: _slow_disk(bench.rng.random()))


@contextlib.contextmanager
def _slow_disk(seed):
    rng, lock = random.Random(seed), threading.Lock()

    def delay(function):
        def call(*arguments, **keywords):
            with lock:
                seconds = rng.uniform(0, 0.1)
            time.sleep(seconds)
            return function(*arguments, **keywords)

        return call

    os.fsync, os.replace, os.rename = map(delay, (os.fsync, os.replace, os.rename))
    yield


def jump_clocks(bench, number):
    """Pretrainings whose clock jumps by days, forwards and backwards, whenever they read it."""
    return _disturb(bench, number, lambda: _jumping_clock(bench.rng.random()))


@contextlib.contextmanager
def _jumping_clock(seed):
    rng, true_time = random.Random(seed), time.time
    time.time = lambda: true_time() + rng.uniform(-1e6, 1e6)
    time.time_ns = lambda: int(time.time() * 1e9)
    yield


def _disturb(bench, number, disturb):
    """Pretrainings with a disturbance in each attempt. The first attempt of each is killed."""
    counts = Counts()
    for run in bench.draw_runs(bench.make_pretraining, counts, number):
        child = run.start(disturb)
        kill_later(child, bench.rng.uniform(0.5, 2 * SECONDS_TO_KILL))
        wait(child)
        counts.faults += 1
        counts.unresumable += wait(run.start(disturb)) != 0
    return counts


def stop_and_continue(bench, number):
    """SIGSTOP and, a moment later, SIGCONT, at random moments of pretrainings."""
    counts = Counts()
    for run in bench.draw_runs(bench.make_pretraining, counts, number):
        child = run.start()
        while is_running(child) and counts.faults < number:
            wait_until(time.monotonic() + bench.rng.uniform(0.05, 0.5), child)
            os.kill(child, signal.SIGSTOP)
            time.sleep(bench.rng.uniform(0, 0.2))
            os.kill(child, signal.SIGCONT)
            counts.faults += 1
        counts.unresumable += wait(child) != 0
    return counts


def run_twice(bench, number):
    """A second run on the folder of one that runs; the second must say so, and leave it alone."""
    counts, makers = Counts(), itertools.cycle([bench.make_preparation, bench.make_pretraining])
    for run in bench.draw_runs(lambda name: next(makers)(name), counts, number):
        first = run.start()
        lock = run.output / ".lock"
        while not (lock.exists() and lock.stat().st_size) and is_running(first):
            time.sleep(0.001)
        os.kill(first, signal.SIGSTOP)
        counts.faults += 1
        log = run.log.with_suffix(".second")
        status = wait(fork_command(run.command, log))
        message = log.read_text()
        named = str(run.output) in message and "write to another folder" in message
        counts.found += status == 1 and named
        counts.silent += status != 1 or not named
        os.kill(first, signal.SIGCONT)
        counts.unresumable += wait(first) != 0
    return counts


class Bench:
    """The folder of a benchmark, with a corpus and the results of undisturbed runs.

    Args:
        folder: `pathlib.Path`.
        seed: int.
    """

    def __init__(self, folder, seed):
        self.folder, self.rng = folder, random.Random(seed)
        self.undisturbed = self.shards = None
        self.corpus = folder / "undisturbed-shards"
        run = self.make_preparation(self.corpus.name)
        begin = time.monotonic()
        check_status(run, wait(run.start()))
        self.prepare_seconds = time.monotonic() - begin
        self.shards = read_folder(run.output)
        self.undisturbed = self.make_pretraining("undisturbed")
        check_status(self.undisturbed, wait(self.undisturbed.start()))

    def make_pretraining(self, name):
        """A new `Pretraining` with the undisturbed one, or the undisturbed one itself."""
        output = self.folder / name
        command = pretrain_command(self.corpus, output)
        return Pretraining(command, output, self.undisturbed)

    def make_preparation(self, name, workers=1):
        """A new `Preparation`."""
        output = self.folder / name
        return Preparation(prepare_command(self.folder, output, workers), output, self.shards)

    def draw_runs(self, make, counts, number):
        """Yields runs until `number` faults are counted, or a run could not go on.

        Each run then goes on to its end, is compared, and is removed.

        Args:
            make: function of a name that returns a run.
            counts: `Counts`, to which the caller adds the faults.
            number: int.
        """
        index = 0
        while counts.faults < number and not counts.unresumable:
            run = make(f"run-{index}")
            yield run
            run.finish(counts)
            subprocess.run(["rm", "-rf", str(run.output)], check=True)
            for file in run.output.parent.glob(f"{run.output.name}.*"):
                file.unlink()
            index += 1
