"""Documents in the graph of a SavedModel."""

from keras_bert_suite.serving.served_task import ServedTask


class ServedDocuments(ServedTask):
    """A `DocumentClassifier`: documents (B,) become int32 (B, W, L), W windows of each."""

    needs_graph = (
        "other runtimes have nothing that cuts documents into windows. Export a SavedModel, which "
        "takes whole documents."
    )

    def pack(self, texts):
        if self.packer is None:
            return super().pack(texts)  # The task says which preprocessor it wants.
        return self.task.pack_with(self.packer, texts)
