"""No score is known of no rows."""

import numpy as np
import pytest

from keras_bert_suite.heads.base.label_scores import score_classes, score_label_sets, score_numbers
from keras_bert_suite.heads.questions.scores import score_answers
from keras_bert_suite.heads.relations.scores import score_relations
from keras_bert_suite.heads.targets.scores import score_targets
from keras_bert_suite.heads.vectors.scores import score_rankings

SETS = np.zeros((0, 2), bool)


@pytest.mark.parametrize(
    ("score", "arguments"),
    [
        (score_classes, ([], [], ["no", "yes"])),
        (score_label_sets, (SETS, SETS, ["a", "b"])),
        (score_numbers, (np.zeros((0, 1)), np.zeros((0, 1)))),
        (score_relations, ([], [], ["Other", "Cause-Effect(e1,e2)"])),
        (score_rankings, ([], [])),
        (score_answers, ([], [])),
        (score_targets, ([], [])),
    ],
)
def test_no_rows(score, arguments):
    with pytest.raises(ValueError, match="There are no rows to score"):
        score(*arguments)


@pytest.mark.parametrize("score", [score_answers, score_targets])
def test_other_numbers_of_predictions(score):
    with pytest.raises(ValueError, match="got 2 predictions for 1 rows"):
        score([["a"]], ["a", "b"])
    with pytest.raises(ValueError, match="got a str. Put a text alone into a list"):
        score(["abc"], "abc")
