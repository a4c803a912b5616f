"""A vector for each text, and the search for similar texts."""

from keras_bert_suite.heads.base.head import Head


def make_parts(said, packer, encoder):
    """The parts of a `TextEmbedder`."""
    from keras_bert_suite.heads.vectors.answers import VectorAnswers
    from keras_bert_suite.heads.vectors.data import EmbeddingData

    data_cls = EmbeddingData
    if encoder.frame_dim is not None:
        from keras_bert_suite.heads.vectors.frames import FrameEmbeddingData as data_cls
    data = data_cls(packer, encoder, said["input_names"], said.get("column_names"))
    return data, VectorAnswers()


def describe(task):
    """The prompts, if a client may put them before texts.

    If their tokens are not pooled, the inputs of the model do not say which they are.
    """
    return {"prompts": dict(task.prompts)} if task.prompts and task.pools_prompts else {}


HEAD = Head(
    task="TextEmbedder",
    make_parts=make_parts,
    describe=describe,
    served="keras_bert_suite.heads.vectors.served:ServedVectors",
    columns="keras_bert_suite.serving.answer_columns:VectorColumns",
    learning_rate=2e-5,
    takes_frames=True,
)
