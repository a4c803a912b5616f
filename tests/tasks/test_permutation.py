"""Permutation language modelling: a `Pretrainer` on two streams of an XLNet."""

import keras
import numpy as np
import pytest
import torch
from family import MEMBERS
from peer_weights import randomize, to_numpy
from small_pretraining import At, all_arrays, assert_same, interrupt
from small_texts import TINY, VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.corpus import ReversedCorpus
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.models import XLNetBackbone
from keras_bert_suite.pretraining import ContextLaneBatches, MixedBatches, PretrainingBatches

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


def train(folder, every=100, *callbacks):
    task = make_task()
    task.compile(kbs.AdamW(1e-2))
    callbacks = [kbs.TrainingCheckpoint(folder, every), *callbacks]
    return task, task.fit(make_batches(), epochs=3, callbacks=callbacks, verbose=0).history


def test_a_training_learns(tmp_path):
    _, history = train(tmp_path)
    assert history["loss"][-1] < history["loss"][0] - 0.1
    assert history["mlm_loss"] == history["loss"]


@pytest.mark.long("faults")
def test_a_killed_training_goes_on_with_the_same_batches(tmp_path):
    task, _ = train(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "stopped", 3, At(len(make_batches()) + 2, interrupt))
    assert_same(train(tmp_path / "stopped")[0], all_arrays(task))


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


def make_lanes(num_texts=150, reuse_length=8):
    """Batches of 4 lanes, two of which are read backward."""
    ids = TOKENIZER.tokenize(make_reviews(num_texts)[0])
    corpus = TokenCorpus.from_documents([ids[i : i + 4] for i in range(0, num_texts, 4)])
    parts = (False, corpus), (True, ReversedCorpus(corpus))
    return MixedBatches(
        [
            ContextLaneBatches(
                part,
                OBJECTIVE.make_masker(TOKENIZER, backward=backward, reuse_length=reuse_length),
                L,
                batch_size=2,
            )
            for backward, part in parts
        ]
    )


REMEMBERED = {"memory_length": 12, "reuse_length": 8}


@pytest.mark.filterwarnings("ignore:.*has no weights for.*pooler")
def test_lanes_with_memory_are_those_of_transformers(tmp_path):
    """`mems` of the first `reuse_len` states of each batch, for half of the rows backward."""
    member = MEMBERS["xlnet"]
    peer = member.save_peer(tmp_path / "peer")
    peer.bi_data, peer.mem_len, peer.reuse_len = True, 12, 8
    arguments = {"dropout": 0.0, "attention_dropout": 0.0, **REMEMBERED, "reversed_rows": True}
    arguments |= OBJECTIVE.backbone_arguments
    backbone = XLNetBackbone.from_preset(tmp_path / "peer", **arguments)
    task, lanes = OBJECTIVE.make_task(backbone), make_lanes()
    task.compile(keras.optimizers.SGD(0.0), technique=kbs.CarriedMemory(lanes=4))
    losses = []
    log = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: losses.append(float(logs["loss"]))
    )
    steps = 5
    task.fit(lanes, steps_per_epoch=steps, callbacks=[log], verbose=0)
    wanted, counts, memory = [], [], [torch.zeros(12, 4, 8) for _ in range(2)]
    table = peer.word_embedding.weight
    for i in range(steps):
        x, y, weights = ({name: torch.tensor(a) for name, a in each.items()} for each in lanes[i])
        hidden = x["query_ranks"][:, :, None] <= x["key_ranks"][:, None, :]
        with torch.no_grad():
            outputs = peer(
                input_ids=x["token_ids"].long(),
                token_type_ids=x["segment_ids"].long(),
                perm_mask=hidden.float(),
                target_mapping=torch.eye(L)[x["mask_positions"].long()],
                mems=memory,
                use_mems=True,
            )
            memory = outputs.mems
            logits = (outputs.last_hidden_state @ table.T).movedim(-1, 1)
            loss = torch.nn.functional.cross_entropy(logits, y["mlm"].long(), reduction="none")
            wanted.append(float((loss * weights["mlm"]).sum()))
            counts.append(float(weights["mlm"].sum()))
    # Keras logs the mean over the targets of an epoch so far.
    means = np.cumsum(wanted) / np.cumsum(counts)
    np.testing.assert_allclose(losses, means, rtol=1e-5)
    found = to_numpy(task.technique.memory)
    wanted = np.stack([layer.numpy() for layer in memory]).transpose(2, 0, 1, 3)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)
    assert np.abs(found).max() > 0.01


def test_a_killed_training_goes_on_with_its_memory(tmp_path):
    lanes = make_lanes()

    def train(folder, *callbacks):
        task = make_task(**REMEMBERED)
        task.compile(kbs.AdamW(1e-2), technique=kbs.CarriedMemory(lanes=4))
        every = 3 if callbacks else 100
        callbacks = [kbs.TrainingCheckpoint(tmp_path / folder, every), *callbacks]
        task.fit(lanes, epochs=2, steps_per_epoch=6, callbacks=callbacks, verbose=0)
        return task

    task = train("whole")
    # So few steps need not lower the loss.
    new = make_task(**REMEMBERED).backbone.get_weights()
    pairs = zip(task.backbone.get_weights(), new, strict=True)
    assert max(np.abs(trained - start).max() for trained, start in pairs) > 0.05
    with pytest.raises(KeyboardInterrupt):
        train("stopped", At(10, interrupt))
    resumed = train("stopped")
    assert_same(resumed, all_arrays(task))
    memory = to_numpy(task.technique.memory)
    np.testing.assert_array_equal(to_numpy(resumed.technique.memory), memory)
    assert memory.any()


def test_lanes_without_their_memory_are_refused():
    task = make_task(**REMEMBERED)
    for technique in (None, kbs.FGM(1.0)):
        task.compile(technique=technique)
        with pytest.raises(ValueError, match=r"compile\(technique=CarriedMemory\(lanes="):
            task.fit(make_lanes(), steps_per_epoch=1, verbose=0)
    task = make_task(memory_length=12, reuse_length=6)
    task.compile(technique=kbs.CarriedMemory(lanes=4))
    with pytest.raises(ValueError, match="begins 8 tokens behind the row .* reuse_length=6"):
        task.fit(make_lanes(), steps_per_epoch=1, verbose=0)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [({}, "query_ranks and is_reversed"), (REMEMBERED, "query_ranks and is_reversed and memory")],
)
def test_rows_that_cannot_be_packed(arguments, names):
    task = make_task(**arguments)
    task.compile()
    with pytest.raises(ValueError, match=f"with {names} reads these .* Leave sequence_packing out"):
        task.fit(make_batches(), sequence_packing=True, verbose=0)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("query_ranks", {"attention_pattern": "permuted", "reversed_rows": True}),
        ("is_reversed", {"reversed_rows": True}),
        ("memory", {"memory_length": 12, "attention_pattern": "left_to_right"}),
    ],
)
def test_texts_take_a_copy_for_texts(name, arguments):
    packer = kbs.SegmentPacker(TOKENIZER, L)
    backbone = XLNetBackbone(**TINY, **arguments)
    classifier = kbs.TextClassifier(backbone, 2, preprocessor=packer)
    with pytest.raises(ValueError, match=f"the input '{name}'.*: backbone.for_texts()"):
        classifier.predict(["good film"])
    classifier = kbs.TextClassifier(backbone.for_texts(), 2, preprocessor=packer)  # The remedy.
    assert np.isfinite(classifier.predict(["good film"], verbose=0)).all()


def test_an_xlnet_does_not_write():
    backbone = XLNetBackbone(**TINY, attention_pattern="left_to_right")
    with pytest.raises(ValueError, match="that of an XLNetBackbone is another. Open"):
        kbs.CausalLM(backbone)


@pytest.mark.filterwarnings("ignore:.*has no weights for.*pooler")
@pytest.mark.parametrize("arguments", [{}, REMEMBERED], ids=["alone", "memory"])
def test_masks_are_guessed_as_by_transformers(tmp_path, arguments):
    """The query stream at each mask, which no token sees: `perm_mask` and `target_mapping`."""
    member = MEMBERS["xlnet"]
    peer = member.save_peer(tmp_path / "peer", "ForMaskedLM", tie_word_embeddings=True)
    pretrainer = kbs.Pretrainer.from_preset(tmp_path / "peer", attention_pattern="permuted")
    backbone = pretrainer.backbone
    if arguments:
        config = {**backbone.get_config(), **arguments, "reversed_rows": True}
        backbone = XLNetBackbone.from_config(config)
        backbone.set_weights(pretrainer.backbone.get_weights())
        copy = kbs.Pretrainer(backbone, next_sentence=False, preprocessor=pretrainer.preprocessor)
        copy.masked_lm.set_weights(pretrainer.masked_lm.get_weights())
        pretrainer = copy
    tokenizer = pretrainer.preprocessor.tokenizer
    word = tokenizer.detokenize([20, 21])
    texts = [f"{word} {tokenizer.mask_token} {word} {tokenizer.mask_token}", tokenizer.mask_token]
    guesses = pretrainer.fill_mask(texts, top_k=4)
    for text, found in zip(texts, guesses, strict=True):
        ids = [tokenizer.tokenize(part) for part in text.split(tokenizer.mask_token)]
        row = list(ids[0])
        for part in ids[1:]:
            row += [tokenizer.mask_token_id, *part]
        row += [tokenizer.end_token_id, tokenizer.start_token_id]
        row = torch.tensor([row])
        is_mask = row[0] == tokenizer.mask_token_id
        with torch.no_grad():
            logits = peer(
                input_ids=row,
                token_type_ids=torch.tensor([[0] * (row.shape[1] - 1) + [2]]),
                perm_mask=is_mask.float().expand(1, row.shape[1], -1),
                target_mapping=torch.eye(row.shape[1])[is_mask][None],
            ).logits[0]
        wanted = logits.softmax(dim=-1).topk(4)
        assert len(found) == is_mask.sum()
        for of_mask, values, indices in zip(found, *wanted, strict=True):
            assert [token for token, _ in of_mask] == [
                tokenizer.id_to_token(i) for i in indices.tolist()
            ]
            np.testing.assert_allclose([p for _, p in of_mask], values.numpy(), atol=1e-5)


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
    guesses = again.fill_mask(["a [MASK] film", "[MASK] [MASK]"], top_k=3)
    assert [list(map(len, of_text)) for of_text in guesses] == [[3], [3, 3]]
    asked = kbs.MaskedLM.from_preset(tmp_path / "xlnet")
    found = asked.predict(["a [MASK] film", "[MASK] [MASK]"], top_k=3, verbose=0)
    assert [[list(of_mask) for of_mask in of_text] for of_text in found] == guesses
    assert asked.predict("a [MASK] film", targets=["good"], verbose=0)[0][0][0] == "good"
    for ask in (asked.fit, asked.pseudo_perplexity):
        with pytest.raises(ValueError, match="for_texts"):
            ask(["a good film"])
    # A task for texts has one stream, which does not know rows in reverse order.
    classifier = kbs.TextClassifier.from_preset(tmp_path / "xlnet", num_classes=2)
    assert set(classifier.input) == {"token_ids", "segment_ids", "padding_mask"}
    for weight, other in zip(classifier.backbone.weights, task.backbone.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(weight), to_numpy(other))
    assert classifier.predict(["a good film"], verbose=0).shape == (1, 2)
