"""Rows of words or texts, with spans."""

from keras_bert_suite.data.word_rows import check_span_shapes
from keras_bert_suite.heads.spans.windows import cut_span_windows, pad_spans
from keras_bert_suite.heads.tags.data import WordData


class EntitySpanData(WordData):
    """Rows of words or texts, with spans."""

    check_shapes = staticmethod(check_span_shapes)

    def cut(self, rows):
        return cut_span_windows(self.packer, rows, self.word_cutting)

    def pack_labels(self, labels, indices):
        origin = self.packer.row_template.find_origin(indices.shape[1])
        return pad_spans(labels, origin)
