"""A `VectorIndex` of a million vectors: time to make it and to search it, memory, what it misses.

    python benchmarks/vector_index.py --rounds 1

The vectors are those of texts on many subjects, so to speak: 10,000 random centres, and a vector
beside one of them for each text. A query lies as near to a centre. The hits of an index are
compared with those of the exact search in float32: "found" is the share of its ten nearest that the
index has among its own ten.

Seconds are of the processor, of all threads, for a machine that does other work, too. "memory" is
the most that the process has had, with the vectors themselves. "kept" are the bytes that a search
reads: an index by faiss keeps the vectors in float32 beside its own file.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from harness.result_tables import describe_run, format_columns
from harness.side_flags import parse_flags
from harness.side_runs import report, run_in_turn

SIDES = ("float32", "int8", "binary", "IVF1024,Flat", "HNSW32,Flat")
CENTRES, QUERIES, TOP_K = 10_000, 256, 10
#: The distance of a vector from its centre, whose length is 1.
NOISE = 0.7
#: Vectors that are made at once.
BLOCK = 100_000

COLUMNS = {
    **dict.fromkeys(("make, s", "of it on the clock, s"), "{:.0f}"),
    **dict.fromkeys(("one query, ms", "256 queries, ms each"), "{:.2f}"),
    "found": "{:.3f}",
    **dict.fromkeys(("kept, GB", "memory, GB"), "{:.2f}"),
}


def draw_vectors(number, width, seed, centres):
    """float32 (number, width), vectors beside centres."""
    rng = np.random.default_rng(seed)
    vectors = np.empty((number, width), "float32")
    for first in range(0, number, BLOCK):
        block = vectors[first : first + BLOCK]
        rng.standard_normal(out=block, dtype="float32")
        block *= NOISE / np.sqrt(width)
        block += centres[rng.integers(0, len(centres), len(block))]
    return vectors


def measure(side, number, width):
    """dict, with a value for each of `COLUMNS`, but "memory, GB", which `report` adds."""
    from keras_bert_suite.heads.vectors.vector_index import DTYPES, VectorIndex

    centres = np.random.default_rng(0).standard_normal((CENTRES, width), "float32")
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    queries = draw_vectors(QUERIES, width, 1, centres)
    vectors = draw_vectors(number, width, 2, centres)
    expected = search_exactly(queries, vectors)
    begin, clock = time.process_time(), time.perf_counter()
    arguments = {"precision": side} if side in DTYPES else {"faiss_factory": side}
    index = VectorIndex(vectors, **arguments)
    seconds, on_clock = time.process_time() - begin, time.perf_counter() - clock
    del vectors
    begin = time.process_time()
    hits = index.search(queries, TOP_K)
    of_all = time.process_time() - begin
    begin = time.process_time()
    for query in queries[:5]:
        index.search(query[None], TOP_K)
    of_one = (time.process_time() - begin) / 5
    found = [len({h.id for h in row} & {*ids}) for row, ids in zip(hits, expected, strict=True)]
    kept = index.vectors.nbytes if side in DTYPES else find_size(index)
    figures = seconds, on_clock, of_one * 1e3, of_all / QUERIES * 1e3, np.mean(found) / TOP_K
    return dict(zip(COLUMNS, (*map(float, figures), kept / 1e9), strict=False))


def search_exactly(queries, vectors):
    """int64 (N, TOP_K), the nearest vectors by their cosines."""
    best = np.full((len(queries), TOP_K), -np.inf, "float32")
    ids = np.zeros((len(queries), TOP_K), "int64")
    for first in range(0, len(vectors), BLOCK):
        block = vectors[first : first + BLOCK]
        scores = queries @ (block / np.linalg.norm(block, axis=1, keepdims=True)).T
        near = np.argpartition(-scores, TOP_K, axis=1)[:, :TOP_K]
        scores = np.append(best, np.take_along_axis(scores, near, 1), axis=1)
        both = np.append(ids, near + first, axis=1)
        order = np.argsort(-scores, axis=1)[:, :TOP_K]
        best, ids = (np.take_along_axis(array, order, 1) for array in (scores, both))
    return ids


def find_size(index):
    """The bytes of the file of faiss."""
    with tempfile.TemporaryDirectory() as folder:
        index.save(Path(folder) / "index")
        return (Path(folder) / "index" / "index.faiss").stat().st_size


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sides", nargs="+", default=SIDES, help="or factories of faiss")
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=384)
    options = parse_flags(parser, rounds=1)
    if options.child:
        report(measure(options.child, options.vectors, options.width))
        return
    sides = [(side, "torch") for side in options.sides]
    measured = run_in_turn(sys.argv, sides, [[]] * options.rounds)
    print(f"# An index of {options.vectors:,} vectors of {options.width}\n")
    print(f"{describe_run(measured, options.rounds, ['faiss-cpu'])}\n")
    print(format_columns(measured, COLUMNS))


if __name__ == "__main__":
    main()
