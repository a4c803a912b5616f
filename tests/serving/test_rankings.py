"""The SavedModel of a `TextRanker` takes pairs and lists, and answers as the ranker does."""

import keras
import numpy as np
import pytest
from serving.traced import called_or_saved
from small_tasks import make_task

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")

pytestmark = pytest.mark.backend("tensorflow")


@called_or_saved
def test_signatures_rank_as_the_ranker_does(open_signatures, tmp_path):
    keras.utils.set_random_seed(2)
    ranker, ((queries, _), _) = make_task("rankings", "SegmentPacker")
    queries, candidates = queries[:3], [["good", "a bad film", ""], ["b", "plot", "good"]] * 2
    queries, candidates = [*queries, "好 good"], candidates
    signatures = open_signatures(ranker, tmp_path)
    pairs = (queries, [row[0] for row in candidates])
    strings = dict(zip(("query", "text"), map(tf.constant, pairs), strict=True))
    found = signatures["serving_default"](**strings)["relevance"]
    np.testing.assert_allclose(found, ranker.predict(pairs, verbose=0), atol=1e-5)
    ranked = signatures["rank"](query=strings["query"], candidates=tf.constant(candidates))
    for row, hits in enumerate(ranker.rank(queries, candidates)):
        assert ranked["order"][row].numpy().tolist() == [hit.id for hit in hits]
        wanted = [hit.score for hit in hits]
        np.testing.assert_allclose(ranked["scores"][row], wanted, atol=1e-5)
