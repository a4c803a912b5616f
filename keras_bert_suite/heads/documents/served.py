"""Windows of documents in the graph of a SavedModel."""

from keras_bert_suite.heads.base.served import ServedTask


class ServedDocuments(ServedTask):
    """A `DocumentClassifier`: documents (B,) become int32 (B, W, L), W windows of each."""

    def pack(self, texts):
        if self.packer is None:
            return super().pack(texts)  # The task says which preprocessor it wants.
        return self.task.data.pack_with(self.packer, texts)
