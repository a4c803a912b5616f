"""What the tests of text preprocessing share."""

import pytest


@pytest.fixture(scope="session", params=["eager", "graph"])
def run_engine(request):
    """Function `(tokenizer, texts) -> list of list of int`, one for each engine."""
    if request.param == "eager":
        return lambda tokenizer, texts: tokenizer.tokenize(texts)
    pytest.importorskip("tensorflow_text")
    import tensorflow as tf

    def run(tokenizer, texts):
        return tokenizer.tokenize(tf.constant(texts, tf.string)).to_list()

    return run
