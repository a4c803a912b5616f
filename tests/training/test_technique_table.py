"""docs/techniques.md: which technique trains which task."""

import re
from pathlib import Path

import numpy as np
import pytest
from heads.cases import BATCH_SIZE, CASES
from peer_weights import to_numpy
from small_tasks import compile_model, make_task
from tables import short_for

import keras_bert_suite as kbs

PAGE = Path(__file__).parents[2] / "docs" / "techniques.md"

#: The name of a task in the table -> the head in tests/heads/cases.py.
TASKS = {case.row or name: name for name, case in CASES.items()}


def read_table():
    """list of (the name of a technique, the name of a task, "yes" or "no")."""
    text = PAGE.read_text().split("## What works with what")[1].split("\n\n")[2]
    header, _, *rows = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in text.split("\n")
    )
    return [
        (name, task, cell)
        for task, *cells in rows
        for names, cell in zip(header[1:], cells, strict=True)
        for name in names.split(", ")
    ]


TABLE = read_table()
#: Each technique, and each kind of divergence.
SHORT = [
    *((name, "classes", "yes") for name in ("PGD", "GradientPenalty", "Mixup")),
    *(("RDrop", task, "yes") for task in ("questions", "vectors", "words with a CRF", "spans")),
    *(("VAT", task, "yes") for task in ("several attributes", "rankings", "words")),
    *(("SMART", "numbers", "yes"), ("FreeLB", "long documents", "yes")),
    *(("Mixup", "words", "no"), ("GradientPenalty", "words with a CRF", "no")),
    ("Mixup", "two towers", "no"),
]


@pytest.mark.parametrize(
    ("name", "task", "cell"),
    short_for(TABLE, *SHORT, part="combinations"),
    ids=lambda value: re.sub(r"\W", "-", str(value)),
)
def test_a_technique_trains_a_task_or_is_refused(name, task, cell):
    head = TASKS[task]
    packs = CASES[head].pack is None
    model, (x, y, *weights) = make_task(head, "SegmentPacker" if packs else "none")
    technique = getattr(kbs, name)()
    if cell == "no":
        with pytest.raises(ValueError, match=rf"{name} .*[Dd]rop `technique`|{name} moves"):
            compile_model(model, technique)
        return
    before = {v.path: np.array(to_numpy(v)) for v in model.trainable_variables}
    compile_model(model, technique)
    fitted = {"sample_weight": weights[0]} if weights else {}
    history = model.fit(x, y, BATCH_SIZE, steps_per_epoch=1, verbose=0, **fitted).history
    assert np.isfinite(history["loss"]).all()
    changes = [np.abs(to_numpy(v) - before[v.path]).max() for v in model.trainable_variables]
    assert np.isfinite(changes).all() and max(changes) > 1e-5


def test_the_table_has_every_task():
    heads = {TASKS[task] for _, task, _ in TABLE}
    assert {CASES[head].cls for head in heads} == {case.cls for case in CASES.values()}


def test_the_table_has_every_technique():
    # Averages go with each task. tests/tasks/test_memory.py has the memory, and
    # test_distillation.py and test_theseus.py have the techniques of docs/distillation.md.
    names = {name for name, _, _ in TABLE} | {"EMA", "SWA", "CarriedMemory", "CombinedTechniques"}
    names |= {"Distillation", "LayerDrop", "Theseus"}
    classes = (getattr(kbs, name) for name in kbs.__all__)
    public = {c for c in classes if isinstance(c, type) and issubclass(c, kbs.Technique)}
    assert names == {c.__name__ for c in public} - {"Technique"}
