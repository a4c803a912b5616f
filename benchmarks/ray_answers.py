"""Answers for the texts of files: by a plain loop, by one process, and by workers of Ray.

    pip install 'keras-bert-suite[ray]'
    python benchmarks/ray_answers.py --model sentiment --texts reviews.txt --rows 40000
    python benchmarks/ray_answers.py --model sentiment --texts reviews.txt --rows 40000 --kills 10

Each side answers the same rows, the texts of the file over and over, on one thread a process.
`loop` is `task.predict` on 1,024 rows at a time, without files. `local` is `predict_files` in one
process; `ray 1` and `ray 2` are its workers. Goals: a worker has 0.9 times the rows of the loop,
and two workers have 1.7 times. `rows/s` counts from the first part that is written to the last, so
without the start of Ray and of the backend; `seconds` is all of it.

With --kills a side `killed` has two workers. One of them is killed by SIGKILL at random moments, so
many times. It ends with an error unless the answers are those of `local`, each row once.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from harness.result_tables import describe_run, format_columns, format_comparison
from harness.side_flags import parse_flags
from harness.side_runs import report, run_in_turn

BATCH_ROWS = 1024
COLUMNS = {"rows/s": "{:.0f}", "seconds": "{:.1f}"}
SIDES = ("loop", "local", "ray 1", "ray 2")


def write_rows(options, path):
    """Writes JSON lines of numbered rows."""
    import json

    lines = Path(options.texts).read_text("utf-8").splitlines()
    with open(path, "w", encoding="utf-8") as file:
        for row in range(options.rows):
            file.write(json.dumps({"id": row, "text": lines[row % len(lines)]}) + "\n")


def measure_loop(options, path):
    import json

    from keras_bert_suite.serving.saved_tasks import open_task

    task = open_task(options.model)
    texts = [json.loads(line)["text"] for line in open(path, encoding="utf-8")]
    task.predict(texts[:BATCH_ROWS], verbose=0)
    begin = time.perf_counter()
    for start in range(BATCH_ROWS, len(texts), BATCH_ROWS):
        task.predict(texts[start : start + BATCH_ROWS], verbose=0)
    seconds = time.perf_counter() - begin
    return {"rows/s": (len(texts) - BATCH_ROWS) / seconds, "seconds": seconds}


def measure_job(options, path, output, **arguments):
    """Answers into a folder; the parts say when they were written."""
    import pyarrow.parquet as pq

    import keras_bert_suite as kbs

    # About as many rows as the loop has at a time.
    size = path.stat().st_size * BATCH_ROWS // options.rows
    predictor = kbs.BatchPredictor(options.model, columns=["id"])
    begin = time.perf_counter()
    kbs.predict_files(predictor, str(path), output, slice_bytes=size, **arguments)
    seconds = time.perf_counter() - begin
    parts = sorted(Path(output).glob("part-*"), key=lambda part: part.stat().st_mtime)
    times = [part.stat().st_mtime for part in parts]
    rows = [pq.ParquetFile(part).metadata.num_rows for part in parts]
    return {"rows/s": sum(rows[1:]) / (times[-1] - times[0]), "seconds": seconds}


def kill_workers(times, stop):
    """Kills the processes of workers, and returns how many."""
    import psutil

    draw, killed = random.Random(0), 0
    while killed < times and not stop.wait(draw.uniform(2, 10)):
        children = psutil.Process().children(recursive=True)
        workers = [child for child in children if is_worker(child)]
        if workers:
            os.kill(draw.choice(workers).pid, signal.SIGKILL)
            killed += 1
    return killed


def is_worker(process):
    """Whether a process is an actor that answers: Ray gives it a name."""
    import psutil

    try:
        return "MapWorker" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def measure_killed(options, path, folder):
    import pandas as pd

    stop, killed = threading.Event(), []
    run = threading.Thread(target=lambda: killed.append(kill_workers(options.kills, stop)))
    run.start()
    figures = measure_job(options, path, folder / "killed", engine="ray", workers=2)
    stop.set()
    run.join()
    measure_job(options, path, folder / "local")
    found, wanted = (pd.read_parquet(folder / name) for name in ("killed", "local"))
    assert found["id"].tolist() == list(range(options.rows)), "a row is missing, or there twice"
    pd.testing.assert_frame_equal(found, wanted, rtol=0, atol=1e-6)
    if killed[0] < options.kills:
        raise RuntimeError(f"{killed[0]} workers were killed until the end. Pass more --rows.")
    return figures


def measure(options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        write_rows(options, path)
        if options.child == "loop":
            return measure_loop(options, path)
        if options.child == "killed":
            return measure_killed(options, path, Path(folder))
        engine, _, workers = options.child.partition(" ")
        arguments = {"engine": engine, "workers": int(workers)} if workers else {}
        return measure_job(options, path, Path(folder) / "out", **arguments)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True, help="folder of a model with a class for a text")
    parser.add_argument("--texts", required=True, help="file with a text in each line")
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--backend", default="torch")
    options = parse_flags(parser, rounds=1)
    if options.child:
        report(measure(options))
        return
    names = ["killed"] if options.kills else SIDES
    sides = [(name, options.backend) for name in names]
    measured = run_in_turn(sys.argv, sides, [[]] * options.rounds)
    print(f"{describe_run(measured, options.rounds)}\n\n{options.rows:,} rows.\n")
    print(format_columns(measured, COLUMNS))
    if not options.kills:
        print(f"\n{format_comparison(measured, COLUMNS, ['loop'])}")


if __name__ == "__main__":
    main()
