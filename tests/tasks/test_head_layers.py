"""Layers between the encoder and the head of the tasks on tokens."""

import keras
import numpy as np
import pytest
import torch
from heads.cases import QUESTIONS, SPANS, TAGS, WORDS
from keras_hub.models import FNetBackbone
from peer_weights import to_numpy
from small_tasks import make_parts
from tables import left_out

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import save_hugging_face

LENGTHS = (3, 16, 7)


def make_lstm(units=4):
    lstm = keras.layers.LSTM(units, return_sequences=True)
    return keras.layers.Bidirectional(lstm, name="lstm")


def make_task(kind, head_layers, **arguments):
    """(a task on the first layers of an encoder, columns)."""
    keras.utils.set_random_seed(0)
    backbone, packer = make_parts("SegmentPacker", {"attention_dropout": 0.0})
    arguments = {"preprocessor": packer, "head_layers": head_layers, **arguments}
    if kind == "words":
        return kbs.TokenClassifier(backbone, 2, dropout=0.0, **arguments), (WORDS, TAGS)
    if kind == "chains":
        return kbs.CrfTokenClassifier(backbone, 2, dropout=0.0, **arguments), (WORDS, TAGS)
    if kind == "spans":
        return kbs.EntitySpanClassifier(backbone, 1, dropout=0.0, **arguments), (WORDS, SPANS)
    *rows, spans = QUESTIONS
    answerer = kbs.QuestionAnswerer(backbone, query_length=4, no_answer_threshold=0.0, **arguments)
    return answerer, (tuple(rows), np.array(spans))


def make_batch(lengths=LENGTHS):
    """Rows of these lengths, with other ids than 0 in their padding."""
    shape = (len(lengths), max(lengths))
    ids = np.random.default_rng(0).integers(5, 20, shape).astype("int32")
    mask = (np.arange(shape[1]) < np.array(lengths)[:, None]).astype("int32")
    return {"token_ids": ids, "segment_ids": np.zeros(shape, "int32"), "padding_mask": mask}


def cut_row(batch, row):
    length = batch["padding_mask"][row].sum()
    return {name: array[row : row + 1, :length] for name, array in batch.items()}


def run_torch_lstm(layer, states):
    """float32 (L, 2 units) of the LSTM of PyTorch, with the weights of one of Keras."""
    units = layer.forward_layer.units
    peer = torch.nn.LSTM(states.shape[1], units, bidirectional=True)
    for ending, part in (("", layer.forward_layer), ("_reverse", layer.backward_layer)):
        kernel, recurrent, bias = map(to_numpy, part.cell.trainable_weights)
        values = {
            f"weight_ih_l0{ending}": kernel.T,
            f"weight_hh_l0{ending}": recurrent.T,
            f"bias_ih_l0{ending}": bias,
            f"bias_hh_l0{ending}": np.zeros_like(bias),
        }
        for name, value in values.items():
            getattr(peer, name).data = torch.tensor(value)
    with torch.no_grad():
        return peer(torch.tensor(states))[0].numpy()


def test_an_lstm_reads_each_row_by_itself():
    """Both directions, on rows of several lengths in one batch, beside the LSTM of PyTorch."""
    layer = make_lstm()
    task, _ = make_task("words", layer)
    batch = make_batch()
    logits = to_numpy(task(batch))
    for row, length in enumerate(LENGTHS):
        states = to_numpy(task.backbone(cut_row(batch, row))["sequence_output"])[0]
        kernel, bias = map(to_numpy, task.token_classifier.weights)
        wanted = run_torch_lstm(layer, states) @ kernel + bias
        np.testing.assert_allclose(logits[row, :length], wanted, atol=1e-5)


@pytest.mark.parametrize(
    "make_layers",
    [
        pytest.param(
            lambda: [kbs.ScalarMix(pooling=None), make_lstm()], marks=left_out("combinations")
        ),
        lambda: [
            keras.layers.Conv1D(6, 3, padding="same", activation="relu"),
            keras.layers.Conv1D(6, 3, padding="same", dilation_rate=2),
            kbs.TransformerBlock(2, 8, dropout=0.0, attention_dropout=0.0),
        ],
    ],
    ids=["mix and LSTM", "convolutions and transformer"],
)
def test_a_row_has_the_same_logits_alone_and_packed(make_layers, tmp_path):
    task, columns = make_task("words", make_layers())
    batch = make_batch()
    together = to_numpy(task(batch))
    for row, length in enumerate(LENGTHS):
        alone = to_numpy(task(cut_row(batch, row)))
        np.testing.assert_allclose(together[row, :length], alone[0], atol=1e-5)
    losses = {}
    for packed in (False, True):
        keras.utils.set_random_seed(0)
        task, columns = make_task("words", make_layers())
        task.compile(kbs.AdamW(1e-2))
        history = task.fit(
            *columns, batch_size=4, shuffle=False, sequence_packing=packed, verbose=0
        )
        losses[packed] = history.history["loss"]
    np.testing.assert_allclose(losses[True], losses[False], rtol=1e-4)
    task.save(tmp_path / "task.keras")
    task.save_to_preset(tmp_path / "preset")
    wanted = to_numpy(task(batch))
    for twin in (
        keras.saving.load_model(tmp_path / "task.keras"),
        kbs.TokenClassifier.from_preset(tmp_path / "preset"),
    ):
        np.testing.assert_allclose(to_numpy(twin(batch)), wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "make_layers"),
    [
        ("words", lambda: None),
        ("chains", lambda: [kbs.ScalarMix(pooling=None), make_lstm()]),
        pytest.param("spans", lambda: [make_lstm()], marks=left_out("combinations")),
        pytest.param("questions", lambda: [make_lstm()], marks=left_out("combinations")),
    ],
)
def test_features_equal_a_frozen_encoder(kind, make_layers):
    histories, weights = [], []
    for is_cached in (True, False):
        keras.utils.set_random_seed(0)
        task, columns = make_task(kind, make_layers())
        fit = task.fit_on_features
        optimizer = keras.optimizers.SGD(0.1)
        if not is_cached:
            task.backbone.trainable = False
            rates = {"crf/": 1.0} if kind == "chains" else {}
            task.compile(kbs.AdamW(1.0, rate_multipliers=rates))
            task.optimizer = optimizer
            fit = task.fit
        given = {"optimizer": optimizer} if is_cached else {}
        history = fit(*columns, 12, 3, validation_data=columns, verbose=0, **given).history
        histories.append([history["loss"], history["val_loss"]])
        head = {id(weight) for weight in task.backbone.weights}
        weights.append([to_numpy(w) for w in task.weights if id(w) not in head])
    np.testing.assert_allclose(*histories, rtol=1e-4)
    assert histories[0][0][-1] < histories[0][0][0]
    for got, wanted in zip(*weights, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-4)


def test_features_of_an_encoder_without_a_mask():
    rows = {"token_ids": make_batch((8, 8))["token_ids"], "segment_ids": np.zeros((2, 8), "int32")}
    logits = []
    for is_cached in (True, False):
        keras.utils.set_random_seed(0)
        backbone = FNetBackbone(
            vocabulary_size=20, num_layers=1, hidden_dim=8, intermediate_dim=8, dropout=0.0
        )
        tagger = kbs.TokenClassifier(backbone, 2, dropout=0.0)
        backbone.trainable = is_cached
        tagger.compile(keras.optimizers.SGD(0.1))
        given = {"optimizer": keras.optimizers.SGD(0.1)} if is_cached else {}
        fit = tagger.fit_on_features if is_cached else tagger.fit
        fit(rows, rows["token_ids"] % 2, 2, 3, verbose=0, **given)
        logits.append(to_numpy(tagger(rows)))
    np.testing.assert_allclose(*logits, atol=1e-5)


@pytest.mark.parametrize(
    ("make_layers", "error"),
    [
        (lambda: keras.layers.LSTM(4), "return_sequences=True"),
        (lambda: keras.layers.Conv1D(4, 3), r"\(1, 3, 4\) of states \(1, 5, 16\)"),
        (lambda: keras.layers.Conv1D(4, 3, strides=2, padding="same"), "strides=1"),
        (
            lambda: keras.Sequential(
                [
                    keras.layers.Conv1D(4, 3, padding="same", bias_initializer="ones"),
                    keras.layers.Conv1D(4, 3, padding="same"),
                ]
            ),
            "reads padding",
        ),
        (lambda: keras.layers.Lambda(lambda x: x - keras.ops.mean(x, 1, True)), "reads padding"),
        (lambda: [make_lstm(), kbs.ScalarMix(pooling=None)], "must be the first"),
        (lambda: kbs.ScalarMix(), "one vector of each token.* pooling=None"),
        (lambda: "bilstm", "a list of layers, got 'bilstm'"),
        (lambda: keras.layers.MultiHeadAttention(2, 4), "takes 'value' beside the states"),
    ],
    ids=["vector", "shorter", "strides", "padding", "mean", "order", "pooled", "name", "two"],
)
def test_a_layer_that_does_not_fit_is_refused(make_layers, error):
    with pytest.raises(ValueError, match=error):
        make_task("words", make_layers())


def test_on_a_checkpoint(tmp_path):
    """The head of a checkpoint is for the states that it was trained on."""
    task, _ = make_task("words", None)
    save_hugging_face(task, tmp_path / "peer")
    task.save_to_preset(tmp_path / "preset")
    for folder in (tmp_path / "peer", tmp_path / "preset"):
        with pytest.raises(ValueError, match="With `head_layers`, pass `num_classes`"):
            kbs.TokenClassifier.from_preset(folder, head_layers=make_lstm())
        with pytest.warns(UserWarning, match="classification layer"):
            tagger = kbs.TokenClassifier.from_preset(
                folder, num_classes=3, head_layers=[kbs.LastLayers(1, pooling=None), make_lstm()]
            )
        assert tagger(make_batch()).shape == (3, 16, 3)
    with pytest.raises(ValueError, match="no layers between the encoder and the head"):
        save_hugging_face(tagger, tmp_path / "other")
    answerer, _ = make_task("questions", None)
    save_hugging_face(answerer, tmp_path / "questions")
    answerer = kbs.QuestionAnswerer.from_preset(tmp_path / "questions", head_layers=make_lstm())
    assert [layer.name for layer in answerer.head_layers] == ["lstm"]


def test_the_rate_of_what_is_new(tmp_path):
    task, columns = make_task("chains", make_lstm())
    task.compile(head_learning_rate=1e-3)
    task.fit(*columns, batch_size=12, verbose=0)
    rates = {v.path: task.optimizer.rate_multiplier_of(v) for v in task.trainable_variables}
    encoder = {v.path for v in task.backbone.variables}
    for path, rate in rates.items():
        wanted = 1.0 if path in encoder else 100.0 if path.startswith("crf/") else 20.0
        assert rate == pytest.approx(wanted), path
    task.save(tmp_path / "task.keras")
    again = keras.saving.load_model(tmp_path / "task.keras")
    assert again.optimizer.rate_multipliers == task.optimizer.rate_multipliers
    task.compile()
    assert task.optimizer.rate_multipliers[1][1] == pytest.approx(20.0)
    # The second call counts.
    optimizer = kbs.AdamW(1e-4)
    for rate in (1e-2, 1e-3):
        task.compile(optimizer, head_learning_rate=rate)
    assert [factor for _, factor in optimizer.rate_multipliers] == [pytest.approx(10.0)]
    # Keras wraps the optimizer so under mixed_float16.
    wrapped = keras.optimizers.LossScaleOptimizer(kbs.AdamW(1e-4))
    task.compile(wrapped, head_learning_rate=1e-3)
    assert wrapped.inner_optimizer.rate_multipliers == optimizer.rate_multipliers
    for rate in (-1e-3, 0.0, float("nan"), "1e-3"):
        with pytest.raises(ValueError, match="must be a number above 0"):
            task.compile(head_learning_rate=rate)
    decay = keras.optimizers.schedules.CosineDecay(1e-4, 10)
    for optimizer in ("adam", kbs.AdamW(decay), again.optimizer):
        with pytest.raises(ValueError, match="head_learning_rate=0.001"):
            task.compile(optimizer, head_learning_rate=1e-3)
