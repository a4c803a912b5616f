"""Whether a second text follows a first, by the head for pairs of a pretrained model."""

from ..model_paths import is_adapter, is_runtime_folder, is_saved_model
from ..saved_tasks import find_task
from . import make_kind
from .classify import ClassifyKind

#: The number of relations that a head for pairs knows -> their names.
RELATIONS = {2: ("next", "other"), 3: ("next", "random", "previous")}


class TextPairKind(ClassifyKind):
    """Pairs of texts with the relation of each pair, for `predict` of a `Pretrainer`."""

    def find_answers(self, columns):
        from keras_bert_suite.heads.base.answers import ClassAnswers
        from keras_bert_suite.serving.named_answers import name_classes

        logits, classes = self.predict_rows(columns), ClassAnswers(None)
        names = RELATIONS[self.model.sentence_relations]
        return name_classes(names, classes.choose(logits), classes.find_probabilities(logits))


def open_text_pairs(values):
    """The `TextPairKind` of --model, or None if it is no `Pretrainer` with a head for pairs.

    It is None, too, without --text_pair_column: whoever has single texts wants another model.
    """
    if not values.text_pair_column or len(values.models) > 1:
        return None
    (path,) = values.models
    checks = (is_saved_model, is_runtime_folder, is_adapter)
    is_other = path.endswith(".keras") or any(check(path) for check in checks)
    if is_other or find_task(path) != "Pretrainer":
        return None
    import keras_bert_suite as kbs

    model = kbs.Pretrainer.from_preset(path)
    if model.sentence_relations not in RELATIONS or not model.next_sentence:
        return None
    return make_kind(TextPairKind, values, model)
