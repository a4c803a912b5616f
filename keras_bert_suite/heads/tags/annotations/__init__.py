"""The reader of texts with marked spans, from the files of annotation tools."""

from keras_bert_suite.heads.tags.annotations.reading import read_annotations
