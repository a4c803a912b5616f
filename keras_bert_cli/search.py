"""Find the texts that are most similar to a query.

The corpus is a file with a text in each line, or a column of a .tsv or .csv file. Each query is
compared with each text. To search a corpus often, compute its vectors once with `embed`.

Example:
  keras-bert search --model embedder.keras --corpus docs.txt --query "how long does it take?"

  keras-bert embed --model embedder.keras --input docs.txt --output vectors.npy
  keras-bert search --model embedder.keras --corpus docs.txt --vectors vectors.npy \\
      --queries queries.txt --top_k 10 --format jsonl
"""

import json
import sys

from keras_bert_suite.data.readers.text_files import read_lines

from .command_flags import REQUIRED, UsageError
from .model_paths import check_models, define_base_flag
from .saved_tasks import open_embedder
from .table_flags import define_table_flags, read_text_columns


def define_flags(flags):
    """Defines the flags of this command."""
    explanation = "A .keras file, or the folder of a preset or checkpoint, such as one of "
    flags.path("model", REQUIRED, explanation + "sentence-transformers, or hf://...")
    define_base_flag(flags)
    flags.path("corpus", REQUIRED, "File with a text in each line, or table.")
    define_table_flags(flags, pairs=False)
    flags.path("vectors", None, "The vectors of the corpus, a file that `embed` wrote.")
    explanation = "Text to search for. The flag may be given more than once."
    flags.text("query", None, explanation, action="append")
    flags.path("queries", None, "File with a query in each line, or - for standard input.")
    flags.integer("top_k", 5, "Texts to find for each query.")
    explanation = "A table, or a line of JSON for each query."
    flags.choice("format", "table", ("table", "jsonl"), explanation)
    flags.integer("batch_size", 32, "Batch size, in texts.")


def run(values):
    """Reads, searches, prints."""
    if bool(values.query) == bool(values.queries):
        raise UsageError("pass --query, or a file of queries with --queries, and not both")
    check_models(values, [values.model])
    (texts,) = read_text_columns(values, "corpus").values()
    queries = values.query or read_lines(values.queries, values.encoding)
    vectors = _read_vectors(values, len(texts)) if values.vectors else texts
    embedder = open_embedder(values.model, values.base)
    found = embedder.search(queries, vectors, values.top_k, values.batch_size)
    write = _write_jsonl if values.format == "jsonl" else _write_tables
    write(queries, texts, found)


def _read_vectors(values, num_texts):
    import numpy as np

    try:
        vectors = np.load(values.vectors, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(
            f"{values.vectors} is no file of vectors ({error}). Make one with keras-bert embed "
            f"--input {values.corpus}"
        ) from error
    if vectors.ndim != 2 or len(vectors) != num_texts:
        raise ValueError(
            f"{values.vectors} has the shape {vectors.shape}, and {values.corpus} has {num_texts} "
            f"texts. Make the vectors again with keras-bert embed --input {values.corpus}"
        )
    return vectors


def _write_jsonl(queries, texts, found):
    for query, hits in zip(queries, found, strict=True):
        hits = [{"id": hit.id, "score": round(hit.score, 6), "text": texts[hit.id]} for hit in hits]
        sys.stdout.write(json.dumps({"query": query, "hits": hits}, ensure_ascii=False) + "\n")


def _write_tables(queries, texts, found):
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, markup=False)
    for query, hits in zip(queries, found, strict=True):
        table = Table("score", "line", "text", title=Text(query), title_justify="left")
        for hit in hits:
            table.add_row(f"{hit.score:.4f}", str(hit.id + 1), Text(texts[hit.id]))
        console.print(table)
