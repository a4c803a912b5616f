"""A corpus of plain text to a corpus of tokens, on all cores of a machine."""

import contextlib
import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from keras_bert_suite.data.corpus_plan import plan_corpus
from keras_bert_suite.data.worker_process import WorkerProcess

SLICE_BYTES = 32 << 20


def prepare_corpus(
    inputs,
    tokenizer,
    output,
    workers=1,
    slice_bytes=SLICE_BYTES,
    format="auto",
    text_key="text",
    progress=None,
):
    """Tokenizes a corpus into a folder that `open_corpus` reads.

    The input is cut into slices of whole documents, each of which becomes a shard. The folder is
    the same to the byte for any number of workers, on any machine with the same versions of
    NumPy and ArrayRecord. A run that was stopped, even killed, is continued by the same call:
    shards that are finished and intact are kept.

    ```python
    tokenizer = WordPieceTokenizer("vocab.txt")
    prepare_corpus("corpus/*.jsonl", tokenizer, "tokens", workers=8)
    open_corpus("tokens").tokens(0)
    ```

    Args:
        inputs: files, folders or patterns, see `corpus_files.find_files`.
        tokenizer: `WordPieceTokenizer`.
        output: str or path of a folder: new, empty, or that of an earlier run.
        workers: int, processes that tokenize; 1 is this one.
        slice_bytes: int, about how much input makes a shard.
        format: "sentences" (one a line, a blank line between documents), "files" (a document
            each), "jsonl" (a document a line) or "auto", see `corpus_files.format_of`.
        text_key: str, where "jsonl" has the text of a document.
        progress: function of three ints, called when a slice is done and once before: bytes of
            input done, those of them done by an earlier run, and all.

    Returns:
        dict, the manifest: "documents", "sentences", "tokens", "unknown_tokens" and how they
        were made.

    Raises:
        ValueError: if the input is not what `format` says, see `read_documents`; or if `output`
            has a corpus made in another way, naming the difference.
        FileNotFoundError: if there is no input.
        FileExistsError: if `output` holds something else.
        RuntimeError: if a worker process is killed.
    """
    if workers < 1:
        raise ValueError(f"`workers` must be at least 1. Received: workers={workers}.")
    plan = plan_corpus(inputs, tokenizer, output, slice_bytes, format, text_key)
    report = _Progress(plan, progress or (lambda done, kept, total: None))
    if workers == 1 or len(plan.slices) == 1:
        summaries = [report(*plan.write_shard(piece)) for piece in plan.slices]
    else:
        summaries = _write_in_processes(plan, report, min(workers, len(plan.slices)))
    return plan.finish(summaries)


def _write_in_processes(plan, report, workers):
    """Each thread has a process of its own and takes the next slice when it is free."""
    summaries, left = {}, iter(plan.slices)

    def work(process):
        # Under the lock of the interpreter `next` of a list's iterator is one step.
        for piece in left:
            summary, kept = process(piece)
            summaries[piece.number] = report(summary, kept)

    with contextlib.ExitStack() as stack, ThreadPoolExecutor(workers) as threads:
        processes = [stack.enter_context(WorkerProcess(plan.write_shard)) for _ in range(workers)]
        running = [threads.submit(work, process) for process in processes]
        try:
            for task in wait(running, return_when=FIRST_EXCEPTION).done:
                task.result()
        except BaseException:
            for process in processes:
                process.kill()  # Which ends the threads too.
            raise
    return [summaries[number] for number in range(len(plan.slices))]


class _Progress:
    """Adds up what is done, and says so."""

    def __init__(self, plan, say):
        self._say = say
        self._lock = threading.Lock()
        self._done = self._kept = 0
        self._total = sum(piece.num_bytes for piece in plan.slices)
        say(0, 0, self._total)

    def __call__(self, summary, kept):
        with self._lock:
            self._done += summary["input"]["bytes"]
            self._kept += summary["input"]["bytes"] if kept else 0
            self._say(self._done, self._kept, self._total)
        return summary
