"""The published rules of layer-wise rates, transcribed with the names of their own models."""

import re

#: The beginnings of our paths -> the names in ELECTRA's code and in BEiT's.
NAMES = {
    "embeddings/projection/": ("electra/embeddings_project/", "patch_embed.norm."),
    "embeddings/": ("electra/embeddings/", "patch_embed.proj."),
    "transformer_layer_{}/": ("electra/encoder/layer_{}/", "blocks.{}."),
    "pooler/": (None, "fc_norm."),
    "classifier/": ("task_specific/classify/", "head."),
}


def rename(path, column):
    """Our path in the names of ELECTRA (0) or BEiT (1); None for a weight that it has not."""
    for ours, theirs in NAMES.items():
        found = re.match(ours.format(r"(\d+)"), path)
        if found:
            name = theirs[column]
            return name and name.format(*found.groups()) + path[found.end() :]
    raise KeyError(path)


def electra_rate(name, rate, decay, num_layers):
    """google-research/electra, model/optimization.py: `_get_layer_lrs` and `apply_gradients`."""
    depths = {"/embeddings/": 0, "/embeddings_project/": 0, "task_specific/": num_layers + 2}
    for layer in range(num_layers):
        depths[f"encoder/layer_{layer}/"] = layer + 1
    rates = {key: rate * (decay ** (num_layers + 2 - depth)) for key, depth in depths.items()}
    (found,) = [value for key, value in rates.items() if key in name]
    return found


def beit_rate(name, rate, decay, num_layers):
    """microsoft/unilm, beit: `get_num_layer_for_vit`, and the values of run_class_finetuning.py."""
    values = [decay ** (num_layers + 1 - i) for i in range(num_layers + 2)]
    if name in ("cls_token", "mask_token", "pos_embed") or name.startswith("patch_embed"):
        layer_id = 0
    elif name.startswith("rel_pos_bias"):
        layer_id = len(values) - 1
    elif name.startswith("blocks"):
        layer_id = int(name.split(".")[1]) + 1
    else:
        layer_id = len(values) - 1
    return rate * values[layer_id]
