"""Turn texts into vectors.

Reads a text from each line, or a column of a .tsv or .csv file. Writes a NumPy file, float32 (N,
H), with a row for each text, in the same order. `search --vectors` takes it.

Example:
  keras-bert embed --model embedder.keras --input docs.txt --output vectors.npy

  # The vectors of many files: Parquet, which VectorIndex.load opens as one index.
  keras-bert embed --engine ray --model embedder --input 'docs/*.parquet' --text_column body \\
      --columns id --output vectors
"""

from .command_flags import REQUIRED, UsageError
from .engine_flags import check_engine_flags, define_engine_flags, run_job
from .model_paths import check_models, define_base_flag, is_runtime_folder, is_saved_model
from .outputs import check_output, write_output
from .saved_tasks import open_embedder
from .table_flags import define_table_flags, read_text_columns


def define_flags(flags):
    """Defines the flags of this command."""
    explanation = "A .keras file, or the folder of a preset or checkpoint, such as one of "
    flags.path("model", REQUIRED, explanation + "sentence-transformers, or hf://...")
    define_base_flag(flags)
    flags.path("input", "-", "File with a text in each line, or table, or - for standard input.")
    define_table_flags(flags, pairs=False)
    flags.path("output", REQUIRED, "File to write, .npy; with --engine a folder.")
    flags.switch("overwrite", False, "Replace the file.")
    flags.integer("batch_size", 32, "Batch size, in texts.")
    define_engine_flags(flags)


def run(values):
    """Reads, encodes, writes."""
    check_engine_flags(values)
    if values.engine is not None:
        check_models(values, [values.model])
        is_export = is_saved_model(values.model) or is_runtime_folder(values.model)
        run_job(values, values.model, task=None if is_export else "TextEmbedder")
        return
    if not values.output.endswith(".npy"):
        raise UsageError(f"--output needs a name that ends in .npy, got {values.output}")
    check_output(values.output, values.overwrite)
    check_models(values, [values.model])
    (texts,) = read_text_columns(values, "input").values()

    import numpy as np

    vectors = open_embedder(values.model, values.base).predict(texts, values.batch_size, verbose=0)
    path = write_output(values.output, lambda path: np.save(path, vectors), values.overwrite)
    print(f"wrote {path}, {vectors.shape[0]} vectors of {vectors.shape[1]} numbers")
