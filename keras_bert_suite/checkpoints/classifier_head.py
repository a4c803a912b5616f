"""The classification layer of a checkpoint, for a `TextClassifier` or a `TokenClassifier`."""


def classifier_arguments(checkpoint):
    """The arguments of `TextClassifier` under which the layer of a checkpoint is its head.

    Args:
        checkpoint: what `open_checkpoint` returned.

    Returns:
        dict: `label_names`, and what else the checkpoint says of `dropout` and `activation`.

    Raises:
        ValueError: if there is no such layer, or it is no classifier with one label a text.
    """
    if checkpoint.classifier_config is None:
        raise _no_head(checkpoint, checkpoint.classifier_problem)
    return dict(checkpoint.classifier_config)


def token_classifier_arguments(checkpoint):
    """The arguments of `TokenClassifier` under which the layer of a checkpoint is its head.

    Args, Returns, Raises: as for `classifier_arguments`.
    """
    if checkpoint.token_classifier_config is None:
        raise _no_head(checkpoint, "has no classification layer for tokens")
    return dict(checkpoint.token_classifier_config)


def _no_head(checkpoint, problem):
    return ValueError(
        f"{checkpoint.path} {problem}. Pass `num_classes` or `label_names` to get a new one."
    )
