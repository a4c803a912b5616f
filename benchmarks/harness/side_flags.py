"""The flags that benchmarks share, and the sides they choose."""

import argparse

BACKENDS = ["tensorflow", "jax", "torch"]


def parse_flags(parser, rounds=3):
    """Parses the flags of a benchmark that measures its sides in several rounds.

    Args:
        parser: `argparse.ArgumentParser` with the flags that only this benchmark has.
        rounds: int, default.
    """
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def parse_training_flags(parser, sides, backends, epochs, learning_rate):
    """Parses the flags of a benchmark that trains each side once with each seed.

    Args:
        parser: as for `parse_flags`.
        sides: list of str, the sides there are.
        backends, epochs, learning_rate: defaults.
    """
    parser.add_argument("--backends", nargs="+", default=backends)
    parser.add_argument("--sides", nargs="+", default=list(sides), choices=list(sides))
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--learning_rate", type=float, default=learning_rate)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    # How a side is told what to do in its process.
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def list_pairs(sides, backends, peers):
    """The (side, backend) pairs: each side on each backend, but peers of PyTorch on torch alone.

    The sides of a backend follow each other, so that they meet the machine in the same state.

    Args:
        sides: list of str.
        backends: list of Keras backends.
        peers: the sides that are not made of Keras.
    """
    return [
        (side, backend)
        for backend in dict.fromkeys([*backends, "torch"])
        for side in sides
        if (backend == "torch" if side in peers else backend in backends)
    ]
