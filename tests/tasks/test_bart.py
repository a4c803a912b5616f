"""A `Seq2Seq` and the other heads on a `BartBackbone`, beside transformers."""

import json

import keras
import keras_hub
import numpy as np
import pytest
import transformers
from bart_peers import generate, run_writer, save_peer
from checkers import evaluate
from family import MEMBERS, PIECES, write_pieces
from peer_weights import to_numpy
from small_byte_pairs import MERGES, make_vocabulary

from keras_bert_suite import (
    BartBackbone,
    BeamSearch,
    BertBackbone,
    BytePairTokenizer,
    MaskedLM,
    SegmentPacker,
    Seq2Seq,
    TextClassifier,
    TokenClassifier,
    WordPieceTokenizer,
    change_pattern,
    export_saved_model,
)
from keras_bert_suite.checkpoints import save_hugging_face
from keras_bert_suite.heads.targets.decoding import write_ids
from keras_bert_suite.heads.targets.gaps import find_gaps
from keras_bert_suite.heads.targets.writing_rules import find_rules

START, PAD, END = 0, 1, 2
SOURCES = ["the good film", "a low bad", "lower é the the the film", ""]
TARGETS = ["good", "the film", "bad"]
#: The special tokens of a Chinese BART in the vocabulary of `write_pieces`.
CHINESE = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0, "decoder_start_token_id": 3}
SMALL = {"vocabulary_size": len(make_vocabulary()), "num_layers": 1, "num_heads": 2}
SMALL = {**SMALL, "hidden_dim": 16, "intermediate_dim": 16, "max_sequence_length": 32}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("peer") / "bart"
    return path, save_peer(path)


def write(writer, packed, length, **asked):
    _, rules = find_rules(writer, max_target_length=length, **asked)
    return write_ids(writer, packed, length, rules)[:, 1:]


@pytest.mark.parametrize("kind", ["bart", "mbart"])
def test_logits_as_in_transformers(kind, saved, tmp_path):
    """Sources and targets of several lengths."""
    path, peer = saved if kind == "bart" else (tmp_path / "m", save_peer(tmp_path / "m", kind))
    packer = SegmentPacker(BytePairTokenizer(make_vocabulary(), MERGES), 12)
    inputs, labels, weights = _pack(packer)
    writer = Seq2Seq.from_preset(path, preprocessor=None, max_target_length=6)
    got, expected = to_numpy(evaluate(writer, inputs)), run_writer(peer, inputs)
    is_token = inputs["decoder_padding_mask"] == 1
    assert np.ptp(expected) > 1 and weights.sum() == is_token.sum()
    np.testing.assert_allclose(got[is_token], expected[is_token], atol=1e-5)
    assert (inputs["decoder_token_ids"][:, 0] == END).all() and (labels[:, 0] == START).all()
    np.testing.assert_array_equal(inputs["decoder_token_ids"][:, 1:], labels[:, :-1])


def _pack(packer):
    writer = Seq2Seq(BartBackbone(**SMALL), preprocessor=packer, max_target_length=6)
    inputs, labels, weights = writer.target_rows.pack(SOURCES[:3], TARGETS)
    for name in ("token_ids", "decoder_token_ids"):  # A vocabulary of 24 tokens reads them, too.
        inputs[name] %= 24
    return inputs, labels % 24, weights


#: name -> (sampler, arguments of `predict`, settings of transformers' `generate`).
WRITINGS = {
    "greedy": ("greedy", {}, {}),
    "greedy with rules": (
        "greedy",
        {"no_repeat_ngram_size": 2, "min_target_length": 7, "last_token": "</s>"},
        {"no_repeat_ngram_size": 2, "min_length": 7, "forced_eos_token_id": END},
    ),
    "greedy without repetition": (
        "greedy",
        {"no_repeat_ngram_size": 1, "first_token": "<unk>"},
        {"no_repeat_ngram_size": 1, "forced_bos_token_id": 3},
    ),
    "beams": (BeamSearch(3), {}, {"num_beams": 3}),
    "beams of a summary": (
        BeamSearch(4, length_penalty=2.0, early_stopping=True),
        {"no_repeat_ngram_size": 3, "min_target_length": 5, "last_token": "</s>"},
        {
            **{"num_beams": 4, "length_penalty": 2.0, "early_stopping": True, "min_length": 5},
            **{"no_repeat_ngram_size": 3, "forced_eos_token_id": END},
        },
    ),
    "short beams": (
        BeamSearch(2, early_stopping="never"),
        {"length_penalty": -1.0},
        {"num_beams": 2, "length_penalty": -1.0, "early_stopping": "never"},
    ),
    "long beams": (
        BeamSearch(2, length_penalty=1.5, early_stopping="never"),
        {"no_repeat_ngram_size": 2},
        {
            **{"num_beams": 2, "length_penalty": 1.5, "early_stopping": "never"},
            **{"no_repeat_ngram_size": 2},
        },
    ),
}


# On each backend, test_frame_targets.py writes with beams.
@pytest.mark.parametrize("name", WRITINGS)
def test_targets_as_in_transformers(name, saved):
    """Token for token, with a cache, in one batch."""
    sampler, asked, settings = WRITINGS[name]
    path, peer = saved
    writer = Seq2Seq.from_preset(path, sampler=sampler)
    packed = writer.data.pack_sources(SOURCES, 10)
    got, expected = write(writer, packed, 10, **asked), generate(peer, packed, 10, **settings)
    np.testing.assert_array_equal(got, expected)
    assert len({tuple(row) for row in got.tolist()}) > 1


def test_targets_of_several_lengths(tmp_path):
    """Of small vocabularies, in which targets end at different places."""
    lengths = set()
    for seed in range(3):
        path = tmp_path / str(seed)
        peer = save_peer(path, seed=seed, end_bias=2.0, vocab_size=24, **CHINESE)
        (path / "vocab.json").unlink()
        write_pieces(path)
        writer = Seq2Seq.from_preset(path)
        packed = writer.data.pack_sources(["a b c d", "e", "f g h a b", ""], 12)
        for penalty, early in ((0.0, True), (1.0, False), (2.0, "never"), (-1.0, False)):
            writer.compile(sampler=BeamSearch(3, penalty, early))
            got = write(writer, packed, 12, no_repeat_ngram_size=2)
            settings = {"num_beams": 3, "length_penalty": penalty, "early_stopping": early}
            rules = {"no_repeat_ngram_size": 2, "forced_bos_token_id": 2}
            expected = generate(peer, packed, 12, **settings, **rules)
            np.testing.assert_array_equal(got, expected, err_msg=f"{seed} {settings}")
            lengths |= set((got != 0).sum(axis=1).tolist())
    assert len(lengths) > 2


def test_texts_and_rules_are_saved(saved, tmp_path):
    rules = {"min_target_length": 3, "no_repeat_ngram_size": 2, "last_token": "</s>"}
    sampler = BeamSearch(2, length_penalty=0.5, early_stopping="never")
    writer = Seq2Seq.from_preset(saved[0], max_target_length=6, sampler=sampler, **rules)
    expected = writer.predict(SOURCES)
    assert writer.predict(SOURCES[0]) == expected[0]
    assert writer.predict(SOURCES, no_repeat_ngram_size=1, length_penalty=2.0) != expected
    writer.save(tmp_path / "writer.keras")
    writer.save_to_preset(tmp_path / "preset")
    for again in (
        keras.saving.load_model(tmp_path / "writer.keras"),
        Seq2Seq.from_preset(tmp_path / "preset"),
    ):
        assert again.predict(SOURCES) == expected
        assert again.sampler.get_config() == sampler.get_config()


def test_a_file_goes_back_to_transformers(saved, tmp_path):
    path, peer = saved
    save_hugging_face(Seq2Seq.from_preset(path), tmp_path / "again")
    again = transformers.BartForConditionalGeneration.from_pretrained(tmp_path / "again")
    written = again.state_dict()
    assert again.config.architectures == ["BartForConditionalGeneration"]
    for name, tensor in peer.state_dict().items():
        np.testing.assert_array_equal(written[name].numpy(), tensor.numpy(), err_msg=name)
    config = again.config
    ids = [config.bos_token_id, config.pad_token_id, config.eos_token_id]
    assert [*ids, config.decoder_start_token_id] == [START, PAD, END, END]
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    assert tokenizer("the film").input_ids == [START, *make_packer().tokenizer("the film"), END]


def read_weights(writer):
    """All weights but the pooler's, which a file has none of."""
    return [to_numpy(w) for w in writer.weights if w.path not in writer.unused_paths]


def test_names_of_other_files(saved, tmp_path):
    """An older file holds the table of tokens four times, and a BartModel has no prefix."""
    from safetensors.numpy import load_file, save_file

    expected = read_weights(Seq2Seq.from_preset(saved[0]))
    tensors = load_file(saved[0] / "model.safetensors")
    table = tensors["model.shared.weight"]
    copies = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
    path = tmp_path / "model.safetensors"
    for file in saved[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    save_file({**tensors, **dict.fromkeys((*copies, "lm_head.weight"), table)}, path)
    for got, wanted in zip(read_weights(Seq2Seq.from_preset(tmp_path)), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    wrong = table + 1.0
    save_file({**tensors, copies[1]: wrong}, path)
    with pytest.raises(ValueError, match=r"decoder.embed_tokens.weight: differs from model.shared"):
        BartBackbone.from_preset(tmp_path)
    save_file({**tensors, "lm_head.weight": wrong}, path)
    BartBackbone.from_preset(tmp_path)
    with pytest.raises(ValueError, match=r"lm_head.weight: differs from model.shared"):
        Seq2Seq.from_preset(tmp_path)
    bare = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    del bare["final_logits_bias"]
    save_file(bare, path)
    got = BartBackbone.from_preset(tmp_path).token_embedding.embeddings
    np.testing.assert_array_equal(to_numpy(got), table)


def test_the_settings_of_generate_are_named(saved, caplog, tmp_path):
    for file in saved[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    settings = {"num_beams": 4, "task_specific_params": {"summarization": {"min_length": 5}}}
    (tmp_path / "config.json").write_text(json.dumps({**config, **settings, "num_labels": 3}))
    writer = Seq2Seq.from_preset(tmp_path)
    assert "num_beams=4, task_specific_params={'summarization': {'min_length': 5}}" in caplog.text
    assert isinstance(writer.sampler, keras_hub.samplers.GreedySampler)


def test_a_chinese_bart(tmp_path):
    """It has the tokenizer of a BERT, whose [SEP] begins the rows of the decoder."""
    peer = save_peer(tmp_path / "peer", vocab_size=24, **CHINESE)
    (tmp_path / "peer" / "vocab.json").unlink()
    write_pieces(tmp_path / "peer")
    writer = Seq2Seq.from_preset(tmp_path / "peer", sampler=BeamSearch(2))
    packed = writer.data.pack_sources(["a b c", "d"], 8)
    assert packed.keys() == {"token_ids", "padding_mask"} and packed["token_ids"][0, 0] == 2
    expected = generate(peer, packed, 8, num_beams=2, forced_bos_token_id=2)
    np.testing.assert_array_equal(write(writer, packed, 8), expected)
    save_hugging_face(writer, tmp_path / "again")
    again = json.loads((tmp_path / "again" / "config.json").read_text())
    assert {name: again[name] for name in CHINESE} == CHINESE


def make_packer(length=24):
    return SegmentPacker(BytePairTokenizer(make_vocabulary(), MERGES), length)


def make_writer(**kwargs):
    backbone = BartBackbone(**SMALL, dropout=0.0, initializer_range=0.1)
    return Seq2Seq(backbone, preprocessor=make_packer(), **{"max_target_length": 16, **kwargs})


def test_one_step_moves_every_weight_but_the_pooler():
    writer = make_writer()
    writer.backbone.remat = True
    before = {weight.path: to_numpy(weight).copy() for weight in writer.weights}
    writer.compile(keras.optimizers.Adam(1e-2))
    writer.fit(SOURCES[:3], TARGETS, verbose=0)
    stay = {w.path for w in writer.weights if (to_numpy(w) == before[w.path]).all()}
    stay -= {path for path in stay if path.endswith("key/bias")}
    pooler = {"pooler/kernel", "pooler/bias"}
    assert stay <= pooler == writer.unused_paths


def test_presets_of_other_tasks(tmp_path):
    """A preset of a backbone alone, and one of a MaskedLM, with its head.

    The head of a BART has a table that is there, and a bias of zeros, so nothing is random.
    """
    writer = make_writer()
    writer.backbone.save_to_preset(tmp_path / "backbone")
    save_hugging_face(writer.backbone, tmp_path / "hf")
    for name in ("backbone", "hf"):
        opened = Seq2Seq.from_preset(tmp_path / name, preprocessor=writer.preprocessor)
        assert isinstance(opened.backbone, BartBackbone)
        for got, wanted in zip(read_weights(opened), read_weights(writer), strict=True):
            np.testing.assert_array_equal(got, wanted, err_msg=name)
    guesser = MaskedLM(writer.backbone, preprocessor=writer.preprocessor)
    guesser.masked_lm.set_weights([to_numpy(w) + 1.0 for w in guesser.masked_lm.weights])
    guesser.save_to_preset(tmp_path / "guesser")
    opened = Seq2Seq.from_preset(tmp_path / "guesser")
    for part in ("backbone", "masked_lm"):
        pairs = zip(getattr(opened, part).weights, getattr(guesser, part).weights, strict=True)
        for got, wanted in pairs:
            np.testing.assert_array_equal(to_numpy(got), to_numpy(wanted), err_msg=wanted.path)


def change_vocabulary(writer):
    return writer.resize_vocabulary(writer.backbone.vocabulary_size + 3, seed=0)


def quantize(writer):
    copy = Seq2Seq.from_config(writer.get_config())
    copy.preprocessor = writer.preprocessor
    copy.set_weights(writer.get_weights())
    copy.quantize("int8")
    return copy


#: A copy of a writer -> how far its logits may be from those of the writer, as a share of them.
CHANGES = {
    "quantize": (quantize, 0.2),
    "more tokens": (change_vocabulary, 0.0),
    "fewer positions": (lambda writer: writer._resize("resize", max_sequence_length=20), 0.0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_copies_of_a_writer_write(change, tmp_path):
    """And their files open with the same outputs."""
    writer = make_writer()
    writer.preprocessor.sequence_length = 16
    inputs, _, _ = writer.target_rows.pack(SOURCES[:3], TARGETS)
    expected, (make, share) = to_numpy(evaluate(writer, inputs)), CHANGES[change]
    copy = make(writer)
    is_token = inputs["decoder_padding_mask"] == 1
    got = to_numpy(evaluate(copy, inputs))[is_token][:, : expected.shape[-1]]
    error = np.linalg.norm(got - expected[is_token]) / np.linalg.norm(expected[is_token])
    assert error <= share + 1e-6 and (error > 0) == (share > 0)
    copy.save_to_preset(tmp_path / "preset")
    opened = Seq2Seq.from_preset(tmp_path / "preset")
    np.testing.assert_array_equal(
        to_numpy(evaluate(opened, inputs))[is_token][:, : expected.shape[-1]], got
    )
    assert opened.predict(SOURCES) == copy.predict(SOURCES)
    copy.compile(keras.optimizers.Adam(1e-2))
    copy.fit(SOURCES[:3], TARGETS, verbose=0)
    assert np.abs(to_numpy(copy.masked_lm.bias) - to_numpy(opened.masked_lm.bias)).max() > 0


def test_lora_is_trained_and_not_saved(tmp_path):
    writer = make_writer()
    writer.backbone.trainable = False
    for block in writer.backbone.transformer_layers:
        block.self_attention.query.enable_lora(2)
        block.self_attention.query.trainable = True
    expected = writer.predict(SOURCES)
    writer.compile(keras.optimizers.Adam(1e-2))
    writer.fit(SOURCES[:3], TARGETS, epochs=2, verbose=0)
    query = writer.backbone.decoder.blocks[0].self_attention.query
    assert np.abs(to_numpy(query.lora_kernel_b)).max() > 0 and len(expected) == len(SOURCES)
    with pytest.raises(ValueError, match="have LoRA of Keras, which no file or copy keeps"):
        writer.save_to_preset(tmp_path / "lora")


def test_it_writes_in_bfloat16(saved):
    writer, half = (Seq2Seq.from_preset(saved[0], dtype=d) for d in ("float32", "bfloat16"))
    inputs, _, _ = writer.target_rows.pack(SOURCES[:3], TARGETS)
    is_token = inputs["decoder_padding_mask"] == 1
    expected, got = (to_numpy(evaluate(w, inputs))[is_token] for w in (writer, half))
    np.testing.assert_allclose(got.astype("float32"), expected, atol=np.ptp(expected) / 20)
    for sampler in ("greedy", BeamSearch(2)):
        half.compile(sampler=sampler)
        assert len(half.predict(SOURCES, max_target_length=6, no_repeat_ngram_size=2)) == 4


def test_tokens_of_a_chinese_bart_are_kept(tmp_path):
    """Those of byte pairs are made of each other."""
    with pytest.raises(ValueError, match="vocabulary of a WordPieceTokenizer, got a BytePairTok"):
        make_writer().keep_tokens(["the"])
    pieces = WordPieceTokenizer(PIECES)
    backbone = BartBackbone(**{**SMALL, "vocabulary_size": len(PIECES)}, initializer_range=0.5)
    writer = Seq2Seq(backbone, preprocessor=SegmentPacker(pieces, 16), max_target_length=4)
    part = writer.keep_tokens(["a", "b", "c", "d"])
    packed = [w.target_rows.pack(["a b", "c"], ["d", "b a"])[0] for w in (writer, part)]
    whole, kept = (to_numpy(evaluate(w, x)) for w, x in zip((writer, part), packed, strict=True))
    ids = [pieces.token_to_id(token) for token in part.preprocessor.tokenizer.get_vocabulary()]
    is_token = packed[0]["decoder_padding_mask"] == 1
    np.testing.assert_allclose(kept[is_token], whole[is_token][:, ids], atol=1e-5)


def test_learns_to_fill_gaps_of_several_tokens():
    writer = make_writer(sampler=BeamSearch(2))
    writer.compile(keras.optimizers.Adam(1e-2))
    masked = ["the <mask> film", "<mask> film"]
    inputs, labels, weights = _pack_masked(writer, masked, ["the good film", "the bad film"])
    writer.fit(inputs, labels, sample_weight=weights, epochs=60, verbose=0)
    assert writer.fill_mask(masked) == [["good"], ["the bad"]]
    assert writer.fill_mask(masked[0]) == ["good"]
    writer.min_target_length, writer.no_repeat_ngram_size = 16, 1
    assert writer.fill_mask(masked) == [["good"], ["the bad"]]


def _pack_masked(writer, sources, targets):
    """Packed arrays with masks in their sources, labels and weights."""
    from keras_bert_suite.heads.masks.data import pack_masked_texts

    inputs, labels, weights = writer.target_rows.pack(targets, targets)
    masked = pack_masked_texts(writer.preprocessor, writer.data.encoder, (sources,))
    del masked["mask_positions"]
    return {**inputs, **masked}, labels, weights


def test_gaps_are_found_between_known_tokens():
    tokenizer = BytePairTokenizer(make_vocabulary(), MERGES)
    mask, (a, b, c) = tokenizer.mask_token_id, map(tokenizer.token_to_id, "abc")

    def find(source, target):
        rows = ([START, *source, END, PAD], [START, *target, END])
        return find_gaps(tokenizer, *map(np.array, rows))

    assert find([a, mask, b], [a, c, c, b]) == ["cc"]
    assert find([mask, b, mask], [c, b, b]) == ["c", "b"]
    assert find([mask], [a, b]) == ["ab"]
    assert find([a, mask, b], [a, b]) == [""]
    assert find([a, mask, b, mask, c], [a, b, a]) == [None, None]
    assert find([a, mask], [b, a]) == [None]


@pytest.mark.parametrize("cls", [TokenClassifier, MaskedLM])
def test_other_heads_learn(cls):
    backbone = BartBackbone(**SMALL, dropout=0.0)
    if cls is MaskedLM:
        task = MaskedLM(backbone, preprocessor=make_packer())
        rows = (["the good film"] * 8,)
    else:
        task = cls(backbone, label_names=["O", "X"], preprocessor=make_packer())
        rows = ([["the", "good"]] * 8, [["O", "X"]] * 8)
    task.compile(keras.optimizers.Adam(1e-2))
    losses = task.fit(*rows, epochs=8, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


@pytest.mark.backend("tensorflow")
@pytest.mark.long("serving")
@pytest.mark.parametrize("sampler", ["greedy", "beams"])
def test_a_server_writes_the_same_targets(sampler, saved, tmp_path):
    """Also bytes that are no characters."""
    tf = pytest.importorskip("tensorflow")
    rules = {"no_repeat_ngram_size": 2, "min_target_length": 4}
    sampler = BeamSearch(3, length_penalty=2.0) if sampler == "beams" else sampler
    writer = Seq2Seq.from_preset(saved[0], max_target_length=8, sampler=sampler, **rules)
    expected = writer.predict(SOURCES)
    assert any("\ufffd" in text for text in expected)
    export_saved_model(writer, tmp_path / "1")
    signatures = tf.saved_model.load(str(tmp_path / "1")).signatures
    answers = signatures["serving_default"](text=tf.constant(SOURCES))
    assert [text.decode() for text in answers["texts"].numpy()] == expected


def test_errors(saved, tmp_path):
    writer = make_writer()
    for arguments, message in (
        ({"max_target_length": 33}, "of 33 tokens does not fit the 32 positions of the decoder"),
        ({"min_target_length": 17}, "min_target_length=17 is above max_target_length=16"),
        ({"first_token": "<fr>"}, "first_token='<fr>' is not in the vocabulary"),
        ({"length_penalty": 1.0}, "length_penalty=1.0 is for a BeamSearch, got a GreedySampler"),
        ({"length_penalty": float("inf")}, "length_penalty must be a finite number, got inf"),
        ({"top_p": float("nan")}, "top_p must be over 0 and at most 1, got nan"),
    ):
        with pytest.raises(ValueError, match=message):
            writer.predict(SOURCES, **arguments)
    with pytest.raises(ValueError, match=r"'no gap' has no <mask>"):
        writer.fill_mask(["no gap"])
    with pytest.raises(ValueError, match="batch_size must be .* at least 1, got -1"):
        writer.fill_mask(["a <mask>"], -1)
    with pytest.raises(ValueError, match="sequence_length=40 tokens, but the backbone has posit"):
        Seq2Seq(writer.backbone, preprocessor=make_packer(40))
    long = {name: np.ones((1, 40), "int32") for name in ("token_ids", "padding_mask")}
    with pytest.raises(ValueError, match="token_ids has length 40, .* positions for 32 tokens"):
        writer.backbone(long)
    with pytest.raises(ValueError, match="holds weights of BART, which a BertBackbone cannot"):
        BertBackbone.from_preset(saved[0])
    MEMBERS["bert"].save_peer(tmp_path / "bert")
    with pytest.raises(ValueError, match="holds weights of BERT, which a BartBackbone cannot"):
        BartBackbone.from_preset(tmp_path / "bert")
    save_peer(tmp_path / "start", decoder_start_token_id=7)
    with pytest.raises(ValueError, match="'decoder_start_token_id' in .* is 7, and 'eos_token_id'"):
        TextClassifier.from_preset(tmp_path / "start", num_classes=2)
    save_peer(tmp_path / "mbart", "mbart")
    with pytest.raises(FileNotFoundError, match="has no sentencepiece.bpe.model or tokenizer.json"):
        Seq2Seq.from_preset(tmp_path / "mbart")
    with pytest.raises(ValueError, match="early_stopping must be True, False or 'never', got 1"):
        BeamSearch(2, early_stopping=1)  # It equals True.
    with pytest.raises(ValueError, match="length_penalty must be a finite number, got nan"):
        BeamSearch(2, length_penalty=float("nan"))
    with pytest.raises(ValueError, match="A BartBackbone has no attention patterns"):
        change_pattern(writer.backbone, "seq2seq")
    with pytest.raises(TypeError, match="Seq2Seq.predict has no argument 'min_length'"):
        writer.predict(SOURCES, min_length=3)
    tagger = TokenClassifier(writer.backbone, label_names=["O", "X"], preprocessor=None)
    with pytest.raises(ValueError, match="cannot hold these weights of .*token_classifier"):
        save_hugging_face(tagger, tmp_path / "tags")
