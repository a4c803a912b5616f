"""A vocabulary and sentences small enough to train on in a test."""

import random

WORDS = "the film was good bad very not a and of it plot acting great awful dull fine".split()
VOCABULARY = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##s", "##ly", "un", ".", ",", "!",
]  # fmt: skip

TINY = {
    "vocabulary_size": len(VOCABULARY),
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 32,
    "max_sequence_length": 64,
}

#: For tests of what is around the backbone: a step takes half as long to compile.
ONE_LAYER = {**TINY, "num_layers": 1}


def make_reviews(num_rows, seed=0):
    """Sentences of 3 to 12 words, and whether "good" is among them ("yes" or "no")."""
    rng = random.Random(seed)
    texts, labels = [], []
    for _ in range(num_rows):
        words = rng.choices([w for w in WORDS if w != "good"], k=rng.randint(3, 12))
        positive = rng.random() < 0.5
        if positive:
            words[rng.randrange(len(words))] = "good"
        texts.append(" ".join(words))
        labels.append("yes" if positive else "no")
    return texts, labels
