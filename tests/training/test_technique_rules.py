"""One step by each technique, against a transcription of its rule on a model of transformers."""

import itertools

import keras
import numpy as np
import pytest
import technique_rules as rules
import torch
from family import MEMBERS, TASKS
from peer_weights import to_numpy
from tables import everywhere_for, short_for

import keras_bert_suite as kbs

RATE = 0.1
CLASSES, CHOICES = "ForSequenceClassification", "ForMultipleChoice"

#: The techniques with further arguments that are no defaults, and their rules.
RULES = (
    (kbs.PGD, rules.pgd, {"steps": 2, "rate": 0.3, "max_norm": 0.5}),
    (
        *(kbs.FreeLB, rules.free_lb),
        {"steps": 2, "rate": 0.3, "first_norm": 0.2, "max_norm": 0.4},
    ),
    (kbs.VAT, rules.vat, {"epsilon": 0.5, "alpha": 2.0, "first_norm": 0.2, "steps": 2}),
    (
        *(kbs.SMART, rules.smart),
        {"alpha": 2.0, "noise": 0.02, "rate": 0.5, "steps": 2, "size": 0.1},
    ),
    (kbs.GradientPenalty, rules.gradient_penalty, {"epsilon": 3.0}),
    (kbs.Mixup, rules.mixup, {"alpha": 0.7}),
    (kbs.RDrop, rules.r_drop, {"alpha": 3.0, "reduction": "mean"}),
    (kbs.RDrop, rules.r_drop, {"alpha": 3.0, "reduction": "sum"}),
)


def save_peer(kind, head, path, **config):
    """A peer without dropout, which is also saved."""
    member = MEMBERS[kind]
    rates = [name for name in member.config if name.endswith(("dropout", "dropout_prob"))]
    return member.save_peer(path, head, **dict.fromkeys(rates, 0.0), **config)


def check_step(technique, find_gradients, kind, head, path, change=None, seed=0, **config):
    """Compares the weights after a step with those after a step by `find_gradients(moves)`.

    `change` is a function that changes the task before, `seed` that of the technique, and `config`
    the configuration of the peer.
    """
    peer = save_peer(kind, head, path / "before", **config)
    inputs = MEMBERS[kind].make_inputs()
    if head == CHOICES:
        inputs = MEMBERS[kind].make_choices(inputs)
    labels = np.array([1, 0, 1], "int32")
    task = TASKS[head].from_preset(path / "before", dropout=0.0)
    if change is not None:
        change(task)
    task.compile(keras.optimizers.SGD(RATE), technique=technique)
    task.technique_state.rng.state.assign([seed, 0])
    before = weights_of(task)
    task.train_on_batch(inputs, labels)
    moves = rules.Moves(peer, inputs, labels, seed)
    gradients = find_gradients(moves)
    with torch.no_grad():
        for parameter, gradient in zip(moves.parameters, gradients, strict=True):
            parameter -= RATE * gradient
    peer.save_pretrained(path / "after")
    MEMBERS[kind].write_tokenizer(path / "after")
    wanted = {v.path: to_numpy(v) for v in TASKS[head].from_preset(path / "after").variables}
    found = weights_of(task)
    for name, array in found.items():
        np.testing.assert_allclose(array, wanted[name], rtol=0, atol=1e-6, err_msg=name)
    assert max(np.abs(found[name] - array).max() for name, array in before.items()) > 1e-3


def weights_of(task):
    return {v.path: to_numpy(v) for v in task.trainable_variables}


#: FGM has an oracle for each kind of encoder. The embeddings of most are looked up as BERT's are.
KINDS = [(kind, CLASSES) for kind in MEMBERS if kind not in ("nezha", "bart")]


@pytest.mark.parametrize(
    ("kind", "head"),
    [
        *short_for(
            KINDS,
            *((kind, CLASSES) for kind in ("bert", "longformer", "modernbert")),
            part="combinations",
        ),
        ("bert", CHOICES),
    ],
)
def test_fgm_moves_what_each_encoder_looks_up(kind, head, tmp_path):
    check_step(kbs.FGM(0.5), lambda moves: rules.fgm(moves, 0.5), kind, head, tmp_path)


@pytest.mark.parametrize(
    ("cls", "rule", "arguments"),
    # A step with several gradients, one with a second derivative, and one that changes its rows.
    everywhere_for(RULES, RULES[0], RULES[4], RULES[5]),
    ids=[f"{cls.__name__}-{arguments.get('reduction', '')}" for cls, _, arguments in RULES],
)
def test_a_step_is_that_of_the_rule(cls, rule, arguments, tmp_path):
    rule_arguments, change = dict(arguments), None
    if cls is kbs.RDrop:
        masks = np.random.default_rng(0).integers(0, 2, (2, 3, 8)).astype("float32") * 2
        rule_arguments["masks"] = masks

        def change(task):
            given = itertools.cycle(masks)
            # Keras calls a model with other numbers of rows before the step.
            task.classifier_dropout.call = lambda x, training=None: (
                keras.ops.multiply(x, next(given)) if x.shape[0] == 3 else x
            )

    check_step(
        *(cls(**arguments), lambda moves: rule(moves, **rule_arguments)),
        *("bert", CLASSES, tmp_path, change),
        seed=rules.find_mixing_seed(3),
        num_hidden_layers=1,  # A compiler takes seconds for each layer and pass.
    )
