"""A byte-pair vocabulary small enough to read, and one learned from texts."""

import json

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
#: In the order of training: each merge after those that make its parts.
MERGES = [
    *("Ġ t", "h e", "Ġt he", "Ġ g", "o o", "Ġg oo", "Ġgoo d", "l o", "lo w", "Ġ Ġ", "e r"),
    *("Ã ©", "a a", "aa a", "low er", "Ġ f", "Ġf i", "l m", "Ġfi lm", "Ġ b", "Ġb a", "Ġba d"),
]


def make_vocabulary(merges=MERGES, special=SPECIAL):
    """dict of piece -> id: special tokens, 256 bytes, what the merges make."""
    pieces = [*special, *BYTES, *("".join(merge.split()) for merge in merges)]
    return {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}


def train(texts, size):
    """(vocabulary, merges) that the Rust library learns."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIAL, initial_alphabet=BYTES, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], model["merges"]
