"""Links that lead elsewhere on the site than in the repository."""

import importlib
import os
import re
import sys
from pathlib import Path

from docutils import nodes

import keras_bert_suite

#: Pages of KerasHub, by the name of a class.
KERAS_HUB = {
    "Backbone": "base_classes/backbone/",
    "CausalLM": "base_classes/causal_lm/",
    "Sampler": "samplers/samplers/",
    "Task": "base_classes/task/",
    "TextClassifier": "base_classes/text_classifier/",
    "Tokenizer": "tokenizers/tokenizer/",
}
#: Pages of transformers, by the beginning of the name of a class.
TRANSFORMERS = {
    "Albert": "albert",
    "Bert": "bert",
    "DistilBert": "distilbert",
    "Electra": "electra",
    "Ernie": "ernie",
    "Longformer": "longformer",
    "ModernBert": "modernbert",
    "RoFormer": "roformer",
    "Roberta": "roberta",
    "XLMRoberta": "xlm-roberta",
}


def rewrite_source(app, document, content):
    """Links to a folder lead to its README, or become plain text where it has none.

    Images of other hosts are left out: the site loads nothing from them.
    """

    folder_of_document = Path(app.env.doc2path(document)).parent

    def replace(match):
        text, folder, page = match.groups()
        target = folder_of_document / folder / (page or "README.md")
        if target.resolve() == Path(app.srcdir, "docs/README.md"):
            return f"[{text}]({folder}index.rst)"
        return f"[{text}]({folder}{target.name})" if target.is_file() else text

    content[0] = re.sub(r"!\[[^\]]*\]\(https?:[^)]*\)[ ·]*", "", content[0])
    content[0] = re.sub(r"\[([^\]]*)\]\(([\w./]*/)(README\.md)?\)", replace, content[0])


def find_name(app, env, node, content):
    """The link of a class: here by the name that users import, or of another library."""
    target = node.get("reftarget", "")
    name = target.rpartition(".")[2]
    if target.startswith("keras_bert_suite."):
        python, page = env.get_domain("py"), node["refdoc"]
        # Of a method that no page shows, the class.
        public = (
            f"keras_bert_suite.{name}"
            if name in keras_bert_suite.__all__
            else target[: -len(name) - 1]
        )
        return python.resolve_xref(env, page, app.builder, "obj", public, node, content)
    if address := find_address(target):
        return nodes.reference("", "", content, internal=False, refuri=address)


def find_address(name):
    """The page of another library that describes a name, or None."""
    library, _, rest = name.partition(".")
    if library in ("keras", "tf"):
        page = find_public_name(name).removeprefix("tf.").replace(".", "/")
        # A page has a class with its methods.
        page = re.sub(r"\b([A-Z]\w*)/", r"\1#", page)
        return f"https://www.tensorflow.org/api_docs/python/tf/{page}"
    if library == "keras_hub":
        page = next((KERAS_HUB[part] for part in rest.split(".") if part in KERAS_HUB), "")
        return f"https://keras.io/keras_hub/api/{page}"
    if library == "transformers":
        model = re.match(rf"({'|'.join(TRANSFORMERS)})(Config|Model|Tokenizer|For[A-Z])", rest)
        page = f"/model_doc/{TRANSFORMERS[model[1]]}#{name}" if model else ""
        return f"https://huggingface.co/docs/transformers{page}"


def find_public_name(name):
    """The name that Keras exports: "keras.layers.Layer" for "keras.src.layers.layer.Layer".

    Some objects have several names. The one with the longest beginning in common is taken.
    """
    library = name.partition(".")[0]
    if not name.startswith(("keras.src.", "keras_hub.src.")):
        return name
    module, _, attribute = name.rpartition(".")
    wanted = getattr(importlib.import_module(module), attribute)
    exported = [
        f"{public}.{attribute}"
        for public in sys.modules
        if re.fullmatch(rf"{library}(\.(?!src\b|_)\w+)*", public)
        and getattr(sys.modules[public], attribute, None) is wanted
    ]
    path = name.replace(".src", "", 1)
    return max(exported, key=lambda other: len(os.path.commonprefix([other, path])), default=path)


def setup(app):
    app.connect("source-read", rewrite_source)
    app.connect("missing-reference", find_name)
    return {"parallel_read_safe": True}
