"""The maximum length of texts: what a length cuts of the training texts, and which cuts few."""

import math

from .command_flags import UsageError

#: More texts would not change the advice.
SAMPLE = 10_000


def report_cut_texts(task, train, data):
    """Prints how many texts of `Examples` a task cuts, if any, and which flags cut fewer."""
    packer = task.preprocessor
    advice = _advise(packer, train)
    length, most = packer.sequence_length, _count_positions(task)
    if not advice.cut_rows[length]:
        return
    advised = min(advice.sequence_length, most or advice.sequence_length)
    remedies = [f"--sequence_length {advised} cuts fewer"] if advised > length else []
    if "truncation" in data.own_flags and packer.truncation != "head_tail":
        remedies.append("--truncation head_tail keeps both ends")
    if "window_pooling" in data.own_flags:
        remedies.append("--window_pooling reads all")
    print(
        f"{advice.cut_rows[length]:.1%} of the training texts have more than {length} tokens and "
        f"are cut{': ' * bool(remedies)}{', '.join(remedies)}"
    )


def check_length_flag(length, data):
    """Raises a `UsageError` if --sequence_length is auto, and the task reads all of a text."""
    if length == "auto" and not data.cuts_texts:
        raise UsageError(
            f"--sequence_length auto is not for --task {data.name}, or with --window_pooling, "
            "where no text is cut at the end. Pass a number"
        )


def set_sequence_length(task, length, train, data):
    """Sets `sequence_length` of the packer.

    Args:
        task: a task.
        length: int; "auto" for the length that leaves 99% of the training texts whole; None for the
            default of the task. "auto" and None are at most the positions of the model.
        train: `Examples`.
        data: `Kind`.

    Raises:
        ValueError: if the model has fewer positions than `length`.
    """
    most = _count_positions(task) or math.inf
    if length == "auto":
        length = min(_advise(task.preprocessor, train).sequence_length, most)
    if length is not None and length > most:
        raise ValueError(
            f"--sequence_length={length} is more than the {most} positions of the checkpoint. "
            f"Choose at most {most}."
        )
    task.preprocessor.sequence_length = length or min(data.head.sequence_length, most)


def _advise(packer, train):
    # From all parts of the file, which may be sorted.
    step = -(-len(train) // SAMPLE)
    return packer.suggest_sequence_length(*(column[::step] for column in train.columns))


def _count_positions(task):
    """int, the positions of the encoder of a task; None if there is no such number."""
    import keras_bert_suite as kbs

    return kbs.models.Encoder.of(task.backbone).max_sequence_length
