"""Byte-level byte-pair encoding, the tokenizer of RoBERTa: one behaviour, in two engines."""
