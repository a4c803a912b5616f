"""Peers of `BertBackbone` with random weights, and their weights under our names.

Written without `keras_bert_suite.checkpoints`, so that the two name tables check
each other. Every function returns or takes `{path of our variable: array}`; the
gradients of a peer's weights go through the same tables as the weights.
"""

import re

import keras
import numpy as np

#: Hugging Face name -> our variable path. "{i}" is the layer; a name ending in
#: "dense.weight" or one of the projections is stored (out, in) and is transposed.
TRANSFORMERS_NAMES = {
    "embeddings.word_embeddings.weight": "embeddings/token_embedding/embeddings",
    "embeddings.position_embeddings.weight": "embeddings/position_embedding/embeddings",
    "embeddings.token_type_embeddings.weight": "embeddings/segment_embedding/embeddings",
    "embeddings.LayerNorm.weight": "embeddings/layer_norm/gamma",
    "embeddings.LayerNorm.bias": "embeddings/layer_norm/beta",
    "embeddings_project.weight": "embeddings/projection/kernel",
    "embeddings_project.bias": "embeddings/projection/bias",
    "attention.self.query.weight": "self_attention/query/kernel",
    "attention.self.query.bias": "self_attention/query/bias",
    "attention.self.key.weight": "self_attention/key/kernel",
    "attention.self.key.bias": "self_attention/key/bias",
    "attention.self.value.weight": "self_attention/value/kernel",
    "attention.self.value.bias": "self_attention/value/bias",
    "attention.output.dense.weight": "self_attention/output_projection/kernel",
    "attention.output.dense.bias": "self_attention/output_projection/bias",
    "attention.output.LayerNorm.weight": "self_attention_norm/gamma",
    "attention.output.LayerNorm.bias": "self_attention_norm/beta",
    "intermediate.dense.weight": "intermediate/kernel",
    "intermediate.dense.bias": "intermediate/bias",
    "output.dense.weight": "feedforward_output/kernel",
    "output.dense.bias": "feedforward_output/bias",
    "output.LayerNorm.weight": "feedforward_norm/gamma",
    "output.LayerNorm.bias": "feedforward_norm/beta",
    "pooler.dense.weight": "pooler/kernel",
    "pooler.dense.bias": "pooler/bias",
}

#: KerasHub variable path -> ours, inside a layer and outside.
KERAS_HUB_NAMES = {
    "token_embedding/embeddings": "embeddings/token_embedding/embeddings",
    "position_embedding/embeddings": "embeddings/position_embedding/embeddings",
    "segment_embedding/embeddings": "embeddings/segment_embedding/embeddings",
    "embeddings_layer_norm/gamma": "embeddings/layer_norm/gamma",
    "embeddings_layer_norm/beta": "embeddings/layer_norm/beta",
    "self_attention_layer/query/kernel": "self_attention/query/kernel",
    "self_attention_layer/query/bias": "self_attention/query/bias",
    "self_attention_layer/key/kernel": "self_attention/key/kernel",
    "self_attention_layer/key/bias": "self_attention/key/bias",
    "self_attention_layer/value/kernel": "self_attention/value/kernel",
    "self_attention_layer/value/bias": "self_attention/value/bias",
    "self_attention_layer/attention_output/kernel": "self_attention/output_projection/kernel",
    "self_attention_layer/attention_output/bias": "self_attention/output_projection/bias",
    "self_attention_layer_norm/gamma": "self_attention_norm/gamma",
    "self_attention_layer_norm/beta": "self_attention_norm/beta",
    "feedforward_intermediate_dense/kernel": "intermediate/kernel",
    "feedforward_intermediate_dense/bias": "intermediate/bias",
    "feedforward_output_dense/kernel": "feedforward_output/kernel",
    "feedforward_output_dense/bias": "feedforward_output/bias",
    "feedforward_layer_norm/gamma": "feedforward_norm/gamma",
    "feedforward_layer_norm/beta": "feedforward_norm/beta",
    "pooled_dense/kernel": "pooler/kernel",
    "pooled_dense/bias": "pooler/bias",
}


def convert_transformers(tensors):
    """A `transformers` state dict, or gradients under its names, -> ours."""
    arrays = {}
    for name, tensor in tensors.items():
        array = tensor.detach().float().numpy()
        inner, prefix = name, ""
        if match := re.fullmatch(r"encoder\.layer\.(\d+)\.(.+)", name):
            prefix, inner = f"transformer_layer_{match[1]}/", match[2]
        path = prefix + TRANSFORMERS_NAMES[inner]
        arrays[path] = array.T if path.endswith("/kernel") else array
    return arrays


def convert_keras_hub(backbone):
    """The weights of a `keras_hub.models.BertBackbone` -> ours."""
    arrays = {}
    for variable in backbone.weights:
        array, path = to_numpy(variable), _rename_keras_hub(variable.path)
        # Its attention keeps the heads apart: (H, heads, D), or (heads, D, H) on the way out.
        if path.endswith("output_projection/kernel"):
            array = array.reshape(-1, array.shape[-1])
        elif path.endswith("/kernel"):
            array = array.reshape(array.shape[0], -1)
        elif path.endswith("/bias"):
            array = array.reshape(-1)
        arrays[path] = array
    return arrays


def assign_keras_hub(backbone, arrays):
    """The way back: gives a `keras_hub.models.BertBackbone` weights under our names."""
    for variable in backbone.weights:
        array = arrays[_rename_keras_hub(variable.path)]
        variable.assign(array.reshape(tuple(variable.shape)))


def _rename_keras_hub(path):
    if match := re.fullmatch(r"(transformer_layer_\d+/)(.+)", path):
        return match[1] + KERAS_HUB_NAMES[match[2]]
    return KERAS_HUB_NAMES[path]


def assign(backbone, arrays):
    """Gives each variable of `backbone` the array of its path; none may be left over."""
    variables = {variable.path: variable for variable in backbone.weights}
    assert len(variables) == len(backbone.weights), "two variables share a path"
    assert variables.keys() == arrays.keys(), variables.keys() ^ arrays.keys()
    for path, variable in variables.items():
        assert tuple(variable.shape) == arrays[path].shape, path
        variable.assign(arrays[path])


#: The ends of the names of the scales of norms: ours, BERT's and BART's.
NORM_SCALES = (
    *("gamma", "LayerNorm.weight", "layernorm_embedding.weight", "attn_layer_norm.weight"),
    *("final_layer_norm.weight", "encoder.layer_norm.weight", "decoder.layer_norm.weight"),
)


def random_array(rng, path, shape):
    """A weight as large as a trained one's: no bias is 0, no norm is the identity."""
    if path.endswith(NORM_SCALES):
        return (1 + 0.2 * rng.standard_normal(shape)).astype("float32")
    return (0.1 * rng.standard_normal(shape)).astype("float32")


def randomize(backbone, seed=0):
    """Fills a Keras model of ours or KerasHub's with `random_array`s."""
    rng = np.random.default_rng(seed)
    for variable in backbone.weights:
        variable.assign(random_array(rng, variable.path, tuple(variable.shape)))
    return backbone


def transformers_peer(model_cls, config, seed=0):
    """A `transformers` model in evaluation mode, by its plain attention, randomised."""
    import torch

    config._attn_implementation = "eager"
    model = model_cls(config).eval()
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:
                continue  # A constant, such as the sines of RoFormer's positions.
            array = random_array(rng, name, tuple(parameter.shape))
            parameter.copy_(torch.from_numpy(array))
    return model


def run_transformers(model, inputs, **kwargs):
    """Calls a `transformers` model on our three inputs, as (B, L) NumPy arrays."""
    import torch

    ids, segments, mask = (
        torch.from_numpy(np.asarray(inputs[name], "int64"))
        for name in ("token_ids", "segment_ids", "padding_mask")
    )
    return model(input_ids=ids, token_type_ids=segments, attention_mask=mask, **kwargs)


def to_numpy(tensor):
    """Any backend's tensor or variable -> NumPy, half precision as float32."""
    tensor = getattr(tensor, "value", tensor)
    if keras.backend.standardize_dtype(tensor.dtype) in ("bfloat16", "float16"):
        tensor = keras.ops.cast(tensor, "float32")
    return keras.ops.convert_to_numpy(tensor)


def name_initializers(layers):
    """set of the initializers of the matrices in Keras layers, such as "TruncatedNormal 0.02"."""
    attributes = ("kernel_initializer", "embeddings_initializer", "recurrent_initializer")
    found = [getattr(layer, name, None) for layer in layers for name in attributes]
    return {
        f"{type(each).__name__} {each.get_config().get('stddev', '')}".strip()
        for each in found
        if each is not None
    }
