"""Texts that are written of frames: a `BartBackbone` whose encoder reads vectors."""

import keras
import numpy as np
import pytest
from bart_peers import generate, run_writer, save_peer
from checkers import evaluate
from peer_weights import randomize, to_numpy
from small_byte_pairs import MERGES, make_vocabulary
from tables import everywhere_for

import keras_bert_suite as kbs
from keras_bert_suite.heads.targets.decoding import write_ids
from keras_bert_suite.heads.targets.writing_rules import find_rules
from keras_bert_suite.preprocessing import padding_lengths

D = 3
SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32}
rng = np.random.default_rng(0)
#: Recordings of 2 to 9 frames. The place of the loud frames says what is written.
TARGETS = ["the low", "good film", "lower"] * 4
ROWS = [rng.standard_normal((n, D)).astype("float32") for n in (3, 9, 2, 5, 4, 8, 2, 6, 7, 3, 4, 9)]
for number, row in enumerate(ROWS):
    row[:, number % 3] += 3


def make_packer(frame_dim=D, tokenizer=True, length=9):
    tokenizer = kbs.BytePairTokenizer(make_vocabulary(), MERGES) if tokenizer else None
    return kbs.FramePacker(frame_dim, sequence_length=length, tokenizer=tokenizer)


def make_backbone(**arguments):
    sizes = {**SIZES, "max_sequence_length": 12, "dropout": 0.0, "frame_dim": D, **arguments}
    return kbs.BartBackbone(len(make_vocabulary()), **sizes)


def make_writer(packer=None, **arguments):
    packer = packer or make_packer()
    return kbs.Seq2Seq(make_backbone(), preprocessor=packer, **{"max_target_length": 6} | arguments)


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A BART of transformers, and its copy for vectors as wide as its table."""
    path = tmp_path_factory.mktemp("peer")
    peer, of_texts = save_peer(path), kbs.Seq2Seq.from_preset(path)
    backbone = of_texts.backbone.for_frames()
    writer = kbs.Seq2Seq(backbone, preprocessor=make_packer(16), max_target_length=10)
    writer.masked_lm.set_weights(of_texts.masked_lm.get_weights())
    return peer, writer


def make_wide_rows():
    return [6 * rng.standard_normal((n, 16)).astype("float32") for n in (3, 9, 2, 5)]


@pytest.mark.every_backend
def test_logits_as_of_inputs_embeds(copied):
    """Sources and targets of several lengths."""
    peer, writer = copied
    inputs, _, weights = writer.target_rows.pack(make_wide_rows(), TARGETS[:4])
    got = to_numpy(evaluate(writer, {name: inputs[name] for name in writer.input}))
    expected, is_token = run_writer(peer, inputs), weights == 1
    assert np.ptp(expected) > 1 and 0 < is_token.mean() < 1
    np.testing.assert_allclose(got[is_token], expected[is_token], atol=1e-5)


@pytest.mark.parametrize("pre_norm", [False, True])
def test_the_encoder_as_of_inputs_embeds(pre_norm, tmp_path):
    """mBART scales the vectors of tokens, and no others."""
    import torch

    kind = "mbart" if pre_norm else "bart"
    peer = save_peer(tmp_path, kind)
    backbone = kbs.BartBackbone.from_preset(tmp_path).for_frames()
    assert backbone.scale_embeddings == pre_norm
    packed = make_packer(16)(make_wide_rows())
    ids = np.array([[2, 0, 5], [2, 7, 9], [2, 4, 4], [2, 0, 8]], "int32")
    target = {"decoder_token_ids": ids, "decoder_padding_mask": np.ones_like(ids)}
    got = backbone({name: {**packed, **target}[name] for name in backbone.input})
    with torch.no_grad():
        expected = peer.model(
            inputs_embeds=torch.from_numpy(packed["frames"]),
            attention_mask=torch.from_numpy(packed["padding_mask"]),
            decoder_input_ids=torch.from_numpy(ids),
        )
    is_frame = packed["padding_mask"] == 1
    for ours, theirs, kept in (
        ("encoder_sequence_output", expected.encoder_last_hidden_state, is_frame),
        ("decoder_sequence_output", expected.last_hidden_state, ids > 0),
    ):
        np.testing.assert_allclose(to_numpy(got[ours])[kept], theirs.numpy()[kept], atol=1e-5)


WRITINGS = {
    "greedy": ("greedy", {}, {}),
    "beams": (
        kbs.BeamSearch(3, length_penalty=2.0, early_stopping=True),
        {"no_repeat_ngram_size": 3, "min_target_length": 5},
        {
            **{"num_beams": 3, "length_penalty": 2.0, "early_stopping": True, "min_length": 5},
            "no_repeat_ngram_size": 3,
        },
    ),
}


@pytest.mark.parametrize("name", everywhere_for(WRITINGS, "beams"))
def test_targets_as_of_inputs_embeds(name, copied):
    """Token for token, with a cache, in one batch."""
    sampler, asked, settings = WRITINGS[name]
    peer, writer = copied
    writer.compile(sampler=sampler)
    packed = writer.data.pack_sources(make_wide_rows(), 10)
    _, rules = find_rules(writer, max_target_length=10, **asked)
    got = write_ids(writer, packed, 10, rules)[:, 1:]
    np.testing.assert_array_equal(got, generate(peer, packed, 10, **settings))
    assert len({tuple(row) for row in got.tolist()}) > 1


def test_it_learns_to_write_of_frames():
    keras.utils.set_random_seed(0)
    writer = make_writer()
    writer.compile(optimizer=keras.optimizers.Adam(1e-2))
    writer.fit(ROWS, TARGETS, batch_size=4, epochs=30, verbose=0)
    assert writer.predict(ROWS) == TARGETS
    assert writer.predict(ROWS[:5], batch_size=2) == TARGETS[:5]
    assert writer.score(ROWS, TARGETS)["exact_match"] == 100
    assert writer.input_names == ("frames",)
    writer.compile(sampler=kbs.BeamSearch(2))
    assert writer.predict(ROWS) == TARGETS
    batches = [(ROWS[:4], TARGETS[:4]), (ROWS[4:], TARGETS[4:])]
    of_rows = writer.evaluate(ROWS, TARGETS, batch_size=12, verbose=0, return_dict=True)
    of_batches = writer.evaluate((x for x in batches), verbose=0, return_dict=True)
    np.testing.assert_allclose(of_batches["loss"], of_rows["loss"], rtol=1e-4)
    assert writer.predict((x,) for x, _ in batches) == TARGETS


def test_every_weight_is_trained_but_the_missing_bias():
    """A key's bias moves no probability. There is no pooler."""
    writer = make_writer()
    writer.compile(optimizer=keras.optimizers.SGD(1.0))
    before = {weight.path: to_numpy(weight).copy() for weight in writer.weights}
    writer.fit(ROWS, TARGETS, verbose=0)
    still = {w.path for w in writer.weights if np.array_equal(to_numpy(w), before[w.path])}
    assert not {path for path in still if not path.endswith("key/bias")}
    assert not any("pooler" in path for path in before)


def test_targets_are_padded_to_lengths_of_their_own(monkeypatch):
    """A text may have more tokens than its recording frames, where each length is compiled."""
    monkeypatch.setattr(padding_lengths, "compiles_each_length", lambda: True)
    backbone = make_backbone(max_sequence_length=64)
    writer = kbs.Seq2Seq(backbone, preprocessor=make_packer(length=3), max_target_length=6)
    inputs, labels, weights = writer.target_rows.pack([ROWS[0]], ["the low good film lower"])
    assert inputs["frames"].shape == (1, 3, D) and inputs["decoder_token_ids"].shape == labels.shape
    assert 3 < weights.sum() <= labels.shape[1] == 16


def test_saved_and_opened_again(tmp_path):
    rules = {"min_target_length": 3, "no_repeat_ngram_size": 2}
    writer = make_writer(sampler=kbs.BeamSearch(2), **rules)
    inputs, _, _ = writer.target_rows.pack(ROWS, TARGETS)
    inputs = {name: inputs[name] for name in writer.input}
    expected, texts = to_numpy(evaluate(randomize(writer), inputs)), writer.predict(ROWS)
    writer.save(tmp_path / "writer.keras")
    writer.save_to_preset(tmp_path / "preset")
    for again in (
        keras.saving.load_model(tmp_path / "writer.keras"),
        kbs.Seq2Seq.from_preset(tmp_path / "preset"),
    ):
        np.testing.assert_allclose(to_numpy(evaluate(again, inputs)), expected, atol=1e-6)
        assert again.predict(ROWS) == texts
        assert again.preprocessor.get_config() == writer.preprocessor.get_config()


def test_copies_keep_the_frames():
    backbone = make_backbone(num_layers=2)
    few, more = backbone.resize(num_layers=1), backbone.resize_vocabulary(300, seed=0)
    assert few.frame_dim == more.frame_dim == D
    assert (few.num_layers, more.vocabulary_size) == (1, 300)
    inputs, _, _ = make_writer().target_rows.pack(ROWS, TARGETS)
    inputs = {name: inputs[name] for name in backbone.input}
    for ours, theirs in zip(backbone(inputs).values(), more(inputs).values(), strict=True):
        np.testing.assert_allclose(to_numpy(ours), to_numpy(theirs), atol=1e-6)


def test_wrong_uses_are_named(tmp_path):
    writer = make_writer()
    bert = kbs.BertBackbone(None, frame_dim=D, **SIZES)
    of_texts = kbs.SegmentPacker(make_packer().tokenizer, 9)
    pack = make_packer()(ROWS)
    for make, message in (
        (lambda: make_writer(make_packer(tokenizer=False)), "has no tokenizer. Pass FramePacker"),
        (lambda: make_writer(make_packer(4)), "frames of width 4, and the BartBackbone reads"),
        (lambda: make_writer(of_texts), "makes token ids, and the BartBackbone reads frames"),
        (lambda: make_writer(make_packer(length=13)), "sequence_length=13"),
        (lambda: make_writer(max_target_length=13), "13 tokens does not fit the 12 positions"),
        (lambda: kbs.Seq2Seq(kbs.change_pattern(bert, "seq2seq")), "Take a BartBackbone with fram"),
        (lambda: writer.fill_mask(["a <mask>"]), "reads frames, and a gap is in a text"),
        (lambda: writer.fit(ROWS, TARGETS[:3]), "12 .* 3|3 .* 12"),
        (lambda: writer.predict(["a text"]), "Row 0 must be an array"),
        (lambda: writer.predict([np.zeros((10, D))]), "Row 0 has 10 frames"),
        (lambda: writer.predict({"token_ids": pack["padding_mask"]}), "reads frames"),
        (lambda: make_backbone().for_frames(), "reads frames of width 3"),
        (lambda: kbs.TextClassifier(make_backbone(), 2), "reads the sequence_output of an enc"),
        (lambda: kbs.Seq2SeqPretrainer(make_backbone()), "reads frames"),
        (lambda: kbs.FramePacker(D, tokenizer="bert"), "tokenizer must be a tokenizer of this"),
        (lambda: make_backbone(frame_dim=0), "frame_dim must be an integer"),
        (lambda: kbs.checkpoints.save_hugging_face(writer, tmp_path), "no place for frame_dim"),
        (lambda: kbs.export_onnx(writer, tmp_path), "FramePacker"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


@pytest.mark.backend("tensorflow")
@pytest.mark.long("serving")
def test_a_saved_model_writes_of_frames(tmp_path):
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    writer = make_writer()
    writer.compile(optimizer=keras.optimizers.Adam(1e-2))
    writer.fit(ROWS, TARGETS, batch_size=4, epochs=20, verbose=0)
    kbs.export_saved_model(writer, tmp_path / "1")
    serve = tf.saved_model.load(str(tmp_path / "1")).signatures["serving_default"]
    packed = {name: tf.constant(make_packer()(ROWS)[name]) for name in ("frames", "padding_mask")}
    texts = [text.decode() for text in serve(**packed)["texts"].numpy()]
    assert texts == writer.predict(ROWS) and len(set(texts)) > 1
