"""The arguments of a classifier that takes over the classification layer of a checkpoint."""


def classifier_arguments(checkpoint):
    """The arguments of a `TextClassifier` whose head is the classification layer of a checkpoint.

    Args:
        checkpoint: a checkpoint from `open_checkpoint`.

    Returns:
        dict: `label_names`; `problem_type`, `dropout`, `activation` and `thresholds`, if the
        checkpoint names them.

    Raises:
        ValueError: if there is no such layer, or it is not the head of a `TextClassifier`.
    """
    if checkpoint.classifier_config is None:
        raise _no_head(checkpoint, checkpoint.classifier_problem)
    return dict(checkpoint.classifier_config)


def token_classifier_arguments(checkpoint):
    """The arguments of a `TokenClassifier` whose head is the classification layer of a checkpoint.

    Args, Returns, Raises: as for `classifier_arguments`.
    """
    if checkpoint.token_classifier_config is None:
        raise _no_head(checkpoint, "has no classification layer for tokens")
    return dict(checkpoint.token_classifier_config)


def multiple_choice_arguments(checkpoint):
    """The arguments of a `MultipleChoice` whose head is the classification layer of a checkpoint.

    Args:
        checkpoint: as for `classifier_arguments`.

    Returns:
        dict, empty if the checkpoint has no such layer.
    """
    return dict(checkpoint.multiple_choice_config or {})


def _no_head(checkpoint, problem):
    return ValueError(
        f"{checkpoint.path} {problem}. Pass `num_classes` or `label_names` to get a new layer."
    )
