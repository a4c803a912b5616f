"""Tasks with a part of their vocabulary, beside the tasks with the whole."""

import keras
import numpy as np
import pytest
from peer_weights import randomize, to_numpy
from serving.traced import trace
from small_texts import ONE_LAYER, VOCABULARY
from tables import short_for

import keras_bert_suite as kbs
from keras_bert_suite.heads.base.probabilities import softmax

TEXTS = ["the film was not very good .", "good acting , very good"]
#: Special tokens, and what `TEXTS` need, in the order of the ids. "." also stands for "…".
KEPT = [
    piece
    for piece in VOCABULARY
    if piece.startswith("[") or any(piece in text.split() for text in TEXTS)
]


def make(kind, **kwargs):
    pattern = {"attention_pattern": "seq2seq"} if kind is kbs.Seq2Seq else {}
    backbone_cls = kbs.ElectraBackbone if kind is kbs.ElectraPretrainer else kbs.BertBackbone
    backbone = backbone_cls(**ONE_LAYER, **pattern)
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 24)
    task = kind(backbone, preprocessor=packer, **kwargs)
    randomize(task)
    return task


def list_outputs(task, token_ids=None):
    """The outputs of a task for `TEXTS`; of outputs for each token, those of some tokens."""
    packed = dict(task.preprocessor.pack(TEXTS))
    packed["mask_positions"] = np.tile(np.arange(1, 5, dtype="int32"), (2, 1))
    outputs = task({tensor.name: packed[tensor.name] for tensor in task.inputs})
    arrays = [to_numpy(array) for array in keras.tree.flatten(outputs)]
    size = task.preprocessor.tokenizer.vocabulary_size()
    take = token_ids is not None
    return [a[..., token_ids] if take and a.shape[-1] == size else a for a in arrays]


TASKS = {
    kbs.TextClassifier: {"num_classes": 3},
    kbs.MaskedLM: {},
    kbs.Pretrainer: {"span_boundary": True},
    kbs.ElectraPretrainer: {},
    kbs.Seq2Seq: {"max_target_length": 4},
}


@pytest.mark.parametrize(
    "kind",
    short_for(TASKS, kbs.TextClassifier, kbs.ElectraPretrainer, kbs.Seq2Seq, part="combinations"),
)
def test_outputs_of_kept_tokens_stay(kind, tmp_path):
    whole = make(kind, **TASKS[kind])
    tokenizer = whole.preprocessor.tokenizer
    tokens = kbs.trim_vocabulary(tokenizer, TEXTS)
    assert tokens == KEPT
    part = whole.keep_tokens(tokens)
    assert part.preprocessor.tokenizer.get_vocabulary() == KEPT
    assert part.backbone.vocabulary_size == len(KEPT) < tokenizer.vocabulary_size()
    wanted = list_outputs(whole, [tokenizer.token_to_id(token) for token in KEPT])
    part.save(tmp_path / "part.keras")
    part.save_to_preset(tmp_path / "preset")
    for task in (
        part,
        keras.saving.load_model(tmp_path / "part.keras"),
        kind.from_preset(tmp_path / "preset"),
    ):
        got = list_outputs(task)
        for one, other in zip(got, wanted, strict=True):
            # An ELECTRA draws the tokens that its discriminator sees, from fewer tokens.
            if kind is not kbs.ElectraPretrainer or one.shape[-1] == len(KEPT):
                # A compiler adds the numbers of a smaller product in another order.
                atol = 0 if keras.config.backend() == "torch" else 1e-6
                np.testing.assert_allclose(one, other, rtol=0, atol=atol)
    # The whole task stays as it is.
    assert tokenizer.get_vocabulary() == VOCABULARY
    assert whole.backbone.vocabulary_size == len(VOCABULARY)


def test_a_checkpoint_with_the_tokens_of_texts_and_files_of_others(tmp_path):
    whole = make(kbs.MaskedLM)
    kbs.checkpoints.save_hugging_face(whole, tmp_path / "whole")
    part = kbs.MaskedLM.from_preset(tmp_path / "whole", keep_tokens=KEPT)
    # Another tokenizer says which tokens, too.
    same = kbs.MaskedLM.from_preset(tmp_path / "whole", keep_tokens=part.preprocessor.tokenizer)
    kbs.checkpoints.save_hugging_face(part, tmp_path / "part")
    again = kbs.MaskedLM.from_preset(tmp_path / "part")
    wanted = list_outputs(whole, [VOCABULARY.index(token) for token in KEPT])
    for task in (part, same, again):
        assert task.preprocessor.tokenizer.get_vocabulary() == KEPT
        np.testing.assert_allclose(list_outputs(task)[0], wanted[0], atol=1e-6)


@pytest.mark.long("serving")  # Its graph has another vocabulary, and nothing else of its own.
@pytest.mark.backend("tensorflow")
def test_a_server_with_fewer_tokens():
    tf = pytest.importorskip("tensorflow")
    part = make(kbs.TextClassifier, num_classes=3).keep_tokens(KEPT)
    texts = [*TEXTS, "a word that is dull"]
    got = trace(part)(text=tf.constant(texts))["probabilities"].numpy()
    wanted = softmax(to_numpy(part(part.preprocessor.pack(texts))))
    np.testing.assert_allclose(got, wanted, atol=1e-6)


def test_added_tokens_and_counts():
    tokenizer = kbs.WordPieceTokenizer(VOCABULARY, added_tokens=["[E1]", "film"])
    tokens = kbs.trim_vocabulary(tokenizer, ["good good film", "bad"], min_count=2)
    assert tokens == [piece for piece in VOCABULARY if piece in (*VOCABULARY[:5], "good", ".")]
    kept = tokenizer.keep_tokens(tokens)
    # An added token of the vocabulary has its place there, and the other ones stand behind.
    assert set(kept.get_vocabulary()) == {*tokens, "film", "[E1]"}
    assert kept.get_vocabulary()[-1] == "[E1]"
    text = "good[E1]film"
    assert [kept.id_to_token(i) for i in kept.tokenize(text)] == ["good", "[E1]", "film"]


def test_the_plain_marks_of_unknown_ones_are_kept():
    """So that `plain_marks=True` goes on replacing marks of the texts."""
    whole = make(kbs.Seq2Seq, max_target_length=4, plain_marks=True)
    marks = whole.data.marks
    assert marks
    text = "good" + "".join(marks)
    part = whole.keep_tokens(kbs.trim_vocabulary(whole.preprocessor.tokenizer, [text]))
    assert part.data.marks == marks


def test_errors(tmp_path):
    task = make(kbs.MaskedLM)
    with pytest.raises(ValueError, match="1 of the tokens to keep .* 'grand'.*trim_vocabulary"):
        task.keep_tokens(["grand", "good"])
    with pytest.raises(ValueError, match=r"a list of tokens, got 'good'.*WordPieceTokenizer\(path"):
        task.keep_tokens("good")
    task.preprocessor = None
    with pytest.raises(ValueError, match="keep_tokens needs a SegmentPacker"):
        task.keep_tokens(["good"])
    with pytest.raises(ValueError, match="min_count must be"):
        kbs.trim_vocabulary(kbs.WordPieceTokenizer(VOCABULARY), TEXTS, min_count=0)
    with pytest.raises(ValueError, match="keep_tokens is for a single BERT"):
        kbs.Seq2Seq.from_preset(tmp_path, decoder="shared", keep_tokens=["good"])
