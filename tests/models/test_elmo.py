"""`ElmoBackbone` beside the outputs of the original code, and what it does as an encoder."""

import json
import shutil
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest
from checkers import check_backbone, check_layer
from peer_weights import randomize, to_numpy

from keras_bert_suite import (
    ElmoBackbone,
    MeanPooling,
    ScalarMix,
    TextClassifier,
    TextEmbedder,
    TokenClassifier,
)
from keras_bert_suite.checkpoints import save_google_tf1, save_hugging_face, save_keras_hub
from keras_bert_suite.layers import CharacterEmbeddings, ProjectedLSTM

ORIGINAL = Path(__file__).parent / "elmo_bilm"
SIZES = {"num_layers": 2, "units": 6, "projection_dim": 4}
CHARACTERS = {"filters": [(1, 3), (2, 4)], "embedding_dim": 2, "max_characters": 5}
#: A row with padding, a full row, and a row of one token.
MASK = np.array([[1, 1, 1, 0, 0], [1] * 5, [1, 0, 0, 0, 0]], "int32")
INPUTS = {
    "token_ids": np.array([[3, 5, 4, 0, 0], [6, 7, 8, 1, 2], [9, 0, 0, 0, 0]], "int32"),
    "padding_mask": MASK,
}


def make_backbone(**arguments):
    return randomize(ElmoBackbone(**{"vocabulary_size": 10, **SIZES, **arguments}))


def list_characters(token):
    """The characters of a token in the numbers of the original, transcribed from its data.py."""
    inner = {"<S>": [256], "</S>": [257]}.get(token) or list(token.encode()[:48])
    word = [258, *inner, 259]
    return np.array(word + [260] * (50 - len(word))) + 1


@pytest.mark.every_backend
def test_the_outputs_of_the_original_code():
    """Three of the ten batches of three sentences; the states are carried from batch to batch."""
    sentences = json.loads((ORIGINAL / "lm_embeddings_sentences.json").read_text())
    backbone = ElmoBackbone.from_preset(ORIGINAL)
    model = backbone.make_stateful_model()
    model.compile()
    states = np.zeros((3, *model.input["states"].shape[1:]), "float32")
    worst = 0.0
    for i in range(3):
        rows = [["<S>", *sentences[k][i].split(), "</S>"] for k in range(3)]
        characters = np.zeros((3, 56, 50), "int32")  # One length, so that a backend compiles once.
        mask = np.zeros((3, 56), "int32")
        for k, row in enumerate(rows):
            characters[k, : len(row)] = [list_characters(token) for token in row]
            mask[k, : len(row)] = 1
        packed = {"character_ids": characters, "padding_mask": mask, "states": states}
        outputs = model.predict_on_batch(packed)
        states = np.array(outputs["states"])
        for k, row in enumerate(rows):
            with h5py.File(ORIGINAL / f"lm_embeddings_{k}.hdf5") as file:
                wanted = np.concatenate(file[str(i)][()], axis=-1)
            got = outputs["hidden_states"][-1][k, 1 : len(row) - 1]
            worst = max(worst, np.abs(got - wanted).max())
    assert worst < 1e-6


@pytest.mark.parametrize("characters", [None, CHARACTERS], ids=["tokens", "characters"])
def test_the_encoder(characters):
    inputs = INPUTS
    if characters:
        ids = np.random.default_rng(0).integers(1, 262, (*MASK.shape, 5)).astype("int32")
        inputs = {"character_ids": ids * MASK[:, :, None], "padding_mask": MASK}
    backbone = make_backbone(
        vocabulary_size=None if characters else 10, characters=characters, dropout=0.0
    )
    whole = backbone(inputs)
    assert np.abs(to_numpy(whole["sequence_output"])[MASK == 0]).max() == 0.0
    for k, length in enumerate(MASK.sum(axis=1)):
        # A row by itself, without padding, and with padding on the left.
        alone = {name: array[k : k + 1, :length] for name, array in inputs.items()}
        shifted = {
            name: np.pad(array, [(0, 0), (2, 0), *[(0, 0)] * (array.ndim - 2)])
            for name, array in alone.items()
        }
        for given, begin in ((alone, 0), (shifted, 2)):
            outputs = backbone(given)
            got = to_numpy(outputs["sequence_output"])[0, begin:]
            wanted = to_numpy(whole["sequence_output"])[k, :length]
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)
        forward, backward = backbone.split_directions(wanted)
        wanted = np.concatenate([forward[-1], backward[0]])
        got = to_numpy(whole["pooled_output"])[k]
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)


def test_each_direction_sees_its_side():
    backbone, changed = make_backbone(), {**INPUTS, "token_ids": INPUTS["token_ids"].copy()}
    changed["token_ids"][1, 2] = 4
    states = [to_numpy(backbone(given)["sequence_output"])[1] for given in (INPUTS, changed)]
    forward, backward = (
        np.abs(ours - theirs).max(axis=-1) > 0
        for ours, theirs in zip(*map(backbone.split_directions, states), strict=True)
    )
    assert forward.tolist() == [False, False, True, True, True]
    assert backward.tolist() == [True, True, True, False, False]


def test_states_go_on_where_a_batch_has_ended():
    backbone = make_backbone()
    model = backbone.make_stateful_model()
    states = np.zeros((3, 2, 2, 10), "float32")
    whole = model({**INPUTS, "states": states})
    forward = []
    for part in (slice(0, 2), slice(2, 5)):
        inputs = {name: array[:, part] for name, array in INPUTS.items()}
        outputs = model({**inputs, "states": states})
        states = to_numpy(outputs["states"])
        forward.append(to_numpy(outputs["hidden_states"][-1])[..., :4])
    wanted = to_numpy(whole["hidden_states"][-1])[..., :4]
    np.testing.assert_allclose(np.concatenate(forward, axis=1), wanted, rtol=0, atol=1e-6)
    np.testing.assert_allclose(states[:, 0], to_numpy(whole["states"])[:, 0], rtol=0, atol=1e-6)


def test_clips_and_skip_connections():
    plain, skipping = (make_backbone(skip_connections=skips) for skips in (False, True))
    skipping.set_weights(plain.get_weights())
    run = {b: [to_numpy(x) for x in b.make_layer_model()(INPUTS)] for b in (plain, skipping)}
    np.testing.assert_allclose(run[skipping][1], run[plain][1], rtol=0, atol=1e-6)
    wanted = run[plain][1] + run[plain][2]
    np.testing.assert_allclose(run[skipping][2], wanted, rtol=0, atol=1e-6)
    embedded = to_numpy(plain.token_embedding(INPUTS["token_ids"])) * MASK[:, :, None]
    np.testing.assert_allclose(run[plain][0], np.concatenate([embedded] * 2, axis=-1), atol=1e-6)

    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(1, 6, 3)).astype("float32") * 9
    lstm = ProjectedLSTM(4, 2, cell_clip=0.3, projection_clip=0.1)
    lstm.build(inputs.shape)
    lstm.set_weights([rng.normal(size=w.shape) * 5 for w in lstm.weights])  # Most gates are 0 or 1.
    outputs, state = lstm(inputs, np.ones((1, 6), "int32"))
    assert np.abs(to_numpy(outputs)).max() == pytest.approx(0.1)
    assert np.abs(to_numpy(state)[:, 2:]).max() == pytest.approx(0.3)


def test_files_training_and_precision():
    shapes = {"sequence_output": (3, 5, 8), "pooled_output": (3, 8)}
    check_backbone(ElmoBackbone, {"vocabulary_size": 10, **SIZES, "dropout": 0.0}, INPUTS, shapes)
    ids = np.random.default_rng(1).integers(1, 262, (2, 3, 5)).astype("int32")
    arguments = {"output_dim": 4, **CHARACTERS, "num_highways": 1, "activation": "tanh"}
    check_layer(CharacterEmbeddings, arguments, {"character_ids": ids}, (2, 3, 4))


def test_every_argument_is_saved(tmp_path):
    arguments = {
        **{"vocabulary_size": None, "num_layers": 1, "units": 5, "projection_dim": 3},
        **{"cell_clip": 1.0, "projection_clip": None, "skip_connections": False},
        **{"characters": CHARACTERS, "dropout": 0.3, "initializer_range": 0.5},
    }
    backbone = ElmoBackbone(**arguments)
    config = json.loads(json.dumps(backbone.get_config()))
    assert {name: config[name] for name in arguments} == json.loads(json.dumps(arguments))
    assert ElmoBackbone.from_config(config).get_config() == backbone.get_config()
    with pytest.raises(AttributeError, match="units=5 has built this ElmoBackbone, so 7 would"):
        backbone.units = 7


def test_heads_and_copies():
    backbone = make_backbone()
    tagger = TokenClassifier(backbone, 2, head_layers=ScalarMix(pooling=None))
    assert tagger.predict(INPUTS, verbose=0).shape == (3, 5, 2)
    embedder = TextEmbedder(backbone, pooling="first_last_average", normalize=False)
    states = backbone.make_layer_model()(INPUTS)
    wanted = to_numpy(MeanPooling()((states[1] + states[2]) / 2, MASK))
    np.testing.assert_allclose(embedder.predict(INPUTS, verbose=0), wanted, atol=1e-6)
    first = backbone.resize(num_layers=1)
    got = to_numpy(first(INPUTS)["sequence_output"])
    np.testing.assert_allclose(got, to_numpy(states[1]), rtol=0, atol=1e-6)
    characters = make_backbone(vocabulary_size=None, characters=CHARACTERS)
    for change in (lambda: characters.resize_vocabulary(12), lambda: characters.take_tokens([0])):
        with pytest.raises(ValueError, match="This ElmoBackbone reads the characters of its tok"):
            change()
    larger = backbone.resize_vocabulary(12, seed=0)
    got = to_numpy(larger(INPUTS)["sequence_output"])
    np.testing.assert_allclose(got, to_numpy(states[2]), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cell_clip": -1.0}, "cell_clip must be a number above 0, got -1.0"),
        ({"projection_clip": 0}, "projection_clip must be a number above 0, got 0"),
        ({"characters": {}}, "got vocabulary_size=10 and characters={} and"),
        ({"vocabulary_size": None}, "got vocabulary_size=None and characters=None"),
        ({"units": 0}, "units must be .*, got 0"),
        ({"dropout": 1.0}, "dropout"),
        ({"initializer_range": -1}, "initializer_range must be a number of at least 0, got -1"),
        (
            {"vocabulary_size": None, "characters": {"filters": [[7, 2]], "max_characters": 6}},
            "A filter of width 7 is wider than a word of max_characters=6",
        ),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(value),
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        ElmoBackbone(**{"vocabulary_size": 10, **SIZES, **arguments})


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("attention_pattern", "'attention_pattern'. It belongs to a backbone with attention"),
        ("num_heads", "'num_heads'. It belongs to a backbone with attention"),
        ("hidden_dim", "'hidden_dim'. Did you mean 'projection_dim'"),
    ],
)
def test_arguments_of_a_bert(argument, message):
    with pytest.raises(TypeError, match=message):
        ElmoBackbone(10, **SIZES, **{argument: 2})


def test_quantization_is_refused():
    classifier = TextClassifier(make_backbone(), num_classes=2)
    with pytest.raises(ValueError, match="An ElmoBackbone is not quantized, got mode='int8'"):
        classifier.quantize("int8")


def test_other_formats_are_refused(tmp_path):
    backbone = make_backbone()
    for save, message in (
        (save_hugging_face, "transformers has no ELMo"),
        (save_keras_hub, "KerasHub has no model that computes the same as ElmoBackbone"),
        (save_google_tf1, "Google's format can hold .*, got an ElmoBackbone"),
    ):
        with pytest.raises(ValueError, match=message):
            save(backbone, tmp_path / "saved")


def change_options(**changes):
    """A function(folder) that changes values in its options.json, by their place."""

    def change(folder):
        options = json.loads((folder / "options.json").read_text())
        for place, value in changes.items():
            section, _, name = place.partition("__")
            options[section][name] = value
        (folder / "options.json").write_text(json.dumps(options))

    return change


def write_other_hdf5(folder):
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)]).save_weights(
        folder / "other.weights.h5"
    )
    (folder / "other.weights.h5").rename(folder / "lm_weights.hdf5")


FAULTS = {
    "no options": (lambda f: (f / "options.json").unlink(), FileNotFoundError, "holds no ELMo"),
    "no weights": (lambda f: (f / "lm_weights.hdf5").unlink(), FileNotFoundError, "holds no ELMo"),
    "two files of weights": (
        lambda f: shutil.copy(f / "lm_weights.hdf5", f / "other_weights.hdf5"),
        ValueError,
        "has lm_weights.hdf5, other_weights.hdf5. Put the options and the weights of one model",
    ),
    "a file of Keras": (
        write_other_hdf5,
        ValueError,
        "lm_weights.hdf5 is no file of ELMo's weights: it has .*Take the weights.hdf5 that",
    ),
    "no HDF5": (
        lambda f: (f / "lm_weights.hdf5").write_bytes(b"weights"),
        ValueError,
        "lm_weights.hdf5 cannot be read",
    ),
    "other sizes": (
        change_options(lstm__dim=32),
        ValueError,
        r"W_0: has shape \(32, 256\), wanted \(32, 128\)",
    ),
    "more layers": (change_options(lstm__n_layers=3), ValueError, "Cell2/LSTMCell/W_0: missing"),
    "no projection": (change_options(lstm__dim=16), ValueError, "'projection_dim' in .* is 16"),
    "activation": (
        change_options(char_cnn__activation="gelu"),
        ValueError,
        "'activation' in .* must be one of relu, tanh, got 'gelu'",
    ),
    "no width of characters": (
        change_options(char_cnn__embedding={"dim": 0}),
        ValueError,
        "'embedding' in .* must have a positive integer 'dim', got {'dim': 0}",
    ),
    "filters": (
        change_options(char_cnn__filters=[[1, 4], [2]]),
        ValueError,
        "'filters' in .* must be a list of pairs of positive integers",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_files_that_are_not_elmos(fault, tmp_path):
    break_files, error, message = FAULTS[fault]
    for name in ("options.json", "lm_weights.hdf5"):
        shutil.copy(ORIGINAL / name, tmp_path / name)
    break_files(tmp_path)
    with pytest.raises(error, match=message):
        ElmoBackbone.from_preset(tmp_path)
