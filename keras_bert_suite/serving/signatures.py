"""Makes the signatures of a SavedModel."""

from keras_bert_suite.models.frame_inputs import CONDITION, FRAMES
from keras_bert_suite.serving.id_ranges import check_ids, count_common_rows


def make_signatures(served, input_names):
    """Makes the signatures of a task.

    | name | inputs | outputs |
    | --- | --- | --- |
    | `serving_default` | string (B,), each named as in `input_names` | answers |
    | `serve_ids` | int32 (B, L), the inputs of the backbone | classes |
    | `serve_examples` | `examples` string (B,): `tf.train.Example` with the texts | answers |
    | `embed` | as `serving_default` | vectors |
    | `prompt_NAME`, of a `TextEmbedder` | `text` string (B,), without the prompt | answers |
    | `similarity`, of a `TextEmbedder` | `text_a` and `text_b`, string (B,) | cosines |
    | `encode`, `score`, of a `TwoTowerRanker` | see below | vectors, `relevance` |
    | `rank`, also of rankers | `query` string (B,), `candidates` string (B, N) | an order |
    | `own_labels`, of a `ZeroShotClassifier` | `text` string (B,) | answers |

    `serve_ids` refuses ids below 0, and ids for which the model has no vector.

    Classes are what the task's `answers` serve, `probabilities` float32 (B, C) and `label_ids`
    int32 (B,), and `labels` string (B,). For a `TokenClassifier` they have an axis L after B.

    Answers of a `TextClassifier` are classes. For sets of labels they are `probabilities` and
    `is_label` bool (B, C); `labels` string (B, E), "" after the last label of a text, where E is
    the largest number of labels of a text; and `num_labels` int32 (B,). For a regression they are
    `scores` float32 (B, C).

    Answers of a `TokenClassifier` are entities. E is the largest number of entities in a text. They
    are `labels` string (B, E), "" after the last entity; `starts` and `ends` int32 (B, E), in
    characters (code points, as Python counts), -1 after the last entity; `byte_starts` and
    `byte_ends`, the same in bytes of UTF-8; `scores` float32 (B, E), 0 after the last entity; and
    `num_entities` int32 (B,).

    Answers of a `QuestionAnswerer` are the best span of each context: `answers` string, `starts`
    and `ends` int32, in characters, `byte_starts` and `byte_ends` int32, `scores` and `null_odds`
    float32, all (B,); "" and -1 for no answer. Instead of classes, `serve_ids` returns
    `start_logits` and `end_logits`, float32 (B, L).

    A `MultipleChoice` takes prompts (B,) and endings (B, K), token ids (B, K, L), or examples in
    which the list of endings has K strings. Its answers are `probabilities` float32 (B, K),
    `choices` int32 (B,), and `ranking` int32 (B, K), the endings with the best one first. It has
    no signature `embed`.

    A `ZeroShotClassifier` takes texts (B,) and labels (B, K), token ids (B, K, L), or examples. Its
    answers are `probabilities` float32 (B, K), and `label_ids` int32 (B,) and `labels` string (B,),
    or `is_label` bool (B, K). `own_labels` has the labels of the task. It has no `embed`.

    A `TextRanker` takes a query and a text, and answers with `relevance` float32 (B,). Its order
    has the `scores` of the candidates.

    A `TwoTowerRanker` answers as a `TextRanker`. It takes token ids (B, 2, L), and has no signature
    `embed`. `encode` makes `embedding` float32 (B, P) of `text` string (B,), and `score` makes
    `relevance` float32 (B,) of `query_embedding` and `text_embedding`, float32 (B, P).

    A `DocumentClassifier` answers as a `TextClassifier`. It takes token ids (B, W, L), and has no
    signature `embed`.

    Answers of a `TextEmbedder` are `embedding` float32 (B, H), also of `serve_ids`. Cosines are
    `similarity` float32 (B,). An order is `order` int32 (B, N), the positions of the candidates
    with the best one first, and `scores` float32 (B, N), their cosines in this order.

    Answers of a `MaskedLM` are guesses. P is the largest number of masks in a text, at least 1, and
    K the task's `top_k`. They are `tokens` string (B, P, K), the most probable first, "" after the
    last mask of a text; their `probabilities` float32 (B, P, K), 0 after the last mask; `starts`
    and `byte_starts` int32 (B, P), the first character and the first byte of each mask, -1 after
    the last mask; and `num_masks` int32 (B,). Masks beyond the packer's `sequence_length` are left
    out, and a text may have none. `serve_ids` finds masks by the id of the mask token, and returns
    `mask_positions` int32 (B, P) instead of `starts` and `byte_starts`.

    Answers of a `Seq2Seq` are the texts that it writes: `texts` string (B,), `target_ids` int32
    (B, T), T the task's `max_target_length`, and `num_tokens` int32 (B,).

    Vectors are `sequence_output` float32 (B, L, H), `pooled_output` float32 (B, H) if the backbone
    has this output, and their `token_ids` and `padding_mask`, int32 (B, L).

    A task on frames has `serving_default` alone. Its inputs are `frames`, float32 (B, L, D), and
    `padding_mask`, int32 (B, L), 1 on frames and 0 on padding. Its answers are the classes above,
    for tags with an axis L after B, and of a CRF those of the best path. It refuses rows without
    frames, and numbers that are not finite.

    An `Ensemble` answers as its tasks do. It has no signature `embed`, and no `serve_ids` if its
    tasks have other tokenizers or lengths.

    A task with `features` also takes these columns by their names, beside texts and token ids:
    float32 (B,), NaN for a missing number or boolean, and string (B,), "" for a missing category.
    In a `tf.train.Example` they may be left out. A task whose norms depend on a condition takes
    `condition`, float32 (B, C), in all signatures that read rows, and refuses numbers that are not
    finite.

    Args:
        served: `ServedTask`, under the TensorFlow backend.
        input_names: names of the texts of a row, and then of the columns beside them.

    Returns:
        dict of `tf.function`, each with its input signature.
    """
    import tensorflow as tf

    task = served.task
    if task.data.encoder.frame_dim is not None:
        return {"serving_default": sign_frames(served, task.data.encoder)}
    number = len(input_names) - len(served.columns)
    input_names, column_names = input_names[:number], input_names[number:]
    ranks = dict(zip(input_names, task.data.text_ranks or [1] * number, strict=True))
    columns = dict(zip(column_names, served.columns.values(), strict=True))
    column_ranks = {name: 1 + len(column.shape) for name, column in columns.items()}
    all_ranks = {**ranks, **column_ranks}
    # A row of the model may be several rows of token ids.
    token_rank = len(task.input["padding_mask"].shape)
    # A token may be several characters.
    token_inputs = {
        name: tf.TensorSpec([None] * token_rank + list(ids.shape[2:]), tf.int32, name=name)
        for name, ids in served.encoder.input.items()
        if name != CONDITION
    }
    token_ranks = [len(spec.shape) for spec in token_inputs.values()]
    features = _describe_example(ranks, columns)

    # `serve_examples` calls the same function, so that the graph holds its ops once.
    serve = _sign(_check_first(served.answer_texts, all_ranks), *_specify(all_ranks, columns))
    # The features are for the layers after the encoder. The condition is the last column.
    of_encoder = column_names[-1:] if CONDITION in served.columns else ()
    encoder_ranks = {**ranks, **dict.fromkeys(of_encoder, 2)}

    def embed_texts(inputs):
        packed = served.pack_once_traced(inputs[:number])
        if of_encoder:
            packed = {**packed, CONDITION: served.data.condition.read(inputs[number])}
        return _embed(served.encoder, packed)

    embed = _check_first(embed_texts, encoder_ranks)
    id_counts = count_common_rows(served.encoders)

    def serve_ids(inputs):
        tokens = {name: inputs[name] for name in token_inputs}
        tokens = check_ids(_check_inputs(tokens, token_ranks), id_counts)
        beside = {name: inputs[name] for name in columns}
        ranks = [*token_ranks, *column_ranks.values()]
        checked = list(_check_inputs({**tokens, **beside}, ranks, 1).values()) if beside else []
        return served.answer_ids({**tokens, **served.encode_features(checked[len(tokens) :])})

    def serve_examples(examples):
        examples = _check_inputs({"examples": examples}, 1)["examples"]
        parsed = tf.io.parse_example(examples, features)
        return serve(*(parsed[name] for name in all_ranks))

    signatures = {"serving_default": serve}
    if served.takes_ids:
        beside = dict(zip(columns, _specify(column_ranks, columns), strict=True))
        signatures["serve_ids"] = _sign(serve_ids, {**token_inputs, **beside})
    examples = tf.TensorSpec([None], tf.string, name="examples")
    signatures["serve_examples"] = _sign(serve_examples, examples)
    for name, (answer, own_ranks) in served.more_signatures().items():
        specs = _specify(own_ranks, columns)
        signatures[name] = _sign(_check_first(answer, own_ranks), *specs)
    if token_rank > 2 or not served.has_one_encoder:
        return signatures
    return {**signatures, "embed": _sign(embed, *_specify(encoder_ranks, columns))}


def _sign(function, *signature):
    import tensorflow as tf

    return tf.function(function, input_signature=signature, autograph=False)


def _specify(ranks, columns):
    """list of `tf.TensorSpec`, of texts by their ranks, and of columns beside them.

    Args:
        ranks: dict of name -> rank, or a `tf.TensorSpec` of vectors.
        columns: dict of name -> column of `served.columns`.
    """
    import tensorflow as tf

    def specify_one(name, rank):
        if isinstance(rank, tf.TensorSpec):
            return tf.TensorSpec(rank.shape, rank.dtype, name=name)
        if name in columns:
            column = columns[name]
            return tf.TensorSpec([None, *column.shape], column.dtype, name=name)
        return tf.TensorSpec([None] * rank, "string", name=name)

    return [specify_one(name, rank) for name, rank in ranks.items()]


def _describe_example(ranks, columns):
    """The features of a `tf.train.Example` with texts of `ranks` and with `columns`, by name."""
    import tensorflow as tf

    one, several = (
        tf.io.FixedLenFeature([], tf.string),
        tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True),
    )
    features = {name: one if rank == 1 else several for name, rank in ranks.items()}
    for name, column in columns.items():
        features[name] = tf.io.FixedLenFeature(column.shape, column.dtype, column.missing)
    return features


def sign_frames(served, encoder):
    """The signature of a task on frames, a `tf.function`. `encoder` is its `EncoderInputs`."""
    import tensorflow as tf

    def answer(frames, padding_mask):
        inputs = {FRAMES: frames, "padding_mask": padding_mask}
        inputs = _check_inputs(inputs, [3, 2])
        assertions = [
            tf.debugging.Assert(
                tf.reduce_all(tf.math.is_finite(inputs[FRAMES])), ["Frames must be finite numbers."]
            ),
            tf.debugging.Assert(
                tf.reduce_all(tf.reduce_any(inputs["padding_mask"] > 0, axis=1)),
                ["Each row needs a frame, whose padding_mask is 1."],
            ),
        ]
        with tf.control_dependencies(assertions):
            inputs = {name: tf.identity(tensor) for name, tensor in inputs.items()}
        inputs["segment_ids"] = tf.zeros_like(inputs["padding_mask"])
        return served.answer_ids(encoder.select(inputs))

    return tf.function(
        answer,
        input_signature=(
            tf.TensorSpec([None, None, encoder.frame_dim], tf.float32, name=FRAMES),
            tf.TensorSpec([None, None], tf.int32, name="padding_mask"),
        ),
        autograph=False,
    )


def _check_first(answer, ranks):
    """A function from texts to their answers, which checks their shapes; `ranks` by name.

    A rank may be a `tf.TensorSpec` of vectors.
    """
    numbers = [r if isinstance(r, int) else len(r.shape) for r in ranks.values()]

    def answer_checked(*texts):
        tensors = dict(zip(ranks, texts, strict=True))
        return answer(tuple(_check_inputs(tensors, numbers).values()))

    return answer_checked


def _check_inputs(tensors, ranks, common=None):
    """The tensors of a dict, in a graph that refuses other ranks, or different shapes.

    A server hands a session tensors of any shape: the session does not compare them with the
    signature. TensorFlow Text ends the process when it gets a text without a batch. So a
    signature computes from the tensors returned here, and from no others. `ranks` is the common
    rank of the tensors, or a rank for each. Then only the axes that all tensors have must be equal,
    or the first `common` axes.
    """
    import tensorflow as tf

    # `ensure_shape` is an op. `assert_rank` would rely on the signature, and check nothing.
    ranks = [ranks] * len(tensors) if isinstance(ranks, int) else ranks
    tensors = {
        name: tf.ensure_shape(tensor, [None] * rank)
        for (name, tensor), rank in zip(tensors.items(), ranks, strict=True)
    }
    common = min(ranks) if common is None else common
    shapes = [tf.shape(tensor)[:common] for tensor in tensors.values()]
    is_equal = [tf.reduce_all(tf.equal(shapes[0], shape)) for shape in shapes[1:]]
    if not is_equal:
        return tensors
    wanted = "number of rows" if common == 1 else "shape"
    message = f"The inputs {', '.join(tensors)} must have the same {wanted}. Their shapes are:"
    assertion = tf.debugging.Assert(tf.reduce_all(is_equal), [message, *shapes])
    with tf.control_dependencies([assertion]):
        return {name: tf.identity(tensor) for name, tensor in tensors.items()}


def _embed(encoder, packed):
    import tensorflow as tf

    outputs = encoder(packed, training=False)
    if not isinstance(outputs, dict):
        outputs = {"sequence_output": outputs}
    vectors = {
        name: tf.cast(outputs[name], tf.float32)
        for name in ("sequence_output", "pooled_output")
        if name in outputs
    }
    # An encoder of characters has no ids of tokens.
    ids = {name: packed[name] for name in ("token_ids", "padding_mask") if name in packed}
    return {**vectors, **ids}
