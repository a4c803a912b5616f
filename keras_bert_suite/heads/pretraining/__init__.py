"""Pretraining: masked tokens and frames, pairs of texts, replaced, corrupted and next tokens."""

from keras_bert_suite.heads.base.head import Head


def make_parts(said, packer, encoder):
    """The parts of a `Pretrainer`."""
    from keras_bert_suite.heads.pretraining.answers import PretrainingAnswers
    from keras_bert_suite.heads.pretraining.data import PretrainingData

    num_relations = said["sentence_relations"] if said.get("next_sentence") else None
    data = PretrainingData(packer, encoder, num_relations=num_relations)
    return data, PretrainingAnswers()


def make_electra_parts(said, packer, encoder):
    """The parts of an `ElectraPretrainer`."""
    from keras_bert_suite.heads.base.answers import RowAnswers
    from keras_bert_suite.heads.pretraining.data import PretrainingData

    return PretrainingData(packer, encoder), RowAnswers()


def make_elmo_parts(said, packer, encoder):
    """The parts of an `ElmoPretrainer`."""
    from keras_bert_suite.heads.base.answers import RowAnswers
    from keras_bert_suite.heads.pretraining.data import PretrainingData

    data = PretrainingData(packer, encoder, inputs=(), outputs=("forward", "backward"))
    return data, RowAnswers()


def make_frame_parts(said, packer, encoder):
    """The parts of a `FramePretrainer`."""
    from keras_bert_suite.heads.base.answers import RowAnswers
    from keras_bert_suite.heads.pretraining.frames import FramePretrainingData

    return FramePretrainingData(packer, encoder, said["num_codes"]), RowAnswers()


def make_seq2seq_parts(said, packer, encoder):
    """The parts of a `Seq2SeqPretrainer`."""
    from keras_bert_suite.heads.base.answers import RowAnswers
    from keras_bert_suite.heads.pretraining.data import PretrainingData

    inputs = ["decoder_token_ids", "decoder_padding_mask"]
    if said.get("decoder_positions"):
        inputs.append("decoder_positions")
    return PretrainingData(packer, encoder, inputs), RowAnswers()


HEAD = Head(
    task="Pretrainer",
    make_parts=make_parts,
    settings=("next_sentence", "sentence_relations"),
    learning_rate=1e-4,
    warmup_ratio=0.01,
)
#: The rate of the base and the large model.
ELECTRA_HEAD = Head(
    task="ElectraPretrainer",
    make_parts=make_electra_parts,
    learning_rate=2e-4,
    warmup_ratio=0.01,
)
ELMO_HEAD = Head(
    task="ElmoPretrainer",
    make_parts=make_elmo_parts,
    learning_rate=1e-3,
    warmup_ratio=0.01,
)
FRAME_HEAD = Head(
    task="FramePretrainer",
    make_parts=make_frame_parts,
    settings=("num_codes",),
    learning_rate=2e-4,
    warmup_ratio=0.07,
    takes_frames=True,
)
SEQ2SEQ_HEAD = Head(
    task="Seq2SeqPretrainer",
    make_parts=make_seq2seq_parts,
    settings=("decoder_positions",),
    learning_rate=1e-4,
    warmup_ratio=0.01,
)
