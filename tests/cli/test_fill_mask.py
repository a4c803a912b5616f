"""`keras-bert fill-mask` on models that it refuses; the tests of pretrain have one it takes."""

import pytest

pytestmark = pytest.mark.backend_free


def test_a_model_without_the_head_is_refused(run, workshop, finetuned):
    for model in (workshop / "checkpoint", finetuned / "model.keras"):
        status, out, err = run("fill-mask", "--model", model, "--text=a [MASK] film")
        assert (status, out) == (1, "")
        assert f"{model} has no head that guesses masked tokens" in err
        assert "keras-bert pretrain --checkpoint" in err
