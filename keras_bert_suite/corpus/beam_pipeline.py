"""`prepare_corpus` under Apache Beam, for corpora beyond one machine."""

from keras_bert_suite.corpus.input_files import InputOptions
from keras_bert_suite.corpus.preparation import SLICE_BYTES
from keras_bert_suite.corpus.preparation_plan import plan_corpus
from keras_bert_suite.corpus.token_shards import shard_path
from keras_bert_suite.files.atomic_file import read_sealed_json


def prepare_corpus_with_beam(
    inputs,
    tokenizer,
    output,
    options=None,
    slice_bytes=SLICE_BYTES,
    format="auto",
    text_key="text",
    encoding="utf-8",
    errors="strict",
    on_error="stop",
):
    """Tokenizes a corpus with a runner of Beam. It writes the folder that `prepare_corpus` writes.

    Both functions write the same shards. So each of them can continue a run that the other began.
    Input and output are folders that this machine and Beam's workers see under the same path, such
    as a mounted bucket. The workers need this package.

    ```python
    options = apache_beam.options.pipeline_options.PipelineOptions(["--runner=FlinkRunner", ...])
    prepare_corpus_with_beam("/corpus/*.jsonl", tokenizer, "/tokens", options)
    ```

    Args:
        inputs, tokenizer, output, slice_bytes: as for `prepare_corpus`.
        options: Beam's `PipelineOptions`. None runs the pipeline on this machine.
        format, text_key, encoding, errors, on_error: as for `prepare_corpus`. With "stop" the
            error lists the faults of one slice, and other slices may be written.

    Returns:
        dict, the manifest.

    Raises:
        ImportError: if Beam is not installed.
        ValueError, OSError: as `prepare_corpus`, if the runner hands them on.
    """
    try:
        import apache_beam as beam
    except ImportError:
        raise ImportError(
            "Apache Beam is not installed: pip install 'keras-bert-suite[beam]'"
        ) from None

    reading = InputOptions(format, text_key, encoding, errors, on_error)
    with plan_corpus(inputs, tokenizer, output, slice_bytes, reading) as plan:
        plan.begin()
        writer = plan.writer
        with beam.Pipeline(options=options) as pipeline:
            slices = pipeline | "Slices" >> beam.Create(plan.slices)
            # Without this, one worker would be handed all slices along with the pipeline.
            spread = slices | "Spread" >> beam.Reshuffle()
            # The workers return nothing. The summary of a shard is a file beside it.
            spread | "Shards" >> beam.Map(lambda piece: writer.write(piece)[1])  # noqa: B018
        paths = [shard_path(writer.output, piece.number, "summary") for piece in plan.slices]
        return plan.finish(list(map(read_sealed_json, paths)))
