"""Entities found by a `TokenClassifier`: scored by `evaluate`, and written by `predict`."""

import dataclasses
import json

from .command_flags import UsageError
from .outputs import write_output
from .saved_tasks import open_classifier
from .tagged_sentences import check_tags, read_sentences


def evaluate_entities(values):
    """Scores a model on tagged sentences, prints a table of the types, and writes JSON."""
    if values.png:
        raise UsageError("--png is a picture of classes of texts. Leave it out with --task ner")
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
    """Prints what `TokenClassifier.score` returned."""
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


def format_entities(values, texts):
    """Yields a line of JSON for each text, with its entities.

    Args:
        values: the flags.
        texts: list of str.
    """
    if values.format == "tsv":
        raise UsageError(
            "--format tsv has a label a text. The entities of a text are --format jsonl"
        )
    tagger = open_classifier(values.model, "TokenClassifier")
    answers = tagger.predict(texts, batch_size=values.batch_size, verbose=0)
    for text, entities in zip(texts, answers, strict=True):
        entities = [
            {**dataclasses.asdict(entity), "score": round(entity.score, 6)} for entity in entities
        ]
        yield json.dumps({"text": text, "entities": entities}, ensure_ascii=False) + "\n"
