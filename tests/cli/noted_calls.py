"""Notes the arguments of the functions of the library that a command really calls."""

import functools
import inspect
from pathlib import Path

import keras
import numpy as np
import torch.distributed.run

import keras_bert_suite as kbs
from keras_bert_cli import adapt, export, finetune, kinds, search, show, table_flags
from keras_bert_cli.kinds import choice, kind, ner, qa, ranking, relation
from keras_bert_suite import checkpoints, corpus, models, pretraining, serving, tokenizers
from keras_bert_suite.corpus import input_files, preparation
from keras_bert_suite.files import atomic_directory
from keras_bert_suite.heads.base import task
from keras_bert_suite.heads.base.preset_task import PresetTask
from keras_bert_suite.heads.relations.answers import RelationAnswers
from keras_bert_suite.heads.tags.answers import WordAnswers
from keras_bert_suite.runs import batches, prediction
from keras_bert_suite.tokenizers.word_piece import vocabulary_training, word_counts
from keras_bert_suite.training.techniques.distillation import distillation

#: The modules that write texts, or score them, batch by batch.
WRITING = [kbs.heads.targets.decoding, kbs.heads.continuations.causal_lm]
#: Where the functions are that are noted. The place is the module that calls a function.
FUNCTIONS = {
    **{"read_table": [table_flags], "read_columns": [table_flags, kinds.attributes]},
    **{"read_lines": [table_flags, search, qa], "read_squad": [qa], "read_swag": [choice]},
    **{"read_conll": [ner], "read_annotations": [ner], "read_semeval": [relation]},
    **{"read_rankings": [ranking], "format_json": [kind], "read_card": [show]},
    "adapt": [PresetTask],
    "from_preset": [PresetTask, kbs.Pretrainer],
    **{"from_adapter": [PresetTask], "open_model": [kinds]},
    **{"keep_layers": [PresetTask], "list_teachers": [distillation]},
    **{"prune_heads": [PresetTask], "prune_feed_forward": [PresetTask]},
    **{"factorize_embeddings": [PresetTask], "trim_vocabulary": [kbs]},
    **{"fit": [task.Task], "score_with": [task.Task], "training_batches": [task]},
    **{"batch_rows": [batches, prediction], "choose_size": WRITING},
    **{"tune_threshold": [kbs.QuestionAnswerer], "tune_thresholds": [kbs.TextClassifier]},
    "score": [kbs.QuestionAnswerer, RelationAnswers, WordAnswers],
    "search": [kbs.TextEmbedder],
    "predict": [kbs.CausalLM, kbs.MaskedLM, kbs.Seq2Seq, kbs.ZeroShotClassifier],
    "score_retrieval": [kbs.TextEmbedder],
    **{
        "inspect_by_folds": [kbs],
        "robustness": [kbs],
        "predict_files": [kbs],
        "set_random_seed": [keras.utils],
        "main": [torch.distributed.run],
    },
    **{"find_files": [input_files], "plan_slices": [input_files], "count_words": [word_counts]},
    **{"learn_pieces": [vocabulary_training], "train_byte_pairs": [tokenizers]},
    **{"train_sentence_pieces": [tokenizers], "prepare_corpus": [preparation]},
    **{"open_tokenizer": [kbs], "open_corpus": [corpus], "read_tokenizer": [corpus]},
    **{"hold_out": [corpus], "share_rows": [pretraining], "rarity_weights": [kbs]},
    **{"compare": [adapt], "print_guesses": [adapt], "put_in_place": [atomic_directory]},
    **{"export_saved_model": [serving], "open_backbone": [models]},
    **{f"export_{name}": [kbs] for name in ("onnx", "openvino", "litert")},
    **{f"save_{name}": [checkpoints] for name in ("hugging_face", "google_tf1", "keras_hub")},
    **{"save_to_preset": [PresetTask], "write_output": [export, finetune]},
}
CLASSES = (kbs.TokenMasker, kbs.EntityF1, kbs.AnswerF1, kbs.AugmentedRows)
CLASSES += (pretraining.PretrainingBatches, input_files.InputOptions, keras.callbacks.TensorBoard)


class Seen(BaseException):
    """All functions of interest have been called. The last one has not run."""


class Calls:
    """The arguments of the calls of functions, by their names. `wanted` are to be called."""

    def __init__(self, monkeypatch):
        self.noted, self.wanted = {}, set()
        for name, places in FUNCTIONS.items():
            for place in places:
                self.spy(monkeypatch, place, name, name)
        for cls in CLASSES:
            self.spy(monkeypatch, cls, "__init__", cls.__name__)

    def spy(self, monkeypatch, place, attribute, name):
        found = inspect.getattr_static(place, attribute)
        function = getattr(found, "__func__", found)

        @functools.wraps(function)
        def note(*args, **kwargs):
            self.note(name, note.__signature__, args, kwargs)
            return function(*args, **kwargs)

        note.__signature__ = inspect.signature(function)
        monkeypatch.setattr(place, attribute, type(found)(note) if found is not function else note)

    def note(self, name, signature, args, kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                arguments |= arguments.pop(parameter.name)
        if not Path(str(arguments.get("path"))).name.startswith(
            "."
        ):  # A folder that is made aside.
            self.noted.setdefault(name, []).append(arguments)
            if name in self.wanted:
                self.wanted.remove(name)
                if not self.wanted:
                    raise Seen

    def find(self, key):
        """list of the values of an argument, or of an attribute, item or key of it.

        >>> calls.find("fit.validation_data.0")
        [['a good film']]
        """
        name, *path = key.split(".")
        return [to_plain(functools.reduce(step_into, path, call)) for call in self.noted[name]]


def step_into(value, name):
    """An attribute, or an item, of a value. Its length is the attribute `len`."""
    if name == "len":
        return len(value)
    if isinstance(value, dict):
        return value.get(name, "absent")
    return value[int(name)] if name.lstrip("-").isdigit() else getattr(value, name, None)


def to_plain(value):
    """A value as a table of values can have it: paths are str, arrays and tuples are lists."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [to_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
