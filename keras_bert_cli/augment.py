"""Changes training texts anew in each epoch, as --augment says."""

import functools
import warnings


def augment_rows(values, task, train):
    """The arguments `x`, `y` and `batch_size` of `fit`.

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
    if values.augment == "masked_lm":
        masked_lm = _open_masked_lm(values.checkpoint)
        masked_lm.preprocessor.sequence_length = task.preprocessor.sequence_length
        augment = functools.partial(kbs.replace_words, masked_lm=masked_lm)
    rows = kbs.AugmentedRows(train.x, train.y, augment, values.batch_size, seed=values.seed)
    return rows, None, None


def _open_masked_lm(checkpoint):
    import keras_bert_suite as kbs

    with warnings.catch_warnings():
        warnings.filterwarnings("error", r".*\. Train them before")
        try:
            return kbs.MaskedLM.from_preset(checkpoint)
        except UserWarning:
            raise ValueError(
                f"--augment masked_lm asks {checkpoint} for other words, and it has no head that "
                "guesses masked tokens. Choose a checkpoint with one, or --augment words."
            ) from None
