"""Makes the signatures of a SavedModel."""

from keras_bert_suite.serving.answers import make_answers
from keras_bert_suite.serving.shape_checks import check_inputs
from keras_bert_suite.serving.text_packing import make_packer


def make_signatures(task, input_names):
    """Makes the signatures of a task.

    | name | inputs | outputs |
    | --- | --- | --- |
    | `serving_default` | string (B,), each named as in `input_names` | answers |
    | `serve_ids` | int32 (B, L), the inputs of the backbone | classes |
    | `serve_examples` | `examples` string (B,): `tf.train.Example` with the texts | answers |
    | `embed` | as `serving_default` | vectors |

    Classes are the task's `serving_outputs`, `probabilities` float32 (B, C) and `label_ids`
    int32 (B,), and `labels` string (B,). For a `TokenClassifier` they have an axis L after B.

    Answers of a `TextClassifier` are classes. For sets of labels they are `probabilities` and
    `is_label` bool (B, C), `labels` string (B, E) for the most labels of a text, "" after its last
    label, and `num_labels` int32 (B,); for a regression they are `scores` float32 (B, C).

    Answers of a `TokenClassifier` are entities. E is the largest number of entities in a text. They
    are `labels` string (B, E), "" after the last entity; `starts` and `ends` int32 (B, E), in
    characters (code points, as Python counts), -1 after the last entity; `scores` float32 (B, E), 0
    after the last entity; and `num_entities` int32 (B,).

    Answers of a `QuestionAnswerer` are the best span of each context: `answers` string, `starts`
    and `ends` int32, in characters, `scores` and `null_odds` float32, all (B,); "", -1 and -1 for
    no answer. In place of classes, `serve_ids` returns `start_logits` and `end_logits`, float32
    (B, L).

    Vectors are `sequence_output` float32 (B, L, H), `pooled_output` float32 (B, H) if the backbone
    has this output, and their `token_ids` and `padding_mask`, int32 (B, L).

    Args:
        task: `TextClassifier` or `TokenClassifier` with a preprocessor, under the TensorFlow
            backend.
        input_names: names of the texts of a row.

    Returns:
        dict of `tf.function`, each with its input signature.
    """
    import tensorflow as tf

    answer_texts, answer_ids = make_answers(task)
    pack_texts = make_packer(task)
    texts = [tf.TensorSpec([None], tf.string, name=name) for name in input_names]
    token_inputs = {
        name: tf.TensorSpec([None, None], tf.int32, name=name) for name in task.backbone.input
    }
    features = {name: tf.io.FixedLenFeature([], tf.string) for name in input_names}

    def check(texts):
        return tuple(check_inputs(dict(zip(input_names, texts, strict=True)), rank=1).values())

    def serve(*texts):
        return answer_texts(check(texts))

    def serve_ids(inputs):
        return answer_ids(check_inputs(inputs, rank=2))

    def serve_examples(examples):
        examples = check_inputs({"examples": examples}, rank=1)["examples"]
        parsed = tf.io.parse_example(examples, features)
        return serve(*(parsed[name] for name in input_names))

    def embed(*texts):
        return _embed(task, pack_texts(check(texts)))

    def sign(function, *signature):
        return tf.function(function, input_signature=signature, autograph=False)

    return {
        "serving_default": sign(serve, *texts),
        "serve_ids": sign(serve_ids, token_inputs),
        "serve_examples": sign(serve_examples, tf.TensorSpec([None], tf.string, name="examples")),
        "embed": sign(embed, *texts),
    }


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
