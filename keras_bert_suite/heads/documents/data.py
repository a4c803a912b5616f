"""Documents of any length, cut into windows that share one answer."""

from keras_bert_suite.heads.base.input_checks import check_num_texts
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.heads.documents.windows import pack_documents


class DocumentData(TextData):
    """Rows of a document, or of other texts and then a document. A row has several windows.

    Args:
        packer, encoder, labels, input_names, features: as for `TextData`.
        max_windows, stride, query_length: as for `DocumentClassifier`.
    """

    needs_segment_packer = True
    packed_axes = (("rows", "windows", "tokens"),)

    def __init__(
        self,
        packer,
        encoder,
        labels,
        input_names=None,
        *,
        features=None,
        max_windows=32,
        stride=None,
        query_length=None,
    ):
        super().__init__(packer, encoder, labels, input_names, features=features)
        self.max_windows = max_windows
        self.stride = stride
        self.query_length = query_length

    def pack_texts(self, texts):
        """Packs documents without labels, dict (B, W, L). The last text is the document."""
        self.check_can_pack()
        check_num_texts(len(texts), self.encoder, self.input_names, self.packer)
        packed = pack_documents(
            self.packer,
            tuple(texts),
            max_windows=self.max_windows,
            stride=self.stride,
            query_length=self.query_length,
        )
        return self.encoder.select(packed)
