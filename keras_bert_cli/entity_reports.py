"""Scores and writes the entities that a `TokenClassifier` finds, for `evaluate` and `predict`."""

import dataclasses
import json

from .command_flags import UsageError
from .model_paths import is_saved_model
from .outputs import write_output
from .saved_tasks import open_classifier
from .tagged_sentences import check_tags, read_sentences


def evaluate_entities(values):
    """Scores a model on tagged sentences, prints a table of the types, and writes JSON."""
    if values.png:
        raise UsageError("--png is a picture of classes of texts. Leave it out with --task ner")
    if is_saved_model(values.model):
        raise UsageError(
            f"--model {values.model} is a SavedModel. It splits texts into words of its own, "
            "which may differ from the words of the file. Evaluate the model that it was exported "
            "from"
        )
    sentences = read_sentences(values, values.input)
    tagger = open_classifier(values.model, "TokenClassifier")
    check_tags(sentences, tagger.label_names, source=values.model)
    scores = tagger.score(sentences.words, sentences.tags, values.batch_size)
    scores = {"sentences": len(sentences), **scores}
    print_entity_scores(scores)
    if values.json:
        content = json.dumps(scores, indent=2, ensure_ascii=False) + "\n"
        path = write_output(
            values.json, lambda path: path.write_text(content, "utf-8"), values.overwrite
        )
        print(f"wrote {path}")


def print_entity_scores(scores):
    """Prints the scores of `TokenClassifier.score`."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False)
    console.print(f"entity F1 {scores['f1']:.4f}, {scores['sentences']} sentences")
    table = Table("type", "precision", "recall", "F1", "entities")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, row in [*scores["types"].items(), ("all", scores)]:
        figures = (f"{row[kind]:.4f}" for kind in ("precision", "recall", "f1"))
        table.add_row(name, *figures, str(row["entities"]))
    console.print(table)


def find_entities(values, columns, saved_model=None):
    """The entities of texts.

    Args:
        values: the flags.
        columns: dict, column name -> texts.
        saved_model: `SavedModel`, or None: `--model` is then a task.

    Returns:
        for each text a list of dicts of `label`, `text`, `start`, `end` and `score`.
    """
    if saved_model is not None:
        return saved_model.find_entities(columns, values.batch_size)
    tagger = open_classifier(values.model, "TokenClassifier")
    (texts, *_) = columns.values()
    answers = tagger.predict(texts, batch_size=values.batch_size, verbose=0)
    return [[dataclasses.asdict(entity) for entity in entities] for entities in answers]


def format_entities(columns, answers):
    """Yields a line of JSON for each text, with its entities, as `find_entities` returns them."""
    (texts, *_) = columns.values()
    for text, entities in zip(texts, answers, strict=True):
        entities = [{**entity, "score": round(entity["score"], 6)} for entity in entities]
        yield json.dumps({"text": text, "entities": entities}, ensure_ascii=False) + "\n"
