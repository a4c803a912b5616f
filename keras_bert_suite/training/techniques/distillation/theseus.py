"""Training of the layers of a student in the place of layers of its teacher."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.argument_checks import check_integer, check_not_negative, check_share
from keras_bert_suite.training.techniques.distillation.stored_teacher import StoredTeacher
from keras_bert_suite.training.techniques.distillation.teachers import (
    SavedTeacher,
    check_inputs,
    find_teacher,
    list_teachers,
)
from keras_bert_suite.training.techniques.technique import Batch, Technique


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class Theseus(Technique):
    """Replaces layers of a teacher by those of the student, more of them from step to step.

    Layer i of the student stands for k layers of the teacher, which has k times as many. In each
    batch, each layer is the student's own with the probability p, and otherwise its k layers of the
    teacher, which are fixed. The loss is that of the labels alone. At last p is 1, and the student
    trains as it is. So a plain training at the end is a part of this one.

    After step t, p is min(1, `rate` + `slope` t), and 1 from `constant_steps` on. The paper's
    linear schedule is `Theseus(teacher, 0.3, slope=0.0006)`, and its constant one
    `Theseus(teacher, 0.5, constant_steps=2500)`. With gradient accumulation, a step is a batch.

    All that is no layer, such as embeddings and the head, is the student's, so begin with
    `teacher.keep_layers`. A step takes a step of the student and one of the teacher: both are
    computed, and one counts.

    Deviations: the layers of the teacher run without dropout. The paper keeps embeddings and the
    head fixed until p is 1; here they train, unless you freeze them.

    Args:
        teacher: a task, or the path of one, as for `Distillation`. It is in no file.
        rate: float from 0 to 1, p at the first step.
        slope: float, by which p grows with each step.
        constant_steps: int, the step from which p is 1; None for no such step.

    Raises:
        ValueError: from `compile`, if the layers of the teacher are no multiple of the student's,
            or have another width, or as for `Distillation`.

    Example:
    ```python
    student = teacher.keep_layers([0, 2, 4])
    student.compile(technique=kbs.Theseus(teacher, 0.3, slope=0.0006))
    ```

    Source: Xu et al., 2020, BERT-of-Theseus (https://arxiv.org/abs/2002.02925), section 3.
    """

    constants = ("teacher",)

    def __init__(
        self,
        teacher: Any,
        rate: float = 0.5,
        slope: float = 0.0,
        constant_steps: int | None = None,
    ) -> None:
        check_share("rate", rate)
        check_not_negative("slope", slope)
        if constant_steps is not None:
            check_integer("constant_steps", constant_steps, at_least=1)
        if not rate and not slope:
            raise ValueError("rate and slope are 0, so the student would learn nothing.")
        self.teacher = list_teachers(teacher)
        if len(self.teacher) > 1:
            raise ValueError(
                f"Theseus replaces the layers of one teacher, got {len(self.teacher)}. Pass one, "
                "or learn from all by a Distillation."
            )
        self.rate, self.slope, self.constant_steps = rate, slope, constant_steps
        self.saved: list[SavedTeacher] = []
        self.problem: str | None = None

    @property
    def facts(self) -> dict[str, Any]:
        return {"teacher": ", ".join(str(saved.digest) for saved in self.saved)}

    def build(self, model: Any) -> None:
        (given,) = self.teacher
        teacher, path, self.problem = find_teacher(given, model)
        self.step = keras.Variable(0, dtype="int32", trainable=False, name="step")
        if teacher is None:
            self.saved, self.teacher = [given], []
            return
        if isinstance(teacher, StoredTeacher):
            raise ValueError(
                f"Theseus needs the layers of a teacher, and {teacher.path} has its outputs. Pass "
                "the task, or its path."
            )
        check_inputs(model, teacher)
        self.model = model.replace_modules(teacher)
        self.saved, self.teacher = [SavedTeacher.of(teacher, path, None)], [teacher]

    def find_rate(self, step: Tensor) -> Tensor:
        """float32, p at a step, int32 from 0 on."""
        rate = ops.minimum(self.rate + self.slope * ops.cast(step, "float32"), 1.0)
        if self.constant_steps is None:
            return rate
        return ops.where(step >= self.constant_steps, 1.0, rate)

    def loss(self, forward: Any, batch: Batch, rng: Any) -> Any:
        if self.problem is not None:
            raise ValueError(self.problem)
        own = self.model.input["own_modules"].shape[0]
        drawn = keras.random.uniform((own,), seed=rng)
        chosen = drawn < self.find_rate(ops.convert_to_tensor(self.step))
        outputs = forward.compute_outputs(
            batch._replace(x={**batch.x, "own_modules": chosen}), self.model
        )
        return forward.compute_loss(batch, outputs), outputs

    def after_update(self) -> None:
        self.step.assign(ops.convert_to_tensor(self.step) + 1)

    def get_config(self) -> Config:
        saved = self.saved or [SavedTeacher.describe(given) for given in self.teacher]
        return {**super().get_config(), "teacher": [each.get_config() for each in saved]}
