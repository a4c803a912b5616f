"""Reads and writes folders of peft: LoRA or prompts beside a checkpoint of transformers.

Source: https://huggingface.co/docs/peft/developer_guides/checkpoint, peft 0.21.
"""

import re
from pathlib import Path

import keras
import numpy as np

from keras_bert_suite.checkpoints.hugging_face.peft_names import PeftNames
from keras_bert_suite.checkpoints.load_weights import weights_by_path
from keras_bert_suite.checkpoints.tensor_files import SafetensorsFile
from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.files.atomic_file import parse_json, write_json
from keras_bert_suite.files.messages import list_names, reading, shorten
from keras_bert_suite.files.safetensors_file import write_safetensors

PEFT_CONFIG, PEFT_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"

#: The beginning of the names of tensors, by the peft_type. Prompts are added to no module.
_BASES = {"LORA": "base_model.model.", "PROMPT_TUNING": "base_model."}
#: The name of the vectors of prompts, and the end of our path of them.
_PROMPTS, _VECTORS = "prompt_embeddings", "prompt-adapter/vectors"
#: The end of our paths of the two matrices, and their letter.
_MATRICES = {"low_rank-adapter/a": "A", "low_rank-adapter/b": "B"}
#: The head of transformers -> peft's name of its kind.
_KINDS = {
    "ForSequenceClassification": "SEQ_CLS",
    "ForTokenClassification": "TOKEN_CLS",
    "ForQuestionAnswering": "QUESTION_ANS",
    None: "FEATURE_EXTRACTION",
}
#: Fields that say where an adapter is from or how it began, and nothing of what it computes.
_IDLE = frozenset(
    {
        *("alora_invocation_tokens", "auto_mapping", "base_model_name_or_path", "corda_config"),
        *("eva_config", "exclude_modules", "inference_mode", "layers_pattern"),
        *("layers_to_transform", "loftq_config", "lora_dropout", "megatron_core"),
        *("modules_to_save", "peft_type", "peft_version", "qalora_group_size", "revision"),
        *("runtime_config", "target_modules", "task_type", "r", "lora_alpha", "use_rslora"),
        *("bias", "ensure_weight_tying", "lora_ga_config"),
    }
)
#: The same of prompts. `num_layers` and so on describe the base.
_IDLE_OF_PROMPTS = frozenset(
    {
        *("auto_mapping", "base_model_name_or_path", "inference_mode", "modules_to_save"),
        *("num_attention_heads", "num_layers", "num_virtual_tokens", "peft_type", "peft_version"),
        *("prompt_tuning_init", "prompt_tuning_init_text", "revision", "runtime_config"),
        *("task_type", "token_dim", "tokenizer_kwargs", "tokenizer_name_or_path"),
    }
)
#: How A and B may have begun, so that the base stays as it is.
_BEGINNINGS = (None, True, False, "gaussian", "orthogonal", "eva", "lora_ga")


def save_peft(model, adaptation, weights, path, base=None):
    """Writes a folder of peft.

    Args:
        model: the task, or a backbone.
        adaptation: `LoRA` or `PromptTuning`.
        weights: dict of path -> weight of the adapter, whose name is "adapter", and of all that is
            trained beside it.
        path: str or path of the folder.
        base: str, the name of the base for peft; None for what the card of the task says.

    Raises:
        ValueError: if transformers has no place for a weight, or the adapter is of another class.
    """
    backbone = getattr(model, "backbone", model)
    kind = _find_kind(adaptation, backbone)
    spell = PeftNames(model)
    tensors, modules, others = {}, [], {}
    for own, weight in weights.items():
        value = keras.ops.convert_to_numpy(keras.ops.cast(weight, "float32"))
        if own.endswith(f"/{_VECTORS}"):
            tensors[_PROMPTS] = np.ascontiguousarray(value)
            continue
        ending = next((end for end in _MATRICES if own.endswith(f"/{end}")), None)
        if ending is None:
            others[own] = value
            continue
        module = spell.module_of(own.removesuffix(f"/{ending}"))
        modules += [module] * (ending == "low_rank-adapter/a")
        name = f"{_BASES[kind]}{module}.lora_{_MATRICES[ending]}.weight"
        tensors[name] = np.ascontiguousarray(value.T)
    saved = dict.fromkeys(map(spell.saved_module, others))
    for own, weight in weights_by_path(model).items():
        has_name = spell.names.their_name(own) is not None
        # As peft finds them: the `classifier` of a DistilBERT names its `pre_classifier` too.
        if has_name and spell.saved_module(own).endswith((*saved,)) and own not in others:
            others[own] = keras.ops.convert_to_numpy(keras.ops.cast(weight, "float32"))
    for own, value in others.items():
        name, transform = spell.names.their_name(own)
        tensors[_BASES[kind] + spell.short(name)] = np.ascontiguousarray(transform(value))
    config = {
        "peft_type": kind,
        "task_type": _KINDS.get(spell.ending),
        "base_model_name_or_path": base or getattr(model, "card", {}).get("base"),
        "modules_to_save": list(saved) or None,
        "inference_mode": True,
    }
    if kind == "LORA":
        config |= _describe_lora(adaptation, spell.shorten_modules(modules))
    else:
        config |= _describe_prompts(backbone, *tensors[_PROMPTS].shape)
    with atomic_directory(path) as directory:
        write_json(directory / PEFT_CONFIG, config)
        write_safetensors(directory / PEFT_WEIGHTS, tensors, metadata={"format": "pt"})


def _find_kind(adaptation, backbone):
    """The peft_type of an adaptation. Raises a ValueError if peft's folder cannot hold it."""
    kind = {"LoRA": "LORA", "PromptTuning": "PROMPT_TUNING"}.get(type(adaptation).__name__)
    if kind is None:
        raise ValueError(
            f"peft's folder is written of LoRA and PromptTuning, got {adaptation!r}. Use "
            "`save_adapter`."
        )
    for name in ("heads_by_layer", "intermediate_by_layer"):
        if kind == "LORA" and (sizes := getattr(backbone, name, None)) is not None:
            raise ValueError(
                f"The layers of transformers are of one size, and this LoRA is for {name}={sizes}. "
                "Write the sums: `save_hugging_face(model.merge_adapter().to_full_size(), path)`, "
                "or use `save_adapter`."
            )
    return kind


def _describe_lora(adaptation, modules):
    """The fields of `LoRA` on modules of these names."""
    return {
        "r": adaptation.rank,
        "lora_alpha": _as_integer(adaptation.alpha),
        "lora_dropout": adaptation.dropout,
        "use_rslora": adaptation.use_rslora,
        "target_modules": modules,
        "bias": "none",
        "fan_in_fan_out": False,
    }


def _describe_prompts(backbone, length, width):
    """The fields of `length` prompts."""
    return {
        "num_virtual_tokens": length,
        "token_dim": width,
        "num_transformer_submodules": 1,
        # peft wants them, and finds them in the configurations of some models only.
        "num_layers": backbone.num_layers,
        "num_attention_heads": backbone.num_heads,
        "prompt_tuning_init": "RANDOM",
    }


def read_peft(model, path):
    """Reads a folder of peft for a model.

    Args:
        model: the task, or a backbone, on which the adapter is to be.
        path: str or path of the folder.

    Returns:
        (described, tensors, weights): dict of `class_name`, "LoRA" or "PromptTuning", and the
        `arguments` of the class; dict of our path, with "adapter" as the name of the adapter, ->
        array of its weights; dict of our path -> array of the weights that were trained beside
        them.

    Raises:
        ValueError: if the folder is of another kind, for another model or for layers that take no
            LoRA here, or damaged.
    """
    folder = Path(path).expanduser()
    with reading(folder / PEFT_CONFIG):
        config = parse_json((folder / PEFT_CONFIG).read_bytes())
    _check_config(config, folder)
    if not (folder / PEFT_WEIGHTS).is_file():
        raise ValueError(
            f"{folder} has no {PEFT_WEIGHTS}. Save it by peft of at least 0.5, in safetensors."
        )
    file, spell = SafetensorsFile(folder / PEFT_WEIGHTS), PeftNames(model)
    own, tensors, weights, strangers = weights_by_path(model), {}, {}, []
    modules = {}
    is_lora = config["peft_type"] == "LORA"
    for name in file.shapes:
        if name == _PROMPTS and not is_lora:
            embeddings = getattr(model, "backbone", model).embeddings
            tensors[f"{embeddings.path}/{_VECTORS}"] = np.array(file.tensor(name))
            continue
        spelled = re.sub(r"\.(modules_to_save|original_module)\.\w+\.", ".", name)
        spelled = spelled.removeprefix(_BASES[config["peft_type"]]).replace(".default.", ".")
        found = re.fullmatch(r"(.*)\.lora_([AB])\.weight", spelled)
        row = spell.our_row(f"{found[1]}.weight" if found else spelled)
        if row is None or row[0] not in own:
            strangers.append(name)
        elif found:
            layer = row[0].removesuffix("/kernel")
            modules[layer] = found[1]
            tensors[f"{layer}/low_rank-adapter/{found[2].lower()}"] = np.array(file.tensor(name)).T
        else:
            weights[row[0]] = row[1](np.array(file.tensor(name)))
    _check_places(folder, [name for name in strangers if ".lora_embedding_" in name])
    if strangers or not tensors:
        missing = "LoRA" if is_lora else _PROMPTS
        raise ValueError(
            f"{folder} has tensors that this {type(model).__name__} has no place for: "
            f"{list_names(strangers) or f'no {missing}'}. Open the base that the adapter was "
            f"trained on, {shorten(repr(config.get('base_model_name_or_path')))}, with its head."
        )
    if not is_lora:
        _check_prompts(folder, config, tensors, model)
        length = config["num_virtual_tokens"]
        return {"class_name": "PromptTuning", "arguments": {"length": length}}, tensors, weights
    _check_modules(folder, modules, model)
    _check_shapes(folder, config, tensors, own)
    arguments = {
        "rank": config["r"],
        "alpha": config["lora_alpha"],
        "targets": _find_targets(tensors, own),
        "dropout": config.get("lora_dropout") or 0.0,
        "use_rslora": bool(config.get("use_rslora")),
    }
    return {"class_name": "LoRA", "arguments": arguments}, tensors, weights


def _check_config(config, folder):
    """Raises a ValueError if a folder is of another kind than our LoRA and prompts."""
    kind = config.get("peft_type")
    if kind not in _BASES:
        raise ValueError(
            f"{folder} holds an adapter of the peft_type {shorten(repr(kind))}, wanted 'LORA' or "
            "'PROMPT_TUNING'. If peft can merge it, by merge_and_unload(), open the checkpoint "
            "that it saves; else train one of these here."
        )
    if kind == "PROMPT_TUNING":
        _check_prompt_config(config, folder)
        return
    wanted = {"bias": ("none", None), "init_lora_weights": _BEGINNINGS}
    for name, value in config.items():
        is_unknown = name not in _IDLE and name not in wanted and value not in (None, False, {}, [])
        if is_unknown or (name in wanted and value not in wanted[name]):
            raise ValueError(
                f"{folder} has {name}={shorten(repr(value))} in {PEFT_CONFIG}, which LoRA of this "
                "package does not compute. Merge it in peft, by merge_and_unload()."
            )
    for name in ("r", "lora_alpha"):
        if not isinstance(config.get(name), (int, float)) or not config[name] > 0:
            raise ValueError(
                f"{PEFT_CONFIG} of {folder} must have a number above 0 as {name!r}, got "
                f"{shorten(repr(config.get(name)))}."
            )


def _check_prompt_config(config, folder):
    """Raises a ValueError if prompts of peft are of another kind than ours."""
    for name, value in config.items():
        is_idle = name in _IDLE_OF_PROMPTS or value in (None, False, {}, [])
        if not is_idle and (name, value) != ("num_transformer_submodules", 1):
            raise ValueError(
                f"{folder} has {name}={shorten(repr(value))} in {PEFT_CONFIG}, which PromptTuning "
                "of this package does not compute. Train prompts of an encoder alone."
            )
    length = config.get("num_virtual_tokens")
    if type(length) is not int or length < 1:
        raise ValueError(
            f"{PEFT_CONFIG} of {folder} must have an integer above 0 as 'num_virtual_tokens', got "
            f"{shorten(repr(length))}."
        )


def _check_prompts(folder, config, tensors, model):
    embeddings = getattr(model, "backbone", model).embeddings
    wanted = config["num_virtual_tokens"], embeddings.embedding_dim
    (value,) = tensors.values()
    if value.shape != wanted:
        raise ValueError(
            f"{folder} is for another base: {_PROMPTS} has the shape {value.shape}, wanted "
            f"{wanted}, num_virtual_tokens={wanted[0]} vectors of the width of the token "
            f"embeddings here. Open {shorten(repr(config.get('base_model_name_or_path')))}."
        )


def _check_modules(folder, modules, model):
    """Raises a ValueError if peft has adapted a layer outside of the blocks, such as a pooler.

    `modules` is a dict of our path of a layer -> peft's name of it.
    """
    layers = getattr(model, "backbone", model)._flatten_layers()
    places = {layer.path for layer in layers if hasattr(layer, "add_adapter")}
    _check_places(folder, [name for layer, name in modules.items() if layer not in places])


def _check_places(folder, others):
    """Raises a ValueError if there is LoRA on other layers, such as a table of tokens."""
    if others:
        raise ValueError(
            f"{folder} has LoRA on {list_names(others)}, and LoRA of this package is on the dense "
            "layers of the blocks and projections alone. Merge it in peft, by merge_and_unload(), "
            "and open the checkpoint that it saves."
        )


def _check_shapes(folder, config, tensors, own):
    rank = config["r"]
    for path, value in tensors.items():
        layer, letter = path.rsplit("/", 2)[0], path[-1]
        kernel = tuple(own[f"{layer}/kernel"].shape)
        wanted = (kernel[0], rank) if letter == "a" else (rank, kernel[1])
        if value.shape != wanted:
            raise ValueError(
                f"{folder} is for another base: {letter.upper()} of {layer} has the shape "
                f"{value.shape}, wanted {wanted} for its kernel {kernel} and r={rank}. Open "
                f"{shorten(repr(config.get('base_model_name_or_path')))}."
            )


def _find_targets(tensors, own):
    """Regular expressions of the layers that have matrices, and of no others."""
    layers = {path.rsplit("/", 2)[0] for path in tensors}
    patterns = sorted({re.sub(r"\d+", r"\\d+", re.escape(layer)) for layer in layers})
    all_layers = {path.removesuffix("/kernel") for path in own if path.endswith("/kernel")}
    named = {x for x in all_layers if any(re.fullmatch(p, x) for p in patterns)}
    return patterns if named == layers else sorted(map(re.escape, layers))


def _as_integer(value):
    """A whole number as int, as peft writes it."""
    return int(value) if float(value).is_integer() else value
