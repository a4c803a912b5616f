"""Reads files that were changed at random, and counts what no reader may do.

    python benchmarks/fuzz.py                                  # 100,000 cases, half an hour
    python benchmarks/fuzz.py --readers "TensorFlow 1" HDF5 --cases 1000
    python benchmarks/fuzz.py --readers HDF5 --case 17         # one case

The changes are in `tests/hostile_files.py`, the readers in `tests/hostile_readers.py`. A child
reads the files, one case after the other, and writes down which one before it begins. So a crash
of the interpreter is counted, and the next child continues after it. The child has --memory MB
more than it needs to read the valid files, which have some kilobytes. What no reader may do:
crash, ask for more memory, take more than ten seconds, write outside of the folder, start a
process, unpickle, raise another error than a ValueError or an OSError, or raise one whose message
has 2,000 characters or names no file.
"""

import argparse
import collections
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from harness.result_tables import describe_run, format_table
from hostile_files import try_case
from hostile_readers import READERS

#: The longest that a case may take.
SECONDS = 10


class TooSlow(Exception):
    """A case took longer than `SECONDS`."""


def fuzz(name, cases, folder, memory):
    """Tries the cases of a reader in children.

    Args:
        name: key of `READERS`.
        cases: range of int.
        folder: `pathlib.Path`.
        memory: int, bytes that a child may ask for.

    Returns:
        list of (case, str that says what is wrong).
    """
    valid = folder / "valid"
    shutil.rmtree(valid, ignore_errors=True)
    status = _fork(lambda: _make(name, valid))
    if status:
        return [(-1, "the valid files were not made, or cannot be read")]
    journal, findings = folder / "journal", folder / "findings"
    findings.write_text("")
    found, done = [], cases.start
    while done < cases.stop:
        journal.write_text(str(done))
        rest = range(done, cases.stop)
        status = _fork(lambda: _read(name, rest, folder, memory))  # noqa: B023
        done = int(journal.read_text()) + 1
        if status:
            found.append((done - 1, f"the interpreter ended with {status}"))
    for line in findings.read_text().splitlines():
        case, _, problem = line.partition(" ")
        found.append((int(case), problem))
    return found


def _fork(function):
    """The exit status of a child that calls a function."""
    child = os.fork()
    if not child:
        status = 1
        try:
            function()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _make(name, valid):
    valid.mkdir()
    READERS[name].make(valid)
    READERS[name].read(valid)


def _read(name, cases, folder, memory):
    reader, valid = READERS[name], folder / "valid"
    _silence()
    reader.read(valid)
    _limit_memory(memory)
    signal.signal(signal.SIGALRM, _stop)
    with open(folder / "journal", "r+") as journal, open(folder / "findings", "a") as findings:
        for case in cases:
            journal.seek(0)
            journal.write(str(case))
            journal.flush()
            signal.alarm(SECONDS)
            try:
                problem = try_case(reader, valid, folder / "case", f"{name} {case}")
            except BaseException as error:
                problem = f"raised {type(error).__name__}: {str(error)[:300]}"
            finally:
                signal.alarm(0)
            if problem:
                findings.write(f"{case} {' '.join(ascii(problem)[1:-1].split())}\n")
                findings.flush()


def _stop(number, frame):
    raise TooSlow(f"after {SECONDS} s")


def _silence():
    """Libraries in C report hostile files at length."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)


def _limit_memory(memory):
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + memory,) * 2)


def deduplicate(found):
    """dict, a problem without its numbers and names -> list of its cases."""
    groups = collections.defaultdict(list)
    for case, problem in found:
        kind = re.sub(r"/[^ ]*|'[^']*'|\d+", "#", problem)[:100]
        groups[kind].append((case, problem))
    return groups


def main():
    """Prints the table.

    Returns:
        int, the exit status: 1 if something is wrong.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--readers", nargs="+", default=list(READERS), choices=list(READERS))
    parser.add_argument("--cases", type=int, default=100_000, help="of all readers")
    parser.add_argument("--case", type=int, help="try one case of each reader")
    parser.add_argument("--first", type=int, default=0, help="the first case of each reader")
    parser.add_argument("--memory", type=int, default=400, help="MB that a case may ask for")
    options = parser.parse_args()
    import keras_bert_cli.saved_tasks  # noqa: F401
    import keras_bert_suite.corpus  # noqa: F401

    # Thousands of small files are written and removed.
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        folder = Path(folder)
        if options.case is not None:
            for name in options.readers:
                (folder / name).mkdir()
                READERS[name].make(folder / name)
                case = f"{name} {options.case}"
                print(try_case(READERS[name], folder / name, folder / "case", case))
            return 0
        total = sum(READERS[name].weight for name in options.readers)
        rows, bad = [], 0
        for name in options.readers:
            number = round(options.cases * READERS[name].weight / total)
            begin = time.monotonic()
            cases = range(options.first, options.first + number)
            found = fuzz(name, cases, folder, options.memory << 20)
            seconds = time.monotonic() - begin
            bad += len(found)
            milliseconds = f"{1000 * seconds / max(1, number):.1f}"
            rows.append([name, str(number), str(len(found)), milliseconds])
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
            for group in deduplicate(found).values():
                case, problem = group[0]
                print(f"    {len(group)} x, case {case}: {problem[:400]}", file=sys.stderr)
    print(f"{describe_run({}, 1, [os.environ['KERAS_BACKEND']])}\n")
    print(format_table(["reader", "cases", "wrong", "ms a case"], rows))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
