"""Left-to-right language models and UniLM's mixture, beside the models of transformers."""

import json
import warnings

import numpy as np
import pytest
import torch
from checkers import evaluate
from family import MEMBERS, PIECES
from gradients import compute_gradients
from peer_weights import convert_transformers, to_numpy
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    AdamW,
    BertBackbone,
    LanguageModelMixture,
    MeanPooling,
    MultipleChoice,
    NextTokenTargets,
    Pretrainer,
    SegmentPacker,
    Seq2Seq,
    TextClassifier,
    TokenMasker,
    WordPieceTokenizer,
)
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.pretraining import PretrainingBatches
from keras_bert_suite.pretraining.pretraining_batches import name_arrays

#: Paths of the head -> names in transformers, beside those of `peer_weights`.
HEAD = {
    "masked_lm/transform/kernel": "cls.predictions.transform.dense.weight",
    "masked_lm/transform/bias": "cls.predictions.transform.dense.bias",
    "masked_lm/layer_norm/gamma": "cls.predictions.transform.LayerNorm.weight",
    "masked_lm/layer_norm/beta": "cls.predictions.transform.LayerNorm.bias",
    "masked_lm/bias": "cls.predictions.bias",
}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
LETTERS = WordPieceTokenizer(PIECES)
PAIRS = [["a b c", "d e", "f g h i", "j"], ["k l m", "n o p q", "r s", "a s d f g"]]


def open_pretrainer(path, pattern):
    """The checkpoint of a peer, which has no pooler."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*no weights for pooler", UserWarning)
        return Pretrainer.from_preset(
            path, next_sentence=False, attention_pattern=pattern, preprocessor=None
        )


def rename(tensors):
    """Weights or gradients of a peer, by our paths."""
    arrays = convert_transformers(
        {
            name.removeprefix("bert."): tensor
            for name, tensor in tensors.items()
            if name.startswith("bert.")
        }
    )
    for path, name in HEAD.items():
        array = tensors[name].detach().numpy()
        arrays[path] = array.T if path.endswith("kernel") else array
    return arrays


def test_a_left_to_right_model_has_the_loss_and_gradients_of_transformers(tmp_path):
    config = {**NO_DROPOUT, "is_decoder": True}
    peer = MEMBERS["bert"].save_peer(tmp_path, "LMHeadModel", **config)
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "is_decoder": False}))
    pretrainer = open_pretrainer(tmp_path, "left_to_right")
    pretrainer.compile()

    packed = SegmentPacker(LETTERS, 12).pack(*PAIRS)
    x, y, weights = name_arrays(NextTokenTargets(LETTERS)(packed))
    ids, segments, mask = (
        torch.from_numpy(x[name]).long() for name in ("token_ids", "segment_ids", "padding_mask")
    )
    loss = peer(
        input_ids=ids,
        token_type_ids=segments,
        attention_mask=mask,
        labels=torch.where(mask == 1, ids, -100),
    ).loss
    loss.backward()
    logs = pretrainer.evaluate(x, y, sample_weight=weights, return_dict=True, verbose=0)
    assert logs["loss"] == pytest.approx(loss.item(), abs=1e-5)

    # The gradient of the loss with respect to the logits, in closed form.
    logits = torch.from_numpy(pretrainer.predict(x, verbose=0)["mlm"])
    errors = torch.softmax(logits, -1).numpy() - np.eye(len(PIECES))[y["mlm"]]
    weighting = (errors * weights["mlm"][..., None] / weights["mlm"].sum()).astype("float32")
    ours = compute_gradients(pretrainer, x, {"mlm": weighting})
    theirs = rename({name: weight.grad for name, weight in peer.named_parameters()})
    assert ours.keys() == theirs.keys()
    for path, gradient in ours.items():
        np.testing.assert_allclose(gradient, theirs[path], rtol=0, atol=1e-5, err_msg=path)


def draw_figure_1(kind, num_source, length):
    """The self-attention mask of a kind of row, bool (L, L), as UniLM's figure 1 draws it."""
    mask = np.zeros((length, length), bool)
    if kind == "bidirectional":
        mask[:] = True
    elif kind == "left_to_right":
        mask = np.tri(length, dtype=bool)
    elif kind == "right_to_left":
        mask = np.tri(length, dtype=bool).T
    else:
        mask[:, :num_source] = True
        mask[num_source:, num_source:] = np.tri(length - num_source, dtype=bool)
    return mask


def test_two_steps_of_a_mixture_are_those_of_transformers(tmp_path):
    """One batch has a row of each kind. The peer gets a mask for each row."""
    peer = MEMBERS["bert"].save_peer(tmp_path, "ForMaskedLM", **NO_DROPOUT, type_vocab_size=2)
    pretrainer = open_pretrainer(tmp_path, "unilm")
    # The kinds begin with the two segments of a BERT, and learn segments of their own.
    table = peer.bert.embeddings.token_type_embeddings
    table.weight = torch.nn.Parameter(table.weight.detach()[[0, 1, 0, 0, 0, 1]])
    pretrainer.compile(AdamW(1e-3, bias_correction=True, weight_decay=0.0))
    mixture = LanguageModelMixture(TokenMasker(LETTERS, rate=0.3))
    kinds = list(mixture.shares)
    drawn = mixture.draw_kinds(np.arange(100))
    row_ids = [np.flatnonzero(drawn == kind)[0] for kind in range(len(kinds))]
    packer = SegmentPacker(LETTERS, 12, padding_lengths=(12,))
    x, y, weights = name_arrays(mixture(packer.pack(*PAIRS), row_ids))

    is_token = x["padding_mask"] == 1
    sizes = (is_token & ~np.isin(x["segment_ids"], (1, 5))).sum(axis=1)
    masks = [draw_figure_1(kind, size, 12) for kind, size in zip(kinds, sizes, strict=True)]
    masks = np.stack(masks) & is_token[:, None, :]
    labels = np.full(x["token_ids"].shape, -100)
    rows, slots = np.nonzero(weights["mlm"])
    labels[rows, x["mask_positions"][rows, slots]] = y["mlm"][rows, slots]
    adam = torch.optim.AdamW(peer.parameters(), lr=1e-3, eps=1e-6, weight_decay=0.0)
    for _ in range(2):
        adam.zero_grad()
        loss = peer(
            input_ids=torch.from_numpy(x["token_ids"]).long(),
            token_type_ids=torch.from_numpy(x["segment_ids"]).long(),
            attention_mask=torch.from_numpy(np.where(masks, 0.0, -1e30)[:, None]).float(),
            labels=torch.from_numpy(labels),
        ).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(peer.parameters(), 1.0)
        adam.step()
        logs = pretrainer.fit(x, y, sample_weight=weights, shuffle=False, verbose=0).history
        assert logs["loss"][0] == pytest.approx(loss.item(), abs=1e-4)
    wanted = rename(dict(peer.named_parameters()))
    trained = {weight.path: to_numpy(weight) for weight in pretrainer.trainable_weights}
    assert trained.keys() == wanted.keys()
    for path, array in trained.items():
        np.testing.assert_allclose(array, wanted[path], rtol=0, atol=1e-4, err_msg=path)


REVIEWS = WordPieceTokenizer(VOCABULARY)


def make_batches(masker, **arguments):
    ids = REVIEWS.tokenize(make_reviews(120)[0])
    corpus = TokenCorpus.from_documents([ids[i : i + 6] for i in range(0, 120, 6)])
    return PretrainingBatches(corpus, masker, 24, batch_size=8, **arguments)


def make_pretrainer(pattern, next_sentence, num_segments=6):
    backbone = BertBackbone(**ONE_LAYER, attention_pattern=pattern, num_segments=num_segments)
    pretrainer = Pretrainer(backbone, next_sentence, preprocessor=SegmentPacker(REVIEWS, 24))
    pretrainer.compile(AdamW(1e-2))
    return pretrainer


def test_a_mixture_is_pretrained_and_becomes_a_writer(tmp_path):
    """Only bidirectional rows count for the pairs, and packed rows have the loss of the batch."""
    mixture = LanguageModelMixture(TokenMasker(REVIEWS, max_predictions=4))
    batches = make_batches(mixture)
    x, y, weights = batches[0]
    np.testing.assert_array_equal(weights["nsp"], x["segment_ids"][:, 0] == 0)
    assert 0 < weights["nsp"].sum() < 8
    pretrainer = make_pretrainer("unilm", next_sentence=True)
    logs = pretrainer.fit(batches, epochs=2, sequence_packing=True, verbose=0).history
    assert logs["mlm_loss"][1] < logs["mlm_loss"][0]
    pretrainer.save_to_preset(tmp_path / "mixture")
    writer = Seq2Seq.from_preset(tmp_path / "mixture", sequence_length=24, max_target_length=3)
    table = writer.backbone.embeddings.segment_embedding.embeddings
    learned = pretrainer.backbone.embeddings.segment_embedding.embeddings
    np.testing.assert_array_equal(to_numpy(table), to_numpy(learned)[4:])
    assert isinstance(writer.predict("the film was good"), str)


def test_a_preset_becomes_a_mixture_that_is_compiled(tmp_path):
    make_pretrainer("bidirectional", True, num_segments=2).save_to_preset(tmp_path / "bert")
    pretrainer = Pretrainer.from_preset(tmp_path / "bert", attention_pattern="unilm")
    batches = make_batches(LanguageModelMixture(TokenMasker(REVIEWS, max_predictions=4)))
    # The loss of the pairs is the mean over those that count.
    x, y, weights = batches[0]
    counted = weights["nsp"] == 1
    logits = to_numpy(evaluate(pretrainer, x)["nsp"])[counted]
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(logits)), y["nsp"][counted]]
    logs = pretrainer.evaluate(x, y, sample_weight=weights, return_dict=True, verbose=0)
    assert logs["nsp_loss"] == pytest.approx(losses.mean(), abs=1e-5)
    assert np.isfinite(pretrainer.fit(batches, steps_per_epoch=1, verbose=0).history["loss"])
    assert not Pretrainer.from_preset(
        tmp_path / "bert", attention_pattern="unilm", compile=False
    ).compiled


def test_tasks_that_cannot_see(tmp_path):
    """[CLS] sees only itself from left to right, and a mask is guessed from both sides."""
    pretrainer = make_pretrainer("left_to_right", next_sentence=False, num_segments=2)
    for pooling in (None, "cls"):
        with pytest.raises(ValueError, match="sees only itself.*Pass pooling=.*MeanPooling"):
            TextClassifier(pretrainer.backbone, num_classes=2, pooling=pooling)
    with pytest.raises(ValueError, match="sees only itself.*change_pattern"):
        MultipleChoice(pretrainer.backbone)
    TextClassifier(pretrainer.backbone, num_classes=2, pooling=MeanPooling())
    with pytest.raises(ValueError, match="reads in one direction .attention_pattern='left_to"):
        pretrainer.fill_mask(["the [MASK] film"])


@pytest.mark.parametrize("pattern", ["bidirectional", "seq2seq"])
def test_a_fit_that_would_see_its_answers_is_refused(pattern):
    """The data are found behind a slice, and as validation data too."""
    batches = make_batches(NextTokenTargets(REVIEWS), mode="doc_sentences")
    pretrainer = make_pretrainer(pattern, next_sentence=False)
    plain = make_batches(TokenMasker(REVIEWS), mode="doc_sentences")
    for call in (
        lambda: pretrainer.fit(batches[:2]),
        lambda: pretrainer.evaluate(batches),
        lambda: pretrainer.fit(plain, validation_data=batches[:1]),
    ):
        with pytest.raises(ValueError, match="backbone needs attention_pattern='left_to_right'"):
            call()
    with pytest.raises(ValueError, match="needs attention_pattern='unilm'"):
        pretrainer.fit(make_batches(LanguageModelMixture(TokenMasker(REVIEWS))))
