"""Evaluate a model on labelled texts, sentences with tagged words, or questions.

Prints the scores of the model's task: for classes the accuracy, a table of precision, recall and F1
of every class, and the confusion matrix. --json writes the scores to a file. --png draws a
confusion matrix, or the F1 of each label or type of entity. --errors writes the rows whose answer
is wrong, the highest loss first, and marks the labels that look wrong themselves. --noise scores
the texts again with typing errors and other noise.

Example:
  keras-bert evaluate --model sentiment.keras --input test.tsv --text_column sentence \\
      --json scores.json --png confusion_matrix.png

  # The wrong answers, as a page to open in a browser.
  keras-bert evaluate --model sentiment.keras --input test.tsv --text_column sentence \\
      --errors errors.html

  # The mean of several models.
  keras-bert evaluate --model seed1.keras seed2.keras seed3.keras --input test.tsv

  # The adapter and the head of finetune --adapt lora --adapter adapters/films.
  keras-bert evaluate --model adapters/films --base bert-base-uncased --input test.tsv

  # The accuracy over typing errors, lost spaces and letters of other scripts.
  keras-bert evaluate --model sentiment.keras --input test.tsv --text_column sentence \\
      --noise keyboard,swap,lost_space,homoglyph --noise_rate 0.05,0.1

  # Precision, recall and F1 of the entities, of every type and of all.
  keras-bert evaluate --model tagger.keras --input test.txt

  # Exact match and F1 of the answers to questions, in percent.
  keras-bert evaluate --model answerer.keras --input dev-v2.0.json

  # ROUGE and exact match of titles that a model writes, in percent.
  keras-bert evaluate --model titles.keras --input test.tsv --target_column title

  # The perplexity of texts for a model that continues them.
  keras-bert evaluate --model stories --input test.txt
"""

import dataclasses
from pathlib import Path

from .command_flags import REQUIRED, UsageError
from .error_files import check_errors_file
from .kinds import define_kind_flags, open_kind
from .kinds.kind import dump_json
from .label_check import check_inspects, save_errors
from .model_paths import (
    check_input,
    define_base_flag,
    is_runtime_folder,
    is_saved_model,
    take_models,
)
from .outputs import check_output, write_output
from .scores import print_scores
from .table_flags import define_table_flags


def define_flags(flags):
    """Defines the flags of this command."""
    explanation = (
        "A .keras file, or the folder of a preset, checkpoint, ensemble or adapter. The answers of "
        "several models are averaged."
    )
    flags.paths("model", REQUIRED, explanation)
    define_base_flag(flags)
    explanation = (
        "Labelled texts (.tsv, .csv, .jsonl, .parquet or --delimiter), tagged sentences, or "
        "questions (.json)."
    )
    flags.path("input", REQUIRED, explanation)
    define_table_flags(flags, label_column="label")
    define_kind_flags(flags)
    flags.path("json", None, "File for the scores and the confusion matrix, as JSON.")
    flags.path("png", None, "File for a picture of the scores; needs matplotlib.")
    explanation = (
        "File for the rows with a wrong answer: .csv or .jsonl, or .html, a page for a browser. "
        "Labels that look wrong are marked; use rows that the model was not trained on."
    )
    flags.path("errors", None, explanation)
    explanation = (
        "Also score the texts with noise of these kinds: keyboard, swap, delete, insert, ocr, "
        "lost_space, added_space, homoglyph, homophone. --json has these scores, too."
    )
    flags.list("noise", None, explanation)
    explanation = "The probabilities that --noise changes a place, joined by commas. Default: 0.1."
    flags.list("noise_rate", None, explanation, kind=float)
    flags.switch("overwrite", False, "Replace these files.")
    flags.integer("batch_size", 32, "Batch size, in texts.")


def run(values):
    """Opens the model, scores it, prints the scores and writes the files."""
    if values.png and (values.png == values.json or not values.png.lower().endswith(".png")):
        raise UsageError(f"--png needs a file for itself that ends in .png, got {values.png}")
    check_noise(values)
    if values.errors:
        check_errors_file(values.errors)
    for path in filter(None, (values.json, values.png, values.errors)):
        check_output(path, values.overwrite)
    take_models(values)
    check_input(values.input)
    if any(is_saved_model(path) or is_runtime_folder(path) for path in values.models):
        raise UsageError(
            f"--model {values.model} is an export, which only answers: keras-bert predict. "
            "Evaluate the model that it was exported from"
        )
    if values.png:
        from . import plots  # noqa: F401, the absence of matplotlib is an error before the work
    kind = open_kind(values)
    if values.errors:
        check_inspects(kind.model, type(kind.model).__name__)
    examples = kind.read(values.input)
    if values.errors:
        scores, wrong = score_and_inspect(kind, examples)
    else:
        scores = kind.score(kind.model, examples)
    scores = {"rows": len(examples), **scores}
    print_scores(scores)
    if values.noise:
        report = score_noise(kind, examples)
        print(f"\n{report}")
        scores["noise"] = report.to_dict()["noises"]
    if values.json:
        text = dump_json(scores, indent=2) + "\n"
        write(values, values.json, lambda path: path.write_text(text, "utf-8"))
    if values.png:
        write(values, values.png, lambda path: kind.draw(scores, path))
    if values.errors:
        models = ", ".join(Path(path).name for path in values.models)
        title = f"Wrong answers of {models} in {Path(values.input).name}"
        names = kind.model.input_names or kind.input_names
        save_errors(values.errors, wrong, examples, names, title, values.overwrite)


def check_noise(values):
    """Checks the flags of noise before the rows are scored."""
    if not values.noise:
        if values.noise_rate:
            message = "--noise_rate is for --noise, the kinds of noise. Give both or neither"
            raise UsageError(message)
        return
    from keras_bert_suite.argument_checks import check_choice, check_share
    from keras_bert_suite.data.noise.kinds import KINDS

    try:
        for kind in values.noise:
            check_choice("--noise", kind, KINDS)
        for rate in values.noise_rate or ():
            check_share("--noise_rate", rate, positive=True)
    except ValueError as error:
        raise UsageError(str(error).rstrip(".")) from None


def score_and_inspect(kind, examples):
    """The scores of `kind.model`, and its `WrongAnswer`s, of one prediction."""
    from keras_bert_suite.heads.base.inspection import complete_wrong

    task = kind.model
    kind.check(task, examples)

    def find(outputs, rows, labels):
        scores = kind.score_outputs(task, outputs, rows, labels)
        return scores, task.answers.inspect(outputs, rows, labels)

    scores, wrong = task.score_with(find, examples.x, examples.y, kind.values.batch_size)
    return scores, complete_wrong(task, examples.x, wrong)


def score_noise(kind, examples):
    """The `RobustnessReport` of `kind.model` over --noise, of the scores that are printed."""
    import keras_bert_suite as kbs

    return kbs.robustness(
        kind.model,
        examples.x,
        examples.y,
        kinds=kind.values.noise,
        rates=kind.values.noise_rate or [0.1],
        batch_size=kind.values.batch_size,
        score=lambda x: kind.score(kind.model, dataclasses.replace(examples, x=x)),
    )


def write(values, path, write):
    """Writes a file, and says so."""
    print(f"wrote {write_output(path, write, values.overwrite)}")
