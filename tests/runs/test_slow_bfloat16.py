"""bfloat16 on a processor that is slow at it is named, once."""

import pytest
from small_tasks import make_task

from keras_bert_suite.runs import slow_bfloat16

AMD, INTEL = "AuthenticAMD", "GenuineIntel"


@pytest.mark.parametrize(
    ("vendor", "instructions", "slow"),
    [
        (
            AMD,
            {"avx2"},
            {"torch": "fit predict", "jax": "fit predict", "tensorflow": "fit predict"},
        ),
        (AMD, {"avx512_bf16"}, {"jax": "fit", "tensorflow": "predict"}),
        (
            INTEL,
            {"avx512_bf16"},
            {"torch": "fit predict", "jax": "fit predict", "tensorflow": "fit predict"},
        ),
        (INTEL, {"avx512_bf16", "amx_bf16"}, {"jax": "fit"}),
        ("", set(), {}),
    ],
)
def test_which_processors_are_slow(vendor, instructions, slow):
    for backend in ("torch", "jax", "tensorflow"):
        for work in ("fit", "predict"):
            found = slow_bfloat16._is_slow(backend, work == "fit", vendor, frozenset(instructions))
            assert found == (work in slow.get(backend, "")), (backend, work)


def test_fit_and_predict_warn(monkeypatch):
    monkeypatch.setattr(slow_bfloat16, "read_processor", lambda: (INTEL, frozenset({"avx2"})))
    classifier, (texts, classes) = make_task("texts", "SegmentPacker", dtype="mixed_bfloat16")
    with pytest.warns(UserWarning, match="bfloat16 takes longer .* in predict under"):
        classifier.predict(texts, verbose=0)
    classifier.compile()
    with pytest.warns(UserWarning, match="bfloat16 takes longer .* in fit under"):
        classifier.fit(texts, classes, verbose=0)
