"""The rules of techniques in PyTorch, on models of transformers: transcriptions of the papers."""

import itertools

import keras
import torch
from family import run_peer
from peer_weights import to_numpy


class Moves:
    """A model of transformers with embeddings that are moved.

    The embeddings are what the table of words returns, before positions and norms.
    """

    def __init__(self, peer, inputs, labels, seed=0):
        self.peer, self.inputs, self.labels = peer, inputs, torch.from_numpy(labels).long()
        self.parameters = [p for p in peer.parameters() if p.requires_grad]
        self.mask = torch.from_numpy(inputs["padding_mask"])[..., None].float()
        self.width = peer.get_input_embeddings().embedding_dim
        self.seed = make_seed(seed)

    def read(self, shift=0.0):
        """(the logits, the embeddings before the move)."""
        looked_up = []

        def move(module, arguments, output):
            looked_up.append(output)
            return output + shift

        hook = self.peer.get_input_embeddings().register_forward_hook(move)
        logits = run_peer(self.peer, self.inputs).logits
        hook.remove()
        return logits, looked_up[-1]

    def judge(self, logits):
        return torch.nn.functional.cross_entropy(logits, self.labels)

    def find_gradients(self, loss):
        found = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        pairs = zip(found, self.parameters, strict=True)
        return [torch.zeros_like(p) if g is None else g for g, p in pairs]

    def differentiate(self, shift=0.0):
        """(the gradients of the parameters, those of the embeddings)."""
        logits, embedded = self.read(shift)
        loss = self.judge(logits)
        (by_words,) = torch.autograd.grad(loss, embedded, retain_graph=True)
        return self.find_gradients(loss), by_words

    def scale(self, array, to):
        """An array whose rows get other norms: a number, or a function of the norms.

        Tokens come before rows in an XLNet.
        """
        if array.shape[1] == len(self.labels):
            return self.scale(array.transpose(0, 1), to).transpose(0, 1)
        rows = array.reshape(len(self.labels), -1)
        norms = rows.norm(dim=1, keepdim=True)
        return (rows / norms * (to(norms) if callable(to) else to)).reshape(array.shape)

    def draw(self, function, *arguments):
        """The random numbers of the technique, for the tokens of the batch."""
        shape = (*self.mask.shape[:2], self.width)
        return torch.from_numpy(to_numpy(function(shape, *arguments, seed=self.seed))) * self.mask


def make_seed(number):
    """The random state that a technique gets if the state of its `rng` is [number, 0]."""
    seed = keras.random.SeedGenerator(0)
    seed.state.assign([number, 0])
    return seed


def diverge(p, q):
    """float (B,), KL(p || q) of logits, by PyTorch's own function."""
    p, q = (torch.log_softmax(x, dim=-1) for x in (p, q))
    return torch.nn.functional.kl_div(q, p, log_target=True, reduction="none").sum(-1)


def fgm(moves, epsilon):
    clean, by_words = moves.differentiate()
    moved, _ = moves.differentiate(moves.scale(by_words, epsilon))
    return [a + b for a, b in zip(clean, moved, strict=True)]


def pgd(moves, steps, rate, max_norm):
    clean, by_words = moves.differentiate()
    shift = torch.zeros_like(by_words)
    for _ in range(steps):
        shift = shift + moves.scale(by_words, rate)
        shift = moves.scale(shift, lambda norms: norms.clamp(max=max_norm))
        moved, by_words = moves.differentiate(shift)
    return [a + b for a, b in zip(clean, moved, strict=True)]


def free_lb(moves, steps, rate, first_norm, max_norm):
    start = moves.draw(keras.random.uniform, -1.0, 1.0)
    shift = start * first_norm / (moves.mask.sum(1, keepdim=True) * moves.width).sqrt()
    totals = [torch.zeros_like(parameter) for parameter in moves.parameters]
    for _ in range(steps):
        gradients, by_words = moves.differentiate(shift)
        totals = [total + g / steps for total, g in zip(totals, gradients, strict=True)]
        shift = shift + moves.scale(by_words, rate)
        shift = moves.scale(shift, lambda norms: norms.clamp(max=max_norm))
    return totals


def vat(moves, epsilon, alpha, first_norm, steps):
    clean, _ = moves.read()
    move = moves.draw(keras.random.normal)
    for _ in range(steps):
        move = moves.scale(move, first_norm).requires_grad_()
        apart = diverge(clean.detach(), moves.read(move)[0]).mean()
        (move,) = torch.autograd.grad(apart, move)
    moved, _ = moves.read(moves.scale(move, epsilon))
    return moves.find_gradients(moves.judge(clean) + alpha * diverge(clean.detach(), moved).mean())


def smart(moves, alpha, noise, rate, steps, size):
    clean, _ = moves.read()
    move = noise * moves.draw(keras.random.normal)
    for _ in range(steps):
        move.requires_grad_()
        apart = diverge(moves.read(move)[0], clean.detach()).sum()
        (gradient,) = torch.autograd.grad(apart, move)
        move = move.detach() + rate * gradient
        move = size * move / (move.abs().amax(-1, keepdim=True) + 1e-6)
    moved, _ = moves.read(move)
    term = (diverge(clean, moved) + diverge(moved, clean)).mean()
    return moves.find_gradients(moves.judge(clean) + alpha * term)


def gradient_penalty(moves, epsilon):
    """The loss of each row by itself, so that each gradient is of one row."""
    losses = []
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        for row, label in enumerate(moves.labels):
            inputs = {name: array[row : row + 1] for name, array in moves.inputs.items()}
            one = Moves(moves.peer, inputs, label[None].numpy())
            logits, embedded = one.read()
            loss = one.judge(logits)
            (by_words,) = torch.autograd.grad(loss, embedded, create_graph=True)
            losses.append(loss + epsilon / 2 * by_words.square().sum())
    return moves.find_gradients(sum(losses) / len(losses))


class Masks(torch.nn.Module):
    """Multiplies by given masks, one in each call."""

    def __init__(self, masks):
        super().__init__()
        self.masks = itertools.cycle(map(torch.from_numpy, masks))

    def forward(self, x):
        return x * next(self.masks)


def r_drop(moves, masks, alpha, reduction):
    moves.peer.dropout = Masks(masks)
    (one, _), (other, _) = moves.read(), moves.read()
    term = diverge(one, other) + diverge(other, one)
    term = term.sum() if reduction == "sum" else term.mean()
    return moves.find_gradients((moves.judge(one) + moves.judge(other)) / 2 + alpha / 2 * term)


def draw_mixture(seed, num_rows, alpha):
    """(the share, the order of the rows)."""
    share = float(to_numpy(keras.random.beta((), alpha, alpha, seed=seed)))
    numbers = to_numpy(keras.random.uniform((num_rows,), seed=seed))
    return share, torch.from_numpy(numbers.argsort())


def find_mixing_seed(num_rows):
    """The first seed whose order changes the rows. The backends draw other numbers."""
    drawn = (draw_mixture(make_seed(number), num_rows, 1.0)[1] for number in itertools.count())
    return next(i for i, order in enumerate(drawn) if (order != torch.arange(num_rows)).all())


def mixup(moves, alpha):
    share, order = draw_mixture(moves.seed, len(moves.labels), alpha)
    moves.peer.dropout = Mixture(share, order)
    logits, _ = moves.read()
    losses = [
        torch.nn.functional.cross_entropy(logits, labels)
        for labels in (moves.labels, moves.labels[order])
    ]
    return moves.find_gradients(share * losses[0] + (1 - share) * losses[1])


class Mixture(torch.nn.Module):
    """Mixes the rows of a batch in the place of a dropout."""

    def __init__(self, share, order):
        super().__init__()
        self.share, self.order = share, order

    def forward(self, x):
        return self.share * x + (1 - self.share) * x[self.order]
