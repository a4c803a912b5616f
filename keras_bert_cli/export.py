"""Export a task for TensorFlow Serving, ONNX Runtime, OpenVINO or LiteRT.

A SavedModel takes strings: the tokenizer is inside the graph. The other formats take token ids, and
the vocabulary is beside the model. TensorFlow is needed, whatever backend the model was trained
with.

Example:
  keras-bert export --model sentiment.keras --output saved_models/sentiment
  keras-bert export --model pairs.keras --output saved_models/pairs/1 \\
      --inputs premise,hypothesis
  keras-bert export --model sentiment.keras --precision bfloat16 --output saved_models/sentiment
  keras-bert export --model sentiment.keras --format onnx --output sentiment_onnx
  keras-bert export --model sentiment.keras --format openvino --precision int8 \\
      --calibration texts.txt --output sentiment_openvino
"""

from keras_bert_suite.data.readers.columns import read_columns
from keras_bert_suite.data.readers.text_files import read_lines
from keras_bert_suite.serving.versions import version_path

from .command_flags import REQUIRED, UsageError
from .model_paths import check_input, check_models, define_base_flag
from .outputs import check_output, write_output
from .saved_tasks import export_version, open_task
from .table_flags import NO_TEXTS, TABLES

FORMATS = ("saved_model", "onnx", "openvino", "litert")
#: Each precision -> the formats that can be written in it.
PRECISIONS = {
    "float32": FORMATS,
    "bfloat16": ("saved_model",),
    "float16": ("saved_model", "onnx"),
    "int8": ("onnx", "openvino"),
}


def define_flags(flags):
    """Defines the flags of this command."""
    explanation = (
        "A .keras file, or the folder of a preset, of a checkpoint with a head, or of an adapter."
    )
    flags.path("model", REQUIRED, explanation)
    define_base_flag(flags)
    flags.choice("format", "saved_model", FORMATS, "Format to write.")
    explanation = (
        "Folder to write. For a SavedModel it is the folder of the model, such as "
        "saved_models/sentiment, which gets its next version, or the folder of a version, such as "
        "saved_models/sentiment/1."
    )
    flags.path("output", REQUIRED, explanation)
    explanation = (
        "Names of a SavedModel's inputs, in the order in which the model takes the texts. Default: "
        "the names of the texts in the model."
    )
    flags.list("inputs", None, explanation)
    explanation = "Maximum batch size of a server with batching, for a SavedModel."
    flags.integer("max_batch_size", 32, explanation)
    explanation = (
        "Precision of the written model. Default: that of the model. bfloat16 halves a SavedModel; "
        "it is for accelerators and for CPUs with AVX512-BF16 or AMX. float16 halves a SavedModel "
        "or an ONNX file; it is for GPUs. int8, for ONNX and OpenVINO, is two to three times as "
        "fast on CPUs. All three change the answers a little."
    )
    flags.choice("precision", None, list(PRECISIONS), explanation)
    explanation = (
        "File with a few hundred typical texts, one in each line, or a table (.tsv, .csv, .jsonl, "
        ".parquet) whose columns have the names of the model's texts. int8 of OpenVINO takes its "
        "scales from these texts."
    )
    flags.path("calibration", None, explanation)
    flags.switch("overwrite", False, "Replace the folder.")


def run(values):
    """Loads and exports."""
    check_precision(values)
    check_models(values, [values.model])
    is_saved_model = values.format == "saved_model"
    place = version_path(values.output) if is_saved_model else values.output
    check_output(place, values.overwrite, folder=True)
    task = open_task(values.model, base=values.base)
    if is_saved_model:
        from keras_bert_suite.serving.input_names import choose_input_names

        inputs = choose_input_names(task, values.inputs)
        sizes = values.max_batch_size, values.precision
        path = export_version(task, values.output, inputs, values.overwrite, *sizes)
        print(f"wrote {path}, with the inputs {', '.join(inputs)}")
        return

    import keras_bert_suite as kbs

    options = {}
    if values.precision in ("float16", "int8"):
        options["precision"] = values.precision
    if values.calibration:
        options["calibration_texts"] = read_calibration(values.calibration, task.input_names)
    export = getattr(kbs, f"export_{values.format}")

    def write(path):
        export(task, path, **options)

    print(f"wrote {write_output(values.output, write, values.overwrite, folder=True)}")


def check_precision(values):
    """Raises a `UsageError` if the precision, its texts and the format do not fit together.

    It also does so if a flag is given that would not be read.
    """
    for name in ("inputs", "max_batch_size"):
        if values.format != "saved_model" and name in values.given:
            raise UsageError(f"--{name} is for --format saved_model, got {values.format}")
    formats = PRECISIONS.get(values.precision, FORMATS)
    if values.format not in formats:
        raise UsageError(
            f"--precision {values.precision} is for --format {' and '.join(formats)}, got "
            f"{values.format}"
        )
    takes_texts = values.format == "openvino" and values.precision == "int8"
    if values.calibration and not takes_texts:
        raise UsageError("--calibration is for --format openvino --precision int8")
    if takes_texts and not values.calibration:
        raise UsageError("--precision int8 of OpenVINO needs --calibration, a file of texts")
    if values.calibration:
        check_input(values.calibration)


def read_calibration(path, input_names):
    """The texts from which int8 has its scales, as the model takes them."""
    if not path.lower().endswith((*TABLES, *NO_TEXTS)):
        return read_lines(path)
    columns = tuple(read_columns(path, list(input_names or ["text"])).columns)
    return columns if len(columns) > 1 else columns[0]
