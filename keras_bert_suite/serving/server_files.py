"""Writes the files that TensorFlow Serving reads beside the graph."""

WARMUP_FILE = "tf_serving_warmup_requests"
BATCHING_FILE = "batching_params.pbtxt"


def write_warmup_requests(served, directory, input_names, signature_names, model_name):
    """Writes requests that a server answers before it takes real ones, into `assets.extra`.

    The first run of a graph takes many times as long as the next. Each signature gets a request
    with a short text, then a request with a batch in which one text fills a row, so that memory is
    allocated too. The server knows the model by `model_name`.
    """
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

    length = getattr(served.task.preprocessor, "sequence_length", None) or 512
    short = served.short_text
    with tf.io.TFRecordWriter(str(directory / WARMUP_FILE)) as writer:
        for texts in ([short], [short, f"{short} " + "text " * length]):
            if served.task.data.encoder.frame_dim is None:
                inputs = _make_inputs(served, texts, input_names)
            else:
                inputs = {"serving_default": _make_frames(served, len(texts), length)}
            for name in signature_names:
                request = predict_pb2.PredictRequest()
                request.model_spec.name = model_name
                request.model_spec.signature_name = name
                for key, value in inputs[name].items():
                    request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
                log = prediction_log_pb2.PredictLog(request=request)
                record = prediction_log_pb2.PredictionLog(predict_log=log)
                writer.write(record.SerializeToString())


def _make_inputs(served, texts, input_names):
    """dict of the name of a signature -> its inputs, which all hold `texts`."""
    import tensorflow as tf

    def fill(ranks):
        """dict of the name of an input -> `texts` in a tensor of its rank."""
        return {
            name: tf.constant(texts if rank == 1 else [[text] * 2 for text in texts])
            for name, rank in ranks.items()
        }

    number = len(input_names) - len(served.columns)
    ranks = served.task.data.text_ranks or [1] * number
    strings = fill(dict(zip(input_names[:number], ranks, strict=True)))
    packed = served.pack(tuple(strings.values()))
    columns = dict(zip(input_names[number:], served.columns.values(), strict=True))
    beside = {
        name: tf.zeros([len(texts), *column.shape], column.dtype)
        if column.missing is None
        else tf.constant([column.missing] * len(texts), column.dtype)
        for name, column in columns.items()
    }
    needed = {name: beside[name] for name, column in columns.items() if column.missing is None}
    examples = []
    for row in range(len(texts)):
        features = {}
        for name, column in strings.items():
            encoded = tf.train.BytesList(value=tf.reshape(column[row], [-1]).numpy())
            features[name] = tf.train.Feature(bytes_list=encoded)
        for name, column in needed.items():
            numbers = tf.train.FloatList(value=column[row].numpy())
            features[name] = tf.train.Feature(float_list=numbers)
        features = tf.train.Features(feature=features)
        examples.append(tf.train.Example(features=features).SerializeToString())
    return {
        "serving_default": {**strings, **beside},
        "serve_ids": {**packed, **beside},
        "serve_examples": {"examples": examples},
        "embed": {**strings, **needed},
        **{name: fill(ranks) for name, (_, ranks) in served.more_signatures().items()},
    }


def _make_frames(served, num_rows, length):
    """Inputs of `sign_frames`: a row of one frame, and with more rows also a full row."""
    lengths = [1, length][:num_rows]
    mask = [[int(place < own) for place in range(max(lengths))] for own in lengths]
    frame = [0.0] * served.task.data.encoder.frame_dim
    return {"frames": [[frame] * max(lengths)] * num_rows, "padding_mask": mask}


def write_batching_parameters(directory, max_batch_size):
    """Writes the parameters by which a server joins requests into batches.

    The server fills a batch up to the next allowed size with copies of a row. It does not pad
    inputs of unequal length (`pad_variable_length_inputs`), because it would pad with the first
    element of a tensor. For a padding mask this is 1, so padding would count as text. A request
    with more rows than `max_batch_size` is refused.

    Source: `session_bundle_config.proto` and `batching_util.cc` of tensorflow/serving.
    """
    powers = [1 << n for n in range(max_batch_size.bit_length())]
    sizes = [*(size for size in powers if size < max_batch_size), max_batch_size]
    lines = [
        f"max_batch_size {{ value: {max_batch_size} }}",
        "batch_timeout_micros { value: 2000 }",
        "max_enqueued_batches { value: 100 }",
        *(f"allowed_batch_sizes: {size}" for size in sizes),
    ]
    (directory / BATCHING_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
