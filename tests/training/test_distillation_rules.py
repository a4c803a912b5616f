"""One step of distillation, against transcriptions of its rules on models of transformers."""

import keras
import numpy as np
import pytest
import torch
from distillation_rules import Pair
from family import MEMBERS
from peer_weights import to_numpy
from tables import everywhere_for
from technique_rules import diverge

import keras_bert_suite as kbs

#: A stage without outputs leaves the head as it is.
pytestmark = pytest.mark.filterwarnings("ignore:Gradients do not exist for variables")

RATE = 0.1
HEAD = "ForSequenceClassification"
WIDE = {"hidden_size": 12, "num_hidden_layers": 2}
LABELS = np.array([1, 0, 1], "int32")


def save_peer(path, **config):
    """A classifier of transformers without dropout, which is also saved."""
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return MEMBERS["bert"].save_peer(path, HEAD, **{**rates, **config})


def weights_of(task):
    return {v.path: to_numpy(v) for v in task.trainable_variables}


def learn_outputs(pair, temperature, alpha):
    soft = [diverge(t.logits / temperature, pair.student.logits / temperature) for t in pair.told]
    return alpha * temperature**2 * sum(d.mean() for d in soft) / len(soft)


def learn_mean(pair, temperature, alpha):
    """The cross-entropy with the mean of the probabilities of all teachers."""
    shares = [torch.softmax(t.logits / temperature, dim=-1) for t in pair.told]
    log_q = torch.log_softmax(pair.student.logits / temperature, dim=-1)
    return alpha * temperature**2 * -(sum(shares) / len(shares) * log_q).sum(-1).mean()


def tiny_bert(pair, layers, heads):
    own, other = pair.student.hidden_states, pair.told[0].hidden_states
    hidden = [pair.mean_squares(pair.project(own[s]), other[t]) for s, t in layers]
    scores = [
        pair.mean_of_pairs((pair.scores(0, s) - pair.scores(1, t)).square()) for s, t in heads
    ]
    return sum(hidden) + sum(scores)


def distil_bert(pair):
    own, other = (x.hidden_states[-1][pair.tokens] for x in (pair.student, pair.told[0]))
    return torch.nn.functional.cosine_embedding_loss(own, other, torch.ones(len(own)))


def relate(pair, relations, num_heads=None):
    """MiniLM, row by row without padding."""
    total = 0.0
    for a, b in relations:
        apart = []
        for row, length in enumerate(pair.tokens.sum(1)):
            p, q = (
                torch.log_softmax(pair.relation(which, a, b, row, int(length), num_heads), dim=-1)
                for which in (1, 0)
            )
            apart.append((p.exp() * (p - q)).sum(-1).mean(0))
        total = total + torch.cat(apart).mean()
    return total


#: (name, sizes of the teacher, arguments of the technique, the rule).
RULES = (
    ("outputs", {}, {"temperature": 2.0, "alpha": 0.7}, lambda p: learn_outputs(p, 2.0, 0.7)),
    (
        *("tinybert", {**WIDE, "hidden_size": 12}),
        {"alpha": 0.0, "label_weight": 0.0, "terms": [kbs.HiddenStates(), kbs.AttentionScores()]},
        lambda p: tiny_bert(p, [(0, 0), (1, 2)], [(0, 1)]),
    ),
    (
        *("distilbert", {}),
        {
            "temperature": 2.0,
            "alpha": 5.0,
            "label_weight": 2.0,
            "terms": [kbs.HiddenStates("last", distance="cosine", weight=3.0)],
        },
        lambda p: learn_outputs(p, 2.0, 5.0) + 3 * distil_bert(p),
    ),
    (
        *("minilm", WIDE),
        {"alpha": 0.0, "label_weight": 0.0, "terms": [kbs.AttentionRelations(["qk", "vv"])]},
        lambda p: relate(p, ["qk", "vv"]),
    ),
    (
        *("minilm-v2", {**WIDE, "num_attention_heads": 3}),
        {
            "alpha": 0.0,
            "label_weight": 1.0,
            "terms": [kbs.AttentionRelations(num_heads=4, layers={0: 0}, weight=2.0)],
        },
        lambda p: 2 * relate(p.at(0, 0), ["qq", "kk", "vv"], 4),
    ),
)


@pytest.mark.parametrize(
    ("name", "sizes", "arguments", "rule"),
    everywhere_for(RULES, RULES[2]),
    ids=[name for name, *_ in RULES],
)
def test_a_step_is_that_of_the_rule(name, sizes, arguments, rule, tmp_path):
    student = save_peer(tmp_path / "student", num_hidden_layers=1)
    torch.manual_seed(1)
    teacher = save_peer(tmp_path / "teacher", **sizes)
    check_step([teacher], student, arguments, rule, tmp_path)


def test_several_teachers_are_their_mean(tmp_path):
    student = save_peer(tmp_path / "student", num_hidden_layers=1)
    teachers = []
    for i in range(2):
        torch.manual_seed(i + 1)
        teachers.append(save_peer(tmp_path / f"teacher{i}"))
    rule = lambda p: learn_mean(p, 2.0, 0.7)  # noqa: E731
    check_step(teachers, student, {"temperature": 2.0, "alpha": 0.7}, rule, tmp_path)


def test_an_ensemble_is_distilled_with_its_weights(tmp_path):
    """The gradient is that of the divergence from the weighted mean of the predictions."""
    student = save_peer(tmp_path / "student", num_hidden_layers=1)
    teachers = []
    for i in range(2):
        torch.manual_seed(i + 1)
        teachers.append(save_peer(tmp_path / f"teacher{i}"))

    def rule(pair):
        means = [each.logits.softmax(-1) for each in pair.told]
        mean = (0.8 * means[0] + 0.2 * means[1]).detach()
        return -0.7 * (mean * pair.student.logits.log_softmax(-1)).sum(-1).mean()

    arguments = {"alpha": 0.7}
    weigh = lambda tasks: kbs.Ensemble(tasks, [4, 1])  # noqa: E731
    check_step(teachers, student, arguments, rule, tmp_path, weigh)


def check_step(teachers, peer, arguments, rule, path, join=None):
    inputs = MEMBERS["bert"].make_inputs()
    folders = (
        [path / "teacher"]
        if len(teachers) == 1
        else [path / f"teacher{i}" for i in range(len(teachers))]
    )
    opened = [kbs.TextClassifier.from_preset(folder) for folder in folders]
    task = kbs.TextClassifier.from_preset(path / "student", dropout=0.0)
    teacher = opened if len(opened) > 1 else opened[0]
    technique = kbs.Distillation(join(opened) if join else teacher, **arguments)
    task.compile(keras.optimizers.SGD(RATE), technique=technique)
    before = weights_of(task)
    projections = [list(map(to_numpy, p.weights)) for p in task.technique.projections]
    task.train_on_batch(inputs, LABELS)
    pair = Pair(peer, teachers, inputs, projections)
    label_weight = arguments.get("label_weight", 1 - arguments["alpha"])
    loss = torch.nn.functional.cross_entropy(pair.student.logits, torch.tensor(LABELS).long())
    pair.step(label_weight * loss + rule(pair), RATE)
    for found, wanted in zip(task.technique.projections, pair.projections, strict=True):
        for array, parameter in zip(found.weights, wanted, strict=True):
            np.testing.assert_allclose(to_numpy(array), parameter.detach(), atol=1e-6)
    peer.save_pretrained(path / "after")
    MEMBERS["bert"].write_tokenizer(path / "after")
    after = kbs.TextClassifier.from_preset(path / "after")
    wanted = {v.path: to_numpy(v) for v in after.variables}
    found = weights_of(task)
    for variable, array in found.items():
        if not variable.startswith("distillation"):
            np.testing.assert_allclose(array, wanted[variable], atol=1e-6, err_msg=variable)
    assert max(np.abs(found[name] - array).max() for name, array in before.items()) > 1e-4
