"""The answers of a SavedModel's signatures."""

import functools

from keras_bert_suite.serving.chain_answers import find_chain_entities
from keras_bert_suite.serving.entity_answers import find_entities
from keras_bert_suite.serving.entity_span_answers import find_entity_spans
from keras_bert_suite.serving.label_set_answers import list_labels
from keras_bert_suite.serving.mask_answers import guess_ids, guess_masks
from keras_bert_suite.serving.span_answers import find_spans
from keras_bert_suite.serving.text_packing import make_packer
from keras_bert_suite.tasks import (
    CrfTokenClassifier,
    EntitySpanClassifier,
    MaskedLM,
    QuestionAnswerer,
    TokenClassifier,
)

#: A class of tasks -> the function(task, *texts) from string tensors (B,) to its answers, a dict of
#: tensors. The answers of all other tasks are their `serving_outputs`.
TEXT_ANSWERS = {
    CrfTokenClassifier: find_chain_entities,
    EntitySpanClassifier: find_entity_spans,
    MaskedLM: guess_masks,
    QuestionAnswerer: find_spans,
    TokenClassifier: find_entities,
}


def make_answers(task):
    """Makes the functions from texts to answers, and from token ids to answers, of a task.

    Args:
        task: a task under the TensorFlow backend.

    Returns:
        `(answer_texts, answer_ids)`. `answer_texts` takes a tuple of string tensors (B,),
        `answer_ids` a dict of int32 (B, L). Both return a dict of tensors.
    """
    pack = make_packer(task)
    # The masks are inputs of the model, and are found among the token ids.
    answer = guess_ids if isinstance(task, MaskedLM) else _answer_ids
    answer_ids = functools.partial(answer, task)
    functions = [TEXT_ANSWERS[cls] for cls in type(task).__mro__ if cls in TEXT_ANSWERS]
    if functions:
        return lambda texts: functions[0](task, *texts), answer_ids
    return lambda texts: answer_ids(pack(texts)), answer_ids


def _answer_ids(task, packed):
    """The task's `serving_outputs`, and the names of the labels."""
    import tensorflow as tf

    answers = task.serving_outputs(task(packed, training=False), packed)
    if "label_ids" in answers:
        labels = tf.gather(tf.constant(task.label_names), answers["label_ids"])
        answers = {**answers, "labels": labels}
    if "is_label" in answers:
        answers = {**answers, **list_labels(answers["is_label"], task.label_names)}
    return answers
