"""The graph of an export, without writing it."""

from keras_bert_suite.heads.base.served import serve


def trace(task, num_texts=1):
    """function(**texts) to the answers of the signature "serving_default"."""
    import tensorflow as tf

    served = serve(task)
    graph = tf.function(
        lambda *texts: served.answer_texts(texts),
        input_signature=[tf.TensorSpec([None], tf.string)] * num_texts,
        autograph=False,
    )
    return lambda **texts: graph(*texts.values())
