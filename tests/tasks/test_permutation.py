"""Permutation language modelling: a `Pretrainer` on two streams of an XLNet."""

import keras
import numpy as np
import pytest
import torch
from peer_weights import randomize, to_numpy
from small_pretraining import At, all_arrays, assert_same, interrupt
from small_texts import TINY, VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.corpus import ReversedCorpus
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.models import XLNetBackbone
from keras_bert_suite.pretraining import MixedBatches, PretrainingBatches

L = 24


@keras.saving.register_keras_serializable(package="permutation_task_tests")
class LastSummary(kbs.WordPieceTokenizer):
    """Rows as XLNet's: padding, then `A <sep> B <sep> <cls>`."""

    summary_place = "last"
    summary_segment = 2
    padding_side = "left"


TOKENIZER = LastSummary(VOCABULARY)
OBJECTIVE = kbs.objectives.get("permutation")


def make_task(**arguments):
    keras.utils.set_random_seed(1)
    backbone = XLNetBackbone(
        **TINY, **OBJECTIVE.backbone_arguments, reversed_rows=True, **arguments
    )
    return OBJECTIVE.make_task(backbone)


def make_batches(num_texts=60):
    """Half of each batch is read backward."""
    ids = TOKENIZER.tokenize(make_reviews(num_texts)[0])
    corpus = TokenCorpus.from_documents([ids[i : i + 4] for i in range(0, num_texts, 4)])
    halves = []
    for backward, part in ((False, corpus), (True, ReversedCorpus(corpus))):
        targets = OBJECTIVE.make_masker(TOKENIZER, backward=backward)
        halves.append(PretrainingBatches(part, targets, L, 8, **OBJECTIVE.instances))
    return MixedBatches(halves)


def test_a_training_learns_and_goes_on_with_the_same_batches(tmp_path):
    batches = make_batches()

    def train(folder, *callbacks):
        task = make_task()
        task.compile(kbs.AdamW(1e-2))
        checkpoint = kbs.TrainingCheckpoint(tmp_path / folder, every=3)
        callbacks = [checkpoint, *callbacks]
        return task, task.fit(batches, epochs=3, callbacks=callbacks, verbose=0).history

    task, history = train("whole")
    assert history["loss"][-1] < history["loss"][0] - 0.1
    assert history["mlm_loss"] == history["loss"]
    with pytest.raises(KeyboardInterrupt):
        train("stopped", At(len(batches) + 2, interrupt))
    assert_same(train("stopped")[0], all_arrays(task))


@pytest.mark.every_backend
def test_the_loss_is_that_of_the_targets_with_tied_weights():
    """The query stream, times the embedding of the tokens, and a bias; a mean over the targets."""
    task = randomize(make_task(dropout=0.0))
    x, y, weights = make_batches()[0]
    outputs = task.predict({name: x[name] for name in task.input}, verbose=0)
    states = to_numpy(task.backbone({n: x[n] for n in task.backbone.input})["query_output"])
    table = to_numpy(task.backbone.token_embedding.embeddings)
    bias = to_numpy(task.masked_lm.bias)
    logits = states @ table.T + bias
    np.testing.assert_allclose(outputs["mlm"], logits, atol=1e-4)
    assert sum(w.path.startswith("masked_lm") for w in task.trainable_variables) == 1
    losses = torch.nn.functional.cross_entropy(
        torch.tensor(logits).movedim(-1, 1), torch.tensor(y["mlm"]).long(), reduction="none"
    ).numpy()
    mean = (losses * weights["mlm"]).sum() / weights["mlm"].sum()
    task.compile()
    scores = task.evaluate(make_batches()[:1], return_dict=True, verbose=0)
    assert scores["loss"] == pytest.approx(mean, abs=1e-4)


def test_a_target_depends_on_the_tokens_before_it_in_the_order():
    task = randomize(make_task(dropout=0.0))
    x, _, weights = make_batches()[0]
    row = 2
    positions = x["mask_positions"][row][weights["mlm"][row] > 0]
    before = task.predict(x, verbose=0)["mlm"][row]
    for column in (positions[0], positions[-1], 0):
        changed = {**x, "token_ids": x["token_ids"].copy()}
        changed["token_ids"][row, column] ^= 1
        after = task.predict(changed, verbose=0)["mlm"][row]
        seen = x["query_ranks"][row, positions] > x["key_ranks"][row, column]
        differs = np.abs(after - before).max(axis=-1)[: len(positions)] > 1e-5
        # What a target sees may have seen the token, too; what is above is never seen.
        assert (differs[~seen] == 0).all() and differs[seen].all()
        assert not seen[positions == column].any()


def test_a_finished_model_reads_texts(tmp_path):
    task = make_task()
    task.compile()
    task.fit(make_batches(), epochs=1, verbose=0)
    packer = kbs.SegmentPacker(TOKENIZER, L)
    saved = kbs.Pretrainer(task.backbone, next_sentence=False, preprocessor=packer)
    saved.masked_lm.set_weights(task.masked_lm.get_weights())
    saved.save_to_preset(tmp_path / "xlnet")
    again = kbs.Pretrainer.from_preset(tmp_path / "xlnet")
    x = {name: make_batches()[0][0][name] for name in task.input}
    np.testing.assert_allclose(
        again.predict(x, verbose=0)["mlm"], task.predict(x, verbose=0)["mlm"], atol=1e-5
    )
    with pytest.raises(ValueError, match="query_ranks"):
        again.fill_mask(["a [MASK] film"])
    with pytest.raises(ValueError, match="two streams predicts tokens without a mask token"):
        kbs.MaskedLM.from_preset(tmp_path / "xlnet")
    # A task for texts has one stream, which does not know rows in reverse order.
    classifier = kbs.TextClassifier.from_preset(tmp_path / "xlnet", num_classes=2)
    assert set(classifier.input) == {"token_ids", "segment_ids", "padding_mask"}
    for weight, other in zip(classifier.backbone.weights, task.backbone.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(weight), to_numpy(other))
    assert classifier.predict(["a good film"], verbose=0).shape == (1, 2)
