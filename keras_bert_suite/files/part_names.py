"""The names of the files in a folder of answers, which is written part by part."""

import re

from keras_bert_suite.files.atomic_file import parse_sealed_json

#: The plan of a job, the rows that it left out, and what says which embedder vectors are of.
#: Readers of Parquet leave out names that begin with "_".
PLAN, LEFT_OUT, PROBES = "_plan.json", "_left_out", "_probes.json"

#: The formats of parts, and the ends of their names.
FORMATS = {"parquet": ".parquet", "jsonl": ".jsonl"}


def name_part(number, format="parquet"):
    """The file of a slice.

    >>> name_part(7)
    'part-000007.parquet'
    """
    return f"part-{number:06}{FORMATS[format]}"


def find_parts(names, format="parquet"):
    """The numbers of the slices whose files are among names."""
    pattern = re.compile(rf"part-(\d{{6,}}){re.escape(FORMATS[format])}")
    return {int(match[1]) for match in map(pattern.fullmatch, names) if match}


def read_plan(path, name=PLAN):
    """dict in a small file of a folder, on this machine or at an address.

    Raises:
        ValueError: if it is damaged.
    """
    import fsspec

    with fsspec.open(f"{path}/{name}", "rb") as file:
        content = file.read()
    try:
        return parse_sealed_json(content)
    except ValueError as error:
        raise ValueError(f"{path}/{name} {error}. Restore it, or remove the folder.") from error
