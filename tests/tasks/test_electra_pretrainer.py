"""ELECTRA's pretraining beside plain PyTorch code on transformers' models of both parts."""

import keras
import numpy as np
import pytest
import torch
import transformers
from family import MEMBERS
from peer_weights import randomize, to_numpy
from safetensors.numpy import load_file

from keras_bert_suite import ElectraBackbone, ElectraPretrainer, TextClassifier
from keras_bert_suite.checkpoints import save_hugging_face
from keras_bert_suite.layers import ReplacementSampler

V, L, RATE = 24, 10, 0.1
SIZES = {"num_layers": 2, "num_heads": 4, "hidden_dim": 16, "intermediate_dim": 32}


def build(**arguments):
    backbone = ElectraBackbone(
        V, **SIZES, embedding_dim=8, dropout=0.0, max_sequence_length=12, **arguments
    )
    return randomize(ElectraPretrainer(backbone))


def make_batch():
    """Rows with padding, with unused slots, and with a masked token that is kept."""
    inputs = MEMBERS["electra"].make_inputs()
    positions = np.array([[1, 3, 4], [2, 9, 0], [1, 0, 0]], "int32")
    originals = np.where(positions, np.take_along_axis(inputs["token_ids"], positions, 1), 0)
    ids = inputs["token_ids"].copy()
    np.put_along_axis(ids, positions, np.where(positions, 4, ids[:, :1]), axis=1)
    ids[0, 1] = inputs["token_ids"][0, 1]
    x = {**inputs, "token_ids": ids, "mask_positions": positions}
    weights = (positions > 0).astype("float32")
    return x, {"mlm": originals.astype("int32")}, {"mlm": weights}


def to_torch(x):
    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids"}
    names["padding_mask"] = "attention_mask"
    return {name: torch.from_numpy(np.asarray(x[key])).long() for key, name in names.items()}


def export(pretrainer, path):
    """The (generator, discriminator) of transformers, read from written checkpoints."""
    save_hugging_face(pretrainer.make_masked_lm(), path / "generator")
    save_hugging_face(pretrainer.discriminator, path / "discriminator")
    names = load_file(path / "discriminator" / "model.safetensors")
    assert not any(name.startswith("sequence_summary.") for name in names)  # the untrained pooler
    generator = transformers.AutoModelForMaskedLM.from_pretrained(path / "generator")
    discriminator = transformers.AutoModelForPreTraining.from_pretrained(path / "discriminator")
    assert type(generator) is transformers.ElectraForMaskedLM
    assert type(discriminator) is transformers.ElectraForPreTraining
    return generator, discriminator


def test_a_step_equals_plain_code_on_transformers(tmp_path):
    pretrainer = build()
    pretrainer.compile(keras.optimizers.SGD(RATE))
    assert pretrainer.generator.num_heads == 1 and pretrainer.generator.hidden_dim == 4
    generator, discriminator = export(pretrainer, tmp_path)
    # Google shares tables and norm. The projection is the model's own.
    generator.electra.embeddings = discriminator.electra.embeddings
    generator.generator_lm_head.weight = discriminator.electra.embeddings.word_embeddings.weight
    # Padding may be drawn as a replacement. transformers would give it no gradient.
    discriminator.electra.embeddings.word_embeddings.padding_idx = None
    x, y, weights = make_batch()

    # The tokens of the step to come, which are then drawn again.
    state = pretrainer.sampler.seed_generator.state
    before = to_numpy(state)
    replaced = to_numpy(pretrainer(x, training=True)["token_ids"])
    state.assign(before)
    logs = pretrainer.train_on_batch(x, y, sample_weight=weights, return_dict=True)

    positions = torch.from_numpy(x["mask_positions"]).long()
    logits = generator(**to_torch(x)).logits
    picked = torch.take_along_dim(logits, positions[..., None], 1)[positions > 0]
    originals = torch.from_numpy(y["mlm"]).long()[positions > 0]
    mlm = torch.nn.functional.cross_entropy(picked, originals)
    unmasked = MEMBERS["electra"].make_inputs()["token_ids"]
    labels = torch.from_numpy((replaced != unmasked) & (x["padding_mask"] > 0))
    assert 0 < labels.sum() <= (x["mask_positions"] > 0).sum()
    rtd = discriminator(**to_torch({**x, "token_ids": replaced}), labels=labels.long()).loss
    loss = mlm + 50 * rtd
    loss.backward()
    for name, wanted in (("mlm_loss", mlm), ("rtd_loss", rtd), ("loss", loss)):
        np.testing.assert_allclose(logs[name], wanted.item(), rtol=1e-4, err_msg=name)
    parameters = {*generator.parameters(), *discriminator.parameters()}
    torch.optim.SGD(parameters, lr=RATE).step()
    (tmp_path / "after").mkdir()
    export(pretrainer, tmp_path / "after")
    for part, model in (("generator", generator), ("discriminator", discriminator)):
        got = load_file(tmp_path / "after" / part / "model.safetensors")
        for name, parameter in model.named_parameters():
            np.testing.assert_allclose(
                got[name], parameter.detach().numpy(), rtol=0, atol=1e-4, err_msg=name
            )


def test_embeddings_are_shared_and_the_poolers_rest():
    pretrainer = build()
    assert pretrainer.masked_lm.token_embedding is pretrainer.backbone.token_embedding
    paths = [variable.path for variable in pretrainer.variables]
    assert len(paths) == len(set(paths))
    trained = {variable.path for variable in pretrainer.trainable_variables}
    assert "embeddings/token_embedding/embeddings" in trained
    assert "generator/embeddings/projection/kernel" in trained
    assert not any("pooler" in path for path in trained)
    assert not any("generator/embeddings/token" in path for path in paths)


def test_frozen_embeddings_stay_frozen(tmp_path):
    backbone = build().backbone
    backbone.embeddings.trainable = False
    pretrainer = ElectraPretrainer(backbone, 0.5)
    pretrainer.save(tmp_path / "pretrainer.keras")
    again = keras.saving.load_model(tmp_path / "pretrainer.keras")
    for task in (pretrainer, again):
        trained = {variable.path for variable in task.trainable_variables}
        assert not any(path.startswith("embeddings/") for path in trained)
        assert "generator/transformer_layer_0/intermediate/kernel" in trained


def test_the_generator_computes_twice_what_the_discriminator_does():
    pretrainer = build()
    pretrainer.backbone.remat = True
    pretrainer.compile(keras.optimizers.SGD(RATE))
    assert pretrainer.generator.remat
    pretrainer.backbone.remat = False
    pretrainer.compile(keras.optimizers.SGD(RATE))
    assert not pretrainer.generator.remat


def test_samples_follow_the_softmax_of_the_logits():
    """10,000 draws from one distribution, and no draw for slots without a prediction."""
    rng = np.random.default_rng(0)
    row = rng.standard_normal(6)
    logits = np.tile(row, (2, 5000, 1)).astype("float32")
    positions = np.tile(np.arange(1, 5001, dtype="int32"), (2, 1))
    positions[:, -1] = 0
    token_ids = np.full((2, 5001), 9, "int32")
    sampler = ReplacementSampler(seed=0)
    first, second = (to_numpy(sampler(token_ids, positions, logits, training=True)) for _ in "ab")
    assert (first != second).mean() > 0.5
    assert (first[:, [0, -1]] == 9).all()
    shares = np.bincount(first[:, 1:-1].ravel(), minlength=6) / first[:, 1:-1].size
    np.testing.assert_allclose(shares, np.exp(row) / np.exp(row).sum(), atol=0.02)
    again = ReplacementSampler(seed=0)(token_ids, positions, logits, training=True)
    np.testing.assert_array_equal(to_numpy(again), first)
    still, same = (to_numpy(sampler(token_ids, positions, logits)) for _ in "ab")
    np.testing.assert_array_equal(still, same)


def test_a_drawn_original_counts_as_the_original():
    x = {"mask_positions": np.array([[2, 4, 0]]), "padding_mask": np.array([[1, 1, 1, 1, 1, 0]])}
    seen = np.array([[7, 8, 9, 5, 6, 3]])
    y_pred = {"mlm": None, "rtd": np.zeros((1, 6), "float32"), "token_ids": seen}
    y, _, weights = ElectraPretrainer.relabel(None, x, {"mlm": np.array([[9, 5, 0]])}, y_pred, None)
    np.testing.assert_array_equal(to_numpy(y["rtd"]), [[0, 0, 0, 0, 1, 0]])
    np.testing.assert_array_equal(to_numpy(weights["rtd"]), [[1, 1, 1, 1, 1, 0]])


@pytest.mark.filterwarnings("ignore:.*has no weights for.*pooler")
def test_learns_and_is_read_again(tmp_path):
    pretrainer = build()
    pretrainer.compile(keras.optimizers.Adam(0.01))
    x, y, weights = make_batch()
    history = pretrainer.fit(x, y, sample_weight=weights, epochs=15, batch_size=3, verbose=0)
    assert history.history["loss"][-1] < 0.7 * history.history["loss"][0]
    assert {"mlm_accuracy", "rtd_accuracy", "rtd_recall", "perplexity"} <= history.history.keys()
    packed = pretrainer.fit(
        x, y, sample_weight=weights, batch_size=3, sequence_packing=True, verbose=0
    )
    assert np.isfinite(packed.history["loss"]).all()
    pretrainer.save_to_preset(str(tmp_path / "preset"))
    again = ElectraPretrainer.from_preset(tmp_path / "preset", preprocessor=None)
    for name, wanted in pretrainer.predict(x, verbose=0).items():
        np.testing.assert_allclose(again.predict(x, verbose=0)[name], wanted, atol=1e-6)
    # The discriminator's checkpoint goes on here, and is fine-tuned.
    save_hugging_face(pretrainer.discriminator, tmp_path / "discriminator")
    with pytest.warns(UserWarning, match="holds one encoder, .* The generator is new"):
        other = ElectraPretrainer.from_preset(tmp_path / "discriminator", preprocessor=None)
    inputs = {name: x[name] for name in pretrainer.backbone.input_names}
    np.testing.assert_allclose(
        to_numpy(other.discriminator(inputs)), to_numpy(pretrainer.discriminator(inputs)), atol=1e-6
    )
    classifier = TextClassifier.from_preset(
        tmp_path / "discriminator", num_classes=2, preprocessor=None
    )
    assert type(classifier.backbone) is ElectraBackbone


def test_wrong_arguments_are_refused():
    backbone = MEMBERS["bert"].backbone(V, **SIZES)
    with pytest.raises(ValueError, match="trains an ElectraBackbone, got a BertBackbone"):
        ElectraPretrainer(backbone)
    with pytest.raises(ValueError, match="generator_width"):
        ElectraPretrainer(ElectraBackbone(V, **SIZES), generator_width=0.0)
    with pytest.raises(ValueError, match="generator_width must be .* got 'small'"):
        ElectraPretrainer(ElectraBackbone(V, **SIZES), generator_width="small")
    with pytest.raises(ValueError, match="seed must be .* below 2147483648, got 2147483648"):
        ElectraPretrainer(ElectraBackbone(V, **SIZES), seed=2**31)
    with pytest.raises(ValueError, match="takes packed and masked batches, got texts"):
        build().predict(["a text"], verbose=0)


def test_losses_and_metrics_of_keras_count_the_tokens():
    """By their names they are those of the task, which leave padding and unused slots out."""
    x, y, weights = make_batch()
    own = {
        "loss": {"mlm": "sparse_categorical_crossentropy", "rtd": "binary_crossentropy"},
        "metrics": {"mlm": ["acc"], "rtd": ["acc", keras.metrics.Recall(name="recall")]},
        "weighted_metrics": {"rtd": ["binary_accuracy"]},
    }
    found = []
    for arguments in ({}, own):
        keras.utils.set_random_seed(0)
        pretrainer = build()  # Its sampler draws the same tokens.
        pretrainer.compile(keras.optimizers.SGD(0.0), **arguments)
        found.append(pretrainer.evaluate(x, y, sample_weight=weights, verbose=0, return_dict=True))
    wanted, got = found
    for name, ours in (
        *(("rtd_acc", "rtd_accuracy"), ("rtd_binary_accuracy", "rtd_accuracy")),
        *(("mlm_acc", "mlm_accuracy"), ("rtd_recall", "rtd_recall")),
        *(("rtd_loss", "rtd_loss"), ("mlm_loss", "mlm_loss")),
    ):
        assert got[name] == pytest.approx(wanted[ours], rel=1e-3)
    with pytest.raises(ValueError, match="has several outputs. Pass a dict"):
        pretrainer.compile(metrics=[["acc"], ["acc"]])
