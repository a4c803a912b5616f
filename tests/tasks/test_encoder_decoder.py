"""A `Seq2Seq` of two BERTs beside transformers' EncoderDecoderModel."""

import json

import keras
import keras_hub
import numpy as np
import pytest
import transformers
from checkers import evaluate
from family import MEMBERS, SIZES, write_pieces
from peer_weights import to_numpy, transformers_peer
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    BertBackbone,
    BertEncoderDecoder,
    MaskedLM,
    RobertaBackbone,
    SegmentPacker,
    Seq2Seq,
    TextClassifier,
    WordPieceTokenizer,
    export_saved_model,
)
from keras_bert_suite.checkpoints import save_hugging_face

SOURCES = ["a b c d", "e", "f g h a b"]
TARGETS = ["h i", "j k l m", "a"]
#: [CLS], [SEP] and [PAD] in the vocabulary of `write_pieces`.
START, END, PAD = 2, 3, 0


def save_peer(path, decoder=None, **kwargs):
    """Saves a random EncoderDecoderModel of two BERTs with its tokenizer, and returns it.

    Its logits are far apart, so that its texts depend on their sources.
    """
    sizes = {**SIZES, "vocab_size": 24}
    config = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(
        transformers.BertConfig(**sizes),
        transformers.BertConfig(**{**sizes, **(decoder or {})}),
        **{"decoder_start_token_id": START, "eos_token_id": END, "pad_token_id": PAD, **kwargs},
    )
    for part in (config.encoder, config.decoder):
        part._attn_implementation = "eager"
    peer = transformers_peer(transformers.EncoderDecoderModel, config, seed=2)
    for name, parameter in peer.named_parameters():
        is_cross = "crossattention" in name and name.endswith("weight") and "Norm" not in name
        if is_cross or name.endswith("word_embeddings.weight"):
            parameter.data *= 6.0
    peer.save_pretrained(path)
    write_pieces(path)
    return peer


def run_peer(peer, inputs):
    """The logits of transformers for inputs of a `Seq2Seq`."""
    import torch

    names = {
        "token_ids": "input_ids",
        "padding_mask": "attention_mask",
        "decoder_token_ids": "decoder_input_ids",
        "decoder_padding_mask": "decoder_attention_mask",
    }
    tensors = {names[n]: torch.from_numpy(inputs[n].astype("int64")) for n in names}
    with torch.no_grad():
        return peer(**tensors).logits.numpy()


def write_by_peer(peer, packed, length, num_beams):
    """The texts of transformers' `generate`, ids without [CLS], [SEP] and padding."""
    import torch

    tensors = [torch.from_numpy(packed[n].astype("int64")) for n in ("token_ids", "padding_mask")]
    beams = {"length_penalty": 0.0, "early_stopping": True} if num_beams > 1 else {}
    ids = peer.generate(
        input_ids=tensors[0],
        attention_mask=tensors[1],
        max_length=1 + length,
        num_beams=num_beams,
        do_sample=False,
        **beams,
    )
    return [[i for i in row[1:] if i not in (END, PAD)] for row in ids.tolist()]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("peer") / "bert2bert"
    return path, save_peer(path, {"num_hidden_layers": 1, "hidden_size": 12})


@pytest.mark.every_backend
def test_logits_as_in_transformers(saved):
    """Sources and targets of several lengths, and a decoder of another width."""
    path, peer = saved
    writer = Seq2Seq.from_preset(path, max_target_length=6)
    inputs, labels, weights = writer.target_rows.pack(SOURCES, TARGETS)
    # Compiled backends pad rows further.
    assert labels[2, :3].tolist() == [5, END, PAD] and weights[2].sum() == 2
    got, expected = to_numpy(evaluate(writer, inputs)), run_peer(peer, inputs)
    is_token = inputs["decoder_padding_mask"] == 1
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(got[is_token], expected[is_token], atol=1e-5)


@pytest.mark.parametrize("num_beams", [1, 3])
def test_texts_as_in_transformers(saved, num_beams):
    """With a cache, and in one batch."""
    path, peer = saved
    writer = Seq2Seq.from_preset(path, max_target_length=6)
    sampler = keras_hub.samplers.BeamSampler(num_beams=3) if num_beams > 1 else "greedy"
    writer.compile(sampler=sampler)
    packed = writer.data.pack_sources(SOURCES, 6)
    expected = write_by_peer(peer, packed, 6, num_beams)
    tokenizer = writer.preprocessor.tokenizer
    texts = [detokenize(tokenizer, ids) for ids in expected]
    assert len(set(texts)) > 1
    assert writer.predict(SOURCES) == texts


def detokenize(tokenizer, ids):
    """`decode` of transformers with `skip_special_tokens`."""
    return tokenizer.detokenize([i for i in ids if i not in tokenizer.special_token_ids])


def write_greedily(writer, source, length):
    """The ids of a target, one forward pass of the whole model for each."""
    inputs = writer.target_rows.begin(writer.data.pack_sources([source], length))
    target = [START]
    for _ in range(length):
        inputs["decoder_token_ids"] = np.array([target], "int32")
        inputs["decoder_padding_mask"] = np.ones((1, len(target)), "int32")
        target.append(int(to_numpy(writer(inputs))[0, -1].argmax()))
        if target[-1] == END:
            break
    return [i for i in target[1:] if i != END]


def test_greedy_targets_equal_those_of_whole_passes(saved):
    writer = Seq2Seq.from_preset(saved[0], max_target_length=6)
    tokenizer = writer.preprocessor.tokenizer
    texts = [detokenize(tokenizer, write_greedily(writer, source, 6)) for source in SOURCES]
    assert writer.predict(SOURCES) == texts


def test_a_file_goes_back_to_transformers(saved, tmp_path):
    path, peer = saved
    save_hugging_face(Seq2Seq.from_preset(path), tmp_path / "again")
    assert json.loads((tmp_path / "again" / "config.json").read_text())["is_encoder_decoder"]
    again = transformers.EncoderDecoderModel.from_pretrained(tmp_path / "again")
    written = again.state_dict()
    assert written.keys() == peer.state_dict().keys()
    for name, tensor in peer.state_dict().items():
        np.testing.assert_array_equal(written[name].numpy(), tensor.numpy(), err_msg=name)
    config = again.config
    ids = (config.decoder_start_token_id, config.eos_token_id, config.pad_token_id)
    assert ids == (START, END, PAD)


def test_a_decoder_with_the_weights_of_the_encoder(tmp_path):
    MEMBERS["bert"].save_peer(tmp_path / "bert", "ForMaskedLM")
    writer = Seq2Seq.from_preset(tmp_path / "bert", decoder="shared", max_target_length=6)
    bert = MaskedLM.from_preset(tmp_path / "bert")
    new = {w.path for w in writer.weights} - {w.path for w in bert.weights}
    assert new and all("/cross_attention" in path for path in new)
    save_hugging_face(writer, tmp_path / "hugging_face")
    peer = transformers.EncoderDecoderModel.from_pretrained(tmp_path / "hugging_face").eval()
    inputs, _, _ = writer.target_rows.pack(SOURCES, TARGETS)
    is_token = inputs["decoder_padding_mask"] == 1
    got = to_numpy(writer(inputs))[is_token]
    np.testing.assert_allclose(got, run_peer(peer, inputs)[is_token], atol=1e-5)
    again = Seq2Seq.from_preset(tmp_path / "hugging_face")
    assert len(again.weights) == len(writer.weights)
    np.testing.assert_array_equal(to_numpy(again(inputs))[is_token], got)


def test_two_berts_become_a_writer(tmp_path):
    """Of two sizes. The head comes with the decoder; no file loses anything."""
    MEMBERS["bert"].save_peer(tmp_path / "reader")
    MEMBERS["bert"].save_peer(tmp_path / "writer", "ForMaskedLM", num_hidden_layers=1)
    with pytest.warns(UserWarning, match="no weights for masked_lm"):
        writer = Seq2Seq.from_preset(
            tmp_path / "reader",
            decoder=tmp_path / "writer",
            sequence_length=14,
            max_target_length=5,
            sampler=keras_hub.samplers.BeamSampler(num_beams=1),
            input_names="source",
        )
    reader = BertBackbone.from_preset(tmp_path / "reader")
    ours = {weight.path: to_numpy(weight) for weight in writer.weights}
    for weight in reader.weights:
        np.testing.assert_array_equal(ours.pop(weight.path), to_numpy(weight))
    for weight in MaskedLM.from_preset(tmp_path / "writer").weights:
        path = weight.path if weight.path.startswith("masked_lm/") else f"decoder/{weight.path}"
        if not weight.path.startswith("pooler/"):
            np.testing.assert_array_equal(ours.pop(path), to_numpy(weight))
    assert ours and all("/cross_attention" in path for path in ours)
    expected = writer.predict(SOURCES)
    writer.save(tmp_path / "writer.keras")
    writer.save_to_preset(tmp_path / "preset")
    for again in (
        keras.saving.load_model(tmp_path / "writer.keras"),
        Seq2Seq.from_preset(tmp_path / "preset"),
    ):
        assert again.predict(SOURCES) == expected
        assert again.max_target_length == 5 and again.sampler.num_beams == 1
        assert again.input_names == ("source",) and again.preprocessor.sequence_length == 14


def make_writer(shares=False, **kwargs):
    sizes = {**ONE_LAYER, "hidden_dim": 32, "initializer_range": 0.1, "dropout": 0.0}
    backbone = BertEncoderDecoder(sizes, None if shares else {**sizes, "max_sequence_length": 16})
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 24, padding_lengths=(24,))
    return Seq2Seq(backbone, preprocessor=packer, **{"max_target_length": 3, **kwargs})


def test_learns_to_copy_the_first_word():
    rows = make_reviews(32)[0]
    targets = [text.split()[0] for text in rows]
    writer = make_writer()
    writer.compile(keras.optimizers.Adam(1e-2))
    writer.fit(rows, targets, batch_size=8, epochs=12, verbose=0)
    scores = writer.evaluate(rows, targets, return_dict=True, verbose=0)
    assert scores["accuracy"] > 0.9
    written = writer.predict(rows)
    assert np.mean([a == b for a, b in zip(written, targets, strict=True)]) > 0.8


@pytest.mark.parametrize("shares", [False, True])
def test_one_step_moves_every_weight_but_the_pooler(shares):
    writer = make_writer(shares)
    writer.backbone.remat = True
    assert BertEncoderDecoder.from_config(writer.backbone.get_config()).remat
    before = {weight.path: to_numpy(weight).copy() for weight in writer.weights}
    writer.compile(keras.optimizers.Adam(1e-2))
    writer.fit(SOURCES, ["good film", "bad", "the plot"], verbose=0)
    stay = {w.path for w in writer.weights if (to_numpy(w) == before[w.path]).all()}
    stay -= {path for path in stay if path.endswith("key/bias")}
    assert stay == {"pooler/kernel", "pooler/bias"}


@pytest.mark.backend("tensorflow")
@pytest.mark.long("serving")
@pytest.mark.parametrize("sampler", ["greedy", keras_hub.samplers.BeamSampler(num_beams=3)])
def test_a_server_writes_the_same_targets(sampler, saved, tmp_path):
    tf = pytest.importorskip("tensorflow")
    writer = Seq2Seq.from_preset(saved[0], max_target_length=4)
    writer.compile(sampler=sampler)
    expected = writer.predict([*SOURCES, ""])
    export_saved_model(writer, tmp_path / "1")
    signatures = tf.saved_model.load(str(tmp_path / "1")).signatures
    answers = signatures["serving_default"](text=tf.constant([*SOURCES, ""]))
    assert [text.decode() for text in answers["texts"].numpy()] == expected
    packed = writer.data.pack_sources([*SOURCES, ""], 4)
    answers = signatures["serve_ids"](**{name: tf.constant(x) for name, x in packed.items()})
    assert [text.decode() for text in answers["texts"].numpy()] == expected
    vectors = signatures["embed"](text=tf.constant(SOURCES))["sequence_output"]
    packed = writer.data.pack_sources(SOURCES, 4)
    expected = to_numpy(writer.backbone.encoder(packed)["sequence_output"])
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


@pytest.mark.parametrize("shares", [False, True])
def test_the_precision_is_that_of_the_encoder(shares):
    encoder = BertBackbone(**ONE_LAYER, dtype="mixed_bfloat16")
    decoder = None if shares else BertBackbone(**ONE_LAYER)
    for wanted, given in (("mixed_bfloat16", {}), ("float32", {"dtype": "float32"})):
        joined = BertEncoderDecoder.from_backbones(encoder, decoder, **given)
        assert {layer.dtype_policy.name for layer in joined.transformer_layers} == {wanted}


def test_errors(tmp_path):
    with pytest.raises(ValueError, match="got a RobertaBackbone. Open a checkpoint of a BERT"):
        BertEncoderDecoder.from_backbones(RobertaBackbone(**ONE_LAYER))
    writer = make_writer()
    with pytest.raises(ValueError, match="of 17 tokens does not fit the 16 positions of the dec"):
        writer.predict(SOURCES, max_target_length=17)
    writer.compile()
    with pytest.raises(ValueError, match="cannot hide the rows of a packed row"):
        writer.fit(SOURCES, TARGETS, sequence_packing=True)
    with pytest.raises(ValueError, match="has a head that scores the vocabulary"):
        save_hugging_face(writer.backbone, tmp_path / "alone")
    save_peer(tmp_path / "start", decoder_start_token_id=7)
    with pytest.raises(ValueError, match="holds an encoder-decoder, which a Seq2Seq opens"):
        TextClassifier.from_preset(tmp_path / "start", num_classes=2)
    with pytest.raises(ValueError, match=r"begin with the token 7 \(decoder_start_token_id\)"):
        Seq2Seq.from_preset(tmp_path / "start")
    file = tmp_path / "start" / "config.json"
    right = json.loads(file.read_text())
    for field, value, message in (
        ("model_type", "gpt2", "The decoder in .* has model_type 'gpt2'"),
        ("is_decoder", False, "'is_decoder' in .* is False; only True can be read"),
        ("position_embedding_type", "relative_key", "'position_embedding_type' in .* is 'relative"),
    ):
        file.write_text(json.dumps({**right, "decoder": {**right["decoder"], field: value}}))
        with pytest.raises(ValueError, match=message):
            Seq2Seq.from_preset(tmp_path / "start")
    decoder = {**right["decoder"], "num_hidden_layers": 1}
    file.write_text(json.dumps({**right, "decoder": decoder, "tie_encoder_decoder": True}))
    with pytest.raises(ValueError, match="but encoder and decoder differ in num_layers"):
        Seq2Seq.from_preset(tmp_path / "start")
