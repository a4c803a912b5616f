"""Label texts, find entities, answer questions, choose endings or write texts.

Reads one text from each line, or a column of a .tsv or .csv file. Writes the label of each text and
its probability, in the same order. With --format jsonl each line also has the text and the
probability of every label.

Example:
  echo "a gripping, funny film" | keras-bert predict --model sentiment.keras
  keras-bert predict --model sentiment.keras --input test.tsv --text_column sentence \\
      --format jsonl --output test.jsonl

  # The mean of several models.
  keras-bert predict --model seed1.keras seed2.keras seed3.keras --input texts.txt

  # The adapter and the head of finetune --adapt lora --adapter adapters/films; and one of
  # several adapters in a SavedModel.
  keras-bert predict --model adapters/films --base bert-base-uncased --input texts.txt
  keras-bert predict --model saved_models/reviews/1 --adapter films --input texts.txt

  # A model that labels words: the entities of each text with their offsets, as jsonl.
  keras-bert predict --model tagger.keras --input texts.txt

  # A model that answers questions: one question, or all questions of a table or a SQuAD file.
  keras-bert predict --model answerer.keras --input article.txt --question "Who wrote it?"
  keras-bert predict --model answerer.keras --input dev-v2.0.json --output answers.jsonl

  # A model that writes texts: a title for each article.
  keras-bert predict --model titles.keras --input articles.tsv --text_column article

  # A model that continues texts: tokens are drawn, and the same ones with the same seed.
  keras-bert predict --model stories --input beginnings.txt --top_p 0.9 --seed 1

  # A pretrained model with a head for pairs: whether the second text of a row follows the first.
  keras-bert predict --model bert-base-uncased --input pairs.tsv \\
      --text_column first --text_pair_column second

  # Many files, by two processes, or by a cluster with --ray_address auto.
  keras-bert predict --engine ray --model sentiment --input 's3://bucket/*.parquet' \\
      --text_column review --columns id --output s3://bucket/answers

  # A model that was trained on entailment: labels that it has not seen, without training.
  keras-bert predict --model nli --input texts.txt --zero_shot_labels politics,sports
"""

import sys

from .command_flags import REQUIRED, UsageError
from .engine_flags import check_engine_flags, define_engine_flags, run_job
from .feature_columns import define_feature_flag
from .kinds import open_kind
from .kinds.text_pairs import open_text_pairs
from .kinds.writing import check_asking_flags, define_asking_flags
from .kinds.zero_shot import define_zero_shot_flags, open_zero_shot
from .model_paths import check_input, define_base_flag, is_saved_model, take_models
from .outputs import check_output, write_output
from .table_flags import check_table_flags, define_table_flags


def define_flags(flags):
    """Defines the flags of this command."""
    explanation = (
        "A .keras file, the folder of a preset, checkpoint, ensemble or adapter, a SavedModel, or "
        "the folder of an ONNX or OpenVINO model. The answers of several models are averaged."
    )
    flags.paths("model", REQUIRED, explanation)
    define_base_flag(flags)
    explanation = "The name of the adapter that answers, in a SavedModel of export_adapters."
    flags.text("adapter", None, explanation)
    explanation = (
        "File with a text in each line, a table (.tsv, .csv, .jsonl, .parquet or --delimiter), "
        "questions in SQuAD's format (.json), or - for standard input."
    )
    flags.path("input", "-", explanation)
    explanation = (
        "A question about the whole text of the input, for a model that answers questions."
    )
    flags.text("question", None, explanation)
    define_asking_flags(flags)
    define_zero_shot_flags(flags)
    define_table_flags(flags)
    define_feature_flag(flags)
    flags.path("output", "-", "File to write, or - for standard output.")
    formats = ("tsv", "jsonl", "parquet")
    explanation = (
        "Format of the output. Default: tsv; jsonl for entities and answers; parquet with --engine."
    )
    flags.choice("format", None, formats, explanation)
    flags.switch("overwrite", False, "Replace the file.")
    flags.integer("batch_size", 32, "Batch size, in texts.")
    define_engine_flags(flags)


def run(values):
    """Reads, predicts, writes."""
    check_engine_flags(values)
    if values.engine is not None:
        if len(values.model) > 1:
            raise UsageError("--engine answers by one --model. Save several as an ensemble")
        _take_model(values)
        run_job(values, values.model)
        return
    if values.format == "parquet":
        raise UsageError("--format parquet is for --engine")
    check_table_flags(values, "input")
    if values.output != "-":
        check_output(values.output, values.overwrite)
    _take_model(values)
    check_input(values.input)
    kind = open_zero_shot(values) or open_text_pairs(values) or open_kind(values)
    check_asking_flags(values, kind)
    lines = [
        line.encode("utf-8", "backslashreplace").decode()
        for line in kind.predict(kind.read_texts())
    ]
    if values.output == "-":
        sys.stdout.writelines(lines)
        return

    def write(path):
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)

    write_output(values.output, write, values.overwrite)


def _take_model(values):
    """Checks the paths of --model, and --adapter."""
    take_models(values)
    if values.adapter and not is_saved_model(values.models[0]):
        raise UsageError(f"--adapter is for a SavedModel of adapters, got --model {values.model}")
