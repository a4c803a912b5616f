"""The sizes of a model that is written, and a vocabulary as large as it asks for."""

SIZES = {
    "vocabulary_size": 24,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 16,
    "max_sequence_length": 12,
    "num_segments": 3,
    "dropout": 0.2,
    "attention_dropout": 0.3,
}
#: The same sizes for a configuration of transformers, with two segments.
THEIR_SIZES = {
    "vocab_size": 24,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 12,
    "type_vocab_size": 2,
}
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrs"]
