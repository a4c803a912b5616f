"""Makes exits on a copy of a trained classifier."""

from collections.abc import Sequence
from typing import Any

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.heads.exits.rules import METHODS
from keras_bert_suite.heads.texts.text_classifier import TextClassifier
from keras_bert_suite.models import TextEncoder
from keras_bert_suite.models.resized_encoder import check_unconverted


def copy_classifier(
    cls: Any, classifier: Any, method: str, exit_layers: Sequence[int] | None
) -> Any:
    """See `EarlyExitClassifier.from_classifier`."""
    _check_classifier(classifier)
    check_unconverted(classifier)
    task = cls(
        classifier.backbone.resize(),
        label_names=classifier.label_names,
        method=method,
        problem_type=classifier.problem_type,
        exit_layers=exit_layers,
        preprocessor=classifier.preprocessor,
        dropout=classifier.dropout,
        input_names=classifier.input_names,
    )
    task.take_adapter_of(classifier)
    task.classifier.set_weights(classifier.classifier.get_weights())
    pooler = getattr(task.backbone, "pooler", None)
    values = [] if pooler is None else pooler.get_weights()
    for layer in task.exit_poolers:
        if [value.shape for value in values] == [w.shape for w in layer.weights]:
            layer.set_weights(values)
    if not METHODS[method].trains_all:
        task.backbone.trainable = False
        task.classifier.trainable = False
    task.compile()  # The optimizer has the weights that are trained now.
    return task


def _check_classifier(classifier):
    if type(classifier) is not TextClassifier or not isinstance(classifier.backbone, TextEncoder):
        raise ValueError(
            "from_classifier takes a TextClassifier on an encoder of this package, got "
            f"{with_article(classifier)}."
        )
    given = {
        name: getattr(classifier, name)
        for name in ("pooling", "features", "thresholds")
        if getattr(classifier, name) is not None
    }
    if not classifier.returns_logits:
        given["activation"] = classifier.activation.__name__
    if given:
        name, value = next(iter(given.items()))
        raise ValueError(
            f"Exits are on the token that stands for a row, and answer by logits. This classifier "
            f"has {name}={value!r}. Train one without {', '.join(given)}."
        )
