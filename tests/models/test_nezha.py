"""NEZHA beside the outputs that an older version of transformers recorded."""

import warnings

import numpy as np
import pytest
from family import LENGTH, MEMBERS, TASKS, open_task
from gradients import compute_gradients
from peer_weights import to_numpy
from safetensors.numpy import load_file

from keras_bert_suite import NezhaBackbone
from keras_bert_suite.checkpoints import (
    open_checkpoint,
    save_google_tf1,
    save_hugging_face,
    save_keras_hub,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*has no weights for.*pooler")

MEMBER = MEMBERS["nezha"]


def read_records(model, kind):
    """dict of name -> array, of the records "output", "weights" or "gradient" of a class."""
    records = load_file(MEMBER.folder / model / "recorded.safetensors")
    prefix = f"{kind}."
    return {n.removeprefix(prefix): x for n, x in records.items() if n.startswith(prefix)}


def check_close(got, expected, message=""):
    np.testing.assert_allclose(to_numpy(got), expected, rtol=0, atol=1e-5, err_msg=message)


def test_encoder_equals_transformers(tmp_path):
    """Outputs, gradients of every weight, and the files that are written back."""
    MEMBER.save_peer(tmp_path / "peer")
    backbone = NezhaBackbone.from_preset(tmp_path / "peer")
    inputs = MEMBER.make_inputs()
    seen = inputs["padding_mask"] == 1
    outputs, expected = backbone(inputs), read_records("Model", "output")
    # Rows are longer than the distance from which on tokens are equally far.
    assert seen.sum(axis=1).max() > 2 * backbone.max_relative_position
    got = to_numpy(outputs["sequence_output"])
    check_close(got[seen], expected["last_hidden_state"][seen])
    check_close(outputs["pooled_output"], expected["pooler_output"])

    weights = read_records("Model", "weights")
    weighting = {
        "sequence_output": weights["last_hidden_state"],
        "pooled_output": weights["pooler_output"],
    }
    table = open_checkpoint(tmp_path / "peer").name_table
    expected = {table.spell(n): x for n, x in read_records("Model", "gradient").items()}
    gradients = compute_gradients(backbone, inputs, weighting)
    assert {table.their_name(path)[0] for path in gradients} == expected.keys()
    for path, gradient in gradients.items():
        name, transform = table.their_name(path)
        wanted = transform(expected[name])
        # The key's bias has no gradient but that of rounding.
        scale = max(np.abs(wanted).max(), 0.1)
        np.testing.assert_allclose(gradient, wanted, rtol=0, atol=1e-5 * scale, err_msg=path)

    save_hugging_face(backbone, tmp_path / "again")
    assert open_checkpoint(tmp_path / "again").backbone_config == (
        open_checkpoint(tmp_path / "peer").backbone_config
    )


@pytest.mark.parametrize("head", TASKS)
def test_heads_equal_transformers(head, tmp_path):
    MEMBER.save_peer(tmp_path / "peer", head)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*heads? of the pretrainer")
        task = open_task(head, tmp_path / "peer")
    inputs, expected = MEMBER.make_inputs(), read_records(head, "output")
    seen = inputs["padding_mask"] == 1
    if head == "ForMultipleChoice":
        inputs = MEMBER.make_choices(inputs)
    if head in ("ForMaskedLM", "ForPreTraining"):
        positions = np.tile(np.arange(LENGTH, dtype="int32"), (3, 1))
        got = task({**inputs, "mask_positions": positions})
        wanted = expected["logits" if head == "ForMaskedLM" else "prediction_logits"]
        check_close(to_numpy(got["mlm"])[seen], wanted[seen])
        if head == "ForPreTraining":
            check_close(got["nsp"], expected["seq_relationship_logits"])
    elif head == "ForQuestionAnswering":
        got = to_numpy(task(inputs))
        for i, name in enumerate(("start_logits", "end_logits")):
            check_close(got[:, i][seen], expected[name][seen], name)
    else:
        keep = seen if head == "ForTokenClassification" else slice(None)
        check_close(to_numpy(task(inputs))[keep], expected["logits"][keep])

    save_hugging_face(task, tmp_path / "again")
    ours, theirs = (load_file(tmp_path / p / "model.safetensors") for p in ("again", "peer"))
    # The pooler is written also where the class of transformers has none.
    assert all(".pooler." in name for name in ours.keys() ^ theirs.keys())
    for name in theirs.keys() & ours.keys():
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


@pytest.mark.parametrize("save", [save_google_tf1, save_keras_hub])
def test_formats_without_relative_positions_refuse_it(save, tmp_path):
    """Every weight of NEZHA has a name in these formats, but they would compute a BERT."""
    backbone = NezhaBackbone(10, 1, 2, 8, 16)
    with pytest.raises(ValueError, match="NezhaBackbone"):
        save(backbone, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
