"""The classification layer of a checkpoint, for a `TextClassifier`."""


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
        raise ValueError(
            f"{checkpoint.path} {checkpoint.classifier_problem}. Pass `num_classes` or "
            "`label_names` to get a new one."
        )
    return dict(checkpoint.classifier_config)
