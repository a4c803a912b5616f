"""Readers of labelled files. Each returns the same `Examples`.

A reader is a file with one public function. It needs the standard library alone, so that the
command line reads a file before it imports Keras.
"""

from keras_bert_suite.data.readers.annotations import read_annotations
from keras_bert_suite.data.readers.conll import read_conll
from keras_bert_suite.data.readers.examples import Examples
from keras_bert_suite.data.readers.glue import read_glue
from keras_bert_suite.data.readers.rankings import read_rankings
from keras_bert_suite.data.readers.rows import read_rows
from keras_bert_suite.data.readers.semeval import read_semeval
from keras_bert_suite.data.readers.squad import read_squad
from keras_bert_suite.data.readers.swag import read_swag
from keras_bert_suite.data.readers.tables import read_table
