"""Fine-tune a checkpoint on the labelled data of a task.

What each --task reads:

  classify    a table (TSV or CSV) with a text and its label in each row
  multilabel  a table whose labels are joined by --label_separator; --dev sets the thresholds
  regress     a table with a text and a number in each row
  attributes  a table with several labels in each row, in the columns of --attribute_columns; an
              empty field is a missing label
  ner         a word and its tag in each line (IOB1, BIO, BIOES or BMES), an empty line after each
              sentence; or .json and .jsonl files of doccano, Label Studio, spaCy, Prodigy, CLUENER
  relation    a file of SemEval 2010 task 8, or a table of texts and relations; in each text
              <e1>...</e1> and <e2>...</e2> mark the two entities
  qa          a JSON file in the format of SQuAD 1.1 or 2.0
  choice      a table in the format of SWAG: sent1, sent2, ending0 to ending3, label
  ranking     a table with a query, a text and its relevance in each row, clicks or grades, in the
              columns query, text and label; the rows of a query are its candidates
  seq2seq     a table with a text, and the text to write in --target_column
  causal_lm   a text in each line, or a table of texts; the model learns to continue them
  embed       a table with two matching texts in each row, or with two texts and a score in
              --label_column, which must be given

With --feature_columns, classify, multilabel and regress read columns of numbers, booleans and
categories beside the texts.

With --window_pooling, classify, multilabel and regress read the whole of a long text, in windows of
--sequence_length tokens.

The label names are the labels of the training file, sorted. The model is written when training is
done. If a run was killed, the same command resumes it. Its checkpoints are removed at the end. If
SIGTERM stops the run, the exit status is 143 and no model is written.

Example:
  keras-bert finetune --checkpoint hf://google-bert/bert-base-uncased \\
      --train train.tsv --dev dev.tsv --text_column sentence --output sentiment.keras

  # A file without a header: the texts are in its second column.
  keras-bert finetune --checkpoint bert-base --train train.csv --noheader \\
      --text_column 2 --label_column 1 --delimiter ';' --class_weight balanced --output model

  # Columns beside the texts. The numbers of shop are names.
  keras-bert finetune --checkpoint bert-base --train reviews.csv --text_column review \\
      --feature_columns price,shop=category --output reviews.keras

  keras-bert finetune --task ner --checkpoint bert-base --train train.txt --dev dev.txt \\
      --output tagger.keras

  keras-bert finetune --task relation --checkpoint bert-base --train TRAIN_FILE.TXT \\
      --test TEST_FILE_FULL.TXT --output relations.keras

  keras-bert finetune --task qa --checkpoint bert-base --train train-v2.0.json \\
      --dev dev-v2.0.json --output answerer.keras

  # A reranker, from clicks. --batch_size counts queries.
  keras-bert finetune --task ranking --checkpoint bert-base --train clicks.tsv --batch_size 8 \\
      --text_column query --text_pair_column title --label_column clicked --output ranker

  # Reviews of any length, read in windows of 256 tokens.
  keras-bert finetune --checkpoint bert-base --train reviews.tsv --sequence_length 256 \\
      --window_pooling max --output reviews.keras

  # A model of three layers learns from one of six, and from the labels.
  keras-bert finetune --checkpoint sentiment --layers 0,2,4 --teacher sentiment \\
      --train train.tsv --text_column sentence --output small_sentiment

  # Write titles of articles. CLGE's files of CSL have a title, a tab and an abstract in each line.
  keras-bert finetune --task seq2seq --checkpoint bert-base-chinese --train train.tsv --noheader \\
      --text_column 2 --target_column 1 --num_beams 3 --output titles.keras
"""

import contextlib
import functools
import os
import sys
import warnings
from pathlib import Path

from keras_bert_suite.files import messages
from keras_bert_suite.files.checksums import find_digest
from keras_bert_suite.heads.base.head import HEAD_LAYERS_RATE
from keras_bert_suite.serving import input_names, versions

from .adaptations import define_adaptation_flags, make_adaptation
from .command_flags import DTYPES, REQUIRED
from .cut_texts import check_length_flag, report_cut_texts, set_sequence_length
from .devices import define_devices_flag, is_leader, use_devices
from .fill_mask import has_masked_lm
from .kinds import choose_kind, define_kind_flags, define_task_flag, describe_defaults
from .label_check import check_label_check, check_labels, define_check_flags
from .model_paths import check_model
from .outputs import check_output, write_output
from .run_settings import check_run, claim_folder, drop_run, read_settings, report_stop
from .saved_tasks import export_version, open_task
from .scores import format_scores
from .table_flags import define_table_flags
from .techniques import define_teacher_flags, define_technique_flags, make_technique

#: Flags that may change from one start of a run to the next.
MAY_CHANGE = (
    *("dev", "test", "output", "export", "overwrite", "checkpoint_dir", "checkpoint_every"),
    *("adapter", "errors", "folds", "devices", "backend", "traceback", "given"),
)


def define_flags(flags):
    """Defines the flags of this command."""
    explanation = "Folder of a Hugging Face, Google TF1 or own checkpoint, or hf://..."
    flags.path("checkpoint", REQUIRED, explanation)
    explanation = (
        "Beginnings of the names of tensors of a Hugging Face --checkpoint, and what stands in "
        "their place, for a module with names of its own: encoder.=,model.=bert."
    )
    flags.mapping("rename", explanation)
    define_task_flag(flags)
    explanation = (
        "Training file: .tsv, .csv, .jsonl, .parquet, or another with --delimiter or --task."
    )
    flags.path("train", REQUIRED, explanation)
    flags.path("dev", None, "File to evaluate on after every epoch.")
    flags.path("test", None, "File to evaluate on at the end.")
    define_table_flags(flags, "text", "label")
    define_kind_flags(flags)
    define_kind_flags(flags, "define_training_flags")
    flags.path("output", REQUIRED, "Model to write: a .keras file, or the folder of a preset.")
    flags.path("export", None, "SavedModel to write: saved_models/sentiment, or .../sentiment/1.")
    flags.switch("overwrite", False, "Replace the output.")
    define_check_flags(flags)
    flags.integer("epochs", 3, "Passes over the training file.")
    explanation = "Batch size, in texts; in queries with --task ranking. Default: "
    flags.integer("batch_size", None, explanation + describe_defaults("batch_size"))
    explanation = (
        f"Maximum sequence length, in tokens. Default: {describe_defaults('sequence_length')} Or "
        "fewer if the model has fewer positions. auto: as many as 99% of the training texts have, "
        "with the tasks that read only a part of a longer text."
    )
    flags.integer("sequence_length", None, explanation, at_least=4, words=("auto",))
    explanation = f"Peak learning rate. Default: {describe_defaults('learning_rate')}"
    flags.number("learning_rate", None, explanation, at_most=1)
    explanation = (
        f"Peak learning rate of the new layers. Default: --learning_rate, or {HEAD_LAYERS_RATE} "
        "with --head_layers."
    )
    flags.number("head_learning_rate", None, explanation, at_most=1)
    explanation = (
        "Factor of the learning rate from a layer of the encoder to the layer below it, such as "
        "0.8, in ELECTRA's numbering. Default: one rate for all layers."
    )
    flags.number("layer_decay", None, explanation, at_most=1)
    explanation = "Layers of the encoder that are kept, the first ones. Default: all."
    flags.integer("num_layers", None, explanation)
    explanation = "Layers of the encoder that are kept: 0,2,4. 0 is the first. Default: all."
    flags.list("layers", None, explanation, int)
    explanation = (
        f"Share of the steps that are warm-up. Default: {describe_defaults('warmup_ratio')}"
    )
    flags.number("warmup_ratio", None, explanation, at_most=1)
    flags.number("weight_decay", 0.01, "Weight decay. Biases and norms are not decayed.")
    explanation = "Correct the bias of Adam. This is better with fewer than about 10,000 texts."
    flags.switch("bias_correction", False, explanation)
    explanation = (
        "balanced: every class has the same weight in the loss, however many texts it has."
    )
    flags.choice("class_weight", "none", ("none", "balanced"), explanation)
    define_technique_flags(flags)
    define_teacher_flags(flags)
    define_adaptation_flags(flags)
    explanation = "Pack several texts in a row of the encoder, so that it skips padding."
    flags.switch("sequence_packing", False, explanation)
    flags.path("checkpoint_dir", None, "Folder for the checkpoints. Default: OUTPUT.training.")
    flags.integer(
        "checkpoint_every", 500, "Steps from one checkpoint to the next; 0 for none.", at_least=0
    )
    flags.integer(
        "seed", 0, "Seed of the new layer, the order of the texts and the dropout.", at_least=0
    )
    flags.choice("dtype", "float32", DTYPES, "Precision.")
    define_devices_flag(flags)


def run(values):
    """Reads the files, fine-tunes, evaluates, writes.

    Returns:
        int, the exit status, if SIGTERM has stopped the training; otherwise None.
    """
    is_preset = not values.output.endswith(".keras")
    check_output(values.output, values.overwrite, is_preset)
    if values.adapter:
        check_output(values.adapter, values.overwrite, True)
    make_adaptation(values)  # A wrong value is the first error.
    data = choose_kind(values)
    check_length_flag(values.sequence_length, data)
    inputs = data.input_names
    if values.export:
        input_names.check_signature_names((*inputs, *data.feature_names))
        check_output(versions.version_path(values.export), values.overwrite, folder=True)
    for path in (values.checkpoint, *(values.teacher or ())):
        check_model(path)
    if values.layers and values.num_layers:
        raise ValueError(
            f"--num_layers={values.num_layers} keeps the first layers, and --layers={values.layers}"
            " names the layers to keep. Pass one of them."
        )
    files = (values.train, values.dev, values.test)
    train, dev, test = (path and data.read(path) for path in files)
    arguments = data.find_arguments(train)
    state = find_state_folder(values)
    resumes = state is not None and bool(read_settings(state))
    check_label_check(values, resumes)
    claimed = contextlib.nullcontext()
    if state is not None and is_leader(values):
        before, settings = read_settings(state), settings_of(values)
        check_run(state, before, settings)
        claimed = claim_folder(state, before, settings)
    if values.errors and is_leader(values) and not resumes:
        # A run that resumes takes an existing file for its result.
        Path(values.errors).unlink(missing_ok=True)
    make = functools.partial(make_task, values, data, arguments, train)
    with claimed, use_devices(values):
        if values.errors and not os.path.exists(values.errors):
            check_labels(values, data, make, train, writes=is_leader(values))
        task = make()
        for examples in filter(None, (dev, test)):
            data.check(task, examples)
        describe_data(values, task)
        if not train_task(values, data, task, train, dev, state):
            return report_stop()
        # The devices share the batches of an evaluation too. Only the first process prints.
        if dev and data.complete(task, dev):
            task.card["dev"] = format_scores(data.score(task, dev))
            print(f"dev {task.card['dev']}, with the best thresholds")
        if test:
            task.card["test"] = format_scores(data.score(task, test))
            print(f"test {task.card['test']}")
        if not is_leader(values):
            return None
        if values.adapter:
            write_output(values.adapter, task.save_adapter, values.overwrite, True)
            print(f"wrote {values.adapter}, the adapter and the head alone")
        save = task.save_to_preset if is_preset else task.save
        print(f"wrote {write_output(values.output, save, values.overwrite, is_preset)}")
    if state is not None:
        drop_run(state)
        with contextlib.suppress(OSError):  # It may hold other files.
            state.rmdir()
    if values.export:
        path = export_version(task, values.export, inputs, values.overwrite)
        print(f"wrote {path}, with the inputs {', '.join(inputs)}")


def find_state_folder(values):
    """`pathlib.Path` of the folder for checkpoints, or None if no checkpoint is to be written."""
    if not values.checkpoint_every:
        return None
    folder = values.checkpoint_dir or f"{values.output.rstrip(os.sep)}.training"
    return Path(folder)


def settings_of(values):
    """dict of the settings that a run must keep: flags, and the hash of the training file."""
    settings = {name: value for name, value in vars(values).items() if name not in MAY_CHANGE}
    return {**settings, "train (SHA-256)": find_digest(values.train)}


def make_task(values, data, arguments, train):
    """The task on top of --checkpoint, compiled.

    Args:
        values: the flags.
        data: `Kind`.
        arguments: dict, the arguments of the task that `data` has found.
        train: examples that `data` has read.
    """
    import keras

    import keras_bert_suite as kbs

    keras.utils.set_random_seed(values.seed)
    with warnings.catch_warnings():
        # A new head is about to be trained.
        warnings.filterwarnings("ignore", r".*\. Train them before you use their output\.$")
        task = getattr(kbs, data.task).from_preset(
            values.checkpoint,
            input_names=data.input_names,
            dtype=values.dtype,
            num_layers=values.num_layers,
            rename=values.rename,
            **data.find_preprocessor(),
            **arguments,
        )
    if values.layers:
        task = task.keep_layers(values.layers)
    set_sequence_length(task, values.sequence_length, train, data)
    if values.truncation:
        task.preprocessor.truncation = values.truncation
    adaptation = make_adaptation(values)
    if adaptation is not None:
        task.adapt(adaptation, verbose=is_leader(values))
    rate = values.head_learning_rate
    task.compile(
        optimizer=task.make_optimizer(
            values.learning_rate,
            values.warmup_ratio,
            weight_decay=values.weight_decay,
            layer_decay=values.layer_decay,
            bias_correction=values.bias_correction,
        ),
        head_learning_rate=task.head_learning_rate if rate is None else rate,
        technique=make_technique(values),
        **data.find_compile_arguments(),
    )
    return task


def train_task(values, data, task, train, dev, state):
    """Fine-tunes a task.

    Args:
        values: the flags.
        data: `Kind`.
        task: from `make_task`.
        train, dev: examples that `data` has read; `dev` may be None.
        state: `pathlib.Path` of the folder for checkpoints, or None.

    Returns:
        bool, whether the training is complete; False if SIGTERM has stopped it.
    """
    import keras_bert_suite as kbs

    names = f", labels {messages.list_names(train.label_names)}" if train.label_names else ""
    print(f"{len(train)} training {data.rows}{names}")
    if values.sequence_length == "auto":
        print(f"sequence_length {task.preprocessor.sequence_length}")
    if data.cuts_texts:
        report_cut_texts(task, train, data)
    callbacks = data.callbacks(dev)
    if state is not None:
        folder = state / "checkpoints"
        callbacks.append(kbs.TrainingCheckpoint(folder, every=values.checkpoint_every, keep=1))
    x, y, batch_size = augment_rows(values, task, train)
    weight = data.class_weight
    if weight is not None and y is None:  # `AugmentedRows`, which are batches.
        weight = task.balance_classes(train.y)
    task.fit(
        x,
        y,
        class_weight=weight,
        validation_data=(dev.x, dev.y) if dev is not None else None,
        batch_size=batch_size,
        validation_batch_size=values.batch_size,
        epochs=values.epochs,
        sequence_packing=values.sequence_packing,
        callbacks=callbacks,
        verbose=1 if sys.stdout.isatty() else 2,
    )
    return state is None or not callbacks[-1].terminated


def augment_rows(values, task, train):
    """The arguments `x`, `y` and `batch_size` of `fit`, for texts that change as --augment says.

    Args:
        values: the flags.
        task: the task that is trained.
        train: `Examples`.

    Raises:
        ValueError: if --checkpoint has no head that guesses masked tokens.
    """
    if not values.augment:
        return train.x, train.y, values.batch_size
    import keras_bert_suite as kbs

    augment = kbs.edit_words
    if values.augment == "noise":
        augment = kbs.TextNoise(["keyboard", "swap", "delete", "insert"])
    elif values.augment == "masked_lm":
        if not has_masked_lm(values.checkpoint):
            raise ValueError(
                f"--augment masked_lm asks {values.checkpoint} for other words, and it has no head "
                "that guesses masked tokens. Choose a checkpoint with one, or --augment words."
            )
        masked_lm = open_task(values.checkpoint, "MaskedLM")
        masked_lm.preprocessor.sequence_length = task.preprocessor.sequence_length
        augment = functools.partial(kbs.replace_words, masked_lm=masked_lm)
    if train.features:
        task.learn_features(train.x)
    rows = kbs.AugmentedRows(
        *(train.x, train.y, augment, values.batch_size),
        seed=values.seed,
        features=tuple(train.features),
    )
    return rows, None, None


def describe_data(values, task):
    """Names the files in the model card of a task, with their roles and checksums."""
    files = {"train": values.train, "dev": values.dev, "test": values.test}
    task.card["data"] = {
        role: f"{Path(path).name} (SHA-256 {find_digest(path)})"
        for role, path in files.items()
        if path
    }
