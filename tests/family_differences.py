"""How far a member of the family is from transformers, with the same weights.

`tests/models/test_family.py` sets the bounds, and `benchmarks/family_parity.py` prints the figures.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from family import LENGTH, MEMBERS, Member, RecordedMember, open_task, run_peer
from gradients import compute_gradients
from peer_weights import to_numpy
from safetensors.numpy import load_file

from keras_bert_suite.checkpoints import open_checkpoint, save_hugging_face

#: The members that transformers has.
LIVING = {name: m for name, m in MEMBERS.items() if not isinstance(m, RecordedMember)}


def find_difference(got: Any, expected: torch.Tensor, seen: np.ndarray | None = None) -> float:
    """The largest difference of two arrays (B, ...), of (B, L, ...) only of tokens `seen`."""
    got, wanted = to_numpy(got), expected.detach().numpy()
    assert got.shape == wanted.shape, (got.shape, wanted.shape)
    if seen is not None:
        got, wanted = got[seen], wanted[seen]
    return float(np.abs(got - wanted).max())


def compare_encoder(member: Member, folder: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Compares an encoder with transformers', which is saved in `folder`, and saves it again.

    Args:
        member: a kind of model that transformers has.
        folder: empty directory. Gets "peer", the checkpoint of transformers, and "again", ours.

    Returns:
        (differences of outputs, by name, with "again" the output of the model of transformers
        that has read our checkpoint; differences of gradients, by the path of the weight, as
        shares of the largest number of a gradient, or of 0.1, if that is larger).
    """
    peer = member.save_peer(folder / "peer")
    backbone = member.backbone.from_preset(folder / "peer")
    inputs = member.make_inputs()
    seen = inputs["padding_mask"] == 1
    theirs = run_peer(peer, inputs)
    expected = {"sequence_output": theirs.last_hidden_state}
    if member.has_pooler:
        expected["pooled_output"] = theirs.pooler_output
    masks = {"sequence_output": seen, "pooled_output": None}
    outputs = backbone(inputs)
    differences = {
        name: find_difference(outputs[name], array, masks[name]) for name, array in expected.items()
    }

    rng = np.random.default_rng(1)
    weighting = {
        name: (0.1 * rng.standard_normal(array.shape)).astype("float32")
        for name, array in expected.items()
    }
    weighting["sequence_output"] *= seen[..., None]
    sum(
        (array * torch.from_numpy(weighting[name])).sum() for name, array in expected.items()
    ).backward()
    gradients = _compare_gradients(
        member, peer, folder / "peer", compute_gradients(backbone, inputs, weighting)
    )

    save_hugging_face(backbone, folder / "again")
    again = transformers.AutoModel.from_pretrained(folder / "again")
    assert type(again) is type(peer)
    hidden = run_peer(again, inputs).last_hidden_state
    differences["again"] = find_difference(outputs["sequence_output"], hidden, seen)
    return differences, gradients


def _compare_gradients(member, peer, path, got):
    table = open_checkpoint(path).name_table
    expected = {table.spell(name): parameter.grad for name, parameter in peer.named_parameters()}
    differences, compared = {}, set()
    for ours, gradient in got.items():
        if not member.has_pooler and ours.startswith("pooler/"):
            continue  # JAX has a gradient of zeros for it.
        name, transform = table.their_name(ours)
        compared.add(name)
        wanted = transform(expected[name].numpy())
        assert gradient.shape == wanted.shape, ours
        # The key's bias has no gradient but that of rounding.
        scale = max(np.abs(wanted).max(), 0.1)
        differences[ours] = float(np.abs(gradient - wanted).max() / scale)
    assert compared == {name for name, gradient in expected.items() if gradient is not None}
    return differences


def compare_head(member: Member, head: str, folder: Path) -> float:
    """Compares a task with the model of transformers for it, and saves it again.

    Args:
        member: a kind of model that transformers has.
        head: one of `member.heads`.
        folder: as for `compare_encoder`. The checkpoint "again" must have the tensors of "peer".

    Returns:
        float, the largest difference of the outputs.
    """
    peer = member.save_peer(folder / "peer", head)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*heads? of the pretrainer")
        task = open_task(head, folder / "peer")
    assert type(task.backbone) is member.backbone
    inputs = member.make_inputs()
    seen = inputs["padding_mask"] == 1
    if head == "ForMultipleChoice":
        inputs = member.make_choices(inputs)
    theirs = run_peer(peer, inputs)
    if head == "ForQuestionAnswering":
        got = to_numpy(task(inputs))
        pairs = [(got[:, 0], theirs.start_logits, seen), (got[:, 1], theirs.end_logits, seen)]
    elif head in ("ForMaskedLM", "ForPreTraining"):
        positions = np.tile(np.arange(LENGTH, dtype="int32"), (3, 1))
        got = task({**inputs, "mask_positions": positions})
        logits = theirs.logits if head == "ForMaskedLM" else theirs.prediction_logits
        pairs = [(got["mlm"], logits, seen)]
        if head == "ForPreTraining":
            pairs.append((got["nsp"], theirs.to_tuple()[1], None))
    else:
        of_tokens = head == "ForTokenClassification"
        pairs = [(task(inputs), theirs.logits, seen if of_tokens else None)]
    save_hugging_face(task, folder / "again")
    again = getattr(transformers, type(peer).__name__).from_pretrained(folder / "again")
    assert again.config.architectures == [type(peer).__name__]
    check_same_files(folder / "again", folder / "peer", member.constants)
    return max(find_difference(*pair) for pair in pairs)


def check_same_files(path: Path, other: Path, constants: tuple[str, ...] = ()) -> None:
    """All tensors are written back, under the same names.

    The pooler is written also where the class of transformers has none.
    """
    ours, theirs = (load_file(folder / "model.safetensors") for folder in (path, other))
    rows = open_checkpoint(other).model_type.names.rows
    pooler = {theirs for path, theirs, _ in rows if path.startswith("pooler/")}
    assert ours.keys() ^ theirs.keys() <= {*pooler, *constants}, ours.keys()
    for name in theirs.keys() - set(constants):
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
