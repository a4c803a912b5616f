"""Turns a corpus of plain text into a corpus of tokens, on all cores of one or more machines."""

import contextlib
import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

import keras_hub

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.argument_checks import check_choice, check_integer
from keras_bert_suite.corpus.faults import Faults
from keras_bert_suite.corpus.input_files import InputOptions
from keras_bert_suite.corpus.preparation_plan import plan_corpus
from keras_bert_suite.corpus.ray_tasks import RayTasks
from keras_bert_suite.corpus.worker_process import WorkerProcess
from keras_bert_suite.ray_cluster import ray_cluster

SLICE_BYTES = 32 << 20


def prepare_corpus(
    inputs: PathLike | Sequence[PathLike],
    tokenizer: keras_hub.tokenizers.Tokenizer,
    output: PathLike,
    workers: int | None = None,
    slice_bytes: int = SLICE_BYTES,
    format: str = "auto",
    text_key: str = "text",
    encoding: str = "utf-8",
    errors: str = "strict",
    on_error: str = "stop",
    progress: Callable[[int, int, int], None] | None = None,
    engine: str = "local",
    ray_address: str | None = None,
) -> dict[str, Any]:
    """Tokenizes a corpus into a folder that `open_corpus` reads.

    The input is cut into slices of whole documents. Each slice becomes a shard. The folder is the
    same to the byte for any number of workers, on any machine with the same versions of NumPy and
    ArrayRecord. The same call continues a run that was stopped or killed. It keeps the shards that
    are finished and intact.

    The whole input is read once before the first shard is written, so that one error can list the
    documents that cannot be read.

    ```python
    tokenizer = WordPieceTokenizer("vocab.txt")
    prepare_corpus("corpus/*.jsonl", tokenizer, "tokens", workers=8)
    open_corpus("tokens").tokens(0)
    ```

    Args:
        inputs: files, folders or patterns, see `input_files.find_files`.
        tokenizer: a tokenizer of this package, such as `WordPieceTokenizer`.
        output: str or path of a folder: new, empty, or the folder of an earlier run.
        workers: int, how many processes tokenize. With 1, the default, this process does it. With
            Ray, the most slices at one time; by default, as many as the cluster runs.
        slice_bytes: int, about how many bytes of input make a shard.
        format: "sentences" (each line is a sentence, a blank line ends a document), "files" (each
            file is a document), "jsonl" (each line is a document), "wikipedia" (each article of a
            dump is a document) or "auto", see `input_files.format_of`.
        text_key: str, the key that holds the text of a document in "jsonl".
        encoding: str, the encoding of the files; see `input_files.InputOptions`.
        errors: "strict", or "replace" to read U+FFFD for bytes that are not of the encoding. The
            tokenizer drops U+FFFD.
        on_error: "stop" to refuse an input with documents that cannot be read, "skip" to leave
            these documents out.
        progress: function of three ints: the bytes of input that are done, the bytes that an
            earlier run has done, and all bytes. It is called once before the first slice, and after
            each slice.
        engine: "local" for processes of this machine, or "ray" for tasks of Ray, on this machine or
            on a cluster. All its machines need the input and `output` under the same paths.
        ray_address: str, the cluster, see `ray_cluster`. None for this machine, or for the cluster
            to which the program is connected.

    Returns:
        dict, the manifest. It has the arguments, and "shards" with a summary of each shard. Its
        counts are "documents", "sentences", "tokens", "unknown_tokens", "skipped_documents" (left
        out by `on_error`) and "replaced_texts" (lines or files in which `errors` replaced bytes).

    Raises:
        ValueError: if documents cannot be read, naming the first twenty places, see
            `read_documents`; or if `output` has a corpus made in another way, naming the
            difference.
        FileNotFoundError: if there is no input.
        FileExistsError: if `output` holds other files.
        BlockingIOError: if another run writes to `output`.
        RuntimeError: if a worker process is killed, or if Ray gives a task up.
        ImportError: if `engine` is "ray", and Ray is not installed.
        ConnectionError: if there is no cluster at `ray_address`.
    """
    if workers is not None:
        check_integer("workers", workers, at_least=1)
    check_choice("`engine`", engine, ("local", "ray"))
    if engine == "local" and ray_address is not None:
        raise ValueError("ray_address is for engine='ray'. Leave it out.")
    options = InputOptions(format, text_key, encoding, errors, on_error)
    with contextlib.ExitStack() as stack:
        # A cluster that is not there leaves no folder behind.
        ray = stack.enter_context(ray_cluster(ray_address, workers)) if engine == "ray" else None
        plan = stack.enter_context(plan_corpus(inputs, tokenizer, output, slice_bytes, options))
        report = _add_up(plan, progress or (lambda done, kept, total: None))
        work = stack.enter_context(_start_workers(plan, workers, ray))
        if on_error == "stop":
            _check(plan, work)
        plan.begin()
        return plan.finish(work("write", report))


def _check(plan, work):
    """Raises a `ValueError` that lists the places that cannot be read, in the order of files."""
    faults = Faults()
    for found in work("check", lambda found: found):
        faults.update(found)
    if faults:
        raise faults.error(plan.slices[0].folder)


@contextlib.contextmanager
def _start_workers(plan, workers, ray):
    """Yields a function `work(method, take)` that works on all slices.

    `method` is the name of a method of `ShardWriter`, which is called with each slice. `take` is a
    function, which is called with each result as soon as it is there. `work` returns the results of
    `take` in the order of the slices.
    """
    if ray is not None:
        yield RayTasks(ray, plan.writer, plan.slices, workers)
        return
    workers = min(workers or 1, len(plan.slices))
    with contextlib.ExitStack() as stack:
        if workers <= 1:
            yield lambda method, take: [take(plan.writer(method, s)) for s in plan.slices]
            return
        processes = [
            stack.enter_context(WorkerProcess(plan.writer, pass_fds=(plan.lock,)))
            for _ in range(workers)
        ]
        yield functools.partial(_work_in_processes, plan.slices, processes)


def _work_in_processes(slices, processes, method, take):
    """Works on slices in processes. Each thread has a process, and takes one slice at a time."""
    results, left = {}, iter(slices)

    def work(process):
        # Threads may share the iterator: the interpreter's lock makes its `next` one step.
        for corpus_slice in left:
            results[corpus_slice.number] = take(process(method, corpus_slice))

    with ThreadPoolExecutor(len(processes)) as threads:
        running = [threads.submit(work, process) for process in processes]
        try:
            for task in wait(running, return_when=FIRST_EXCEPTION).done:
                task.result()
        except BaseException:
            for process in processes:
                process.kill()  # This ends the threads too.
            raise
    return [results[s.number] for s in slices]


def _add_up(plan, say):
    """A function that takes results of `ShardWriter.write`, and reports the bytes that are done."""
    lock, sizes = threading.Lock(), [0, 0]
    total = sum(s.num_bytes for s in plan.slices)
    say(0, 0, total)

    def report(written):
        summary, kept = written
        with lock:
            sizes[0] += summary["input"]["bytes"]
            sizes[1] += summary["input"]["bytes"] if kept else 0
            say(*sizes, total)
        return summary

    return report
