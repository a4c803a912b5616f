"""What the papers of distillation compare, in PyTorch, on models of transformers."""

import copy

import torch
from family import run_peer


class Pair:
    """A student and its teachers, after a pass over a batch.

    `projections` are lists of arrays, a matrix and a vector: of the first the student's states get
    the width of the teacher's.
    """

    def __init__(self, student, teachers, inputs, projections):
        self.peers = [student, *teachers]
        self.tokens = torch.from_numpy(inputs["padding_mask"]) == 1
        self.parameters = [p for p in student.parameters() if p.requires_grad]
        self.projections = [
            [torch.tensor(x, requires_grad=True) for x in arrays] for arrays in projections
        ]
        for peer in self.peers:
            peer.config.output_hidden_states = True
        self.student = run_peer(student, inputs)
        with torch.no_grad():
            self.told = [run_peer(teacher, inputs) for teacher in teachers]
        self.layers = [len(peer.bert.encoder.layer) - 1 for peer in self.peers]

    def at(self, own, other):
        """The same pair, whose `relation` is of other layers."""
        pair = copy.copy(self)
        pair.layers = [own, other]
        return pair

    def step(self, loss, rate):
        """A step of gradient descent."""
        parameters = [*self.parameters, *(x for each in self.projections for x in each)]
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, found, strict=True):
                if gradient is not None:
                    parameter -= rate * gradient

    def project(self, states):
        if not self.projections:
            return states
        kernel, bias = self.projections[0]
        return states @ kernel + bias

    def mean_squares(self, a, b):
        return torch.nn.functional.mse_loss(a[self.tokens], b[self.tokens])

    def mean_of_pairs(self, x):
        """The mean of (B, heads, L, L) over the heads and the pairs of tokens."""
        both = self.tokens[:, None, :, None] & self.tokens[:, None, None, :]
        return x[both.expand_as(x)].mean()

    def read(self, which, letter, layer):
        """Queries, keys or values (B, L, H) of a layer. 0 is the student, and 1 the teacher."""
        peer, outputs = self.peers[which], [self.student, *self.told][which]
        attention = peer.bert.encoder.layer[layer].attention.self
        name = {"q": "query", "k": "key", "v": "value"}[letter]
        found = getattr(attention, name)(outputs.hidden_states[layer])
        return found if which == 0 else found.detach()

    def scores(self, which, layer):
        """(B, heads, L, L), before softmax."""
        heads = self.peers[which].config.num_attention_heads
        q, k = (
            self.read(which, letter, layer).unflatten(-1, (heads, -1)).transpose(1, 2)
            for letter in "qk"
        )
        return q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5

    def relation(self, which, a, b, row, length, num_heads):
        """(heads, L, L) of a row without padding, before softmax."""
        heads = num_heads or self.peers[which].config.num_attention_heads
        x, y = (
            self.read(which, letter, self.layers[which])[row, :length]
            .unflatten(-1, (heads, -1))
            .transpose(0, 1)
            for letter in (a, b)
        )
        return x @ y.transpose(-1, -2) / x.shape[-1] ** 0.5
