"""Against transformers' `BertForPreTraining`: outputs, losses, and the weights step by step."""

from pathlib import Path

import grain
import keras
import numpy as np
import pytest
from peer_weights import convert_transformers, random_array, randomize, to_numpy
from small_texts import ONE_LAYER, VOCABULARY

from keras_bert_suite import (
    AdamW,
    BertBackbone,
    LinearWarmupDecay,
    Pretrainer,
    SegmentPacker,
    WordPieceTokenizer,
)
from keras_bert_suite.checkpoints import load_weights, open_checkpoint

#: Paths of the heads -> names in transformers, beside those of `peer_weights`.
HEADS = {
    "masked_lm/transform/kernel": "cls.predictions.transform.dense.weight",
    "masked_lm/transform/bias": "cls.predictions.transform.dense.bias",
    "masked_lm/layer_norm/gamma": "cls.predictions.transform.LayerNorm.weight",
    "masked_lm/layer_norm/beta": "cls.predictions.transform.LayerNorm.bias",
    "masked_lm/bias": "cls.predictions.bias",
    "next_sentence/kernel": "cls.seq_relationship.weight",
    "next_sentence/bias": "cls.seq_relationship.bias",
}
NO_DROPOUT = {**ONE_LAYER, "dropout": 0.0, "activation": "gelu_erf"}
B, L, P = 4, 12, 3


def make_batch(seed):
    """(x, y, sample weights), the last row with a slot that does not count."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(6, L + 1, B)
    padding_mask = (np.arange(L) < lengths[:, None]).astype("int32")
    x = {
        "token_ids": rng.integers(5, ONE_LAYER["vocabulary_size"], (B, L)).astype("int32")
        * padding_mask,
        "segment_ids": (np.arange(L) >= 4).astype("int32") * padding_mask,
        "padding_mask": padding_mask,
        "mask_positions": np.sort(
            [rng.choice(np.arange(1, n), P, replace=False) for n in lengths]
        ).astype("int32"),
    }
    weights = np.ones((B, P), "float32")
    weights[-1, -1] = 0
    x["mask_positions"][-1, -1] = 0
    labels = rng.integers(5, ONE_LAYER["vocabulary_size"], (B, P)).astype("int32")
    y = {"mlm": labels, "nsp": rng.integers(0, 2, B).astype("int32")}
    return x, y, {"mlm": weights, "nsp": np.ones(B, "float32")}


@pytest.fixture(scope="module")
def peer():
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=ONE_LAYER["vocabulary_size"],
        hidden_size=ONE_LAYER["hidden_dim"],
        num_hidden_layers=ONE_LAYER["num_layers"],
        num_attention_heads=ONE_LAYER["num_heads"],
        intermediate_size=ONE_LAYER["intermediate_dim"],
        max_position_embeddings=ONE_LAYER["max_sequence_length"],
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation="eager",
    )
    model = transformers.BertForPreTraining(config)
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(random_array(rng, name, tuple(parameter.shape))))
    return model


@pytest.fixture
def pretrainer(peer, tmp_path):
    peer.save_pretrained(tmp_path / "peer")
    return Pretrainer.from_preset(tmp_path / "peer", preprocessor=None)


def weights_of(peer):
    """{path of our weight: array}, without the package's own tables."""
    backbone = {
        name.removeprefix("bert."): tensor
        for name, tensor in peer.named_parameters()
        if name.startswith("bert.")
    }
    arrays = convert_transformers(backbone)
    parameters = dict(peer.named_parameters())
    for path, name in HEADS.items():
        array = parameters[name].detach().numpy()
        arrays[path] = array.T if path.endswith("kernel") else array
    return arrays


def peer_loss(peer, x, y, weights):
    """Its own loss: labels of -100 where there is no prediction."""
    import torch

    labels = np.full(x["token_ids"].shape, -100)
    rows, slots = np.nonzero(weights["mlm"])
    labels[rows, x["mask_positions"][rows, slots]] = y["mlm"][rows, slots]
    return peer(
        input_ids=torch.from_numpy(x["token_ids"]).long(),
        token_type_ids=torch.from_numpy(x["segment_ids"]).long(),
        attention_mask=torch.from_numpy(x["padding_mask"]),
        labels=torch.from_numpy(labels),
        next_sentence_label=torch.from_numpy(y["nsp"]).long(),
    ).loss


def test_twenty_steps(peer, pretrainer):
    """Same weights, batches and optimizer, no dropout: the same losses and weights after it."""
    import copy

    import torch

    peer = copy.deepcopy(peer).train()
    decayed = [p for n, p in peer.named_parameters() if p.ndim > 1]
    others = [p for n, p in peer.named_parameters() if p.ndim == 1]
    adamw = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
        lr=1e-3,
        eps=1e-6,
    )
    schedule = LinearWarmupDecay(1e-3, total_steps=40, warmup_steps=4)
    pretrainer.compile(AdamW(schedule, bias_correction=True))
    for step in range(20):
        x, y, weights = make_batch(step)
        loss = peer_loss(peer, x, y, weights)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(peer.parameters(), 1.0)
        adamw.param_groups[0]["lr"] = adamw.param_groups[1]["lr"] = float(schedule(step))
        adamw.step()
        adamw.zero_grad()
        logs = pretrainer.fit(x, y, sample_weight=weights, shuffle=False, verbose=0).history
        assert logs["loss"][0] == pytest.approx(loss.item(), abs=1e-4), f"step {step}"
    trained = {weight.path: to_numpy(weight) for weight in pretrainer.trainable_weights}
    wanted = weights_of(peer)
    assert trained.keys() == wanted.keys()
    for path, array in trained.items():
        np.testing.assert_allclose(array, wanted[path], atol=1e-4, err_msg=path)


def test_metrics(pretrainer):
    x, y, weights = make_batch(0)
    outputs = pretrainer.predict(x, verbose=0)
    pretrainer.compile()
    logs = pretrainer.evaluate(x, y, sample_weight=weights, verbose=0, return_dict=True)
    right = (outputs["mlm"].argmax(-1) == y["mlm"]) * weights["mlm"]
    assert logs["mlm_accuracy"] == pytest.approx(right.sum() / weights["mlm"].sum())
    assert logs["nsp_accuracy"] == pytest.approx((outputs["nsp"].argmax(-1) == y["nsp"]).mean())
    assert logs["loss"] == pytest.approx(logs["mlm_loss"] + logs["nsp_loss"], rel=1e-5)
    assert logs["perplexity"] == pytest.approx(np.exp(logs["mlm_loss"]), rel=1e-4)
    assert pretrainer.metrics_names == ["loss", "compile_metrics", "mlm_loss", "nsp_loss"]


def test_losses_in_logs_are_means_over_finite_batches(pretrainer):
    good, other = make_batch(0), make_batch(1)
    bad = (good[0], good[1], {**good[2], "mlm": np.full_like(good[2]["mlm"], np.nan)})

    pretrainer.compile(AdamW(0.0))

    def mean_losses(*batches):
        logs = pretrainer.fit(grain.MapDataset.source(batches), verbose=0).history
        return {name: values[0] for name, values in logs.items() if "accuracy" not in name}

    found, wanted = mean_losses(bad, good, bad, other), mean_losses(good, other)
    assert found.keys() == {"loss", "mlm_loss", "nsp_loss", "perplexity"}
    for name in ("loss", "mlm_loss", "perplexity"):
        assert found[name] == pytest.approx(wanted[name], rel=1e-6), name
    # This one was finite.
    assert found["nsp_loss"] == pytest.approx(mean_losses(good, good, good, other)["nsp_loss"])
    assert np.isnan(mean_losses(bad)["loss"])


def test_accumulated_batches_are_a_large_one():
    """If they have as many predictions each: the loss is a mean, and theirs is a mean of means."""
    batches = [make_batch(seed) for seed in range(4)]
    large = [
        keras.tree.map_structure(lambda *arrays: np.concatenate(arrays), *batches[i : i + 2])
        for i in (0, 2)
    ]

    def train(batches, **arguments):
        keras.utils.set_random_seed(0)
        task = Pretrainer(BertBackbone(**NO_DROPOUT))
        task.compile(AdamW(1e-3, **arguments))
        task.fit(grain.MapDataset.source(batches), verbose=0)
        assert int(task.optimizer.iterations) == 2
        return task.get_weights()

    found, wanted = train(batches, gradient_accumulation_steps=2), train(large)
    for array, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(array, other, atol=1e-5)


@pytest.mark.parametrize("more", [(), ("sbo",)])
def test_without_next_sentences(more):
    task = Pretrainer(BertBackbone(**ONE_LAYER), next_sentence=False, span_boundary="sbo" in more)
    task.compile()
    x, y, weights = make_batch(0)
    y, weights = {"mlm": y["mlm"]}, {"mlm": weights["mlm"]}
    logs = task.evaluate(x, y, sample_weight=weights, verbose=0, return_dict=True)
    # The names are those of a model with both heads.
    of_more = {f"{head}_{figure}" for head in more for figure in ("loss", "accuracy")}
    assert logs.keys() == {"loss", "mlm_loss", "mlm_accuracy", "perplexity"} | of_more
    assert sum(logs[f"{head}_loss"] for head in ("mlm", *more)) == pytest.approx(logs["loss"])
    assert logs["perplexity"] == pytest.approx(np.exp(logs["mlm_loss"]), rel=1e-4)
    assert set(task.predict(x, verbose=0)) == {"mlm", *more}


def test_without_next_sentences_the_pooler_is_left_alone(tmp_path):
    """Neither decayed, as zero gradients would under JAX, nor warned of."""
    task = Pretrainer(BertBackbone(**ONE_LAYER), next_sentence=False)
    task.compile(AdamW(1e-2, weight_decay=0.5))
    before = task.backbone.get_weights()
    x, y, weights = make_batch(0)
    del y["nsp"], weights["nsp"]
    task.fit(grain.MapDataset.source([(x, y, weights)] * 2), verbose=0)
    names = [variable.path for variable in task.backbone.weights]
    same = [
        name
        for name, old, new in zip(names, before, task.backbone.get_weights(), strict=True)
        if np.array_equal(old, new)
    ]
    assert same == [name for name in names if "pooler" in name] and len(same) == 2
    assert len(task.trainable_weights) + len(task.non_trainable_weights) == len(task.weights)
    # It is the pretrainer's way, not the backbone's.
    assert all(variable.trainable for variable in task.backbone.weights)
    task.save(tmp_path / "task.keras")
    again = keras.saving.load_model(tmp_path / "task.keras")
    assert len(again.optimizer.variables) == len(task.optimizer.variables)


def test_the_embedding_is_shared():
    task = Pretrainer(BertBackbone(**ONE_LAYER))
    tables = [w for w in task.weights if tuple(w.shape) == (ONE_LAYER["vocabulary_size"], 16)]
    assert [w.path for w in tables] == ["embeddings/token_embedding/embeddings"]
    decays = AdamW()
    decays.build(task.trainable_weights)
    assert {w.path for w in task.trainable_weights if decays.decay_of(w)} >= {
        *("masked_lm/transform/kernel", "next_sentence/kernel"),
    }
    assert not any(decays.decay_of(w) for w in task.trainable_weights if len(w.shape) == 1)


def test_a_preset_with_or_without_next_sentences(pretrainer, tmp_path):
    x, _, _ = make_batch(0)
    wanted = pretrainer.predict(x, verbose=0)["mlm"]
    pretrainer.save_to_preset(str(tmp_path / "with"))
    task = Pretrainer.from_preset(str(tmp_path / "with"), preprocessor=None, next_sentence=False)
    task.save_to_preset(str(tmp_path / "without"))
    outputs = Pretrainer.from_preset(str(tmp_path / "without"), preprocessor=None).predict(
        x, verbose=0
    )
    assert outputs.keys() == {"mlm"}
    np.testing.assert_array_equal(outputs["mlm"], wanted)
    with pytest.warns(UserWarning, match="has no head for pairs of texts"):
        task = Pretrainer.from_preset(
            str(tmp_path / "without"), preprocessor=None, next_sentence=True
        )
    outputs = task.predict(x, verbose=0)
    assert outputs.keys() == {"mlm", "nsp"}
    np.testing.assert_array_equal(outputs["mlm"], wanted)


def test_a_checkpoint_of_masked_tokens_alone(peer, tmp_path):
    import transformers

    alone = transformers.BertForMaskedLM(peer.config)
    alone.save_pretrained(tmp_path)
    with pytest.warns(UserWarning, match="no weights for pooler"):
        task = Pretrainer.from_preset(tmp_path, preprocessor=None)
    assert not task.next_sentence and task.next_sentence_head is None


def test_pairs_of_texts_need_their_head():
    task = Pretrainer(BertBackbone(**ONE_LAYER), next_sentence=False)
    task.compile("adam")
    x = {name: np.ones((2, 6), "int32") for name in ("token_ids", "segment_ids", "padding_mask")}
    x["mask_positions"] = np.ones((2, 1), "int32")
    y = {"mlm": np.ones((2, 1), "int32"), "nsp": np.zeros(2, "int32")}
    for run in (task.fit, task.evaluate):
        with pytest.raises(ValueError, match="mode='full_sentences'.*next_sentence=True"):
            run(x, y, verbose=0)
    task.fit(x, {"mlm": y["mlm"]}, verbose=0)


def test_heads_that_a_checkpoint_lacks_are_new(peer, tmp_path):
    peer.bert.save_pretrained(tmp_path / "bare")
    with pytest.warns(UserWarning, match="no weights for masked_lm/.*next_sentence/"):
        task = Pretrainer.from_preset(tmp_path / "bare", preprocessor=None)
    assert to_numpy(task.next_sentence_head.bias).tolist() == [0, 0]
    # A backbone alone takes what it needs from a checkpoint with heads.
    peer.save_pretrained(tmp_path / "heads")
    BertBackbone.from_preset(tmp_path / "heads")


def test_a_head_with_a_part_missing_is_refused(peer, tmp_path):
    from safetensors.torch import load_file, save_file

    peer.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["cls.predictions.transform.LayerNorm.bias"]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match="LayerNorm.bias: missing"):
        Pretrainer.from_preset(tmp_path, preprocessor=None)


def test_google_checkpoint():
    google_tf1_toy = Path(__file__).resolve().parents[1] / "checkpoints" / "google_tf1_toy"
    task = Pretrainer.from_preset(google_tf1_toy)
    checkpoint = open_checkpoint(google_tf1_toy)
    table = checkpoint.tensor("cls/seq_relationship/output_weights")
    np.testing.assert_array_equal(to_numpy(task.next_sentence_head.kernel), table.T)
    bias = checkpoint.tensor("cls/predictions/output_bias")
    np.testing.assert_array_equal(to_numpy(task.masked_lm.bias), bias)
    load_weights(task.backbone, checkpoint)


def test_bfloat16(pretrainer):
    config = {**pretrainer.backbone.get_config(), "dtype": "mixed_bfloat16"}
    task = Pretrainer(BertBackbone.from_config(config))
    task.set_weights(pretrainer.get_weights())
    x, y, weights = make_batch(0)
    task.compile()
    pretrainer.compile()
    half, full = (t.evaluate(x, y, sample_weight=weights, verbose=0) for t in (task, pretrainer))
    assert half[0] == pytest.approx(full[0], rel=0.02)
    assert keras.backend.standardize_dtype(task(x)["mlm"].dtype) == "bfloat16"


@pytest.mark.long("combinations")
def test_it_learns():
    """Rows of one word each, which the others tell of the masked one."""
    task = Pretrainer(BertBackbone(**{**ONE_LAYER, "num_layers": 2, "dropout": 0.0}))
    rng = np.random.default_rng(0)
    words = rng.integers(5, 15, (512, 1)).astype("int32")
    token_ids = np.repeat(words, 8, axis=1)
    positions = rng.integers(0, 8, (512, 1)).astype("int32")
    np.put_along_axis(token_ids, positions, 4, axis=1)
    x = {
        "token_ids": token_ids,
        "segment_ids": np.zeros_like(token_ids),
        "padding_mask": np.ones_like(token_ids),
        "mask_positions": positions,
    }
    y = {"mlm": words, "nsp": (words[:, 0] > 9).astype("int32")}
    task.compile(AdamW(LinearWarmupDecay(3e-3), bias_correction=True))
    task.fit(x, y, batch_size=32, epochs=20, verbose=0)
    logs = task.evaluate(x, y, verbose=0, return_dict=True)
    assert logs["mlm_accuracy"] > 0.95 and logs["nsp_accuracy"] > 0.95
    assert logs["perplexity"] < 2


def test_fill_mask(tmp_path):
    task = make_reader()
    assert task.fill_mask([]) == []
    first, second = task.fill_mask(["the [MASK] was [MASK]!", "a [MASK]"], top_k=3)
    assert [len(first), len(second)] == [2, 1] and all(len(guesses) == 3 for guesses in first)
    packed = task.preprocessor(["a x"])
    packed["token_ids"][0, 2] = task.preprocessor.tokenizer.mask_token_id
    logits = task.predict({**packed, "mask_positions": np.array([[2]])}, verbose=0)["mlm"][0, 0]
    softmax = np.exp(logits) / np.exp(logits).sum()
    tokens = np.argsort(-softmax)[:3]
    names = task.preprocessor.tokenizer.get_vocabulary()
    assert [token for token, _ in second[0]] == [names[token] for token in tokens]
    np.testing.assert_allclose([p for _, p in second[0]], softmax[tokens], rtol=1e-4)
    task.save_to_preset(str(tmp_path / "preset"))
    twin = Pretrainer.from_preset(str(tmp_path / "preset"))
    (again,) = twin.fill_mask(["a [MASK]"], top_k=3)
    assert [token for token, _ in again[0]] == [token for token, _ in second[0]]


def test_fill_mask_of_bad_texts():
    task = make_reader()
    with pytest.raises(ValueError, match="'a film' has no \\[MASK\\]"):
        task.fill_mask(["a film"])
    with pytest.warns(UserWarning, match="beyond sequence_length=16 get no guesses: 1"):
        assert task.fill_mask(["film " * 30 + "[MASK]"]) == [[]]
    task.preprocessor = None
    with pytest.raises(ValueError, match="no preprocessor"):
        task.fill_mask(["a [MASK]"])


def make_reader():
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), sequence_length=16)
    task = Pretrainer(BertBackbone(**ONE_LAYER), preprocessor=packer)
    randomize(task)
    return task


def test_pairs_of_texts(peer):
    """`predict` says of them what transformers' head for pairs says."""
    import torch

    pretrainer = Pretrainer(BertBackbone(**NO_DROPOUT))
    with pytest.raises(ValueError, match="no preprocessor to pack texts"):
        pretrainer.predict((["a"], ["b"]), verbose=0)
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 16)
    pretrainer = Pretrainer(BertBackbone(**NO_DROPOUT), preprocessor=packer)
    arrays = weights_of(peer)
    for weight in pretrainer.weights:
        weight.assign(arrays[weight.path])
    pairs = (["the good film", "a", "bad plot"], ["it was dull", "film", "the film was good"])
    packed = {name: torch.tensor(np.array(x)) for name, x in packer.pack(*pairs).items()}
    with torch.no_grad():
        wanted = peer.eval()(
            packed["token_ids"], packed["padding_mask"], packed["segment_ids"]
        ).seq_relationship_logits.numpy()
    for size in (2, 8):
        found = pretrainer.predict(pairs, batch_size=size, verbose=0)
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert pretrainer.predict(([], []), verbose=0).shape == (0, 2)
    with pytest.raises(ValueError, match="`predict` of a Pretrainer with a head for pairs"):
        pretrainer.predict(pairs[0], verbose=0)
    with pytest.raises(ValueError, match="takes packed and masked batches, got texts"):
        pretrainer.fit(pairs, {"nsp": [0, 0, 0]}, verbose=0)
    alone = Pretrainer(BertBackbone(**NO_DROPOUT), next_sentence=False, preprocessor=packer)
    with pytest.raises(ValueError, match="takes packed and masked batches, got texts"):
        alone.predict(pairs, verbose=0)
