"""Stand-ins for the functions of the library that commands call. They note their arguments."""

import functools
import inspect
import json
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import torch.distributed.run
from small_texts import VOCABULARY

import keras_bert_suite as kbs
from keras_bert_cli import kinds, plots, search, table_flags
from keras_bert_cli.kinds import choice, classify, ner, qa, ranking, relation, seq2seq
from keras_bert_cli.saved_tasks import PRETRAINERS, TASKS
from keras_bert_suite import checkpoints, corpus, models, pretraining, serving, tokenizers
from keras_bert_suite.corpus import input_files, preparation
from keras_bert_suite.files import atomic_directory
from keras_bert_suite.heads.attributes.answers import AttributeAnswers
from keras_bert_suite.heads.attributes.data import AttributeLabels
from keras_bert_suite.heads.base import card_facts
from keras_bert_suite.heads.questions.answers import Answer
from keras_bert_suite.heads.tags import tag_schemes
from keras_bert_suite.tokenizers.word_piece import vocabulary_training, word_counts

ABSENT = "absent"
LABEL_NAMES = ["no", "yes"]

#: Functions that do their work. Their arguments are noted.
SPIED = (
    *((keras.utils, "set_random_seed"), (qa, "read_lines"), (qa, "read_squad")),
    *((table_flags, "read_table"), (table_flags, "read_columns"), (table_flags, "read_lines")),
    *((search, "read_lines"), (ner, "read_conll"), (choice, "read_swag")),
    (ner, "read_annotations"),
    *((kinds.attributes, "read_columns"), (relation, "read_semeval")),
    *((ranking, "read_rankings"),),
    *((tag_schemes, "convert_tags"), (kbs, "open_tokenizer")),
    *((input_files, "find_files"), (input_files, "InputOptions"), (input_files, "plan_slices")),
    *((word_counts, "count_words"), (vocabulary_training, "learn_pieces")),
    *((kbs, "TokenMasker"), (kbs, "rarity_weights"), (pretraining, "share_rows")),
    *((tokenizers, "train_byte_pairs"), (tokenizers, "train_sentence_pieces")),
    *((kbs, "AnswerF1"), (kbs, "EntityF1"), (kbs, "AugmentedRows")),
)

MANIFEST = {"documents": 1, "sentences": 1, "tokens": 100_000, "unknown_tokens": 0, "shards": []}
MANIFEST |= {"skipped_documents": 0, "replaced_texts": 0}

FIGURES = (
    "accuracy",
    "perplexity",
    "loss",
    "micro_f1",
    "macro_f1",
    "f1",
    "precision",
    "recall",
    "exact_match",
)
FIGURES = dict.fromkeys((*FIGURES, "pearson", "spearman", "entities"), 0.0)

#: The answer of each class to a text.
ANSWERS = {
    "TextClassifier": np.zeros(2),
    "RelationClassifier": np.zeros(2),
    "MultipleChoice": np.zeros(4),
    "TextRanker": np.zeros(()),
    "TextEmbedder": np.zeros(2, "float32"),
    "QuestionAnswerer": Answer("", -1, -1, 1.0, 0.0),
    "Seq2Seq": "a title",
}

#: The outputs of SavedModels, by the name of their folder, for a text.
SERVED = {
    "served_classify": {"labels": b"no", "label_ids": 0, "probabilities": [1.0, 0.0]},
    "served_attributes": {"label": b"no", "label_probabilities": [1.0, 0.0]},
    "served_relation": {"labels": b"no", "label_ids": 0, "probabilities": [1.0, 0.0]},
    "served_multilabel": {"is_label": [1, 0], "probabilities": [1.0, 0.0]},
    "served_regress": {"scores": [1.0]},
    "served_ner": {"num_entities": 0},
    "served_qa": {"answers": b"", "starts": 0, "ends": 0, "scores": 0.0, "null_odds": 0.0},
    "served_choice": {"choices": 0, "probabilities": [1.0, 0.0, 0.0, 0.0]},
    "served_ranking": {"relevance": 0.5},
    "served_embed": {"embedding": [1.0]},
    "served_seq2seq": {"target_ids": [0], "texts": b"a title"},
}


class Calls(dict):
    """Name of a function -> the arguments of its calls, a list of dicts."""

    def note(self, name, function, args, kwargs, **more):
        signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = {**bound.arguments, **more}
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                arguments |= arguments.pop(parameter.name)
        self.setdefault(name, []).append(arguments)

    def find(self, key):
        """The value of an argument, or of an attribute, item or key of it.

        >>> calls.find("fit.batch_size")
        32
        >>> calls.find("fit.validation_data.0")
        ['a good film']

        It is a list if the calls have different values, and `ABSENT` if there is none.
        """
        name, *path = key.split(".")
        values = []
        for call in self.get(name, ()):
            value = to_plain(functools.reduce(_step_into, path, call))
            if value not in values:
                values.append(value)
        return values[0] if len(values) == 1 else values or ABSENT


def _step_into(value, name):
    if isinstance(value, dict):
        return value.get(name, ABSENT)
    if isinstance(value, (list, tuple)):
        index = int(name)
        return value[index] if index < len(value) else ABSENT
    return getattr(value, name, ABSENT)


def to_plain(value):
    """A value as a table of values can have it: paths are str, arrays and tuples are lists."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [to_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


class Task:
    """Stands in for a task of a class. Its methods note their arguments, and compute nothing."""

    #: So that `isinstance` takes it for a task of the class.
    __class__ = property(lambda self: self.cls or Task)

    def __init__(self, cls, calls, **attributes):
        tokenizer = kbs.WordPieceTokenizer(VOCABULARY)
        self.cls, self.calls, self.name = cls, calls, "task"
        self.preprocessor = kbs.SegmentPacker(tokenizer, 16)
        self.backbone = SimpleNamespace(max_sequence_length=512, get_config=dict)
        self.label_names, self.input_names, self.card = LABEL_NAMES, ("text",), {}
        self.head_learning_rate = None
        self.data = SimpleNamespace(read=lambda *_, **__: SimpleNamespace(is_packed=True))
        self.answers = SimpleNamespace(serve=functools.partial(self._answer, "serve"), choose=len)
        self.discriminator = SimpleNamespace(preprocessor=self.preprocessor, name="discriminator")
        vars(self).update(attributes)
        if cls is kbs.AttributeClassifier and attributes:
            self.answers = AttributeAnswers(AttributeLabels(attributes["attributes"]))
        self.answers.score = functools.partial(self._note_answers, "score")
        self.answers.inspect = functools.partial(self._note_answers, "inspect")

    def __getattr__(self, name):
        method = functools.partial(getattr(self.cls, name), self)

        def note(*args, **kwargs):
            # A method that `fit` and others need is a setting of the task by then.
            more = {"cls": self.cls.__name__, "task": self}
            self.calls.note(name, method, args, kwargs, **more)
            return self._answer(name, *args)

        return note

    def _note_answers(self, name, outputs, rows, labels, **more):
        self.calls.setdefault(f"{name}_answers", []).append({"cls": self.cls.__name__, **more})
        return self._answer(name)

    def _answer(self, name, texts=None, *args):
        if name in ("save", "save_to_preset"):
            return make_model(texts)
        if name in ("evaluate", "score", "score_retrieval"):
            is_tagger = issubclass(self.cls, (kbs.TokenClassifier, kbs.EntitySpanClassifier))
            return {**FIGURES, "types": {}} if is_tagger else FIGURES
        if name == "predict" and self.cls is kbs.AttributeClassifier:
            return self.answers.decode(np.zeros((len(texts), 2)), None)
        if name == "predict":
            answer = ANSWERS.get(self.cls.__name__, [])
            answers = [answer] * len(texts[0] if isinstance(texts, tuple) else texts)
            return np.array(answers) if isinstance(answer, np.ndarray) else answers
        if name == "search":
            return [[] for _ in texts]
        if name == "serve":
            rows = len(args[0])
            outputs = {"label_ids": (rows,), "scores": (rows, 1), "choices": (rows,)}
            outputs["relevance"] = (rows,)
            names = ("probabilities", "is_label", "embedding")
            outputs |= dict.fromkeys(names, (rows, len(self.label_names)))
            return {name: np.zeros(shape, "int32") for name, shape in outputs.items()}
        if name == "inspect":
            return []
        if name == "score_with":  # The first argument is the function that scores.
            return texts(np.zeros((1, len(self.label_names))), None, labels=np.zeros(1, int))
        return {"count_params": 0, "tune_threshold": 0.0, "make_masked_lm": self}.get(name)


class TaskClass:
    """Stands in for a class of tasks: makes a `Task`."""

    def __init__(self, cls, calls):
        self.cls, self.calls, self.signature_of = cls, calls, cls.from_preset

    def __call__(self, *args, **kwargs):
        self.calls.note(self.cls.__name__, self.cls, args, kwargs)
        return Task(self.cls, self.calls)

    def from_preset(self, preset, *args, **kwargs):
        cls, file = self.cls, Path(preset, "task.json")
        arguments = (preset, *args)
        self.calls.note("from_preset", self.signature_of, arguments, kwargs, cls=cls.__name__)
        config = json.loads(file.read_text())["config"] if file.is_file() else {}
        return Task(cls, self.calls, **config)


class Batches(list):
    """Stands in for `MixedBatches`, and notes which of them are taken."""

    def __init__(self, datasets, calls):
        super().__init__(datasets)
        self.calls = calls

    def __getitem__(self, batches):
        self.calls.setdefault("held_out", []).append({"stop": batches.stop})
        return self


class SavedModel:
    """Stands in for a SavedModel of `SERVED`, and notes how it is asked."""

    def __init__(self, path):
        self.outputs = SERVED[Path(path).name]
        self.output_names, self.input_names = list(self.outputs), ["text"]

    def answer(self, columns, batch_size):
        self.calls.setdefault("answer", []).append({"batch_size": batch_size})
        rows = len(next(iter(columns.values())))
        return [{name: np.array([value] * rows) for name, value in self.outputs.items()}]

    def find_entities(self, columns, batch_size):
        self.calls.setdefault("answer", []).append({"batch_size": batch_size})
        return [[] for _ in next(iter(columns.values()))]


def make_model(path, file="config.json"):
    """Makes an empty `.keras` file, or the folder of a model."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".keras":
        path.touch()
        return
    path.mkdir()
    (path / file).touch()


def replace_library(monkeypatch, calls):
    """Puts the stand-ins into the places where the commands look for the functions."""

    def replace(place, name, work):
        function = getattr(place, name)

        @functools.wraps(function)
        def note(*args, **kwargs):
            calls.note(name, function, args, kwargs)
            return work(*args, **kwargs)

        monkeypatch.setattr(place, name, note)

    for place, name in SPIED:
        replace(place, name, getattr(place, name))
    put_in_place = atomic_directory.put_in_place

    def note_output(made, path, replace=False):
        if not path.name.startswith("."):  # The function that makes a folder calls it, too.
            begins = made.read_bytes()[:3] if made.is_file() else b""
            calls.note("put_in_place", put_in_place, (made, path, replace), {}, begins=begins)
        put_in_place(made, path, replace)

    monkeypatch.setattr(atomic_directory, "put_in_place", note_output)
    for name in PRETRAINERS:
        monkeypatch.setattr(kbs, name, TaskClass(getattr(kbs, name), calls))
    for stand_in in [TaskClass(getattr(kbs, name), calls) for name in TASKS]:
        monkeypatch.setattr(stand_in.cls, "from_preset", stand_in.from_preset)
    replace(kbs, "inspect_by_folds", lambda *args, **kwargs: [])
    replace(models, "open_backbone", lambda path: "encoder")
    monkeypatch.setattr(
        kbs.SegmentPacker, "from_preset", lambda path: Task(None, calls).preprocessor
    )
    shards = SimpleNamespace(
        num_documents=1, count_tokens=np.ones, tokens=lambda document: np.array([5, 6])
    )
    replace(corpus, "open_corpus", lambda path: shards)
    replace(corpus, "read_tokenizer", lambda *paths: kbs.WordPieceTokenizer(VOCABULARY))
    replace(corpus, "hold_out", lambda corpus, *args: (corpus, corpus))
    replace(pretraining, "PretrainingBatches", lambda *args, **kwargs: "batches")
    monkeypatch.setattr(pretraining, "MixedBatches", functools.partial(Batches, calls=calls))
    monkeypatch.setattr(plots, "plot_pretraining", lambda *args: None)
    replace(torch.distributed.run, "main", lambda arguments: None)
    replace(keras.callbacks, "TensorBoard", lambda *args: keras.callbacks.Callback())
    replace(card_facts, "list_facts", lambda task: {"task": "TextClassifier"})
    replace(preparation, "prepare_corpus", prepare_nothing)
    replace(serving, "export_saved_model", lambda task, path, *args: make_saved_model(path))
    for name in ("export_onnx", "export_openvino", "export_litert"):
        replace(kbs, name, lambda task, path, **options: make_model(path))
    for name in ("hugging_face", "google_tf1", "keras_hub", "sentence_transformers"):
        replace(checkpoints, f"save_{name}", lambda model, path, **options: make_model(path))
    SavedModel.calls = calls
    for module in (kinds, kinds.kind, kinds.attributes, ner, qa, classify, seq2seq):
        monkeypatch.setattr(module, "SavedModel", SavedModel)


def prepare_nothing(inputs, tokenizer, output, **options):
    Path(output).mkdir(parents=True, exist_ok=True)
    (Path(output) / "manifest.json").write_text("{}")
    return MANIFEST


def make_saved_model(path):
    make_model(path, "saved_model.pb")
