"""The values of --head_layers: layers between the encoder and the head, as configurations."""

from .command_flags import UsageError

_MODULE = {"module": "keras.layers", "registered_name": None}

EXPLANATION = (
    "Layers between the encoder and the head with --task ner or qa, in their order: mix, a learned "
    "mean of all layers of the encoder; last:N, its last N layers side by side; bilstm:UNITS, an "
    "LSTM in each direction; convolution:FILTERS, over three tokens. mix and last come first."
)


def read_head_layers(names):
    """list of configurations of names such as "bilstm:128", before Keras is imported, or None."""
    return names and [_read_layer(place, name) for place, name in enumerate(names)]


def _read_layer(place, text):
    kind, colon, size = text.partition(":")
    if kind in ("mix", "last") and place > 0:
        raise UsageError(f"--head_layers: {kind} takes all layers of the encoder: put it first")
    if text == "mix":
        return {"class_name": "keras_bert_suite>ScalarMix", "config": {"pooling": None}}
    if kind not in _SIZED or not size.isdecimal() or int(size) < 1:
        raise UsageError(
            f"--head_layers must be of mix, {', '.join(f'{name}:N' for name in _SIZED)}, with N of "
            f"at least 1, got {text!r}"
        )
    return _SIZED[kind](int(size), f"{kind}_{place}")


def _make_last(size, name):
    return {
        "class_name": "keras_bert_suite>LastLayers",
        "config": {"num_layers": size, "pooling": None, "name": name},
    }


def _make_lstm(size, name):
    lstm = {"class_name": "LSTM", "config": {"units": size, "return_sequences": True}}
    config = {"layer": {**_MODULE, **lstm}, "name": name}
    return {**_MODULE, "class_name": "Bidirectional", "config": config}


def _make_convolution(size, name):
    config = {
        "filters": size,
        "kernel_size": 3,
        "padding": "same",
        "activation": "relu",
        "name": name,
    }
    return {**_MODULE, "class_name": "Conv1D", "config": config}


_SIZED = {"last": _make_last, "bilstm": _make_lstm, "convolution": _make_convolution}
