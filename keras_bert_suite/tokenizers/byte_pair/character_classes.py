r"""The classes of characters at which byte-pair encoding splits text into words.

The Rust library `tokenizers` 0.23, and so transformers, call them `\s`, `\p{N}` and `\p{L}`. They
are frozen, so that ids do not move with the Unicode version of that library, of Python or of RE2.
"""

from keras_bert_suite.tokenizers.character_tables import read_tables

SPACES, NUMBERS, LETTERS = read_tables("byte_pair/character_classes.txt")
