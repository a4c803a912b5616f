"""The answers of a text classifier for documents of any length, read in windows."""

from keras_bert_suite.heads import texts
from keras_bert_suite.heads.base.head import Head

WINDOWS = ("max_windows", "stride", "query_length")


def make_parts(said, packer, encoder):
    """The parts of a `DocumentClassifier`."""
    from keras_bert_suite.heads.documents.data import DocumentData

    settings = {name: said.get(name) for name in WINDOWS}
    return texts.make_classifier_parts(said, packer, encoder, DocumentData, **settings)


HEAD = Head(
    task="DocumentClassifier",
    make_parts=make_parts,
    settings=(*texts.SETTINGS, *WINDOWS),
    columns="keras_bert_suite.serving.answer_columns:open_problem",
)
