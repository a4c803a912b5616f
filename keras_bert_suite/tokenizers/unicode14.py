"""Character tables of Unicode 14.

They are frozen, so that ids do not move with the Unicode version of Python, ICU or a Rust crate.
"""

from keras_bert_suite.tokenizers.character_tables import read_tables

(CONTROL, PUNCTUATION, NONSPACING, UNASSIGNED, CASED, CASE_IGNORABLE, LOWERCASE) = read_tables(
    "unicode14.txt"
)
