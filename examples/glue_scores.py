"""The metrics of GLUE, and the files for its server."""

import numpy as np

from keras_bert_suite.data.readers.field_checks import NUMBERS
from keras_bert_suite.heads.base.label_scores import score_classes, score_numbers


def score_glue(task, labels, predictions):
    """The metrics of a task on a split.

    Args:
        task: `GlueTask`.
        labels, predictions: N label names, or N numbers.

    Returns:
        dict of metric -> float: "matthews", "accuracy", "f1" of the label "1", "pearson" and
        "spearman". These are the metrics of the leaderboard for this task.
    """
    if task.problem_type == NUMBERS:
        columns = (np.reshape(column, (-1, 1)) for column in (labels, predictions))
        scores = score_numbers(*columns)
    else:
        id_of = {name: i for i, name in enumerate(task.label_names)}
        ids = ([id_of[label] for label in column] for column in (labels, predictions))
        scores = score_classes(*ids, task.label_names)
        scores["f1"] = scores["classes"].get("1", {}).get("f1")
    return {name: scores[name] for name in task.metrics}


def format_predictions(task, predictions):
    """The text of a file for the GLUE server. Numbers are clipped to the range from 0 to 5.

    >>> print(format_predictions(GLUE_TASKS["rte"], ["entailment", "not_entailment"]), end="")
    index	prediction
    0	entailment
    1	not_entailment
    """
    if task.problem_type == NUMBERS:
        predictions = [f"{min(max(float(number), 0.0), 5.0):.3f}" for number in predictions]
    rows = [f"{row}\t{prediction}\n" for row, prediction in enumerate(predictions)]
    return "index\tprediction\n" + "".join(rows)
