"""The flags of the techniques of training, and of the teachers of a student."""

import inspect

#: The name of a technique -> its class.
TECHNIQUES = {
    "fgm": "FGM",
    "pgd": "PGD",
    "free_lb": "FreeLB",
    "vat": "VAT",
    "smart": "SMART",
    "gradient_penalty": "GradientPenalty",
    "r_drop": "RDrop",
    "mixup": "Mixup",
    "layer_drop": "LayerDrop",
}


def define_technique_flags(flags):
    """Defines --technique and --technique_values."""
    explanation = "How the gradients of a batch are made, see the guide to techniques."
    flags.choice("technique", "none", ("none", *TECHNIQUES), explanation)
    explanation = "Arguments of --technique that are no defaults: epsilon=0.2,alpha=2."
    flags.mapping("technique_values", explanation)


def define_teacher_flags(flags):
    """Defines --teacher and --teacher_values."""
    explanation = (
        "Models of the same task from which the new one learns, beside the labels: .keras files, "
        "or folders of presets. Of several their mean counts. See the guide to distillation."
    )
    flags.list("teacher", None, explanation)
    explanation = (
        "How it learns from --teacher: temperature=2,alpha=0.7. alpha is the weight of the "
        "teacher, and label_weight that of the labels, 1 - alpha by default."
    )
    flags.mapping("teacher_values", explanation)


def make_technique(values):
    """The technique that the flags name, or None."""
    import keras_bert_suite as kbs

    techniques = [t for t in (_make_distillation(values), _make_named(values)) if t is not None]
    if len(techniques) > 1:
        return kbs.CombinedTechniques(techniques)
    return techniques[0] if techniques else None


def _make_distillation(values):
    """The `Distillation` from --teacher, or None."""
    import keras_bert_suite as kbs

    given = values.teacher_values or {}
    if values.teacher is None:
        if given:
            raise ValueError(
                f"--teacher_values={','.join(given)} has no --teacher. Name the model to learn "
                "from."
            )
        return None
    known = ("temperature", "alpha", "label_weight")
    if wrong := [name for name in given if name not in known]:
        raise ValueError(f"--teacher_values takes the values {', '.join(known)}, got {wrong[0]}.")
    numbers = {name: _read(1.0, text, "--teacher_values") for name, text in given.items()}
    return kbs.Distillation(values.teacher, **numbers)


def _make_named(values):
    """The technique from --technique, or None."""
    import keras_bert_suite as kbs

    given = values.technique_values or {}
    if values.technique == "none":
        if given:
            raise ValueError(
                f"--technique_values={','.join(given)} has no --technique. Name one, such as fgm."
            )
        return None
    cls = getattr(kbs, TECHNIQUES[values.technique])
    known = inspect.signature(cls).parameters
    if wrong := [name for name in given if name not in known]:
        raise ValueError(
            f"--technique={values.technique} takes the values {', '.join(known)}, got {wrong[0]}."
        )
    return cls(**{name: _read(known[name].default, text) for name, text in given.items()})


def _read(default, text, flag="--technique_values"):
    """A text as a value of the kind of a default."""
    try:
        return type(default)(text)
    except ValueError:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise ValueError(f"{flag} must have {kind}, got {text!r}.") from None
