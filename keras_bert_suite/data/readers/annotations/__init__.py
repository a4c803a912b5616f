"""The reader of texts with marked spans, from the files of annotation tools."""

from keras_bert_suite.data.readers.annotations.reading import read_annotations
