"""The functions a SavedModel offers."""

from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.serving.shape_checks import check_inputs


def make_signatures(task, input_names):
    """The signatures of a text classifier.

    | name | inputs | outputs |
    | --- | --- | --- |
    | `serving_default` | string (B,), each named as in `input_names` | classes |
    | `serve_ids` | int32 (B, L), those of the backbone | classes |
    | `serve_examples` | `examples` string (B,): `tf.train.Example` with the texts | classes |
    | `embed` | as `serving_default` | vectors |

    Classes are the task's `serving_outputs`, `probabilities` float32 (B, C) and `label_ids`
    int32 (B,), and `labels` string (B,). Vectors are `sequence_output` float32 (B, L, H),
    `pooled_output` float32 (B, H) if the backbone has one, and the `token_ids` and
    `padding_mask` int32 (B, L) they belong to.

    Args:
        task: `TextClassifier` with a preprocessor, under the TensorFlow backend.
        input_names: names of the texts of a row.

    Returns:
        dict of `tf.function`, each with its input signature.
    """
    import tensorflow as tf

    pack_texts = make_packer(task)
    texts = [tf.TensorSpec([None], tf.string, name=name) for name in input_names]
    token_inputs = {
        name: tf.TensorSpec([None, None], tf.int32, name=name) for name in task.backbone.input
    }
    features = {name: tf.io.FixedLenFeature([], tf.string) for name in input_names}

    def pack(*texts):
        checked = check_inputs(dict(zip(input_names, texts, strict=True)), rank=1)
        return pack_texts(tuple(checked.values()))

    def serve(*texts):
        return _classify(task, pack(*texts))

    def serve_ids(inputs):
        return _classify(task, check_inputs(inputs, rank=2))

    def serve_examples(examples):
        examples = check_inputs({"examples": examples}, rank=1)["examples"]
        parsed = tf.io.parse_example(examples, features)
        return serve(*(parsed[name] for name in input_names))

    def embed(*texts):
        return _embed(task, pack(*texts))

    def sign(function, *signature):
        return tf.function(function, input_signature=signature, autograph=False)

    return {
        "serving_default": sign(serve, *texts),
        "serve_ids": sign(serve_ids, token_inputs),
        "serve_examples": sign(serve_examples, tf.TensorSpec([None], tf.string, name="examples")),
        "embed": sign(embed, *texts),
    }


def make_packer(task):
    """The task's `pack_texts` for a graph; where the packer is ours, without a ladder of lengths.

    TensorFlow compiles nothing here, so that a ladder would only be padding.

    Returns:
        function(tuple of string tensors (B,)) to a dict of int32 (B, L), the inputs of the
        backbone.
    """
    import tensorflow as tf

    pack = task.pack_texts
    if isinstance(task.preprocessor, SegmentPacker):
        config = {**task.preprocessor.get_config(), "padding_lengths": None}
        packer = SegmentPacker.from_config({**config, "tokenizer": task.preprocessor.tokenizer})

        def pack(texts):
            return packer.pack(*texts)

    def pack_texts(texts):
        packed = pack(texts)
        # The padding masks of KerasHub are bool.
        return {name: tf.cast(packed[name], tf.int32) for name in task.backbone.input}

    return pack_texts


def _classify(task, packed):
    import tensorflow as tf

    classes = task.serving_outputs(task(packed, training=False), packed)
    labels = tf.gather(tf.constant(task.label_names), classes["label_ids"])
    return {**classes, "labels": labels}


def _embed(task, packed):
    import tensorflow as tf

    outputs = task.backbone(packed, training=False)
    if not isinstance(outputs, dict):
        outputs = {"sequence_output": outputs}
    vectors = {
        name: tf.cast(outputs[name], tf.float32)
        for name in ("sequence_output", "pooled_output")
        if name in outputs
    }
    return {**vectors, **{name: packed[name] for name in ("token_ids", "padding_mask")}}
