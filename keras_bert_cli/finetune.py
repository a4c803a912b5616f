"""Fine-tune a checkpoint on a TSV or CSV file of labelled texts.

The label names are those of the training file, sorted. Progress and a table of the
epochs are printed; the model is written when training is done.

Example:
  keras-bert finetune --checkpoint hf://google-bert/bert-base-uncased \\
      --train train.tsv --dev dev.tsv --text_column sentence --output sentiment.keras
"""

from absl import flags

from .outputs import check_output, write_output
from .saved_tasks import check_version, export_version

REQUIRED = ("checkpoint", "train", "output")


def define_flags(values):
    """Defines the flags of this command."""

    def text(name, default, explanation):
        flags.DEFINE_string(name, default, explanation, flag_values=values)

    def integer(name, default, explanation, lower_bound):
        flags.DEFINE_integer(name, default, explanation, lower_bound, flag_values=values)

    def number(name, default, explanation, upper_bound=None):
        flags.DEFINE_float(name, default, explanation, 0, upper_bound, flag_values=values)

    text("checkpoint", None, "Folder of a Hugging Face, Google TF1 or own checkpoint, or hf://...")
    text("train", None, "Training file, .tsv or .csv, whose first line names the columns.")
    text("dev", None, "File to evaluate on after every epoch.")
    text("test", None, "File to evaluate on at the end.")
    text("text_column", "text", "Column of the texts.")
    text("text_pair_column", None, "Column of second texts, for pairs.")
    text("label_column", "label", "Column of the labels.")
    text("encoding", "utf-8", "Encoding of the files.")
    text("output", None, "Where the model goes: a .keras file, or the folder of a preset.")
    text("export", None, "Where a SavedModel goes: saved_models/sentiment, or .../sentiment/1.")
    flags.DEFINE_boolean("overwrite", False, "Replace what is there.", flag_values=values)
    integer("epochs", 3, "Passes over the training file.", 1)
    integer("batch_size", 32, "Texts in a training step.", 1)
    integer("sequence_length", None, "Most tokens in a text. Default: 128, or the model's most.", 4)
    number("learning_rate", 5e-5, "Learning rate at its peak.")
    number("warmup_ratio", 0.1, "Share of the steps in which the learning rate rises.", 1)
    number("weight_decay", 0.01, "Weight decay; not of biases and norms.")
    explanation = "Correct the bias of Adam, better with less than some ten thousand texts."
    flags.DEFINE_boolean("bias_correction", False, explanation, flag_values=values)
    integer("seed", 0, "Seed of the new layer, the order of the texts and the dropout.", 0)
    dtypes = ("float32", "bfloat16", "mixed_bfloat16", "mixed_float16")
    flags.DEFINE_enum("dtype", "float32", dtypes, "Precision.", flag_values=values)


def run(values):
    """Reads the files, fine-tunes, evaluates, writes."""
    kind = None if values.output.endswith(".keras") else "preset"
    check_output(values.output, values.overwrite, kind)
    pair = [values.text_column, values.text_pair_column]
    inputs = tuple(pair) if values.text_pair_column else ("text",)
    if values.export:
        check_version(values.export, inputs, values.overwrite)
    train = read_examples(values, values.train)
    label_names = read_label_names(values, train)
    held_out = {
        name: read_examples(values, path, label_names)
        for name, path in (("dev", values.dev), ("test", values.test))
        if path
    }

    import keras

    import keras_bert_suite as kbs

    from .training_report import fit, print_epochs

    keras.utils.set_random_seed(values.seed)
    classifier = kbs.TextClassifier.from_preset(
        values.checkpoint, label_names=label_names, dtype=values.dtype
    )
    set_sequence_length(classifier, values.sequence_length)
    schedule = kbs.LinearWarmupDecay(values.learning_rate, warmup_ratio=values.warmup_ratio)
    classifier.compile(
        optimizer=kbs.AdamW(
            schedule,
            weight_decay=values.weight_decay,
            bias_correction=values.bias_correction,
        )
    )
    print(f"{len(train)} training texts, labels {', '.join(label_names)}")
    history, seconds = fit(
        classifier,
        *columns_of(values, train),
        validation_data=columns_of(values, held_out["dev"]) if "dev" in held_out else None,
        batch_size=values.batch_size,
        epochs=values.epochs,
    )
    print_epochs(history, seconds, held_out_name="dev")
    if "test" in held_out:
        scores = classifier.evaluate(
            *columns_of(values, held_out["test"]), verbose=0, return_dict=True
        )
        print(f"test accuracy {scores['accuracy']:.4f}, loss {scores['loss']:.4f}")

    save = classifier.save_to_preset if kind else classifier.save
    print(f"wrote {write_output(values.output, save, values.overwrite, kind)}")
    if values.export:
        path = export_version(classifier, values.export, inputs, values.overwrite)
        print(f"wrote {path}, with the inputs {', '.join(inputs)}")


def read_examples(values, path, label_names=None):
    """Reads the columns that the flags name.

    Raises:
        ValueError: if a label is empty, or is not one of `label_names`, naming its line.
    """
    from keras_bert_suite.data.tables import read_table

    columns = [values.text_column, values.text_pair_column, values.label_column]
    table = read_table(path, list(filter(None, columns)), values.encoding)
    for row, label in enumerate(table.columns[values.label_column]):
        if not label:
            raise ValueError(f"{table.locate(row)}: the label is empty. Give the text a label.")
        if label_names is not None and label not in label_names:
            raise ValueError(
                f"{table.locate(row)}: the label {label!r} does not occur in {values.train}, "
                f"whose labels are {', '.join(label_names)}. Correct it, or add texts with it "
                "to the training file."
            )
    return table


def read_label_names(values, train):
    """The label names of the training table: two or more."""
    from keras_bert_suite.data.tables import list_label_names

    label_names = list_label_names(train.columns[values.label_column])
    if len(label_names) < 2:
        raise ValueError(
            f"Every row of {train.path} has the label {label_names[0]!r} in its column "
            f"{values.label_column!r}. Wanted two or more different labels."
        )
    return label_names


def columns_of(values, table):
    """(texts, labels), or ((first texts, second texts), labels) of pairs."""
    texts = table.columns[values.text_column]
    if values.text_pair_column:
        texts = (texts, table.columns[values.text_pair_column])
    return texts, table.columns[values.label_column]


def set_sequence_length(classifier, length):
    """Sets the most tokens in a row: `length`, or 128 as far as the model has positions.

    Raises:
        ValueError: if the model has fewer positions than `length`.
    """
    most = getattr(classifier.backbone, "max_sequence_length", None) or 128
    if length is not None and length > most:
        raise ValueError(
            f"--sequence_length={length} is more than the {most} positions of the checkpoint. "
            f"Choose at most {most}."
        )
    classifier.preprocessor.sequence_length = length or min(128, most)
