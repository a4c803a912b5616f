"""What a technique is for becomes better by it than by as many plain steps."""

import functools

import keras
import numpy as np
import pytest
import torch
from small_tasks import make_task

import keras_bert_suite as kbs

LENGTH = 1.0


@functools.cache
def train(technique=None, dropout=0.0, num_steps=12):
    """(a classifier after some steps, the packed rows, the labels)."""
    keras.utils.set_random_seed(0)
    task, (x, y) = make_task("texts", dropout=dropout)
    task.compile(kbs.AdamW(1e-2), technique=technique)
    packed = keras.tree.map_structure(torch.tensor, task.data.pack(task.data.read(x))[0])
    for _ in range(num_steps):
        task.train_on_batch(x, y)
    labels = task.data.read(x, y).labels
    return task, packed, torch.tensor(labels).long()


def find_logits(task, packed, shift=None, training=False):
    moved = {} if shift is None else {"embedding_shift": shift}
    return task({**packed, **moved}, training=training)


def find_gradient(task, packed, labels):
    """(the loss of each row, its gradient by the embeddings)."""
    shape = (*packed["token_ids"].shape, task.backbone.hidden_dim)
    shift = torch.zeros(shape, requires_grad=True)
    losses = torch.nn.functional.cross_entropy(
        find_logits(task, packed, shift), labels, reduction="none"
    )
    return losses, torch.autograd.grad(losses.sum(), shift)[0]


def scale(x):
    return LENGTH * x / x.flatten(1).norm(dim=1)[:, None, None]


def measure_attack(task, packed, labels):
    """How much the loss grows if the embeddings move to where it grows fastest."""
    losses, gradient = find_gradient(task, packed, labels)
    logits = find_logits(task, packed, scale(gradient))
    return (torch.nn.functional.cross_entropy(logits, labels) - losses.mean()).item()


def measure_gradient(task, packed, labels):
    return find_gradient(task, packed, labels)[1].square().sum().item()


def diverge(p, q):
    p, q = (torch.log_softmax(x, dim=-1) for x in (p, q))
    return ((p.exp() - q.exp()) * (p - q)).sum(-1).mean().item()


def measure_noise(task, packed, labels):
    """The divergence of predictions under random noise."""
    shape = (*packed["token_ids"].shape, task.backbone.hidden_dim)
    noise = scale(torch.randn(shape, generator=torch.Generator().manual_seed(0)))
    return diverge(find_logits(task, packed), find_logits(task, packed, noise))


def measure_dropout(task, packed, labels):
    """The divergence of predictions with other dropout, the mean of some draws."""
    torch.manual_seed(0)
    pairs = [[find_logits(task, packed, training=True) for _ in range(2)] for _ in range(10)]
    return np.mean([diverge(*pair) for pair in pairs])


def measure_confidence(task, packed, labels):
    """How far the logits of both classes are apart."""
    logits = find_logits(task, packed)
    return (logits[:, 0] - logits[:, 1]).abs().mean().item()


@pytest.mark.parametrize(
    ("technique", "measure"),
    [
        (kbs.FGM(2.0), measure_attack),
        # Their steps have oracles in test_technique_rules.py.
        *(
            pytest.param(*row, marks=pytest.mark.long("combinations"))
            for row in (
                (kbs.PGD(3, 1.0, 2.0), measure_attack),
                (kbs.FreeLB(3, 1.0, 1.0, 2.0), measure_attack),
                (kbs.SMART(alpha=5.0, noise=1e-2, rate=10.0, size=0.5), measure_noise),
                (kbs.Mixup(1.0), measure_confidence),
            )
        ),
        (kbs.VAT(2.0, alpha=5.0), measure_noise),
        (kbs.GradientPenalty(20.0), measure_gradient),
        (kbs.RDrop(20.0), measure_dropout),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_it_acts_in_its_direction(technique, measure):
    dropout = 0.3 if measure is measure_dropout else 0.0
    # Until it has learned the rows, a classifier is not confident.
    num_steps = 30 if measure is measure_confidence else 12
    plain = measure(*train(None, dropout, num_steps))
    assert 0 < measure(*train(technique, dropout, num_steps)) < 0.8 * plain
