"""Readers of tables and of other labelled files. Each returns the same `Examples`.

A reader is a file with one public function. It needs the standard library alone, so that the
command line reads a file before it imports Keras. A format that one head reads is in the folder of
this head.
"""

from keras_bert_suite.data.readers.examples import Examples
from keras_bert_suite.data.readers.glue import read_glue
from keras_bert_suite.data.readers.rows import read_rows
from keras_bert_suite.data.readers.tables import read_table
