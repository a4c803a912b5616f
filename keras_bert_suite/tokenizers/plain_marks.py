"""Quotes, dashes and dots that a vocabulary lacks, as the marks of a keyboard."""

import numpy as np

from keras_bert_suite.tokenizers.text_inputs import decode_text

#: A mark -> the mark of a keyboard that stands for it. The vocabulary of bert-base-chinese has only
#: the plain marks.
PLAIN_MARKS = {
    **dict.fromkeys("“”„＂", '"'),
    **dict.fromkeys("‘’＇", "'"),
    **dict.fromkeys("‐‑‒–—―－", "-"),
    "…": "...",
}


def find_plain_marks(tokenizer):
    """The part of `PLAIN_MARKS` that a tokenizer needs: the mark is unknown, the plain one not."""
    unknown = tokenizer.unknown_token_id
    return {
        mark: plain
        for mark, plain in PLAIN_MARKS.items()
        if unknown in tokenizer.tokenize(mark) and unknown not in tokenizer.tokenize(plain)
    }


def replace_marks(texts, marks):
    """Object array (B,) of str, texts in which each of `marks` is replaced by its value."""
    table, replaced = str.maketrans(marks), np.empty(len(texts), object)
    replaced[:] = [decode_text(text).translate(table) for text in texts]
    return replaced
