"""Describes a task for the graph of a SavedModel: how it packs texts, and its answers."""

import functools

from keras import ops

from keras_bert_suite.preprocessing import SegmentPacker


def serve(task):
    """The `ServedTask` of a task. A task without answers or preprocessor is a ValueError."""
    if getattr(getattr(task, "answers", None), "serve", None) is None:
        raise ValueError(
            f"A {type(task).__name__} cannot be exported: it has no answers to serve. Export a "
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
    return task.HEAD.find_served()(task)


class ServedTask:
    """A task in the graph of a SavedModel. The answers are the task's own.

    A task with other answers, or whose texts are packed in another way, has a class of its own;
    which its `Head` names. All methods except `check` are for the TensorFlow backend.
    """

    #: Why a file without the graph of this class could not answer, or None if it could.
    needs_graph: str | None = None

    def __init__(self, task):
        self.task = task

    @property
    def encoder(self):
        """The model whose inputs are the packed texts of a request."""
        return self.task.backbone

    def check(self):
        """Raises ValueError if the task cannot answer in a graph."""

    @property
    def short_text(self):
        """str, a short text that exercises every op of the graph."""
        return "text"

    @functools.cached_property
    def packer(self):
        """A copy of our packer that pads to the longest row; None for KerasHub's preprocessors.

        TensorFlow does not compile the graph for each length, so rounding the length up would only
        add padding.
        """
        packer = self.task.preprocessor
        if not isinstance(packer, SegmentPacker):
            return None
        config = {**packer.get_config(), "padding_lengths": None, "tokenizer": packer.tokenizer}
        return type(packer).from_config(config)

    def pack(self, texts):
        """Packs the string tensors (B,) of a request: the inputs of the backbone, int32 (B, L)."""
        import tensorflow as tf

        packed = self.packer.pack(*texts) if self.packer else self.task.data.pack_texts(texts)
        # The padding masks of KerasHub are bool.
        inputs = self.task.data.encoder.select(packed)
        return {name: tf.cast(array, tf.int32) for name, array in inputs.items()}

    @functools.cached_property
    def pack_once_traced(self):
        """`pack` as a function of the graph, which several signatures share.

        The ops of a tokenizer are most of a graph.
        """
        import tensorflow as tf

        return tf.function(self.pack, autograph=False)

    def answer_texts(self, texts):
        """The answers for texts, as `pack` takes them: dict of tensors."""
        return self.answer_ids(self.pack_once_traced(texts))

    def answer_ids(self, packed):
        """The answers for inputs of the backbone, as `pack` returns them: dict of tensors."""
        import tensorflow as tf

        answers = self.task.answers.serve(ops, self.task(packed, training=False), packed)
        if "label_ids" in answers:
            labels = tf.gather(tf.constant(self.task.label_names), answers["label_ids"])
            answers = {**answers, "labels": labels}
        if "is_label" in answers:
            answers = {**answers, **_list_labels(answers["is_label"], self.task.label_names)}
        return answers

    def more_signatures(self):
        """Signatures that only this task has, dict of name -> (function, ranks).

        The function goes from a tuple of string tensors to answers. The ranks are a dict of the
        name of each tensor -> 1 for (B,) or 2 for (B, N).
        """
        return {}


def _list_labels(is_label, label_names):
    """Lists the names of the labels of each row, of bool (B, C).

    The result has `labels` string (B, E) for the E labels of the row with the most labels, filled
    up with "", and `num_labels` int32 (B,).
    """
    import tensorflow as tf

    rows, labels = tf.unstack(tf.where(is_label), axis=1)
    num_rows = tf.shape(is_label, out_type=tf.int64)[0]
    names = tf.gather(tf.constant(list(label_names)), labels)
    ragged = tf.RaggedTensor.from_value_rowids(names, rows, nrows=num_rows)
    return {
        "labels": ragged.to_tensor(""),
        "num_labels": tf.reduce_sum(tf.cast(is_label, tf.int32), axis=1),
    }
