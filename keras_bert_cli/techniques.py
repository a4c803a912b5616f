"""The flags of the techniques of training."""

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
}


def define_technique_flags(flags):
    """Defines --technique and --technique_values."""
    explanation = "How the gradients of a batch are made, see the guide to techniques."
    flags.choice("technique", "none", ("none", *TECHNIQUES), explanation)
    explanation = "Arguments of --technique that are no defaults: epsilon=0.5,alpha=2."
    flags.mapping("technique_values", explanation)


def make_technique(values):
    """The technique that the flags name, or None."""
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


def _read(default, text):
    """A text as a value of the kind of a default."""
    try:
        return type(default)(text)
    except ValueError:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise ValueError(f"--technique_values must have {kind}, got {text!r}.") from None
