"""Transformer-XL: batches in lanes, and a memory that a training carries from batch to batch."""

import pickle

import keras
import numpy as np
import pytest
from guest_techniques import Average
from peer_weights import randomize, to_numpy
from small_pretraining import At, all_arrays, assert_same, interrupt
from small_texts import ONE_LAYER, TINY, VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.models import XLNetBackbone, predict_segments
from keras_bert_suite.pretraining import LaneBatches, PretrainingBatches
from keras_bert_suite.training import CarriedMemory

L, B, SEP = 6, 3, 3
TOKENIZER = kbs.WordPieceTokenizer(VOCABULARY)
TRANSFORMER_XL = {
    "attention_pattern": "left_to_right",
    "num_segments": 0,
    "share_biases": True,
    "activation": "relu",
}


def make_corpus(num_texts=30):
    ids = TOKENIZER.tokenize(make_reviews(num_texts)[0])
    return TokenCorpus.from_documents([ids[i : i + 3] for i in range(0, num_texts, 3)])


def make_batches(num_texts=30, **arguments):
    return LaneBatches(make_corpus(num_texts), TOKENIZER, L, B, seed=1, **arguments)


def make_task(memory_length=8, dropout=0.1, **arguments):
    keras.utils.set_random_seed(1)
    settings = {**TRANSFORMER_XL, "memory_length": memory_length, "dropout": dropout, **arguments}
    return kbs.Pretrainer(XLNetBackbone(**TINY, **settings), next_sentence=False)


def test_lanes_are_parts_of_a_ring():
    corpus = make_corpus()
    ring = [
        token for i in range(corpus.num_documents) for token in [*corpus.tokens(i).tolist(), SEP]
    ]
    lane = len(ring) // B
    batches = make_batches()
    assert len(batches) == lane // L
    offsets = set()
    for epoch in range(4):
        read = [batches[epoch * len(batches) + i] for i in range(len(batches))]
        tokens = np.concatenate([x["token_ids"] for x, _, _ in read], axis=1).tolist()
        following = np.concatenate([y["mlm"] for _, y, _ in read], axis=1).tolist()
        (offset,) = [i for i in range(len(ring)) if (ring * 2)[i : i + len(tokens[0])] == tokens[0]]
        offsets.add(offset)
        for row in range(B):
            first = (offset + row * lane) % len(ring)
            wanted = (ring * 2)[first : first + len(tokens[0]) + 1]
            assert tokens[row] == wanted[:-1] and following[row] == wanted[1:]
        continues = [x["continues"].tolist() for x, _, _ in read]
        assert continues == [[[int(i > 0)]] * B for i in range(len(read))]
    assert len(offsets) > 1
    copy = pickle.loads(pickle.dumps(batches))
    for i in (7, 0, 12):
        np.testing.assert_equal(copy[i], batches[i])


def test_segments_with_memory_are_the_text_at_once():
    """A left-to-right model that remembers everything, also a text that ends within a segment."""
    rng = np.random.default_rng(0)
    backbone = randomize(XLNetBackbone(**TINY, **TRANSFORMER_XL, memory_length=32, dropout=0.0))
    ids = rng.integers(5, len(VOCABULARY), (2, 12)).astype("int32")
    arrays = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": np.ones_like(ids)}
    arrays["padding_mask"][1, 9:] = 0
    segments = [{name: x[:, i : i + 4] for name, x in arrays.items()} for i in (0, 4, 8)]
    outputs = list(predict_segments(backbone, segments))
    joined = np.concatenate([to_numpy(each["sequence_output"]) for each in outputs], axis=1)
    empty = np.zeros((2, TINY["num_layers"], 0, TINY["hidden_dim"]), "float32")
    whole = to_numpy(backbone({**arrays, "memory": empty})["sequence_output"])
    is_token = arrays["padding_mask"] == 1
    np.testing.assert_allclose(joined[is_token], whole[is_token], atol=1e-5)
    assert to_numpy(outputs[-1]["memory"]).shape[2] == 12
    alone = to_numpy(backbone({**segments[1], "memory": empty})["sequence_output"])
    assert np.abs(alone - joined[:, 4:8]).max() > 0.01


def test_segments_of_frames_are_the_recording_at_once():
    """A recording that is longer than a segment, as a speech model reads a stream."""
    settings = {**TINY, **TRANSFORMER_XL, "vocabulary_size": None, "frame_dim": 5}
    backbone = randomize(XLNetBackbone(**settings, memory_length=32, dropout=0.0))
    frames = np.random.default_rng(0).standard_normal((2, 8, 5)).astype("float32")
    mask = np.ones((2, 8), "int32")
    arrays = {"frames": frames, "segment_ids": 0 * mask, "padding_mask": mask}
    segments = [{name: x[:, i : i + 4] for name, x in arrays.items()} for i in (0, 4)]
    joined = [to_numpy(each["sequence_output"]) for each in predict_segments(backbone, segments)]
    empty = np.zeros((2, TINY["num_layers"], 0, TINY["hidden_dim"]), "float32")
    whole = to_numpy(backbone({**arrays, "memory": empty})["sequence_output"])
    np.testing.assert_allclose(np.concatenate(joined, axis=1), whole, atol=1e-5)


@pytest.mark.every_backend
def test_a_step_reads_the_memory_of_the_step_before():
    """The losses of a training that changes no weight are those of segments with a memory."""
    task, batches = randomize(make_task(dropout=0.0)), make_batches()
    task.compile(keras.optimizers.SGD(0.0), technique=CarriedMemory(lanes=B))
    losses = []
    log = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: losses.append(float(logs["loss"]))
    )
    task.fit(batches, epochs=2, callbacks=[log], verbose=0)
    wanted = []
    for i in range(2 * len(batches)):
        x, y, _ = batches[i]
        if i % len(batches) == 0:
            memory = np.zeros((B, TINY["num_layers"], 8, TINY["hidden_dim"]), "float32")
        arrays = {name: x[name] for name in task.input if name != "memory"}
        outputs = task.predict_on_batch({**arrays, "memory": memory})
        memory = to_numpy(outputs["memory"])
        logits = to_numpy(outputs["mlm"])
        logits = logits - logits.max(axis=-1, keepdims=True)
        logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        wanted.append(-np.take_along_axis(logs, y["mlm"][:, :, None], axis=-1).mean())
    # Keras logs the mean over the batches of an epoch so far.
    size = len(batches)
    means = [np.mean(wanted[i - i % size : i + 1]) for i in range(2 * size)]
    np.testing.assert_allclose(losses, means, rtol=1e-4)


def test_a_killed_training_goes_on_with_its_memory(tmp_path):
    batches = make_batches()

    def train(folder, *callbacks):
        task = make_task()
        task.compile(kbs.AdamW(1e-2), technique=CarriedMemory(lanes=B))
        every = 3 if callbacks else 100
        callbacks = [kbs.TrainingCheckpoint(tmp_path / folder, every), *callbacks]
        return task, task.fit(batches, epochs=3, callbacks=callbacks, verbose=0).history

    task, history = train("whole")
    assert history["loss"][-1] < history["loss"][0] - 0.1
    assert np.abs(to_numpy(task.technique.memory)).max() > 0
    with pytest.raises(KeyboardInterrupt):
        train("stopped", At(len(batches) + 4, interrupt))
    resumed, _ = train("stopped")
    assert_same(resumed, all_arrays(task))
    np.testing.assert_array_equal(
        to_numpy(resumed.technique.memory), to_numpy(task.technique.memory)
    )


def test_an_evaluation_has_no_memory():
    task, batches = randomize(make_task(dropout=0.0)), make_batches()
    scores = task.evaluate(batches[:2], return_dict=True, verbose=0)
    plain = make_task(memory_length=None, dropout=0.0)
    plain.set_weights(task.get_weights())
    wanted = plain.evaluate(batches[:2], return_dict=True, verbose=0)
    assert scores.keys() == wanted.keys()
    assert scores["loss"] == pytest.approx(wanted["loss"], abs=1e-5)
    assert scores["perplexity"] == pytest.approx(wanted["perplexity"], abs=1e-4)


def test_errors():
    with pytest.raises(ValueError, match="lanes of 71 tokens, which are shorter than a row of"):
        LaneBatches(make_corpus(), TOKENIZER, 100, B)
    for index in (-1, 1.5):
        with pytest.raises(ValueError, match=f"index must be .* at least 0, got {index}"):
            make_batches()[index]
    task = make_task()
    task.compile(technique=CarriedMemory(lanes=2))
    with pytest.raises(ValueError, match=r"CarriedMemory\(lanes=2\) got a batch of 3 rows"):
        task.fit(make_batches(), verbose=0)
    shuffled = PretrainingBatches(
        make_corpus(), kbs.NextTokenTargets(TOKENIZER), 12, 2, mode="full_sentences"
    )
    with pytest.raises(ValueError, match="these have no array `continues`. Train on LaneBatches"):
        task.fit(shuffled, verbose=0)
    with pytest.raises(ValueError, match="lanes must be an integer of at least 1, got 0"):
        CarriedMemory(lanes=0)
    bert = kbs.Pretrainer(kbs.BertBackbone(**ONE_LAYER), next_sentence=False)
    with pytest.raises(ValueError, match="this Pretrainer on a BertBackbone has none"):
        bert.compile(technique=CarriedMemory(lanes=2))
    with pytest.raises(ValueError, match="attention_pattern='left_to_right', got 'bidirect"):
        bert.fit(make_batches(), verbose=0)
    with pytest.raises(ValueError, match="This Pretrainer has no input `memory`"):
        next(predict_segments(bert, []))
    ones = np.ones((3, 4), "int32")
    arrays = {"token_ids": ones, "segment_ids": 0 * ones, "padding_mask": ones}
    segments = [{name: array[:rows] for name, array in arrays.items()} for rows in (2, 3)]
    with pytest.raises(ValueError, match="A segment has 3 rows, and the segment before it has 2"):
        list(predict_segments(task.backbone, segments))


def test_an_average_goes_with_the_memory():
    """And leaves the training as it is."""
    found = []
    for technique in (
        CarriedMemory(lanes=B),
        kbs.CombinedTechniques([CarriedMemory(lanes=B), Average(0.5)]),
    ):
        task = make_task(dropout=0.0)
        task.compile(keras.optimizers.SGD(0.1), technique=technique)
        task.fit(make_batches(), steps_per_epoch=2, verbose=0)
        found.append([to_numpy(v) for v in task.weights])
    for alone, both in zip(*found, strict=True):
        np.testing.assert_allclose(both, alone, atol=1e-6)
    assert any(to_numpy(task.technique.techniques[0].memory).ravel())
