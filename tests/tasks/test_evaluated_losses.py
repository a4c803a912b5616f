"""What `evaluate` and `fit` report does not depend on which rows share a batch.

One batch of all rows is the definition of each loss. Losses that compare the rows of a batch, such
as `InBatchNegatives`, have no such mean.
"""

import keras
import numpy as np
import pytest
from heads.cases import FIRST, NUM_ROWS, PAIRS, TASKS
from small_tasks import make_task
from tables import short_for

from keras_bert_suite import CosineRegression

#: Rows of 1 to 4 words, so that batches differ in their number of labels.
WORDS = [text.split()[: 1 + row % 4] for row, text in enumerate(FIRST)]
TAGS = [[int(word == "good") for word in row] for row in WORDS]

#: Lists of 2 to 4 candidates. Every third has no relevant candidate.
LISTS = [(PAIRS[1] * 2)[row : row + 2 + row % 3] for row in range(NUM_ROWS)]
RELEVANCE = [
    [float(row % 3 > 0 and i == 1) for i in range(len(texts))] for row, texts in enumerate(LISTS)
]
COLUMNS = {
    "words": (WORDS, TAGS),
    "chains": (WORDS, TAGS),
    "rankings": ((FIRST, LISTS), RELEVANCE),
}


def report(task, *batch_sizes):
    """For each size, what `evaluate` returns, and the loss of a `fit` that changes nothing."""
    model, columns = make_task(task, "SegmentPacker")
    model.set_weights([np.sin(np.arange(w.size)).reshape(w.shape) for w in model.get_weights()])
    loss = CosineRegression() if task == "vectors" else "auto"
    model.compile(keras.optimizers.SGD(0.0), loss)
    x, y, *weights = COLUMNS.get(task, columns)
    if task == "pretraining":
        weights[0]["mlm"][::2, 1:] = 0
    given = {"x": x, "y": y, "sample_weight": weights[0] if weights else None, "verbose": 0}
    for batch_size in batch_sizes:
        scores = model.evaluate(**given, batch_size=batch_size, return_dict=True)
        history = model.fit(**given, batch_size=batch_size, shuffle=False).history
        if task == "pretraining":  # The sum of two means has no weight of its own.
            del scores["loss"]
            yield scores, history["mlm_loss"][0]
        else:
            yield scores, history["loss"][0]


@pytest.mark.filterwarnings("ignore:The weights of the CRF learn at the same rate")
@pytest.mark.parametrize(
    "task",
    short_for(
        TASKS,
        *("texts", "label sets", "numbers", "exits", "attributes", "words", "chains", "spans"),
        *("questions", "rankings", "vectors", "pretraining", "targets"),
        part="combinations",
    ),
)
def test_reports_do_not_depend_on_the_size_of_batches(task):
    # Of batches of 5, the last one has two rows.
    (whole, loss), (scores, fitted) = report(task, NUM_ROWS, 5)
    assert scores == pytest.approx(whole, rel=1e-4)
    assert fitted == pytest.approx(loss, rel=1e-4)
