"""The names that peft has for the weights of a model."""

from dataclasses import replace

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.checkpoints.head_types.records import TEXTS, find_head
from keras_bert_suite.checkpoints.load_weights import weights_by_path
from keras_bert_suite.checkpoints.model_types.name_table import is_of_head
from keras_bert_suite.checkpoints.model_types.table import MODEL_TYPES, type_of_model


class PeftNames:
    """The names of transformers for the weights of a model."""

    def __init__(self, model):
        backbone = getattr(model, "backbone", model)
        kind = type_of_model(model, None)
        if kind.name not in MODEL_TYPES:
            raise ValueError(
                f"transformers has no {kind.title}, so peft has no adapters of it; got "
                f"{with_article(backbone)}. Use `save_adapter`."
            )
        paths = weights_by_path(model)
        names = kind.classifier_names if TEXTS.path in paths else kind.names
        names = kind.fit_names(names, getattr(backbone, "num_heads", None))
        # Several heads have one name there, of which this model has one.
        rows = (row for row in names.rows if row[0] in paths or not is_of_head(row[0]))
        self.kind, self.names = kind, replace(names, rows=tuple(rows))
        head = find_head(paths)
        self.ending = None if head is None else kind.find_ending(head)
        encoder = {weight.path for weight in backbone.weights}
        self.in_encoder = {
            row[0] for path in encoder if (row := self.names.their_name(path)) is not None
        }
        first = {name.partition(".")[0] for name in self.in_encoder}
        #: The prefix that the names have in a model with a head, and not in an encoder alone.
        self.prefix = f"{first.pop()}." if head is None and len(first) == 1 else ""

    def short(self, name):
        """Their name in the class of this model."""
        return name.removeprefix(self.prefix)

    def module_of(self, layer):
        """Their name of the module of a dense layer of ours, of which peft can adapt it."""
        row = self.names.their_name(f"{layer}/kernel")
        if row is None or not row[0].endswith(".weight"):
            raise ValueError(
                f"{layer} of {self.kind.title} is no linear layer in transformers, so peft cannot "
                "adapt it. Use `save_adapter`."
            )
        return self.short(row[0].removesuffix(".weight"))

    def saved_module(self, path):
        """Their name of the module that peft saves whole for a weight of ours."""
        row = self.names.their_name(path)
        if row is None:
            raise ValueError(
                f"{path} has no name in transformers' {self.kind.title}. Use `save_adapter`."
            )
        name = self.short(row[0])
        if row[0] in self.in_encoder and not name.startswith(("classifier.", "pre_classifier.")):
            return name.rpartition(".")[0]
        return name.partition(".")[0]

    def our_row(self, name):
        """(our path, transform) of a name in a folder; None if there is none."""
        return self.names.our_path(self.names.spell(self.prefix + name)) or self.names.our_path(
            self.names.spell(name)
        )

    def shorten_modules(self, modules):
        """The last parts of names of modules, if they name no other module; else the names."""
        all_modules = {
            self.short(name.removesuffix(".weight"))
            for name in self.in_encoder
            if name.endswith(".weight")
        }
        endings = {module.rpartition(".")[2] for module in modules}
        named = {m for m in all_modules if m.rpartition(".")[2] in endings}
        return sorted(endings) if named == {*modules} else sorted(modules)
