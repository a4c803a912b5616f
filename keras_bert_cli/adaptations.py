"""The flags of adaptations, which train few weights."""

import inspect
import json

#: The name of an adaptation -> its class.
ADAPTATIONS = {
    "lora": "LoRA",
    "houlsby": "HoulsbyAdapters",
    "pfeiffer": "PfeifferAdapters",
    "bit_fit": "BitFit",
    "prefix": "PrefixTuning",
    "prompt": "PromptTuning",
}


def define_adaptation_flags(flags):
    """Defines --adapt, --adapt_values and --adapter."""
    explanation = "Which few weights of the encoder train, see the guide to few weights."
    flags.choice("adapt", "none", ("none", *ADAPTATIONS), explanation)
    explanation = "Arguments of --adapt that are no defaults: rank=16,alpha=32."
    flags.mapping("adapt_values", explanation)
    explanation = "Folder to write beside --output, of the adapter and the head alone."
    flags.path("adapter", None, explanation)


def make_adaptation(values):
    """The adaptation that the flags name, or None."""
    import keras_bert_suite as kbs

    given = values.adapt_values or {}
    if values.adapt == "none":
        for name in ("adapt_values", "adapter"):
            if getattr(values, name):
                raise ValueError(f"--{name} has no --adapt. Name one, such as lora.")
        return None
    cls = getattr(kbs, ADAPTATIONS[values.adapt])
    known = [name for name in inspect.signature(cls).parameters if name not in ("args", "kwargs")]
    if wrong := [name for name in given if name not in known]:
        takes = f"takes the values {', '.join(known)}" if known else "takes no values"
        raise ValueError(f"--adapt={values.adapt} {takes}, got {wrong[0]}.")
    return cls(**{name: _read(text) for name, text in given.items()})


def _read(text):
    """A text as the number, the flag or None that it spells, or as it is."""
    try:
        return json.loads({"None": "null"}.get(text, text.lower()))
    except json.JSONDecodeError:
        return text
