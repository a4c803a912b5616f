"""Reads the vectors that a job wrote part by part."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_suite.files.messages import reading
from keras_bert_suite.files.part_names import PROBES, find_parts, name_part, read_plan


def read_vector_parts(folder: Path) -> tuple[np.ndarray, list[Any] | None, dict[str, Any]]:
    """Reads a folder of `predict_files`, whose parts are Parquet.

    Returns:
        (float32 (M, H); M ids, the values of the only column beside the vectors, or None for no or
        several columns; dict of the `probes`, the `tokenizer_digest` and the `prompt`).

    Raises:
        ValueError: if parts are missing, or have no vectors.
        ImportError: without pyarrow.
    """
    import pyarrow.parquet as pq

    plan = read_plan(folder)
    if plan["format"] != "parquet":
        raise ValueError(f"{folder} has parts in {plan['format']}. Write them in parquet.")
    there = find_parts(os.listdir(folder))
    if missing := set(range(plan["slices"])) - there:
        raise ValueError(
            f"{folder} has {len(there):,} of {plan['slices']:,} parts, and no "
            f"{name_part(min(missing))}. Give the job again: it writes those that are missing."
        )
    files = [pq.ParquetFile(folder / name_part(number)) for number in sorted(there)]
    if "embedding" not in files[0].schema_arrow.names:
        raise ValueError(f"{folder} has no column 'embedding'. Pass what keras-bert embed writes.")
    columns = [name for name in files[0].schema_arrow.names if name != "embedding"]
    width = files[0].schema_arrow.field("embedding").type.list_size
    # All at once, so that no vector is in memory twice.
    vectors = np.empty((sum(file.metadata.num_rows for file in files), width), "float32")
    ids: list[Any] | None = [] if plan["columns"] and len(columns) == 1 else None
    first, read = 0, ["embedding", *(columns if ids is not None else ())]
    for file in files:
        with reading(folder), file:
            for batch in file.iter_batches(columns=read):
                numbers = batch["embedding"].flatten().to_numpy(zero_copy_only=False)
                vectors[first : first + len(batch)] = numbers.reshape(len(batch), width)
                first += len(batch)
                if ids is not None:
                    ids += batch[columns[0]].to_pylist()
    probes = read_plan(folder, PROBES) if (folder / PROBES).exists() else {}
    return vectors, ids, {**probes, "prompt": plan["settings"].get("prompt")}
