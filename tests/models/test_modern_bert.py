"""What is special about ModernBERT: its sizes, its files of other versions, its long rows."""

import json

import keras
import numpy as np
import pytest
import transformers
from family import MEMBERS, run_peer
from heads.cases import NUM_ROWS
from peer_weights import to_numpy
from portable_runtimes import run_onnx
from small_tasks import MODERN_BERT, compile_model, make_task, predict, predicted_columns
from tables import everywhere_for

from keras_bert_suite import (
    ModernBertBackbone,
    Pretrainer,
    ScalarMix,
    TextClassifier,
    encode_with_attention,
    export_onnx,
)
from keras_bert_suite.checkpoints import save_google_tf1, save_hugging_face, save_keras_hub
from keras_bert_suite.layers.attention.local_attention import _FEW_BLOCKS

pytestmark = pytest.mark.filterwarnings("ignore:.*has no weights for.*pooler")

MEMBER = MEMBERS["modernbert"]
BIASES = ("attention_bias", "mlp_bias", "norm_bias", "classifier_bias")
SIZES = {"num_layers": 4, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 6}


def test_the_defaults_are_those_of_the_base_size():
    sizes = ModernBertBackbone.sizes["base"]
    names = {"num_layers": "num_hidden_layers", "num_heads": "num_attention_heads"}
    names.update(hidden_dim="hidden_size", intermediate_dim="intermediate_size")
    config = transformers.ModernBertConfig(**{names[n]: v for n, v in sizes.items()})
    assert config.to_dict() == transformers.ModernBertConfig().to_dict()


def test_unknown_size_pooling_or_layer_type():
    with pytest.raises(ValueError, match="size must be one of base, large, got 'tiny'"):
        ModernBertBackbone.from_size("tiny", vocabulary_size=9)
    with pytest.raises(ValueError, match="pooling must be one of cls, mean, got 'max'"):
        ModernBertBackbone(9, **SIZES, pooling="max")
    with pytest.raises(ValueError, match="layer_types must be 4 names, .* got .*'full'"):
        ModernBertBackbone(9, **SIZES, layer_types=["full"] * 4)
    with pytest.raises(ValueError, match="head_activation must be a callable .* got 'glue'"):
        ModernBertBackbone(9, **SIZES, head_activation="glue")


def test_rows_of_several_blocks_equal_transformers(tmp_path):
    """Longer rows than those that a local layer computes as a whole."""
    length = _FEW_BLOCKS * 2 + 9
    peer = MEMBER.save_peer(tmp_path, max_position_embeddings=64)
    backbone = ModernBertBackbone.from_preset(tmp_path)
    rng = np.random.default_rng(0)
    mask = np.ones((2, length), "int32")
    mask[1, 11:] = 0
    ids = rng.integers(5, MEMBER.vocabulary_size, mask.shape) * mask
    inputs = {"token_ids": ids.astype("int32"), "padding_mask": mask}
    expected = run_peer(peer, inputs).last_hidden_state.detach().numpy()
    got = to_numpy(backbone(inputs)["sequence_output"])
    np.testing.assert_allclose(got[mask == 1], expected[mask == 1], rtol=0, atol=1e-5)


@pytest.mark.parametrize("bias", BIASES)
def test_mean_pooling_and_a_bias(bias, tmp_path):
    peer = MEMBER.save_peer(
        tmp_path / "peer", "ForSequenceClassification", classifier_pooling="mean", **{bias: True}
    )
    task = TextClassifier.from_preset(tmp_path / "peer")
    inputs = MEMBER.make_inputs()
    expected = run_peer(peer, inputs).logits.detach().numpy()
    np.testing.assert_allclose(to_numpy(task(inputs)), expected, rtol=0, atol=1e-5)
    save_hugging_face(task, tmp_path / "again")
    again = transformers.AutoConfig.from_pretrained(tmp_path / "again")
    assert again.classifier_pooling == "mean"
    assert [name for name in BIASES if getattr(again, name)] == [bias]


def test_files_of_older_versions(tmp_path):
    """They have numbers in place of `layer_types` and `rope_parameters`."""
    MEMBER.save_peer(tmp_path, num_hidden_layers=4, layer_types=None)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    expected = ModernBertBackbone.from_preset(tmp_path, load_weights=False).get_config()
    del config["layer_types"], config["rope_parameters"]
    config.update(global_attn_every_n_layers=3, global_rope_theta=500.0, local_rope_theta=10.0)
    full, local = "full_attention", "sliding_attention"
    for absent in (None, "global_attn_every_n_layers"):  # Every third is the default.
        config.pop(absent, None)
        path.write_text(json.dumps(config))
        got = ModernBertBackbone.from_preset(tmp_path, load_weights=False).get_config()
        assert {**got, "name": None} == {**expected, "name": None}
        assert got["layer_types"] == [full, local, local, full]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"decoder_bias": False}, "'decoder_bias' in .* only True can be read"),
        ({"classifier_pooling": "max"}, "'classifier_pooling' in .* 'cls' or 'mean'"),
        ({"layer_types": ["full_attention"]}, "'layer_types' in .* a list of 3 names"),
        (
            {"rope_parameters": {"full_attention": {"rope_type": "yarn", "factor": 2.0}}},
            "'rope_parameters' in .* for 'full_attention' .*yarn",
        ),
    ],
)
def test_dials_that_we_do_not_have(fields, message, tmp_path):
    MEMBER.save_peer(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
    with pytest.raises(ValueError, match=message):
        ModernBertBackbone.from_preset(tmp_path)


def test_the_head_of_pretraining_is_there_for_fine_tuning(tmp_path):
    """As in transformers, whose heads all have the layer `head`."""
    peer = MEMBER.save_peer(tmp_path, "ForMaskedLM")
    task = TextClassifier.from_preset(tmp_path, num_classes=2)
    kernel = to_numpy(task.backbone.pooler.dense.kernel)
    np.testing.assert_array_equal(kernel, peer.head.dense.weight.detach().numpy().T)


def test_the_shared_head_is_trained_once_and_saved_once(tmp_path):
    pretrainer = Pretrainer(ModernBertBackbone(9, **SIZES), next_sentence=False)
    paths = [variable.path for variable in pretrainer.trainable_variables]
    assert len(set(paths)) == len(paths) and "pooler/dense/kernel" in paths
    pretrainer.save(tmp_path / "task.keras")
    again = keras.saving.load_model(tmp_path / "task.keras")
    inputs = {
        "token_ids": np.arange(6, dtype="int32").reshape(2, 3),
        "padding_mask": np.ones((2, 3), "int32"),
        "mask_positions": np.array([[1], [2]], "int32"),
    }
    expected, got = (to_numpy(model(inputs)["mlm"]) for model in (pretrainer, again))
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6)
    assert again.masked_lm.shared_transform is again.backbone.pooler


@pytest.mark.parametrize(
    "task",
    [
        *everywhere_for(["texts", "words", "masks"]),
        *(
            pytest.param(task, marks=pytest.mark.long("combinations"))
            for task in ("questions", "choices", "vectors")
        ),
    ],
)
def test_every_kind_of_head_trains_with_remat(task):
    """In packed rows, as without either; and predicts."""
    losses = []
    for remat in (False, True):
        keras.utils.set_random_seed(0)
        model, (x, y, *_) = make_task(task, MODERN_BERT, remat=remat)
        compile_model(model)
        history = model.fit(x, y, batch_size=NUM_ROWS, verbose=0, sequence_packing=remat)
        losses.append(history.history["loss"][0])
    np.testing.assert_allclose(*losses, rtol=1e-5)
    assert len(predict(model, x=predicted_columns(model, x))) == NUM_ROWS


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_onnx(tmp_path):
    """The sizes of rows are open, so a local layer is computed block by block."""
    pytest.importorskip("tf2onnx")
    task, (x, _) = make_task("texts", MODERN_BERT)
    export_onnx(task, tmp_path / "1")
    rows = task.preprocessor(x)
    for length in (16, 15, 3):  # whole blocks, and others
        inputs = {name: array[:, :length] for name, array in rows.items()}
        got = run_onnx(tmp_path / "1", inputs)["probabilities"]
        expected = keras.ops.softmax(task.predict(inputs, verbose=0))
        np.testing.assert_allclose(got, to_numpy(expected), rtol=0, atol=1e-5)


def test_attentions_and_hidden_states_are_those_of_transformers(tmp_path):
    """The last hidden states come after the last norm."""
    peer = MEMBER.save_peer(tmp_path, attn_implementation="eager")
    backbone = ModernBertBackbone.from_preset(tmp_path)
    inputs = MEMBER.make_inputs()
    got = encode_with_attention(backbone, inputs)
    peer.config.output_attentions = peer.config.output_hidden_states = True
    expected = run_peer(peer, inputs)
    for name, wanted in (
        ("attentions", expected.attentions),
        ("hidden_states", expected.hidden_states),
    ):
        for ours, theirs in zip(got[name], wanted, strict=True):
            # the row without padding
            theirs = theirs[1].detach().numpy()
            np.testing.assert_allclose(ours[1], theirs, rtol=0, atol=1e-5, err_msg=name)


def test_a_mix_of_all_layers_trains_the_last_norm():
    classifier = TextClassifier(
        ModernBertBackbone(9, **SIZES), num_classes=2, pooling=ScalarMix(), preprocessor=None
    )
    assert not any(path.startswith("final_norm/") for path in classifier.unused_paths)
    assert any(path.startswith("pooler/") for path in classifier.unused_paths)


@pytest.mark.parametrize("name", ["masks", "patterns", "pretraining"])
def test_a_head_on_guesses_of_tokens_trains_the_layer_before_them(name):
    """The dense layer and the norm of transformers' `ModernBertPredictionHead`."""
    task, _ = make_task(name, MODERN_BERT)
    paths = {weight.path for weight in task.backbone.token_transform.weights}
    assert paths and paths <= {weight.path for weight in task.trainable_variables}


def test_kerashub_has_no_such_model(tmp_path):
    with pytest.raises(ValueError, match="computes the same as ModernBertBackbone"):
        save_keras_hub(ModernBertBackbone(9, **SIZES), tmp_path / "preset")
    with pytest.raises(ValueError, match="Google's format can hold .*ModernBertBackbone"):
        save_google_tf1(ModernBertBackbone(9, **SIZES), tmp_path / "google")
