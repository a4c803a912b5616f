"""Faults of the machine around a run: kills, full and slow disks, stops, clocks, a second run."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from fault_runs import (
    Counts,
    Preparation,
    Pretraining,
    fork,
    is_running,
    kill_later,
    read_folder,
    wait,
)

#: Of the kills, the share that hits `keras-bert prepare`, and of these the share that hits a
#: preparation with two workers, whose start takes seconds.
PREPARE_SHARE, WORKERS_SHARE = 0.2, 0.1

#: A kill falls from 0 to so many seconds after the fork or, just as often, after the first batch.
SECONDS_TO_KILL = 1.5

#: Bytes of the disk that becomes full. A checkpoint of the runs takes 5 MB.
DISK_BYTES = 40 << 20


def kill_pretrainings(bench, number):
    """SIGKILL at random moments of pretrainings; each goes on until it is done."""
    counts, runs = Counts(), 0
    while counts.faults < number and not counts.unresumable:
        run = bench.make_pretraining(f"killed-{runs}")
        runs += 1
        while counts.faults < number:
            child, lines = run.start(), run.num_lines()
            seconds = bench.rng.uniform(0, SECONDS_TO_KILL)
            if bench.rng.random() < 0.5:
                kill_later(child, seconds)
            else:
                kill_later(child, seconds / 2, lambda: run.num_lines() >= lines + 2)  # noqa: B023
            status = wait(child)
            counts.faults += status == -signal.SIGKILL
            if status != -signal.SIGKILL:
                counts.unresumable += status != 0
                break
        run.finish(counts)
        bench.remove(run)
    return counts


def kill_preparations(bench, number, workers=1):
    """SIGKILL at random moments of preparations, of the parent or of one of its workers."""
    counts, runs = Counts(), 0
    seconds = bench.prepare_seconds if workers == 1 else bench.prepare_seconds + 12
    while counts.faults < number and not counts.unresumable:
        run = bench.make_preparation(f"prepared-{workers}-{runs}", workers)
        runs += 1
        while counts.faults < number:
            child = run.start()
            if workers > 1 and bench.rng.random() < 0.5:
                status = _kill_worker(child, bench.rng.uniform(0, seconds))
                if status == 0:
                    break
                # The parent says which worker has ended, and that the same command goes on.
                counts.faults += 1
                counts.unresumable += "A worker process ended" not in run.log.read_text()
                continue
            kill_later(child, bench.rng.uniform(0, seconds))
            status = wait(child)
            counts.faults += status == -signal.SIGKILL
            if status != -signal.SIGKILL:
                counts.unresumable += status != 0
                break
        run.finish(counts)
        bench.remove(run)
    return counts


def _kill_worker(child, seconds):
    """Kills a worker of a preparation `seconds` after the fork, and returns the parent's status."""
    moment = time.monotonic() + seconds
    while is_running(child):
        file = Path(f"/proc/{child}/task/{child}/children")
        workers = file.read_text().split()
        if workers and time.monotonic() >= moment:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(workers[-1]), signal.SIGKILL)
            break
        time.sleep(0.002)
    return wait(child)


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
                run = bench.make_pretraining("run", disk)
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
        _wait_for(child, rng.uniform(0, 1))
        filler.unlink()
        _wait_for(child, rng.uniform(0, 0.5))


def _wait_for(child, seconds):
    end = time.monotonic() + seconds
    while is_running(child) and time.monotonic() < end:
        time.sleep(0.005)


def slow_disks(bench, number):
    """Pretrainings whose flushes and renames take up to a tenth of a second, and one kill each."""
    return _disturb(bench, number, lambda: _slow_disk(bench.rng.random()), "slow", kill=True)


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
    return _disturb(bench, number, lambda: _jumping_clock(bench.rng.random()), "clock", kill=True)


@contextlib.contextmanager
def _jumping_clock(seed):
    rng, true_time = random.Random(seed), time.time
    time.time = lambda: true_time() + rng.uniform(-1e6, 1e6)
    time.time_ns = lambda: int(time.time() * 1e9)
    yield


def _disturb(bench, number, disturb, name, kill):
    """Pretrainings with a disturbance in each attempt. One attempt of each is killed."""
    counts = Counts()
    for index in range(number):
        run = bench.make_pretraining(f"{name}-{index}")
        child = run.start(disturb)
        if kill:
            kill_later(child, bench.rng.uniform(0.5, 2 * SECONDS_TO_KILL))
            wait(child)
            child = run.start(disturb)
        counts.faults += 1
        counts.unresumable += wait(child) != 0
        run.finish(counts)
        bench.remove(run)
    return counts


def stop_and_continue(bench, number):
    """SIGSTOP and, a moment later, SIGCONT, at random moments of pretrainings."""
    counts, runs = Counts(), 0
    while counts.faults < number and not counts.unresumable:
        run = bench.make_pretraining(f"stopped-{runs}")
        runs += 1
        child = run.start()
        while is_running(child) and counts.faults < number:
            _wait_for(child, bench.rng.uniform(0.05, 0.5))
            os.kill(child, signal.SIGSTOP)
            time.sleep(bench.rng.uniform(0, 0.2))
            os.kill(child, signal.SIGCONT)
            counts.faults += 1
        counts.unresumable += wait(child) != 0
        run.finish(counts)
        bench.remove(run)
    return counts


def run_twice(bench, number):
    """A second run on the folder of one that runs; the second must say so, and leave it alone."""
    counts = Counts()
    for index in range(number):
        if index % 2:
            run = bench.make_pretraining(f"twice-{index}")
        else:
            run = bench.make_preparation(f"twice-{index}", workers=1)
        first = run.start()
        lock = run.output / ".lock"
        while not (lock.exists() and lock.stat().st_size) and is_running(first):
            time.sleep(0.001)
        os.kill(first, signal.SIGSTOP)
        counts.faults += 1
        log = run.log.with_suffix(".second")
        status = wait(fork(run.command, log))
        message = log.read_text()
        named = str(run.output) in message and "write to another folder" in message
        counts.found += status == 1 and named
        counts.silent += status != 1 or not named
        os.kill(first, signal.SIGCONT)
        counts.unresumable += wait(first) != 0
        run.finish(counts)
        bench.remove(run)
    return counts


class Bench:
    """The folder of a benchmark, with a corpus and the results of undisturbed runs.

    Args:
        folder: `pathlib.Path`.
        seed: int.
    """

    def __init__(self, folder, seed):
        self.folder, self.rng = folder, random.Random(seed)
        output = folder / "undisturbed-shards"
        run = Preparation(folder, output, {})
        begin = time.monotonic()
        _check(run, wait(run.start()))
        self.prepare_seconds = time.monotonic() - begin
        self.shards = read_folder(output)
        self.undisturbed = Pretraining(output, folder / "undisturbed")
        _check(self.undisturbed, wait(self.undisturbed.start()))

    def make_pretraining(self, name, folder=None):
        """A new `Pretraining`."""
        output = (folder or self.folder) / name
        return Pretraining(self.folder / "undisturbed-shards", output, self.undisturbed)

    def make_preparation(self, name, workers):
        """A new `Preparation`."""
        return Preparation(self.folder, self.folder / name, self.shards, workers)

    def remove(self, run):
        """Removes the folder of a run."""
        subprocess.run(["rm", "-rf", str(run.output)], check=True)


def _check(run, status):
    if status:
        sys.exit(f"The undisturbed run ended with {status}:\n{run.log.read_text()}")
