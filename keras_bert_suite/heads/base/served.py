"""Describes a task for the graph of a SavedModel: how it packs texts, and its answers."""

import copy
import functools

from keras import ops

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.heads.base.ensemble import Ensemble
from keras_bert_suite.models.frame_inputs import CONDITION
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.preprocessing.packing import tensorflow_namespace


def serve(task):
    """The `ServedTask` of a task. A task without answers or preprocessor is a ValueError."""
    if getattr(getattr(task, "answers", None), "serve", None) is None:
        raise ValueError(
            f"{with_article(task, 'A')} cannot be exported: it has no answers to serve. Export a "
            "task of keras_bert_suite that has a head."
        )
    if task.preprocessor is None:
        raise ValueError(
            f"{task.name} has no preprocessor, so texts cannot be turned into token ids. Set "
            "`task.preprocessor` to a SegmentPacker before the export."
        )
    for name in getattr(task, "label_names", ()):
        if "\n" in name:
            raise ValueError(
                f"The label name {name!r} has a line feed, and the file of the label names has one "
                "in each line. Change `task.label_names` before the export."
            )
    served = task.HEAD.find_served()
    if task.data.encoder.frame_dim is not None:  # There are no texts to cut or to find places in.
        served = served.of_frames or ServedTask
    if isinstance(task, Ensemble):
        served = type(f"{served.__name__}OfEnsemble", (ServedEnsemble, served), {})
    return served(task)


class ServedTask:
    """A task in the graph of a SavedModel. The answers are the task's own.

    A task with other answers or another packing of texts has a subclass, which its `Head` names. A
    `TextClassifier`, whose `Head` names none, is served by this class.
    All methods except `check` are for the TensorFlow backend.
    """

    #: The class for a task on frames; None for `ServedTask`.
    of_frames: type | None = None

    #: Why a file without the graph of this class could not answer, or None if it could.
    needs_graph: str | None = None

    def __init__(self, task):
        self.task = task

    @property
    def encoder(self):
        """The model whose inputs are the packed texts of a request."""
        return self.task.backbone

    @property
    def encoders(self):
        """list of the encoders that read the packed texts."""
        return [self.encoder]

    #: Whether a request may bring token ids instead of texts.
    takes_ids = True

    #: Whether a request may ask for the outputs of the encoder.
    has_one_encoder = True

    def check(self):
        """Raises ValueError if the task cannot answer in a graph."""

    def check_packed(self, packed):
        """The inputs of the model, in a graph that refuses rows which the task cannot answer."""
        return packed

    @property
    def short_text(self):
        """str, a short text that exercises every op of the graph."""
        return "text"

    @functools.cached_property
    def data(self):
        """The data of the task, whose `SegmentPacker` pads to the longest row.

        TensorFlow does not compile the graph for each length, so rounding the length up would only
        add padding.
        """
        data, packer = copy.copy(self.task.data), self.task.preprocessor
        if isinstance(packer, SegmentPacker):
            config = {**packer.get_config(), "padding_lengths": None, "tokenizer": packer.tokenizer}
            data.packer = type(packer).from_config(config)
        return data

    def pack(self, texts):
        """Packs the string tensors (B,) of a request: the inputs of the backbone, int32 (B, L)."""
        import tensorflow as tf

        # The padding masks of KerasHub are bool.
        return {n: tf.cast(array, tf.int32) for n, array in self.data.pack_texts(texts).items()}

    @functools.cached_property
    def pack_once_traced(self):
        """`pack` as a function of the graph, which several signatures share.

        The ops of a tokenizer are most of a graph.
        """
        import tensorflow as tf

        return tf.function(self.pack, autograph=False)

    @property
    def columns(self):
        """dict of the name of a column beside the texts -> its kind, see `TextData.columns`."""
        return getattr(self.task.data, "columns", {})

    def encode_features(self, columns):
        """The inputs of the model for a tuple of columns beside the texts, tensors: a dict."""
        if not columns:
            return {}
        return self.data.add_columns({}, self.read_columns(columns))

    def read_columns(self, columns):
        """dict of the name of a column beside the texts -> its tensor, (B,) or (B, C)."""
        named = dict(zip(self.columns, columns, strict=True))
        if CONDITION in named:
            named[CONDITION] = self.data.condition.read(named[CONDITION])
        return named

    def answer_texts(self, texts):
        """The answers for texts, as `pack` takes them: dict of tensors.

        The columns beside the texts come after them.
        """
        number = len(texts) - len(self.columns)
        features = self.encode_features(texts[number:])
        return self.answer_ids({**self.pack_once_traced(texts[:number]), **features})

    def answer_ids(self, packed):
        """The answers for inputs of the model, as `pack` returns them: dict of tensors."""
        packed = self.check_packed(packed)
        answers, outputs = self.task.answers, self.task(packed, training=False)
        return answers.name_served(tensorflow_namespace(), answers.serve(ops, outputs, packed))

    def more_signatures(self):
        """Signatures that only this task has, dict of name -> (function, ranks).

        The function goes from a tuple of string tensors to answers. The ranks are a dict of the
        name of each tensor -> 1 for (B,) or 2 for (B, N); or a `tf.TensorSpec` of vectors.
        """
        return {}


class ServedEnsemble(ServedTask):
    """An `Ensemble` in the graph. It comes before the `ServedTask` of the class of its tasks.

    If all tasks cut texts alike, their texts are packed once. Else `packed` is a dict of "0", "1"
    and so on, the number of a task, -> its inputs.
    """

    has_one_encoder = False

    def __init__(self, task):
        super().__init__(task)
        self.parts = [serve(part) for part in task.tasks]
        task.join_layers()  # A graph reads them as they are now.

    @property
    def encoder(self):
        """The encoder that has most inputs."""
        return self.task.find_widest().backbone

    @property
    def encoders(self):
        return [part.encoder for part in self.parts]

    @property
    def takes_ids(self):
        return self.task.cuts_alike

    def check(self):
        for part in self.parts:
            part.check()

    def pack(self, texts):
        if self.task.cuts_alike:
            return super().pack(texts)
        return {str(number): part.pack(texts) for number, part in enumerate(self.parts)}

    def check_packed(self, packed):
        if self.task.cuts_alike:
            return super().check_packed(packed)
        return {str(i): part.check_packed(packed[str(i)]) for i, part in enumerate(self.parts)}

    def answer_texts(self, texts):
        if self.task.cuts_alike:
            return super().answer_texts(texts)
        number = len(texts) - len(self.columns)
        packed = self.pack_once_traced(texts[:number])
        return self.answer_ids(
            {
                str(i): {**packed[str(i)], **part.encode_features(texts[number:])}
                for i, part in enumerate(self.parts)
            }
        )


def order_candidates(scores):
    """`order` int32 (B, K), the positions of scores (B, K), the highest first, and `scores`."""
    import tensorflow as tf

    # Equal candidates stay in their order.
    order = tf.argsort(scores, direction="DESCENDING", stable=True)
    return {"order": order, "scores": tf.gather(scores, order, batch_dims=1)}
