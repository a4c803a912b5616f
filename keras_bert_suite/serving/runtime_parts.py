"""The data and the answers of a task, made of what its exported folder says."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_bert_suite.heads.attributes.answers import AttributeAnswers
from keras_bert_suite.heads.attributes.data import AttributeData, AttributeLabels
from keras_bert_suite.heads.base.input_checks import EncoderInputs
from keras_bert_suite.heads.base.labels import Classes
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.heads.choices.answers import ChoiceAnswers
from keras_bert_suite.heads.choices.data import ChoiceData
from keras_bert_suite.heads.documents.data import DocumentData
from keras_bert_suite.heads.masks.answers import GuessAnswers, rank_tokens
from keras_bert_suite.heads.masks.data import MaskedTextData
from keras_bert_suite.heads.questions.answers import QuestionAnswers
from keras_bert_suite.heads.questions.data import QuestionData
from keras_bert_suite.heads.rankings.answers import RelevanceAnswers
from keras_bert_suite.heads.rankings.data import RankingData
from keras_bert_suite.heads.relations.answers import RelationAnswers
from keras_bert_suite.heads.relations.data import RelationData
from keras_bert_suite.heads.spans.answers import EntitySpanAnswers
from keras_bert_suite.heads.spans.data import EntitySpanData
from keras_bert_suite.heads.spans.labels import EntitySpans
from keras_bert_suite.heads.tags.answers import ChainAnswers, WordAnswers
from keras_bert_suite.heads.tags.data import WordData
from keras_bert_suite.heads.tags.labels import Tags
from keras_bert_suite.heads.texts.problem_types import find_problem_type
from keras_bert_suite.heads.vectors.answers import VectorAnswers
from keras_bert_suite.heads.vectors.data import EmbeddingData


@dataclasses.dataclass(frozen=True)
class RuntimeParts:
    """What a runtime answers with.

    Attributes:
        data, answers: as those of the task.
        outputs: tuple of str, the outputs of the file that are read.
        axes: tuple of str, the axes of each of them after the batch. "labels" has one place for
            each label.
        read: function from the arrays of these outputs to what `answers` take.
        condense: function(outputs, rows) that reduces the outputs of a batch, or None.
    """

    data: Any
    answers: Any
    outputs: tuple[str, ...]
    axes: tuple[str, ...]
    read: Callable = lambda output: output
    condense: Callable | None = None


def make_parts(said, packer):
    """The `RuntimeParts` of a task that `describe_task` has described, with its `SegmentPacker`."""
    encoder = {**said["encoder_inputs"], "names": tuple(said["encoder_inputs"]["names"])}
    return KINDS[said["task"]](said, packer, EncoderInputs(**encoder))


def _classify(said, packer, encoder, make_data=TextData):
    problem = find_problem_type(said["problem_type"])
    labels = problem.labels_cls(said["labels"])
    data = make_data(packer, encoder, labels, said["input_names"])
    answers = problem.make_answers(labels, False, said.get("thresholds"))
    output = "scores" if problem.name == "regression" else "probabilities"
    return RuntimeParts(data, answers, (output,), ("labels",))


def _classify_documents(said, packer, encoder):
    settings = _choose(said, "max_windows", "stride", "query_length")
    return _classify(said, packer, encoder, functools.partial(DocumentData, **settings))


def _classify_attributes(said, packer, encoder):
    labels = AttributeLabels(said["attributes"])
    data = AttributeData(packer, encoder, labels, said["input_names"])
    answers = AttributeAnswers(labels, False)
    return RuntimeParts(data, answers, ("probabilities",), ("labels",))


def _tag(said, packer, encoder):
    labels = Tags(said["labels"])
    data = WordData(packer, encoder, labels, said["input_names"], said.get("word_cutting"))
    return RuntimeParts(
        data, WordAnswers(labels), ("probabilities",), ("length", "labels"), _find_logits
    )


def _tag_chains(said, packer, encoder):
    labels = Tags(said["labels"])
    scores = [np.array(values, "float32") for values in said["crf"]]
    data = WordData(packer, encoder, labels, said["input_names"], said.get("word_cutting"))
    return RuntimeParts(
        data, ChainAnswers(labels, lambda: scores), ("emissions",), ("length", "labels")
    )


def _find_spans(said, packer, encoder):
    labels = EntitySpans(said["labels"])
    data = EntitySpanData(packer, encoder, labels, said["input_names"], said.get("word_cutting"))
    answers = EntitySpanAnswers(labels)
    return RuntimeParts(
        data, answers, ("scores",), ("labels", "length", "length"), condense=answers.condense
    )


def _relate(said, packer, encoder):
    labels = Classes(said["labels"])
    data = RelationData(packer, encoder, labels, said["input_names"], said["markers"])
    answers = RelationAnswers(labels, False)
    return RuntimeParts(data, answers, ("probabilities",), ("labels",))


def _answer(said, packer, encoder):
    settings = _choose(said, "stride", "query_length", "no_answer_threshold")
    data = QuestionData(packer, encoder, said["input_names"], **settings)
    answers = QuestionAnswers(data, said["max_answer_length"])
    outputs = ("start_logits", "end_logits")
    return RuntimeParts(data, answers, outputs, ("length",), lambda *ends: np.stack(ends, axis=1))


def _choose_endings(said, packer, encoder):
    data = ChoiceData(packer, encoder, said["input_names"])
    return RuntimeParts(data, ChoiceAnswers(), ("probabilities",), ("choices",), _find_logits)


def _rank(said, packer, encoder):
    data = RankingData(packer, encoder, said["input_names"])
    return RuntimeParts(data, RelevanceAnswers(), ("relevance",), ())


def _embed(said, packer, encoder):
    data = EmbeddingData(packer, encoder, said["input_names"])
    return RuntimeParts(data, VectorAnswers(), ("embedding",), ("width",))


def _guess(said, packer, encoder):
    data = MaskedTextData(packer, encoder, said["input_names"], **_choose(said, "direction"))
    allowed = np.ones(packer.tokenizer.vocabulary_size(), bool)

    def rank(logits, rows):
        return rank_tokens(logits, said["top_k"], allowed)

    return RuntimeParts(
        data, GuessAnswers(data), ("probabilities",), ("masks", "vocabulary"), _find_logits, rank
    )


#: The class of a task -> the function that makes its parts.
KINDS = {
    "TextClassifier": _classify,
    "DocumentClassifier": _classify_documents,
    "AttributeClassifier": _classify_attributes,
    "TokenClassifier": _tag,
    "CrfTokenClassifier": _tag_chains,
    "EntitySpanClassifier": _find_spans,
    "RelationClassifier": _relate,
    "QuestionAnswerer": _answer,
    "MultipleChoice": _choose_endings,
    "TextRanker": _rank,
    "TextEmbedder": _embed,
    "MaskedLM": _guess,
}


def _choose(said, *names):
    return {name: said.get(name) for name in names}


def _find_logits(probabilities):
    """Logits whose softmax are the probabilities."""
    return np.log(np.maximum(probabilities, np.finfo("float32").tiny))
