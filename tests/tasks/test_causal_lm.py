"""`CausalLM` beside the left-to-right models of transformers, and their `generate`."""

import json
import warnings

import keras
import keras_hub
import numpy as np
import pytest
import torch
import transformers
from family import MEMBERS, PIECES, run_peer
from keras import ops
from peer_weights import randomize, to_numpy
from serving.traced import trace
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite import CausalLM, SegmentPacker, WordPieceTokenizer
from keras_bert_suite.checkpoints import save_hugging_face
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.heads.continuations.answers import ContinuationAnswers
from keras_bert_suite.pretraining import PretrainingBatches

TEXTS = ["good film", "the plot was not very good .", "bad acting , dull", ""]
#: The kinds that have a class for it in transformers: its name, without the prefix.
CAUSAL = {"bert": "LMHeadModel", **dict.fromkeys(("roberta", "electra", "ernie", "roformer"))}
CAUSAL = {kind: name or "ForCausalLM" for kind, name in CAUSAL.items()}
LETTERS = ["a b c", "d", "e f g h i", ""]


def make_packer(sequence_length=24):
    return SegmentPacker(WordPieceTokenizer(VOCABULARY), sequence_length)


def make_model(sizes=ONE_LAYER, kind=kbs.BertBackbone, **arguments):
    backbone = kind(**{**sizes, "attention_pattern": "left_to_right", "dropout": 0.0})
    randomize(backbone)
    return CausalLM(backbone, **{"preprocessor": make_packer(), "max_length": 6, **arguments})


def open_causal(path, kind, **arguments):
    """(the peer of a kind, with random weights, and our task of its checkpoint)."""
    config = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "is_decoder": True}
    peer = MEMBERS[kind].save_peer(path, CAUSAL[kind], **config)
    return peer, CausalLM.from_preset(path, max_length=6, **arguments)


def generate(peer, text, **arguments):
    """The ids that transformers writes after a row without its last [SEP]."""
    ids = torch.tensor([[2, *WordPieceTokenizer(PIECES).tokenize(text)]])
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written = peer.generate(
            *(ids, transformers.GenerationConfig(max_new_tokens=6, pad_token_id=0, **arguments)),
            attention_mask=torch.ones_like(ids),
        )
    return written[0, ids.shape[1] :].tolist()


def write_ids(model, texts, length=6):
    """The ids that a task writes, up to [SEP]."""
    packed = model.data.pack_sources(texts, length)
    targets = np.zeros((len(texts), 1 + length), "int32")
    targets[:, 0] = [row[mask > 0][-1] for row, mask in zip(*map(packed.get, NAMES), strict=True)]
    inputs = {"source": packed, "targets": targets}
    write = model.make_generate_function()
    ids = to_numpy(write(keras.tree.map_structure(ops.convert_to_tensor, inputs), (3,)))[:, 1:]
    return [row[: row.index(3) + 1] if 3 in row else row for row in ids.tolist()]


NAMES = ("token_ids", "padding_mask")


@pytest.mark.parametrize("kind", CAUSAL)
def test_files_of_transformers(kind, tmp_path):
    """The logits of its classes, from their files, and from files that we write for them."""
    peer, model = open_causal(tmp_path / "theirs", kind, preprocessor=None)
    assert model.backbone.attention_pattern == "left_to_right"
    inputs = MEMBERS[kind].make_inputs()
    places = np.tile(np.arange(10, dtype="int32"), (3, 1))
    real = inputs["padding_mask"] > 0
    got = to_numpy(model({**inputs, "mask_positions": places}))
    with torch.no_grad():
        wanted = run_peer(peer, inputs).logits.numpy()
    np.testing.assert_allclose(got[real], wanted[real], rtol=0, atol=1e-5)

    save_hugging_face(model, tmp_path / "ours")
    config = json.loads((tmp_path / "ours" / "config.json").read_text())
    name = MEMBERS[kind].prefix + CAUSAL[kind]
    assert (config["is_decoder"], config["architectures"]) == (True, [name])
    again = getattr(transformers, name).from_pretrained(tmp_path / "ours").eval()
    with torch.no_grad():
        again = run_peer(again, inputs).logits.numpy()
    np.testing.assert_allclose(again[real], wanted[real], rtol=0, atol=1e-5)


def test_texts_are_continued_as_by_transformers(tmp_path):
    """Greedy and by beams; the texts of a batch have different lengths."""
    peer, model = open_causal(tmp_path / "bert", "bert")
    for num_beams, sampler in (
        (1, "greedy"),
        (3, keras_hub.samplers.BeamSampler(num_beams=3)),
    ):
        model.compile(sampler=sampler)
        if num_beams > 1:
            # transformers goes on with as many beams when one has ended, and KerasHub does not.
            for bias in (model.masked_lm.bias, peer.cls.predictions.bias):
                array = to_numpy(bias) if hasattr(bias, "path") else bias.detach().numpy().copy()
                array[3] = -100.0
                if hasattr(bias, "path"):
                    bias.assign(array)
                else:
                    bias.data = torch.from_numpy(array)
        wanted = [
            generate(peer, text, num_beams=num_beams, eos_token_id=3, do_sample=False)
            for text in LETTERS
        ]
        assert len({tuple(row) for row in wanted}) > 1
        assert write_ids(model, LETTERS) == wanted


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kbs.BertBackbone, marks=pytest.mark.every_backend),
        *(kbs.RobertaBackbone, kbs.DistilBertBackbone, kbs.RoFormerBackbone),
    ],
)
def test_a_cache_changes_nothing(kind):
    """Each token is that of a pass over the whole row."""
    model = make_model({**ONE_LAYER, "num_layers": 2}, kind)
    tokenizer = model.preprocessor.tokenizer
    places = np.arange(24, dtype="int32")[None]
    wanted = []
    for text in TEXTS:
        row = [2, *tokenizer.tokenize(text)]
        begin = len(row)
        while len(row) < begin + 6 and row[-1] != 3:
            ids = np.zeros((1, 24), "int32")
            ids[0, : len(row)] = row
            inputs = {
                "token_ids": ids,
                "segment_ids": np.zeros_like(ids),
                "padding_mask": (places < len(row)).astype("int32"),
                "mask_positions": places,
            }
            logits = model({name: inputs[name] for name in model.input})
            row.append(int(to_numpy(logits)[0, len(row) - 1].argmax()))
        wanted.append(row[begin:])
    assert len({tuple(row) for row in wanted}) > 1
    assert write_ids(model, TEXTS) == wanted


def test_arguments_of_a_request():
    model = make_model()
    whole = model.predict(TEXTS)
    assert len(set(whole)) > 1 and model.predict(TEXTS[1]) == whole[1]
    assert model.predict(TEXTS, batch_size=1) == whole == model.generate(TEXTS, max_length=6)
    assert model.predict(iter([(TEXTS[:3],), (TEXTS[3:],)])) == whole
    assert model.predict([]) == []
    for text, short in zip(whole, model.predict(TEXTS, max_length=2), strict=True):
        assert text.startswith(short)
    # An answer ends before the first of several strings.
    stops = [" plot", "a"]
    cut = [min((text.partition(stop)[0] for stop in stops), key=len) for text in whole]
    assert model.predict(TEXTS, stop=stops) == cut != whole
    assert model.predict(TEXTS[0], stop=" plot") == whole[0].partition(" plot")[0]
    drawn = model.predict(TEXTS, seed=1, top_p=0.9)
    assert drawn == model.predict(TEXTS, batch_size=1, seed=1, top_p=0.9) != whole
    assert model.predict(TEXTS, seed=1, top_p=0.9, stop="a") == [t.partition("a")[0] for t in drawn]


def test_a_long_text_loses_its_beginning():
    model = make_model()
    end = "the plot was not very good . bad acting , dull the plot was"  # 16 tokens
    assert len(model.preprocessor.tokenizer.tokenize(end)) == 14
    model.preprocessor = make_packer(1 + 14 + 6)
    expected = model.predict(end)
    assert model.predict(f"good film {end}") == expected
    assert model.predict(f"film {end}", max_length=5) != expected


def test_an_answer_has_the_space_before_it():
    tokenizer = WordPieceTokenizer([*VOCABULARY[:5], "good", "film", "##s", ".", "3", "5", "京"])
    good, film, more, point, three, five, capital = range(5, 12)
    answers = ContinuationAnswers()

    def join(*ids):
        return answers.detokenize(np.array([ids]), tokenizer)[0]

    assert join(good, film, more) == " films"
    assert join(film, more, point) == "s."
    assert join(three, point, five) == ".5"
    assert join(2, good, film, 3, good) == "good film"  # After [CLS], up to [SEP].
    assert join(capital, capital, 1) == "京"
    assert join(1, good) == " good"


def test_perplexity_is_that_of_the_corpus():
    """As the predictions of each text, computed alone, and as `evaluate` whatever its batches."""
    model = make_model()
    model.compile()
    texts = [*TEXTS, *make_reviews(3)[0]]
    losses, counts = [], []
    for text in texts:
        packed = model.preprocessor.pack([text])
        places = np.arange(packed["token_ids"].shape[1] - 1, dtype="int32")[None]
        logits = to_numpy(model({**packed, "mask_positions": places})).astype("float64")[0]
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        losses.append(-logits[places[0], packed["token_ids"][0, 1:]].sum())
        counts.append(places.size)
    scores = model.score(texts, batch_size=4)
    assert scores["loss"] == pytest.approx(sum(losses) / sum(counts), abs=1e-5)
    assert scores["perplexity"] == pytest.approx(np.exp(scores["loss"]))
    assert (scores["tokens"], scores["rows"]) == (sum(counts), len(texts))
    wanted = np.exp(np.array(losses) / counts)
    np.testing.assert_allclose(model.perplexity(texts, batch_size=4), wanted, rtol=1e-4)
    for size in (2, 32):
        logs = model.evaluate(texts, batch_size=size, return_dict=True, verbose=0)
        assert logs["perplexity"] == pytest.approx(scores["perplexity"], rel=1e-4)
    weights = [1.0] * 4 + [0.0] * 3
    logs = model.evaluate(texts, sample_weight=weights, return_dict=True, verbose=0)
    assert logs["loss"] == pytest.approx(sum(losses[:4]) / sum(counts[:4]), abs=1e-4)


def test_a_pretraining_goes_on_as_a_causal_lm(tmp_path):
    """On the batches of a corpus, by either task; the preset of a `Pretrainer` opens."""
    tokenizer = make_packer().tokenizer
    objective = kbs.objectives.get("left_to_right")
    ids = tokenizer.tokenize(make_reviews(120)[0])
    corpus = TokenCorpus.from_documents([ids[i : i + 6] for i in range(0, 120, 6)])
    masker = objective.make_masker(tokenizer)
    batches = PretrainingBatches(corpus, masker, 24, batch_size=8, **objective.instances)
    backbone = kbs.BertBackbone(**ONE_LAYER, **objective.backbone_arguments)
    pretrainer = objective.make_task(backbone, preprocessor=make_packer())
    pretrainer.compile(kbs.AdamW(1e-2))
    pretrainer.fit(batches, verbose=0)
    pretrainer.save_to_preset(tmp_path / "pretrained")
    model = CausalLM.from_preset(tmp_path / "pretrained", max_length=4)
    wanted = pretrainer.evaluate(batches, return_dict=True, verbose=0)
    logs = model.evaluate(batches, return_dict=True, verbose=0)
    assert logs["loss"] == pytest.approx(wanted["loss"], abs=1e-5)
    model.compile(keras.optimizers.Adam(1e-2))
    model.fit(batches, verbose=0)
    learned = model.evaluate(batches, return_dict=True, verbose=0)
    assert learned["perplexity"] < logs["perplexity"]
    mixed = kbs.change_pattern(backbone, "bidirectional")
    masked = kbs.MaskedLM(mixed, preprocessor=make_packer())
    masked.save_to_preset(tmp_path / "masked")
    assert CausalLM.from_preset(tmp_path / "masked").backbone.attention_pattern == "left_to_right"


def test_learns_to_count():
    """After each letter comes the next one, which a bidirectional model would see."""
    letters = "abcdefghij"
    tokenizer = WordPieceTokenizer([*VOCABULARY[:5], *letters])
    texts = [" ".join(letters[i : i + 4]) for i in range(7)] * 8
    sizes = {**ONE_LAYER, "vocabulary_size": 15, "hidden_dim": 32}
    backbone = kbs.BertBackbone(
        **sizes, dropout=0.0, initializer_range=0.1, attention_pattern="left_to_right"
    )
    packer = SegmentPacker(tokenizer, 12, padding_lengths=(12,))
    model = CausalLM(backbone, preprocessor=packer, max_length=3)
    model.compile(keras.optimizers.Adam(1e-2))
    model.fit(texts, batch_size=14, epochs=12, verbose=0)
    assert model.predict(["a", "c d", "f g"]) == [" b c d", " e f", " h i"]
    assert model.score(texts)["perplexity"] < 2


def test_files_of_ours(tmp_path):
    model = make_model()
    expected = model.predict(TEXTS)
    model.save(tmp_path / "model.keras")
    model.save_to_preset(tmp_path / "preset")
    for again in (
        keras.saving.load_model(tmp_path / "model.keras"),
        CausalLM.from_preset(tmp_path / "preset"),
    ):
        assert again.predict(TEXTS) == expected
    # A Seq2Seq begins with the head, and gives it back.
    writer = kbs.Seq2Seq.from_preset(tmp_path / "preset", max_target_length=4)
    assert writer.backbone.attention_pattern == "seq2seq"
    writer.save_to_preset(tmp_path / "writer")
    again = CausalLM.from_preset(tmp_path / "writer", max_length=6)
    assert again.predict(TEXTS) == expected


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize(
    "sampler", [pytest.param("greedy", marks=pytest.mark.long("serving")), "beam"]
)
def test_a_server_writes_the_same(sampler):
    tf = pytest.importorskip("tensorflow")
    model = make_model(sampler=sampler)
    answers = trace(model)(text=tf.constant(TEXTS))
    assert [text.decode() for text in answers["texts"].numpy()] == model.predict(TEXTS)
    ids = zip(answers["target_ids"].numpy(), answers["num_tokens"].numpy(), strict=True)
    ends = [row[:-1] if row[-1] == 3 else row for row in write_ids(model, TEXTS)]
    assert [row[:count].tolist() for row, count in ids] == ends


def test_exports_that_cannot_write(tmp_path):
    model = make_model()
    with pytest.raises(ValueError, match="is a CausalLM, and other runtimes have no loop"):
        kbs.export_onnx(model, tmp_path / "onnx")
    model.compile(sampler="top_p")
    with pytest.raises(ValueError, match="got a TopPSampler, which draws tokens at random"):
        kbs.export_saved_model(model, tmp_path / "saved")


def test_errors(tmp_path):
    bert = kbs.BertBackbone(**ONE_LAYER)
    with pytest.raises(
        ValueError, match=r"='left_to_right', .*got a Bert.*'bidirectional'.*change_pattern\(back"
    ):
        CausalLM(bert)
    CausalLM(kbs.change_pattern(bert, "left_to_right"))  # The remedy.
    with pytest.raises(ValueError, match="that of a NezhaBackbone is another"):
        CausalLM(kbs.NezhaBackbone(**ONE_LAYER, attention_pattern="left_to_right"))
    with pytest.raises(ValueError, match="another backbone with `make_causal_decoder`, got a Bert"):
        CausalLM(keras_hub.models.BertBackbone(**ONE_LAYER))
    MEMBERS["modernbert"].save_peer(tmp_path / "modernbert")
    with pytest.raises(ValueError, match="ModernBERT.* cannot read from left to right"):
        CausalLM.from_preset(tmp_path / "modernbert", preprocessor=None)
    with pytest.raises(ValueError, match="max_length must be .*, got 0"):
        make_model(max_length=0)
    # Before a training, and for each request.
    with pytest.raises(ValueError, match="max_length=23 leaves 1 tokens .*sequence_length is 24"):
        make_model(max_length=23)
    model = make_model()
    with pytest.raises(ValueError, match="max_length=40 leaves 0 tokens .* share 24 positions"):
        model.predict(TEXTS, max_length=40)
    for stop in ("", 3, ["a", 3]):
        with pytest.raises(ValueError, match="stop must have strings with a character, got "):
            model.predict(TEXTS, stop=stop)
    with pytest.raises(TypeError, match="no argument 'temprature'. Did you mean 'temperature'?"):
        model.predict(TEXTS, temprature=0.5)
    with pytest.raises(ValueError, match="top_p must be over 0 and at most 1, got 2"):
        model.predict(TEXTS, top_p=2)
    with pytest.raises(ValueError, match="is one text, got 2 columns of texts"):
        model.predict((TEXTS, TEXTS))
    with pytest.raises(ValueError, match="makes labels from its texts, and takes none"):
        model.fit(TEXTS, ["good"] * 4, verbose=0)
    with pytest.raises(ValueError, match="at least one text, got none"):
        model.score([])
    with pytest.raises(ValueError, match="perplexity is that of texts, got packed arrays"):
        model.score(model.preprocessor.pack(TEXTS))
    model.preprocessor.segment_ids = (1,)
    with pytest.raises(ValueError, match=r"in segment 0, .*segment_ids=\(1,\)"):
        model.predict(TEXTS)
