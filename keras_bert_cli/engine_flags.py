"""The flags of a job over many files, `--engine`, of `predict` and `embed`."""

from .command_flags import UsageError

#: The flags that need --engine.
ENGINE_FLAGS = ("columns", "workers", "ray_address", "skip_invalid")

#: The flags of `predict` and `embed` that a job takes, too.
_SHARED = {"model", "input", "text_column", "text_pair_column", "output", "batch_size", "format"}
_SHARED |= {"base", "adapter", "backend", "traceback"}


def define_engine_flags(flags):
    """Defines the flags of a job."""
    explanation = (
        "Answer many files, slice by slice, into a folder: local, in this process; ray, by workers "
        "of Ray, on this machine or the cluster of --ray_address. --input is then a pattern or a "
        "folder, also of s3:// or gs://: .parquet, .jsonl, .csv, .tsv, .txt. --output is a folder "
        "of Parquet, or of --format jsonl. The same command goes on after a stop. Default: one "
        "file, in this process."
    )
    flags.choice("engine", None, ("local", "ray"), explanation)
    explanation = (
        "Columns of the input that go on beside the answers, with --engine. Default: all columns."
    )
    flags.list("columns", None, explanation)
    explanation = "Processes of --engine ray. Default: one for each GPU, or each processor."
    flags.integer("workers", None, explanation)
    explanation = "The cluster of --engine ray: auto, or HOST:6379. Default: this machine."
    flags.text("ray_address", None, explanation)
    explanation = (
        "Leave out rows without a text, with --engine, and name them in the folder _left_out of "
        "--output. Default: the first such row ends the job."
    )
    flags.switch("skip_invalid", False, explanation)


def check_engine_flags(values):
    """Raises a `UsageError` if a flag does not go with --engine, or needs it."""
    if values.engine is None:
        if given := [name for name in ENGINE_FLAGS if name in values.given]:
            raise UsageError(f"--{given[0]} needs --engine, which answers many files")
        return
    if wrong := sorted(values.given - {"engine", *ENGINE_FLAGS, *_SHARED}):
        raise UsageError(f"--{wrong[0]} is for one file. Leave it out with --engine")
    if values.engine == "local" and (given := values.given & {"workers", "ray_address"}):
        raise UsageError(f"--{min(given)} is for --engine ray")
    if getattr(values, "format", None) == "tsv":
        raise UsageError("--engine writes --format parquet or jsonl, got tsv")
    if values.input == "-" or values.output == "-":
        raise UsageError("--engine needs files of --input, and a folder of --output")


def run_job(values, model, task=None):
    """Answers the files of --input by a model; `task` is as for `BatchPredictor`."""
    import keras_bert_suite as kbs

    second = getattr(values, "text_pair_column", None)
    names = [name for name in (values.text_column, second) if name] or None
    predictor = kbs.BatchPredictor(
        model,
        names,
        values.columns,
        values.batch_size,
        task=task,
        base=values.base,
        adapter=getattr(values, "adapter", None),
    )
    report = kbs.predict_files(
        predictor,
        values.input,
        values.output,
        engine=values.engine,
        workers=values.workers,
        ray_address=values.ray_address,
        skip_invalid=values.skip_invalid,
        format=getattr(values, "format", None) or "parquet",
    )
    before = f", {report.done_before:,} of them before" if report.done_before else ""
    left_out = f", {report.left_out:,} left out" if report.left_out else ""
    print(
        f"wrote {values.output}, {report.slices:,} parts{before}; "
        f"answered {report.rows:,} rows{left_out}"
    )
