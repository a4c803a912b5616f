"""Kills one of two processes that share a pretraining; for faults.py.

Under PyTorch they run `keras-bert pretrain`, as `torchrun` would start it, but are forks, so that
nothing is imported anew. Under JAX the run is a script in two processes, as in docs/distributed.md,
since the command line has one.
"""

import contextlib
import os
import signal
import sys
import time

from fault_disturbances import kill_runs
from fault_runs import EVERY, STEPS, Pretraining, check_status, pretrain_command, write_output_to
from forks import fork, is_running, list_children, wait, wait_until
from harness.loopback import find_free_port, make_environment

#: What JAX says of a lost process: in a sum, without heartbeats, and before all have come.
JAX_ERRORS = ("closed by peer", "reset by peer", "JAX distributed service", "DEADLINE_EXCEEDED")

#: What the parent prints when it ends a process that has not ended by itself.
ENDED = "a process had to be ended"

#: Seconds in which the process that is left must end by itself.
GRACE = 20

#: Seconds in which JAX notices that a process is silent, and that it does not come at the start.
#: The defaults are 100 and 300.
HEARTBEAT, ARRIVAL = 10, 60


class SharedPretraining(Pretraining):
    """A pretraining of two processes, which a parent starts and waits for.

    Attributes:
        seconds: float, from the start of the undisturbed run to its end.
        victim: int, the process that was killed last.
        lines_before: int, the lines of the trace before the last attempt.
    """

    num_processes = 2
    seconds = victim = lines_before = None

    def start(self):
        """The process id of the parent of one more attempt."""
        for rank in range(self.num_processes):
            self.rank_log(rank).unlink(missing_ok=True)
        self.lines_before = self.num_lines()
        return fork(self.launch)

    def launch(self):
        """Starts the processes, and waits until all have ended."""
        write_output_to(self.log)
        port = find_free_port()
        ranks = [fork(self.run_rank, rank, port) for rank in range(self.num_processes)]
        while all(is_running(rank) for rank in ranks):
            time.sleep(0.05)
        deadline = time.monotonic() + self.grace
        for rank in ranks:
            if not wait_until(deadline, rank):
                continue
            print(ENDED, flush=True)
            with contextlib.suppress(ProcessLookupError):
                os.kill(rank, signal.SIGKILL)
        failed = any([wait(rank) for rank in ranks])
        for rank in range(self.num_processes):
            log = self.rank_log(rank)
            print(f"process {rank}:\n{log.read_text() if log.exists() else None}")
        return int(failed)

    def rank_log(self, rank):
        """`pathlib.Path` of the output of a process."""
        return self.log.with_suffix(f".{rank}.log")

    def read_survivor(self):
        """str, the output of the process that was not killed; it may not have come so far."""
        log = self.rank_log(1 - self.victim)
        return log.read_text() if log.exists() else ""

    def kill(self, child, rng):
        """SIGKILL at a random moment of one of the two processes of an attempt."""
        ranks = []
        while is_running(child) and len(ranks) < self.num_processes:
            ranks = list_children(child)
            time.sleep(0.002)
        begin = time.monotonic()
        self.victim = rng.randrange(self.num_processes)
        if not wait_until(begin + rng.uniform(0, self.undisturbed.seconds), child):
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(ranks[self.victim], signal.SIGKILL)
        if wait_until(time.monotonic() + self.limit, child):
            print(f"{self.output}: {1 - self.victim} has not ended", file=sys.stderr)
            for process in (*ranks, child):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    def judge(self, status, counts):
        """Counts whether the attempt has ended by itself, and the lost process was named."""
        if status == -signal.SIGKILL or self.was_ended_in_fit():
            counts.hung += 1
        elif self.names_victim():
            counts.found += 1
        else:
            counts.silent += 1
            text = f"{self.log.read_text()}\n{self.read_survivor()}"
            print(f"{self.output}: nothing names {self.victim}:\n{text}", file=sys.stderr)

    def was_ended_in_fit(self):
        """Whether the parent had to end a process whose `fit` had begun."""
        return self.num_lines() > self.lines_before and ENDED in self.log.read_text()


class GlooPretraining(SharedPretraining):
    """A run of `keras-bert pretrain --devices 2` in two processes of PyTorch."""

    grace, limit = GRACE, GRACE + 10

    def run_rank(self, rank, port):
        """Runs the command as one of the processes."""
        from keras_bert_cli import main

        os.environ.update(make_environment(rank, self.num_processes, port))
        write_output_to(self.rank_log(rank))
        return main([*self.command, "--devices=2"])

    def has_wrong_losses(self, losses, wanted):
        """False. Of a mean over the batches so far, each process has only its part."""
        return False

    def read_variables(self):
        """The same without metrics, whose sums over processes are rounded in another order."""
        found = super().read_variables()
        return {name: value for name, value in found.items() if not name.startswith("metrics/")}

    def names_victim(self):
        """Whether the other process names the lost process."""
        return f"Process {self.victim} " in self.read_survivor()


class JaxPretraining(SharedPretraining):
    """A training in two processes of JAX on a loopback address."""

    grace, limit = ARRIVAL + 30, ARRIVAL + 40

    def run_rank(self, rank, port):
        """Trains as one of the processes."""
        import jax
        import keras
        from small_pretraining import SmallBatches, build_pretrainer

        from keras_bert_suite import TrainingCheckpoint

        os.environ["RANK"] = str(rank)
        write_output_to(self.rank_log(rank))
        address = f"127.0.0.1:{port}"
        jax.distributed.initialize(
            address,
            self.num_processes,
            rank,
            initialization_timeout=ARRIVAL,
            heartbeat_timeout_seconds=HEARTBEAT,
        )
        keras.distribution.set_distribution(keras.distribution.DataParallel())
        checkpoint = TrainingCheckpoint(self.output / "checkpoints", every=EVERY)
        build_pretrainer().fit(
            SmallBatches(), steps_per_epoch=STEPS, verbose=0, callbacks=[checkpoint]
        )
        # A fork ends without what Python runs at the end of a process, as JAX's farewell.
        jax.distributed.shutdown()

    def names_victim(self):
        """Whether the other process says that it has lost a process, or the connection to it.

        JAX names the address of a connection that breaks in a sum, and not the process.
        """
        return any(error in self.read_survivor() for error in JAX_ERRORS)

    def read_result(self):
        """dict of name -> bytes, all variables of the last checkpoint."""
        return self.read_variables()


def kill_shared(bench, cls, number):
    """SIGKILL at random moments of one of two processes; both go on together until all is done.

    Args:
        bench: `Bench`.
        cls: class of a `SharedPretraining`.
        number: int.

    Returns:
        `Counts`.
    """

    def make(name, undisturbed=None):
        output = bench.folder / name
        return cls(pretrain_command(bench.corpus, output), output, undisturbed)

    undisturbed = make("undisturbed-shared")
    begin = time.monotonic()
    check_status(undisturbed, wait(undisturbed.start()))
    undisturbed.seconds = time.monotonic() - begin
    return kill_runs(
        bench,
        number,
        lambda name: make(name, undisturbed),
        lambda run, child: run.kill(child, bench.rng),
    )


#: backend -> (what is hit, class of its runs).
SHARED = {
    "torch": ("pretrain --devices 2", GlooPretraining),
    "jax": ("two processes of JAX", JaxPretraining),
}
