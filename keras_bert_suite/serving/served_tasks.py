"""The table of tasks that need their own `ServedTask`."""

from keras_bert_suite.serving.embedding_answers import ServedVectors
from keras_bert_suite.serving.entity_answers import ServedChains, ServedEntities
from keras_bert_suite.serving.entity_span_answers import ServedEntitySpans
from keras_bert_suite.serving.mask_answers import ServedMasks
from keras_bert_suite.serving.row_answers import ServedChoices, ServedDocuments
from keras_bert_suite.serving.served_task import ServedTask
from keras_bert_suite.serving.span_answers import ServedSpans
from keras_bert_suite.serving.target_answers import ServedTargets
from keras_bert_suite.tasks import (
    CrfTokenClassifier,
    DocumentClassifier,
    EntitySpanClassifier,
    MaskedLM,
    MultipleChoice,
    QuestionAnswerer,
    Seq2Seq,
    TextEmbedder,
    TokenClassifier,
)

#: The class of a task -> its `ServedTask`. Of a subclass it is that of the nearest base.
SERVED = {
    CrfTokenClassifier: ServedChains,
    DocumentClassifier: ServedDocuments,
    EntitySpanClassifier: ServedEntitySpans,
    MaskedLM: ServedMasks,
    MultipleChoice: ServedChoices,
    QuestionAnswerer: ServedSpans,
    Seq2Seq: ServedTargets,
    TextEmbedder: ServedVectors,
    TokenClassifier: ServedEntities,
}


def serve(task):
    """The `ServedTask` of a task.

    Raises:
        ValueError: if the task has no answers to serve, or no preprocessor, or if the name of a
            label has a line feed.
    """
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
    classes = (SERVED[cls] for cls in type(task).__mro__ if cls in SERVED)
    return next(classes, ServedTask)(task)
