"""Changes training texts anew in each epoch, as --augment says."""

import functools

from .fill_mask import has_masked_lm
from .saved_tasks import open_task


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
        if not has_masked_lm(values.checkpoint):
            raise ValueError(
                f"--augment masked_lm asks {values.checkpoint} for other words, and it has no head "
                "that guesses masked tokens. Choose a checkpoint with one, or --augment words."
            )
        masked_lm = open_task(values.checkpoint, "MaskedLM")
        masked_lm.preprocessor.sequence_length = task.preprocessor.sequence_length
        augment = functools.partial(kbs.replace_words, masked_lm=masked_lm)
    rows = kbs.AugmentedRows(train.x, train.y, augment, values.batch_size, seed=values.seed)
    return rows, None, None
