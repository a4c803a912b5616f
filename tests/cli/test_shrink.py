"""`keras-bert shrink`."""

import keras
import pytest


def test_a_smaller_model(run, workshop, finetuned, tmp_path):
    (tmp_path / "texts.txt").write_text("a good film\n")
    model, output = finetuned / "model.keras", tmp_path / "small.keras"
    status, printed, errors = run(
        *("shrink", "--model", model, "--output", output),
        *("--input", workshop / "train.tsv", "--text_column", "sentence"),
        *("--prune_heads=0.5", "--prune_feed_forward=0.5", "--embedding_rank=2"),
        *("--vocabulary_from", tmp_path / "texts.txt"),
    )
    assert (status, errors) == (0, "")
    whole, small = keras.saving.load_model(model), keras.saving.load_model(output)
    assert small.backbone.intermediate_dim * 2 == whole.backbone.intermediate_dim
    num_heads = whole.backbone.num_heads * whole.backbone.num_layers
    assert sum(small.backbone.heads_by_layer) * 2 == num_heads
    assert small.backbone.vocabulary_size < whole.backbone.vocabulary_size
    assert small.backbone.embedding_rank == 2
    lines = printed.splitlines()
    assert lines[0] == f"wrote {output}"
    assert lines.count("before") == lines.count("after") == 1  # Above their scores.
    assert lines[-2].split()[:2] == ["before", f"{whole.count_params():,}"]
    assert lines[-1].split()[:2] == ["after", f"{small.count_params():,}"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "nothing is to go: pass --layers"),
        (["--prune_heads=0.5"], "need --input, labelled texts"),
        (["--by_layer", "--layers=0"], "--by_layer is for --prune_feed_forward"),
    ],
)
def test_what_does_not_go_together(run, flags, message, tmp_path):
    status, _, errors = run("shrink", "--model=m", "--output", tmp_path / "small", *flags)
    assert status == 2 and message in errors
