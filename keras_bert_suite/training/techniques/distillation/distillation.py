"""Training on what a teacher says of the rows, beside their labels."""

import copy
from collections.abc import Sequence
from typing import Any, Self

import keras
from keras import ops

from keras_bert_suite.annotations import Config
from keras_bert_suite.argument_checks import (
    check_list,
    check_not_negative,
    check_positive,
    with_article,
)
from keras_bert_suite.training.techniques.distillation.stored_teacher import (
    TEACHER_OUTPUTS,
    StoredTeacher,
)
from keras_bert_suite.training.techniques.distillation.teachers import (
    SavedTeacher,
    check_inputs,
    check_outputs,
    find_teacher,
    is_ensemble,
    list_teachers,
    share_weights,
    take_ensemble,
)
from keras_bert_suite.training.techniques.distillation.terms import DistillationTerm, SeenRows
from keras_bert_suite.training.techniques.output_comparison import OutputComparison
from keras_bert_suite.training.techniques.technique import Batch, Technique

#: The arrays beside the inputs of a model that teachers read: which tokens stand where, and which
#: tokens are global.
_LAYOUT, _GLOBAL = "sequence_layout", "global_attention_mask"


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class Distillation(Technique):
    """Trains a student on the outputs of a teacher, and on its hidden states and attention.

    The loss is `label_weight` L + `alpha` T^2 KL(p || q) + the `terms`. p are the predictions of
    the teacher at the temperature T, and q those of the student. L is the loss of the labels. T^2
    keeps the gradient of p as large as at T = 1. The divergence is that of the task, as for
    `RDrop`: of classes, of each label of a set, of tokens that count, of places, of whole chains of
    a CRF, each with the transitions of its task. Of numbers and vectors it is the squared distance,
    and T is 1.

    Of several teachers the mean of the divergences counts. Its gradient is that of the divergence
    from the mean of their predictions, so an `Ensemble` is distilled by its tasks and weights.

    The teacher runs beside the student, without dropout and without a gradient. It is in no file of
    the student: these have its path and its digest. If the file is opened where the teacher is not,
    the student answers, and a training is an error. Checkpoints of a run name the digest, so a
    resumed run has the same teacher.

    Args:
        teacher: a task with the labels and the vocabulary of the student; the path of one, a
            `.keras` file or the folder of a preset; a list of several; or an `Ensemble` that
            averages probabilities, numbers or vectors. Or the folder from `write_teacher_outputs`,
            whose rows then come from `add_teacher_outputs`.
        temperature: float T above 0. 1 is TinyBERT's, 2 DistilBERT's.
        alpha: float, the weight of the teacher's outputs; 0 leaves them out.
        label_weight: float, the weight of the loss of the labels; None for 1 - `alpha`. With 0 any
            label will do.
        terms: list of what else the student learns: `HiddenStates`, `AttentionScores`,
            `AttentionRelations`.
        teacher_weights: list of floats of at least 0, how much each teacher counts; None for those
            of an ensemble, and otherwise for equal weights.

    Raises:
        ValueError: if a weight is negative, or `label_weight` would be; if nothing is left to
            learn; or from `compile`, if teacher and student do not fit.

    Example:
    ```python
    student = teacher.keep_layers([0, 2, 4])
    student.compile(technique=kbs.Distillation(teacher, temperature=2.0, alpha=0.7))
    student.fit(texts, labels, epochs=3)
    ```

    Source: Hinton et al., 2015 (https://arxiv.org/abs/1503.02531), section 2.
    """

    constants = ("teacher",)
    reads = (TEACHER_OUTPUTS,)

    def __init__(
        self,
        teacher: Any,
        temperature: float = 1.0,
        alpha: float = 0.5,
        label_weight: float | None = None,
        terms: Sequence[DistillationTerm] = (),
        teacher_weights: Sequence[float] | None = None,
    ) -> None:
        check_positive("temperature", temperature)
        check_not_negative("alpha", alpha)
        if label_weight is None and alpha > 1:
            raise ValueError(
                f"label_weight is 1 - alpha by default, and alpha={alpha}. Pass label_weight."
            )
        if label_weight is not None:
            check_not_negative("label_weight", label_weight)
        check_list("terms", terms, "HiddenStates, AttentionScores or AttentionRelations")
        for term in terms:
            if not isinstance(term, DistillationTerm):
                raise ValueError(
                    "terms must be a list of HiddenStates, AttentionScores or "
                    f"AttentionRelations, got {term!r} in it."
                )
        if is_ensemble(teacher):
            teacher, teacher_weights = take_ensemble(teacher, teacher_weights)
        self.teacher = list_teachers(teacher)
        self.teacher_weights = teacher_weights and list(teacher_weights)
        self.temperature, self.alpha, self.label_weight = temperature, alpha, label_weight
        self.terms = list(terms)
        if not (alpha or self._find_label_weight() or terms):
            raise ValueError(
                "alpha and label_weight are 0 and there are no terms, so there is nothing to "
                "learn. Pass one of them."
            )
        #: The teachers as files name them. `build` makes them.
        self.saved: list[SavedTeacher] = []
        #: Why the teachers of a file cannot be opened, or None.
        self.problem: str | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """The digests of the teachers."""
        return {"teacher": ", ".join(str(saved.digest) for saved in self.saved)}

    def build(self, model: Any) -> None:
        """Opens the teachers, and compares them with the student.

        Raises:
            ValueError: if a teacher has other inputs, another vocabulary, other labels or other
                outputs, or if a term does not fit the layers.
        """
        given, self.teacher, self.saved, self.problem = self.teacher, [], [], None
        self.stored: StoredTeacher | None = None
        student = model.find_inner_states() if self.terms else None
        inner = []
        for each in given:
            teacher, path, problem = find_teacher(each, model)
            if teacher is None:
                self.problem = problem
                self.saved.append(each)
                continue
            if isinstance(teacher, StoredTeacher):
                self._take_outputs(model, teacher, len(given))
                self.saved.append(SavedTeacher(teacher.path, teacher.digest))
                continue
            self._check(model, teacher)
            inner.append(teacher.find_inner_states() if self.terms else None)
            self.teacher.append(teacher)
            self.saved.append(SavedTeacher.of(teacher, path, inner[-1]))
        if self.problem is not None:
            self.teacher = []
        self.inner, self.prompt_length = (student, inner), model.find_prompt_length()
        number = len(self.saved) if self.stored is None else len(self.stored.teachers)
        self.shares = share_weights(self.teacher_weights, number)
        self.comparisons = [
            OutputComparison(model, self, teacher)
            for teacher in (self.teacher if self.alpha else ())
        ]
        if self.stored is not None:
            self.comparisons = [OutputComparison(model, self) for _ in self.stored.teachers]
        self._heat(model)
        self._build_terms()

    def _take_outputs(self, model: Any, stored: StoredTeacher, number: int) -> None:
        if self.terms or number > 1:
            raise ValueError(
                f"{stored.path} has outputs of teachers alone, got {len(self.terms)} terms and "
                f"{number} teachers. Write the outputs of all teachers to one folder, and leave "
                "out `terms`; or pass the tasks."
            )
        stored.check(model)
        self.stored = stored

    def _check(self, model: Any, teacher: Any) -> None:
        if teacher is model:
            raise ValueError(
                "The student is its own teacher. Pass another task, such as a copy: "
                "copy.deepcopy(task)."
            )
        check_inputs(model, teacher)
        if self.alpha:
            check_outputs(model, teacher)

    def _heat(self, model: Any) -> None:
        for comparison in self.comparisons:
            try:
                comparison.divergence = comparison.divergence.at_temperature(self.temperature)
            except ValueError as error:
                raise ValueError(
                    f"{with_article(model, 'A')} has no temperature: {error}"
                ) from None

    def _build_terms(self) -> None:
        """Pairs the layers of the terms. The projections are variables of the technique."""
        self.terms = [copy.copy(term) for term in self.terms]
        for term in self.terms:
            term.projection = None
            for saved in self.saved:
                if saved.widths != self.saved[0].widths:
                    raise ValueError(
                        f"The terms need teachers with equal layers, and they have the widths "
                        f"{self.saved[0].widths} and {saved.widths}. Leave out `terms`, or take "
                        "one of these teachers."
                    )
            term.build(self.inner[0], self.saved[0])
        self.projections = [term.projection for term in self.terms if term.projection is not None]

    def loss(self, forward: Any, batch: Batch, rng: Any) -> Any:
        if self.problem is not None:
            raise ValueError(self.problem)
        student, teachers = self.inner
        found = forward.compute_outputs(batch, student and student.model)
        outputs = found["outputs"] if student else found
        total, label_weight = 0.0, self._find_label_weight()
        # It says how the batch counts in the logged loss, too.
        labelled = forward.compute_loss(batch, outputs)
        if label_weight:
            total = label_weight * labelled
        if self.stored is not None:
            told = _read_outputs(self.stored, batch.x)
        taught = [
            self._ask(task, inner.model if inner else task, batch.x)
            for task, inner in zip(self.teacher, teachers, strict=True)
        ]
        for term in self.terms:
            own = self._see(student, found, batch.x)
            apart = [
                term.compare(own, self._see(inner, told, batch.x))
                for inner, told in zip(teachers, taught, strict=True)
            ]
            total = total + term.weight * self._weigh(apart)
        if self.alpha:
            if self.stored is None:
                told = [each["outputs"] if student else each for each in taught]
            apart = [
                comparison.one_way(batch, p, outputs)
                for comparison, p in zip(self.comparisons, told, strict=True)
            ]
            total = total + self.alpha * self.temperature**2 * self._weigh(apart)
        return total, outputs

    def _ask(self, teacher: Any, model: Any, x: Any) -> Any:
        """What a teacher says of a batch, without dropout and without a gradient.

        The layout of packed rows has places for the prompts of the student. A teacher with fewer or
        more of them reads the rows of the batch.
        """
        has_places = teacher.find_prompt_length() == self.prompt_length
        names = {*teacher.input, _GLOBAL} | ({_LAYOUT} if has_places else set())
        given = {name: array for name, array in x.items() if name in names}
        return keras.tree.map_structure(ops.stop_gradient, model(given, training=False))

    def _weigh(self, apart: Sequence[Any]) -> Any:
        """The mean of what each teacher adds, by the weights of the teachers."""
        return sum(share * each for share, each in zip(self.shares, apart, strict=True))

    def _see(self, inner: Any, found: Any, x: Any) -> SeenRows:
        tokens = ops.cast(x["padding_mask"], "float32")
        return SeenRows(inner, found["states"], tokens, inner.find_visible(x))

    def _find_label_weight(self) -> float:
        return 1 - self.alpha if self.label_weight is None else self.label_weight

    def get_config(self) -> Config:
        terms = [keras.saving.serialize_keras_object(term) for term in self.terms]
        saved = self.saved or [SavedTeacher.describe(given) for given in self.teacher]
        return {
            **super().get_config(),
            "teacher": [teacher.get_config() for teacher in saved],
            "terms": terms,
        }

    @classmethod
    def from_config(cls, config: Config) -> Self:
        terms = [keras.saving.deserialize_keras_object(term) for term in config["terms"]]
        return cls(**{**config, "terms": terms})


def _read_outputs(stored: StoredTeacher, x: Any) -> list[Any]:
    """The outputs of each teacher that the rows have brought with them."""
    if TEACHER_OUTPUTS not in x:
        raise ValueError(
            f"The rows have no array {TEACHER_OUTPUTS}. Pass them to `fit` with it: "
            f"add_teacher_outputs({stored.path!r}, student, texts)."
        )
    outputs = ops.stop_gradient(x[TEACHER_OUTPUTS])
    return [outputs[:, i] for i in range(len(stored.teachers))]
