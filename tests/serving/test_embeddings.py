"""The signatures of an exported embedder."""

import numpy as np
import pytest
from serving.traced import called_or_saved
from small_embedder import make_embedder, make_pairs
from small_texts import VOCABULARY

import keras_bert_suite as kbs

(FIRST, SECOND), _ = make_pairs(6)

pytestmark = pytest.mark.backend("tensorflow")


@called_or_saved
def test_signatures_compare_texts(open_signatures, tmp_path):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    prompts = {"query": "good ", "long name": "a \u00e9 film\tis: "}
    embedder = make_embedder(normalize=False, prompts=prompts)
    embedder.count_prompt_tokens = None  # The tokens of a prompt are pooled, so none is counted.
    signatures = open_signatures(embedder, tmp_path)
    vectors = signatures["serving_default"](text=tf.constant(FIRST))["embedding"]
    np.testing.assert_allclose(vectors, embedder.predict(FIRST, verbose=0), atol=1e-5)
    for name in prompts:
        prompted = signatures[f"prompt_{name}"](text=tf.constant(FIRST))["embedding"]
        wanted = embedder.predict(FIRST, prompt=name, verbose=0)
        np.testing.assert_allclose(prompted, wanted, atol=1e-5)
        assert np.abs(prompted - vectors).max() > 1e-3
    compared = signatures["similarity"](text_a=tf.constant(FIRST), text_b=tf.constant(SECOND))
    wanted = embedder.similarity_pairwise(FIRST, SECOND)
    np.testing.assert_allclose(compared["similarity"], wanted, atol=1e-5)

    candidates = [SECOND, SECOND[::-1]]
    ranked = signatures["rank"](query=tf.constant(FIRST[:2]), candidates=tf.constant(candidates))
    for row, texts in enumerate(candidates):
        hits = embedder.search(FIRST[row : row + 1], texts, top_k=len(texts))[0]
        order = ranked["order"][row].numpy()
        np.testing.assert_allclose(ranked["scores"][row], [hit.score for hit in hits], atol=1e-5)
        cosines = embedder.similarity(FIRST[row : row + 1], texts)[0]
        np.testing.assert_allclose(np.asarray(cosines)[order], ranked["scores"][row], atol=1e-5)
        assert sorted(order) == list(range(len(texts)))
    nothing = signatures["rank"](query=tf.constant(["a"]), candidates=tf.zeros((1, 0), tf.string))
    assert nothing["order"].shape == (1, 0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="same number of rows"):
        signatures["rank"](query=tf.constant(FIRST[:2]), candidates=tf.constant([SECOND]))


@called_or_saved
def test_static_vectors_are_exported(open_signatures, tmp_path):
    """Rows without special tokens, also one without any token."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    tokenizer = kbs.WordPieceTokenizer(VOCABULARY)
    packer = kbs.SegmentPacker(tokenizer, 1_000_000, add_special_tokens=False)
    backbone = kbs.StaticBackbone(len(VOCABULARY), 8, initializer_range=1.0)
    embedder = kbs.TextEmbedder(backbone, preprocessor=packer)
    texts = ["", "xyz", *FIRST, "good film " * 40]
    signature = open_signatures(embedder, tmp_path)["serving_default"]
    vectors = signature(text=tf.constant(texts))["embedding"]
    np.testing.assert_allclose(vectors, embedder.predict(texts), atol=1e-6)
