import gc
import pickle
import tracemalloc

import grain
import numpy as np
import pytest
from small_byte_pairs import MERGES, make_vocabulary
from small_texts import ONE_LAYER, VOCABULARY, make_reviews
from tables import short_for

from keras_bert_suite import (
    BertBackbone,
    BytePairTokenizer,
    FrameMasker,
    MaskedLM,
    Pretrainer,
    TokenMasker,
    WordPieceTokenizer,
)
from keras_bert_suite.corpus import hold_out, open_corpus, prepare_corpus, token_corpus
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.pretraining import epoch_sections, pretraining_batches
from keras_bert_suite.pretraining.instance_planner import MODES, InstancePlanner
from keras_bert_suite.pretraining.instance_ranges import plan_rows
from keras_bert_suite.pretraining.pretraining_batches import SHUFFLE_BLOCKS, PretrainingBatches

PAD, CLS, SEP = 0, 2, 3
TOKENIZER = WordPieceTokenizer(VOCABULARY)


def make_corpus(num_documents=30, sentences=6):
    texts = make_reviews(num_documents * sentences)[0]
    ids = TOKENIZER.tokenize(texts)
    return TokenCorpus.from_documents(
        [ids[i : i + sentences] for i in range(0, len(ids), sentences)]
    )


def make_batches(corpus=None, masker=None, **arguments):
    masker = masker or TokenMasker(TOKENIZER, max_predictions=4)
    arguments = {"sequence_length": 24, "batch_size": 8, **arguments}
    return PretrainingBatches(corpus or make_corpus(), masker, **arguments)


def unmask(batch):
    """The rows of a batch as they were, list of lists of ids without padding."""
    x, y, weights = batch
    ids = x["token_ids"].copy()
    rows, slots = np.nonzero(weights["mlm"])
    ids[rows, x["mask_positions"][rows, slots]] = y["mlm"][rows, slots]
    return [row[mask > 0].tolist() for row, mask in zip(ids, x["padding_mask"], strict=True)]


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        assert a.keys() == b.keys()
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])


def test_pairs_are_packed_as_bert_reads_them():
    corpus = TokenCorpus.from_documents([[[6, 7]], [[8], [9, 10]]])
    arguments = {"sequence_length": 9, "batch_size": 2, "short_seq_prob": 0}
    batch = make_batches(corpus, seed=7, **arguments)[0]
    x, y, weights = batch
    rows = list(zip(unmask(batch), x["segment_ids"].tolist(), y["nsp"].tolist(), strict=True))
    assert sorted(rows) == [
        ([CLS, 6, 7, SEP, 9, 10, SEP], [0, 0, 0, 0, 1, 1, 1, 0, 0], 1),
        ([CLS, 8, SEP, 9, 10, SEP], [0, 0, 0, 1, 1, 1, 0, 0, 0], 0),
    ]
    assert x["padding_mask"].sum(axis=1).tolist() == [len(row) for row, _, _ in rows]
    assert (x["token_ids"][x["padding_mask"] == 0] == PAD).all()
    assert weights["nsp"].tolist() == [1, 1]
    assert weights["mlm"].tolist() == [[1, 0, 0, 0]] * 2  # 15% of seven tokens
    for array in (*x.values(), *y.values()):
        assert array.dtype == "int32"
    assert all(array.dtype == "float32" for array in weights.values())


def test_rows_of_sentences_have_no_labels_and_separators_between_documents():
    corpus = TokenCorpus.from_documents([[[6, 7], [8]], [[9]], [[10]]])
    arguments = {"sequence_length": 8, "batch_size": 1, "short_seq_prob": 0}
    full = make_batches(corpus, mode="full_sentences", **arguments)
    x, y, weights = full[0]
    assert len(full) == 2 and set(y) == set(weights) == {"mlm"}
    rows = sorted(row for i in range(2) for row in unmask(full[i]))
    assert rows == [[CLS, 6, 7, 8, SEP, 9, SEP], [CLS, 10, SEP]]
    assert not x["segment_ids"].any()
    doc = make_batches(corpus, mode="doc_sentences", **arguments)
    rows = sorted(row for i in range(3) for row in unmask(doc[i]))
    assert rows == [[CLS, 6, 7, 8, SEP], [CLS, 9, SEP], [CLS, 10, SEP]]


def test_pairs_leave_room_for_the_separators_of_roberta():
    """Two of them, so that a pair of seven tokens loses one, at either end of the longer text."""
    corpus = TokenCorpus.from_documents([[[10, 11, 12, 13], [14, 15, 16]]])
    masker = TokenMasker(BytePairTokenizer(make_vocabulary(), MERGES))
    batches = make_batches(
        corpus, masker, mode="sop", sequence_length=10, batch_size=1, short_seq_prob=0
    )
    start, end = 0, 2
    first, last, other = [10, 11, 12], [11, 12, 13], [14, 15, 16]
    assert {tuple(row) for i in range(40) for row in unmask(batches[i])} == {
        (start, *a, end, end, *b, end)
        for longer in (first, last)
        for a, b in ((longer, other), (other, longer))
    }


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 20 sentences, so that `make_corpus` has 9 blocks."""
    monkeypatch.setattr(token_corpus, "SENTENCES_PER_BLOCK", 20)


@pytest.mark.parametrize("shuffle_blocks", [None, 2])
@pytest.mark.parametrize("mode", MODES)
def test_batches_are_a_function_of_their_index(mode, shuffle_blocks, small_blocks):
    arguments = {"mode": mode, "seed": 3, "batch_size": 4, "shuffle_blocks": shuffle_blocks}
    batches = make_batches(**arguments)
    expected = [batches[i] for i in range(2 * len(batches))]
    assert not np.array_equal(expected[0][0]["token_ids"], expected[len(batches)][0]["token_ids"])
    # In another process, asked for the last one first.
    copy = pickle.loads(pickle.dumps(make_batches(**arguments)))
    for i in reversed(range(len(expected))):
        assert_same(copy[i], expected[i])
    # On eight threads.
    options = grain.ReadOptions(num_threads=8, prefetch_buffer_size=8)
    for batch, other in zip(batches.repeat(2).to_iter_dataset(options), expected, strict=True):
        assert_same(batch, other)


@pytest.mark.parametrize("shuffle_blocks", [None, 2])
def test_a_resume_in_mid_epoch_goes_on_where_it_stopped(shuffle_blocks, small_blocks):
    batches = make_batches(shuffle_blocks=shuffle_blocks)
    expected = [batches[i] for i in range(2 * len(batches))]
    iterator = iter(batches.repeat(2).to_iter_dataset())
    for _ in range(len(batches) + 2):
        next(iterator)
    state = iterator.get_state()
    resumed = iter(make_batches(shuffle_blocks=shuffle_blocks).repeat(2).to_iter_dataset())
    resumed.set_state(state)
    for batch, other in zip(resumed, expected[len(batches) + 2 :], strict=True):
        assert_same(batch, other)
    # As a worker of three reads: every third batch.
    for worker in range(3):
        part = batches.repeat(2)[worker::3]
        assert len(part) > 1
        for i in range(len(part)):
            assert_same(part[i], expected[worker + 3 * i])


@pytest.mark.parametrize(
    ("mode", "shuffle_blocks"),
    short_for(
        [(mode, number) for mode in ("pairs", "doc_sentences") for number in (1, 2)],
        *(("pairs", 2), ("doc_sentences", 1)),
        part="combinations",
    ),
)
def test_a_document_longer_than_blocks(mode, shuffle_blocks, small_blocks, monkeypatch):
    """Most blocks have no document. The instances of some blocks are estimated."""
    monkeypatch.setattr(epoch_sections, "BLOCKS_COUNTED", 3)
    plan_section, sizes = pretraining_batches._plan_section, []

    def note_size(*arguments):
        plan, order = plan_section(*arguments)
        sizes.append(len(plan))
        return plan, order

    monkeypatch.setattr(pretraining_batches, "_plan_section", note_size)
    texts = make_reviews(400)[0]
    ids = TOKENIZER.tokenize(texts)
    starts = [0, 6, 206, 212, 218, 224, 230, 236, 242, 248, 254, 390, 400]
    corpus = TokenCorpus.from_documents(
        [ids[first:end] for first, end in zip(starts[:-1], starts[1:], strict=True)]
    )
    for seed in range(4):
        batches = make_batches(
            corpus, mode=mode, seed=seed, batch_size=2, shuffle_blocks=shuffle_blocks
        )
        rows = {tuple(row) for i in range(2 * len(batches)) for row in unmask(batches[i])}
        # The long documents are most of the corpus.
        assert len(batches) > 20 and len(rows) > 60
    # A section without batches is not planned.
    assert min(sizes) > 0


def test_an_epoch_visits_its_instances_once():
    # One instance a document, so that every epoch has as many.
    corpus = TokenCorpus.from_documents([[[5 + d % 20] * (1 + d // 20)] for d in range(64)])
    batches = make_batches(corpus, mode="doc_sentences", batch_size=16)
    for epoch in range(2):
        rows = [row for i in range(4) for row in unmask(batches[4 * epoch + i])]
        wanted = [[CLS, *corpus.tokens(d), SEP] for d in range(64)]
        assert sorted(rows) == sorted(wanted)


@pytest.mark.parametrize("shuffle_blocks", [1, 4, None])
def test_sections_visit_their_instances_once(shuffle_blocks, small_blocks):
    # Blocks of 20 documents, and one instance a document, so that every epoch has as many.
    corpus = TokenCorpus.from_documents([[[5 + d % 20] * (1 + d // 20)] for d in range(200)])
    batches = make_batches(
        corpus, mode="doc_sentences", batch_size=5, short_seq_prob=0, shuffle_blocks=shuffle_blocks
    )
    assert len(batches) == 40
    orders = []
    for epoch in range(3):
        rows = [row for i in range(40) for row in unmask(batches[40 * epoch + i])]
        assert sorted(rows) == sorted([CLS, *corpus.tokens(d), SEP] for d in range(200))
        blocks = [len(row) - 3 for row in rows]
        orders.append(rows)
        if shuffle_blocks:
            # The blocks of a section are mixed, and come in no other section.
            for part in (set(blocks[:20]), set(blocks[-20:])):
                assert len(part) == 1 if shuffle_blocks == 1 else 1 < len(part) <= 4
        else:
            assert len(set(blocks[:40])) > 7
    assert orders[0] != orders[1] != orders[2]


def test_later_epochs_of_sections_have_other_instances_and_equally_many_batches(small_blocks):
    batches = make_batches(batch_size=4, shuffle_blocks=3)
    for epoch in range(4):
        rows = [
            row for i in range(len(batches)) for row in unmask(batches[epoch * len(batches) + i])
        ]
        assert len(rows) == 4 * len(batches)
        # A section that has fewer instances than in epoch 0 visits some of them again.
        assert len({*map(tuple, rows)}) > 0.8 * len(rows)


def test_no_two_rows_have_the_same_masks(small_blocks):
    # All rows have the same tokens, so equal masks would be equal random numbers.
    corpus = TokenCorpus.from_documents([[[6] * 20]] * 100)
    masker = TokenMasker(TOKENIZER, max_predictions=4)
    arguments = {"mode": "doc_sentences", "short_seq_prob": 0, "shuffle_blocks": 1}
    batches = make_batches(corpus, masker, batch_size=10, **arguments)
    positions = np.concatenate([batches[i][0]["mask_positions"] for i in range(20)])
    different = len(np.unique(positions, axis=0))
    assert different > 170  # Of 1,330 positions, 200 draws in two epochs have some 186 different.


def test_batches_are_those_of_former_versions(small_blocks):
    """A corpus that is shuffled as a whole: the plan of all slices, in one order."""
    corpus = make_corpus()
    batches = make_batches(corpus, seed=2, batch_size=1, mode="doc_sentences")
    assert corpus.num_blocks > SHUFFLE_BLOCKS
    tokens = np.concatenate([corpus.tokens(d) for d in range(corpus.num_documents)])
    tokens_before = np.append(0, np.cumsum(corpus.sentence_lengths))
    firsts = np.searchsorted(corpus.document_starts, np.arange(0, corpus.num_sentences, 20))
    for epoch in range(2):
        ranges = []
        for number, documents in enumerate(zip(firsts, [*firsts[1:], 30], strict=True), start=1):
            rng = np.random.default_rng([2, epoch, number])
            lengths = tokens_before, corpus.document_starts, documents
            ranges.append(plan_rows(rng, *lengths, 22, 0.1, "doc_sentences"))
        starts, lengths = map(np.concatenate, zip(*ranges, strict=True))
        whole = make_batches(
            corpus, seed=2, batch_size=1, mode="doc_sentences", shuffle_blocks=None
        )
        order = np.random.default_rng([2, epoch]).permutation(len(starts))
        for batch, row in enumerate(order[: len(whole)].tolist()):
            (start,), (length,) = starts[row], lengths[row]
            wanted = [CLS, *tokens[start : start + length], SEP]
            assert unmask(whole[epoch * len(whole) + batch]) == [wanted]
    assert unmask(batches[0]) != unmask(whole[0])


def test_epochs_with_fewer_instances_begin_again():
    corpus = make_corpus(num_documents=4)
    batches = make_batches(corpus, batch_size=1, short_seq_prob=0.5)
    planner = InstancePlanner(corpus, 24, short_seq_prob=0.5)
    sizes = [len(planner.plan(epoch)) for epoch in range(20)]
    assert len(batches) == sizes[0]
    epoch = next(e for e, size in enumerate(sizes) if size < sizes[0])
    first, after = epoch * sizes[0], epoch * sizes[0] + sizes[epoch]
    assert_same(batches[after], batches[first])


@pytest.mark.parametrize("shuffle_blocks", [None, 2])
def test_static_masks_are_those_of_an_instance(shuffle_blocks, small_blocks):
    masker = TokenMasker(TOKENIZER, max_predictions=4, dynamic=False)
    batches = make_batches(
        make_corpus(sentences=8), masker, batch_size=1, shuffle_blocks=shuffle_blocks
    )

    def rows(epoch):
        return [
            batches[i][0]["token_ids"].tolist()
            for i in range(epoch * len(batches), (epoch + 1) * len(batches))
        ]

    assert rows(0) != rows(1) and sorted(rows(0)) == sorted(rows(1))


def test_static_and_dynamic_begin_alike():
    static = TokenMasker(TOKENIZER, max_predictions=4, dynamic=False)
    assert_same(make_batches(masker=static)[0], make_batches()[0])


def test_masks_may_have_any_unit():
    masker = TokenMasker(TOKENIZER, unit="span", seed=4)
    batch = make_batches(masker=masker)[1]
    plain = make_batches()[1]
    assert unmask(batch) == unmask(plain)
    assert batch[1]["mlm"].shape == (8, 4) and not np.array_equal(batch[1]["mlm"], plain[1]["mlm"])


def test_a_batch_that_an_epoch_does_not_fill():
    with pytest.raises(ValueError, match="batch_size=9 is more than the 2 instances of an epoch"):
        make_batches(TokenCorpus.from_documents([[[6]], [[7]]]), batch_size=9, mode="doc_sentences")
    with pytest.raises(ValueError, match="batch_size must be an integer of at least 1, got 0"):
        make_batches(batch_size=0)


def make_documents(singles, others):
    """A corpus of documents of one sentence, and others of two."""
    return TokenCorpus.from_documents([[[6, 7]]] * singles + [[[8], [9, 10]]] * others)


@pytest.mark.parametrize("mode", ["pairs", "sop"])
def test_documents_of_one_sentence_make_no_pairs(mode):
    message = f"mode='{mode}' makes pairs .* each document has .* Use mode='full_sentences'"
    with pytest.raises(ValueError, match=message):
        make_batches(make_documents(300, 0), mode=mode)
    make_batches(make_documents(20, 1), mode=mode)


class LengthsOnDemand(TokenCorpus):
    """A corpus whose lengths are drawn when they are read: 4 sentences a document."""

    def __init__(self, num_shards):
        super().__init__([1024] * num_shards, [4096] * num_shards)

    def read_lengths(self, shard):
        lengths = np.random.default_rng(shard).integers(1, 12, 4096, "uint8")
        return lengths, np.full(1024, 4, "uint8")

    def tokens(self, document):
        return np.full(44, 6, "int32")


def test_memory_does_not_grow_with_the_corpus(monkeypatch):
    monkeypatch.setattr(token_corpus, "SENTENCES_PER_BLOCK", 4096)
    monkeypatch.setattr(epoch_sections, "BLOCKS_COUNTED", 4)
    peaks = []
    for num_shards in (32, 640):
        tracemalloc.start()
        batches = make_batches(LengthsOnDemand(num_shards), shuffle_blocks=4)
        for index in range(0, 2 * len(batches), len(batches) // 3):
            batches[index]
            gc.collect()  # When it runs by itself depends on the tests before.
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # The corpus grows twentyfold. What other threads of the process allocate is counted, too.
    assert 1e5 < peaks[0] and peaks[1] < 1.5 * peaks[0]


@pytest.mark.parametrize("unit", ["token", "word", "span", "ngram"])
def test_pairs_in_which_nothing_is_masked(unit):
    """With rate=0 a `Pretrainer` learns the relation alone: the loss is that of the pairs."""
    masker = TokenMasker(TOKENIZER, rate=0.0, unit=unit)
    batches = make_batches(masker=masker, mode="sop")
    x, y, weights = batches[0]
    whole = make_batches(masker=TokenMasker(TOKENIZER, unit=unit), mode="sop")[0]
    assert [x["token_ids"][row][: len(ids)].tolist() for row, ids in enumerate(unmask(whole))] == (
        unmask(whole)
    )
    assert weights["mlm"].shape == (8, 1) and not weights["mlm"].any()
    np.testing.assert_array_equal(y["nsp"], whole[1]["nsp"])


def test_pairs_alone_are_learned():
    batches = make_batches(masker=TokenMasker(TOKENIZER, rate=0.0), mode="sop")
    pretrainer = Pretrainer(BertBackbone(**ONE_LAYER))
    head = pretrainer.masked_lm.get_weights()[0]
    scores = pretrainer.evaluate(batches, verbose=0, return_dict=True)
    assert scores["loss"] == pytest.approx(scores["nsp_loss"]) and scores["mlm_loss"] == 0
    pretrainer.fit(batches, steps_per_epoch=2, verbose=0)
    assert np.abs(pretrainer.masked_lm.get_weights()[0] - head).max() < 1e-3  # It only decays.
    for task in (Pretrainer(BertBackbone(**ONE_LAYER), next_sentence=False),):
        with pytest.raises(ValueError, match="masks no token, so only the relation of two texts"):
            task.fit(batches, verbose=0)
    with pytest.raises(ValueError, match="rate"):
        MaskedLM(BertBackbone(**ONE_LAYER), masking={"rate": 0.0})


def test_shards_of_another_vocabulary_are_refused(tmp_path):
    """Their ids would be other words."""
    sentences = make_reviews(40)[0]
    (tmp_path / "texts.txt").write_text("\n\n".join(sentences), "utf-8")
    prepare_corpus([tmp_path / "texts.txt"], TOKENIZER, tmp_path / "shards", workers=1)
    corpus = open_corpus(tmp_path / "shards")
    with_added = WordPieceTokenizer(VOCABULARY)
    with_added.add_tokens(["very good"])
    others = WordPieceTokenizer([*VOCABULARY[:-2], "one", "other"]), with_added
    for part in (corpus, *hold_out(corpus, 0.5)):
        make_batches(part, mode="full_sentences", batch_size=1)
        for other in others:
            masker = TokenMasker(other, max_predictions=4)
            with pytest.raises(ValueError, match="another vocabulary than that of the masker's W"):
                make_batches(part, masker, mode="full_sentences", batch_size=1)


def test_a_masker_of_frames_is_refused():
    with pytest.raises(ValueError, match="got a FrameMasker, .* with FrameBatches"):
        PretrainingBatches(make_corpus(), FrameMasker(), sequence_length=24, batch_size=8)
