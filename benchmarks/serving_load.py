"""A SavedModel under load: many clients, requests of one text, batches as a server joins them.

    python benchmarks/serving_load.py --requests 2000 --rounds 1       # to see that it runs
    python benchmarks/serving_load.py --clients 1 8 128
    python benchmarks/serving_load.py --clients 32 --requests 100000 --rounds 1 \
        --policies length --words 8

Each client is a thread that sends a text, waits for its answer and sends the next. The texts are
the 600 test sentences of examples/data and, for every tenth request, ten of them in one text;
`--words` keeps the first words of each.
MiniLM (six layers, 384 wide) answers, loaded with TensorFlow and its text ops alone. One thread
joins waiting requests into batches of at most 32, the `max_batch_size` of the export, as TensorFlow
Serving with one batch thread does. It has no timeout, so a lone request is answered at once.

The policies:

- "single": no batches, each request goes through the model alone;
- "arrival": the requests that have waited longest, as TensorFlow Serving chooses them;
- "length": the request that has waited longest, and those nearest to it in length. With at most 32
  clients there is nothing to choose, as a batch takes all that wait.

Latencies are from sending to answer. Memory is what the process has in memory after each tenth of
the requests.
"""

import argparse
import collections
import concurrent.futures
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from harness.result_tables import describe_run, format_cells, format_figures, format_table
from harness.side_flags import parse_flags
from harness.side_runs import report, run_in_turn
from serving import make_models, read_texts

MAX_BATCH_SIZE = 32
POLICIES = ("single", "arrival", "length")

COLUMNS = {"p50 ms": "{:.1f}", "p99 ms": "{:.1f}", "requests/s": "{:.1f}"}

#: The names of the memory after each tenth of the requests.
TENTHS = [f"GB, {share}%" for share in range(10, 101, 10)]

#: A text, and the future of its answer.
Request = collections.namedtuple("Request", ["text", "answer"])


class Batcher:
    """Joins requests of many threads into batches, and answers them in a thread of its own.

    Args:
        answer: function from a list of texts to as many answers.
        policy: one of `POLICIES`.
    """

    def __init__(self, answer, policy):
        self._answer = answer
        self._policy = policy
        self._waiting = []
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def ask(self, text):
        """The answer for a text.

        Raises:
            whatever the function `answer` raised for its batch.
        """
        request = Request(text, concurrent.futures.Future())
        with self._changed:
            self._waiting.append(request)
            self._changed.notify()
        return request.answer.result()

    def close(self):
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                batch = self._choose()
            try:
                answers = self._answer([request.text for request in batch])
            except Exception as error:
                for request in batch:
                    request.answer.set_exception(error)
                continue
            for request, answer in zip(batch, answers, strict=True):
                request.answer.set_result(answer)

    def _choose(self):
        """Takes a batch out of the waiting requests."""
        size = 1 if self._policy == "single" else MAX_BATCH_SIZE
        ranks = range(len(self._waiting))
        if self._policy == "length":
            wanted = len(self._waiting[0].text)
            ranks = sorted(ranks, key=lambda i: abs(len(self._waiting[i].text) - wanted))
        taken = set(ranks[:size])
        batch = [self._waiting[i] for i in sorted(taken)]
        self._waiting = [r for i, r in enumerate(self._waiting) if i not in taken]
        return batch


def make_requests(number, words=None):
    """Texts of mixed length: sentences, and for every tenth request ten of them in one text.

    Args:
        number: int, how many.
        words: int, how many words of a text are kept, or None for all.
    """
    texts = read_texts()
    requests = (
        " ".join(texts[(i + j) % len(texts)] for j in range(10 if i % 10 == 9 else 1))
        for i in range(number)
    )
    return [" ".join(request.split()[:words]) for request in requests]


def run_side(policy, options):
    """Answers all requests with one policy, and prints the figures as JSON."""
    import tensorflow as tf

    from keras_bert_cli.ask_saved_model import load_text_ops

    load_text_ops(tf)
    model = tf.saved_model.load(str(options.folder / "saved_model" / "1"))
    serve = model.signatures["serving_default"]

    def answer(texts):
        return serve(text=tf.constant(texts))["label_ids"].numpy()

    requests = make_requests(options.requests, options.words)
    for size in (1, MAX_BATCH_SIZE):  # The first runs are to warm up.
        answer(requests[9 : 9 + size])
    seconds, memory = [0.0] * len(requests), {}
    places = iter(range(len(requests)))
    batcher, lock = Batcher(answer, policy), threading.Lock()

    def be_a_client():
        while True:
            with lock:
                place = next(places, None)
            if place is None:
                return
            begin = time.perf_counter()
            batcher.ask(requests[place])
            seconds[place] = time.perf_counter() - begin
            tenth, rest = divmod(10 * (place + 1), len(requests))
            if rest < 10:  # The first request of each tenth that is done.
                memory[tenth] = read_memory()

    begin = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(options.num_clients) as threads:
        clients = [threads.submit(be_a_client) for _ in range(options.num_clients)]
    total = time.perf_counter() - begin
    batcher.close()
    for client in clients:
        client.result()
    shares = statistics.quantiles(seconds, n=100)
    figures = {
        "p50 ms": 1000 * shares[49],
        "p99 ms": 1000 * shares[98],
        "requests/s": len(requests) / total,
        **{name: memory[tenth] for tenth, name in enumerate(TENTHS, start=1)},
    }
    report(figures)


def read_memory():
    """float, the gigabytes (1e9 bytes) that this process has in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", nargs="+", type=int, default=[1, 8, 128])
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--words", type=int, help="keep so many words of each text")
    parser.add_argument("--policies", nargs="+", default=list(POLICIES), choices=POLICIES)
    parser.add_argument("--num_clients", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parse_flags(parser)
    if options.child == "models":
        make_models(options.folder)
        report({})
        return
    if options.child:
        run_side(options.child, options)
        return

    rows, memory, measured = [], [], {}
    with tempfile.TemporaryDirectory() as folder:
        command = [*sys.argv, "--folder", folder]
        run_in_turn(command, [("models", "tensorflow")], [[]])
        sides = [(policy, "tensorflow") for policy in options.policies]
        for clients in options.clients:
            flags = ["--num_clients", clients]
            measured = run_in_turn([*command, *flags], sides, [[]] * options.rounds)
            for (policy, _), figures in measured.items():
                rows.append([str(clients), policy, *format_cells(figures, COLUMNS)])
                cells = [format_figures(figures[name], "{:.3f}") for name in TENTHS]
                memory.append([str(clients), policy, *cells])
    print(f"{describe_run(measured, options.rounds)}\n")
    print(f"{format_table(['clients', 'batches', *COLUMNS], rows)}\n")
    print(format_table(["clients", "batches", *TENTHS], memory))


if __name__ == "__main__":
    main()
