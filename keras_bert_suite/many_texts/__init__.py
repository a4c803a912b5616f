"""Answers for many texts: files in, files out, by one process or by an engine."""

from keras_bert_suite.many_texts.answer_job import FilesReport, predict_files
