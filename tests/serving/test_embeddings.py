"""The signatures of an exported embedder."""

import numpy as np
from small_embedder import make_embedder, make_pairs

from keras_bert_suite import export_saved_model

(FIRST, SECOND), _ = make_pairs(6)


def test_a_saved_model_compares_texts(tmp_path):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    embedder = make_embedder(normalize=False)
    path = export_saved_model(embedder, tmp_path / "embedder")
    assert (path / "assets.extra" / "tf_serving_warmup_requests").is_file()
    assert not (path / "assets.extra" / "label_names.txt").exists()
    signatures = tf.saved_model.load(str(path)).signatures
    vectors = signatures["serving_default"](text=tf.constant(FIRST))["embedding"]
    np.testing.assert_allclose(vectors, embedder.predict(FIRST, verbose=0), atol=1e-5)
    compared = signatures["similarity"](text_a=tf.constant(FIRST), text_b=tf.constant(SECOND))
    wanted = embedder.similarity_pairwise(FIRST, SECOND)
    np.testing.assert_allclose(compared["similarity"], wanted, atol=1e-5)
