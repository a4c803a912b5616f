"""Reads the kind of a model and of its head from Hugging Face's config.json."""

from keras_bert_suite.checkpoints.model_types.table import MODEL_TYPES, find_type
from keras_bert_suite.files.messages import list_names, shorten

#: Configuration fields that change the computation, each with the values that our backbones
#: support. BERT's own fields come first, then fields of models that call themselves BERT. (Other
#: fields, such as `use_cache`, `output_attentions` and `chunk_size_feed_forward`, change the
#: outputs that are returned, the speed or the dropout, but no value of an output.)
DIALS: tuple[tuple[str, tuple], ...] = (
    ("position_embedding_type", ("absolute",)),
    ("is_decoder", (False,)),
    ("add_cross_attention", (False,)),
    ("pruned_heads", ({},)),
    ("quantization_config", ()),
    ("num_hidden_groups", ()),
    ("inner_group_num", (1,)),
    ("feed_forward_type", ("original",)),
    ("alibi_starting_size", ()),
    ("rotary_emb_fraction", (0, 0.0)),
    ("relative_attention", (False,)),
    ("prenorm", (False,)),
    ("ln_type", ("postln",)),
    # fields of the code of StructBERT
    ("attention_type", ("self",)),
    ("transition_function", ("linear",)),
    ("pre_ln", (False,)),
    ("rezero", (False,)),
    ("squeeze_excitation", (False,)),
    ("roberta_style", (False,)),
    ("set_mask_zero", (False,)),
    ("emb_size", (-1,)),
)

#: The values of `problem_type`.
SINGLE_LABEL, MULTI_LABEL, REGRESSION = (
    "single_label_classification",
    "multi_label_classification",
    "regression",
)

#: Our field for the thresholds of the labels. transformers keeps it and does not use it.
THRESHOLDS = "label_thresholds"

#: A tensor that every BERT has, as the name table spells it.
_BERT_TENSOR = "bert.encoder.layer.0.attention.self.query.weight"


def find_model_type(config, names):
    """Finds the type of a model, and checks that one of our backbones computes it.

    Args:
        config: `ConfigValues`.
        names: names of the tensors in the file.

    Returns:
        `ModelType`.

    Raises:
        ValueError: if the model is of another type, or a field of `DIALS` has a value that our
            backbones do not support.
    """
    kind = find_type(config)
    if config.get("model_type") is None:
        _check_names_of_bert(config, names, kind.names.spell)
    understood = {field.name for field in kind.fields}
    config.check_dials(dial for dial in (*DIALS, *kind.dials) if dial[0] not in understood)
    code = config.get("auto_map")
    if isinstance(code, dict) and any(str(name).startswith("AutoModel") for name in code):
        raise ValueError(
            f"'auto_map' in {config.path} says that the model is computed by code of its own, "
            f"which is never run here. If that code computes a plain {kind.title}, remove "
            "'auto_map'."
        )
    return kind


def _check_names_of_bert(config, names, spell):
    """Checks the names of tensors. Only files since 2020 have a `model_type`."""
    # RoBERTa's tensors may have BERT's names. It has one type of segments, and its positions begin
    # at 2.
    if _BERT_TENSOR not in map(spell, names) or config.get("type_vocab_size") == 1:
        known = ", ".join(f"{kind.name!r} for {kind.title}" for kind in MODEL_TYPES.values())
        raise ValueError(
            f"{config.path} has no model_type, and the checkpoint holds no BERT: wanted a "
            f"{_BERT_TENSOR} and two types of segments, got {list_names(list(names)[:5])} and "
            f"type_vocab_size {shorten(config.get('type_vocab_size'))}. Add the model_type, if it "
            f"is one of these: {known}. Other architectures cannot be read."
        )


def read_architectures(config):
    """The classes of transformers that a model was saved from, list of str."""
    names = config.get("architectures")
    return [str(name) for name in names] if isinstance(names, list) else []


def has_head(config, ending):
    """Whether a model was saved from a class with this ending, such as "ForMultipleChoice"."""
    return any(name.endswith(ending) for name in read_architectures(config))


def read_classifier(config, shape, architecture, dropout):
    """Reads the arguments of a `TextClassifier` whose head is the checkpoint's layer.

    Args:
        config: `ConfigValues`.
        shape: shape of the kernel of the classification layer, or None if there is no such
            tensor.
        architecture: str, the class of transformers that classifies texts with such a model.
        dropout: float, the dropout rate of the head.

    Returns:
        (arguments, problem): dict of arguments of `TextClassifier`, and None; or None, and a str
        that says why the layer cannot be the head of a `TextClassifier`.

    Raises:
        ValueError: if `id2label` has a wrong value.
    """
    if shape is None:
        return None, "has no classification layer"
    architectures = read_architectures(config)
    if not architectures:
        return None, (
            "has a classification layer, but its config.json does not name the class of the "
            f'model. If it classifies texts, add "architectures": ["{architecture}"]'
        )
    if not has_head(config, "ForSequenceClassification"):
        return None, (
            f"has the classification layer of a {list_names(architectures)}, which does not "
            "classify texts"
        )
    problem_type, problem = _find_problem_type(config, shape)
    if problem:
        return None, problem
    arguments = {
        "label_names": _read_label_names(config, shape[0]),
        "problem_type": problem_type,
        "dropout": dropout,
    }
    thresholds = config.get(THRESHOLDS)
    if thresholds is not None and problem_type == MULTI_LABEL:
        arguments["thresholds"] = thresholds
    return arguments, None


def _find_problem_type(config, shape):
    """`(problem type, None)` of a classification layer, or None and why no head has its shape."""
    num_labels = shape[0] if len(shape) == 2 else 0
    # transformers takes one output for a regression unless the file says otherwise.
    problem_type = config.get("problem_type") or (REGRESSION if num_labels == 1 else SINGLE_LABEL)
    fewest = {SINGLE_LABEL: 2, MULTI_LABEL: 1, REGRESSION: 1}
    if not isinstance(problem_type, str) or problem_type not in fewest:
        return None, (
            f"has a classification layer whose problem_type is {shorten(repr(problem_type))}, "
            f"wanted one of {', '.join(fewest)}"
        )
    if num_labels < fewest[problem_type]:
        return None, (
            f"has a classification layer of shape {shorten(shape)}, wanted (labels, hidden_size) "
            f"with at least {fewest[problem_type]} labels for the problem_type {problem_type!r}"
        )
    return problem_type, None


def read_token_classifier(config, shape, dropout):
    """Reads the arguments of a `TokenClassifier` whose head is the checkpoint's layer.

    Args, Raises: as for `read_classifier`.

    Returns:
        dict of arguments of `TokenClassifier`, or None.
    """
    if not has_head(config, "ForTokenClassification") or shape is None:
        return None
    if len(shape) != 2 or shape[0] < 2:
        return None
    return {"label_names": _read_label_names(config, shape[0]), "dropout": dropout}


def read_multiple_choice(config, shape, dropout):
    """Reads the arguments of a `MultipleChoice` whose head is the checkpoint's layer.

    Args, Raises: as for `read_classifier`.

    Returns:
        dict of arguments of `MultipleChoice`, or None.
    """
    is_there = has_head(config, "ForMultipleChoice") and shape is not None
    return {"dropout": dropout} if is_there and len(shape) == 2 and shape[0] == 1 else None


def _read_label_names(config, num_labels):
    # transformers does not write `id2label` if it has its default, two labels with these names.
    labels = config.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    try:
        names = {int(key): str(name) for key, name in labels.items()}
    except (AttributeError, ValueError):
        names = {}
    if sorted(names) != list(range(len(names))) or not 0 < len(names) <= num_labels:
        raise ValueError(
            f"'id2label' in {config.path} must map 0 to n - 1 to names, for at most the "
            f"{num_labels} outputs of the classification layer, got {shorten(repr(labels))}."
        )
    # Files of 2019 may have another `num_labels` beside the default of two names.
    return [names.get(i, f"LABEL_{i}") for i in range(num_labels)]
