"""`Seq2Seq` beside its own full forward pass, exhaustive search, and the mask of transformers."""

import keras
import keras_hub
import numpy as np
import pandas
import pytest
from family import MEMBERS
from keras import ops
from peer_weights import randomize, to_numpy
from serving.traced import trace
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    AlbertBackbone,
    BertBackbone,
    ElectraBackbone,
    ErnieBackbone,
    MaskedLM,
    MultipleChoice,
    Pretrainer,
    RobertaBackbone,
    RoFormerBackbone,
    SegmentPacker,
    Seq2Seq,
    TextClassifier,
    WordPieceTokenizer,
    change_pattern,
    export_saved_model,
)
from keras_bert_suite.heads.targets.rows import find_predictions
from keras_bert_suite.heads.targets.scores import score_targets

SOURCES = ["good film", "the plot was not very good .", "bad acting , dull"]


def make_packer(sequence_length=24):
    return SegmentPacker(WordPieceTokenizer(VOCABULARY), sequence_length)


def make_writer(sizes=ONE_LAYER, packer=None, kind=BertBackbone, **kwargs):
    backbone = kind(**{**sizes, "attention_pattern": "seq2seq", "dropout": 0.0})
    randomize(backbone)
    kwargs = {"max_target_length": 8, **kwargs}
    return Seq2Seq(backbone, preprocessor=packer or make_packer(), **kwargs)


def score_target(writer, source, target_ids):
    """float (T, V), the log-probabilities of each token of a target, by the whole model."""
    tokenizer = writer.preprocessor.tokenizer
    source_ids = [2, *tokenizer.tokenize(source), 3]
    begin, end = len(source_ids), len(source_ids) + len(target_ids)
    # One shape, so that JAX compiles each operation once.
    places = np.arange(writer.preprocessor.sequence_length, dtype="int32")[None]
    ids = np.zeros_like(places)
    ids[0, :end] = [*source_ids, *target_ids]
    inputs = {
        "token_ids": ids,
        "segment_ids": ((begin <= places) & (places < end)).astype("int32"),
        "padding_mask": (places < end).astype("int32"),
        "mask_positions": places,
    }
    return to_numpy(ops.log_softmax(writer(inputs)))[0, begin - 1 : end - 1]


def detokenize(tokenizer, ids):
    """The text of a target. Special tokens, such as [SEP] and [UNK], are left out."""
    return tokenizer.detokenize([i for i in ids if i not in tokenizer.special_token_ids])


def write_greedily(writer, source, length):
    """The ids of a target, one forward pass of the whole model for each."""
    target = []
    for _ in range(length):
        # The last id is a place holder: no token before it sees it.
        target.append(int(score_target(writer, source, [*target, 0])[-1].argmax()))
        if target[-1] == 3:
            break
    return target


def test_predictions_of_a_packed_pair():
    packed = {
        "token_ids": np.array([[2, 7, 3, 8, 9, 3], [2, 3, 3, 0, 0, 0]]),
        "segment_ids": np.array([[0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 0, 0]]),
    }
    positions, labels, weights = find_predictions(packed)
    assert positions.tolist() == [[2, 3, 4], [1, 0, 0]]
    assert labels.tolist() == [[8, 9, 3], [3, 0, 0]]
    assert weights.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert find_predictions(packed, fixed_shape=True)[0].shape == (2, 5)


def test_greedy_targets_equal_those_of_whole_passes():
    """Sources of different lengths in one batch, and a cache, change nothing."""
    writer = make_writer(max_target_length=4)
    writer.compile(sampler="greedy")
    tokenizer = writer.preprocessor.tokenizer
    expected = [write_greedily(writer, source, 4) for source in SOURCES]
    texts = [detokenize(tokenizer, ids) for ids in expected]
    assert len(set(texts)) > 1
    assert writer.predict(SOURCES, verbose=0) == texts
    assert writer.predict(SOURCES[1]) == texts[1]
    short = [detokenize(tokenizer, ids[:2]) for ids in expected]
    assert writer.predict(SOURCES, batch_size=1, max_target_length=2) == short
    assert writer.predict(SOURCES[1], max_target_length=2) == short[1] != texts[1]
    assert writer.generate(SOURCES, max_length=4) == texts
    assert writer.predict([]) == []


@pytest.mark.parametrize("has_lora", [False, True])
def test_weights_of_one_call_are_not_kept_for_the_next(has_lora):
    """PyTorch joins, packs and binds weights for a call. LoRA is more than a kernel."""
    writer = make_writer(max_target_length=4)
    if has_lora:
        writer.backbone.enable_lora(2)
    written = []
    for seed in (1, 2):
        randomize(writer.backbone, seed=seed)
        expected = [write_greedily(writer, source, 4) for source in SOURCES]
        written.append([detokenize(writer.preprocessor.tokenizer, ids) for ids in expected])
        assert writer.predict(SOURCES) == written[-1]
    assert written[0] != written[1]


def test_rows_of_the_embeddings_without_a_token_are_not_written():
    """Each of them would be the best or the worst guess."""
    padded = 64
    writer = make_writer({**ONE_LAYER, "vocabulary_size": padded}, max_target_length=4)
    writer.compile(sampler="greedy")
    written = []
    for score in (-100.0, 100.0):
        bias = np.where(np.arange(padded) < len(VOCABULARY), 0.0, score)
        writer.masked_lm.bias.assign(bias)
        written.append(writer.predict(SOURCES, verbose=0))
    assert written[0] == written[1] and any(written[0])


@pytest.mark.parametrize("kind", [AlbertBackbone, ElectraBackbone, ErnieBackbone, RoFormerBackbone])
def test_kinds_with_the_attention_of_a_bert_write(kind):
    """Narrow embeddings, shared layers and turned queries: the logits are those of whole passes."""
    sizes = {**ONE_LAYER, "num_layers": 2, "embedding_dim": 4}
    writer = make_writer(sizes, kind=kind, max_target_length=4)
    target = [7, 9, 8]
    packed = writer.data.pack_sources(SOURCES, 3)
    state = writer.decoder.start(keras.tree.map_structure(ops.convert_to_tensor, packed), 3)
    expected = [score_target(writer, source, target) for source in SOURCES]
    for place, token in enumerate([3, *target[:-1]]):
        logits, state = writer.decoder.step(ops.full((3,), token, dtype="int32"), state)
        got = to_numpy(ops.log_softmax(logits))
        np.testing.assert_allclose(got, np.stack(expected)[:, place], atol=1e-5)


def test_a_wide_beam_finds_the_best_target():
    """Every target of up to two tokens is scored by whole passes."""
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY[:9]), 16)
    writer = make_writer({**ONE_LAYER, "vocabulary_size": 9}, packer, max_target_length=2)
    source = "the film"
    scores = {}
    first = score_target(writer, source, [0])[0]
    for token in range(9):
        if token == 3:
            scores[(3,)] = first[3]
            continue
        second = score_target(writer, source, [token, 0])[1]
        scores |= {(token, last): first[token] + second[last] for last in range(9)}
    best = max(scores, key=scores.get)
    writer.compile(sampler=keras_hub.samplers.BeamSampler(num_beams=9))
    expected = detokenize(packer.tokenizer, best)
    assert writer.predict([source, "was the"])[0] == expected


def test_an_ended_beam_keeps_its_score():
    writer = make_writer(max_target_length=5)
    # [SEP] is by far the most probable token everywhere.
    bias = to_numpy(writer.masked_lm.bias)
    bias[3] = 50.0
    writer.masked_lm.bias.assign(bias)
    beam = keras_hub.samplers.BeamSampler(num_beams=3, return_all_beams=True)
    writer.compile(sampler=beam)
    packed = writer.data.pack_sources(SOURCES, 5)
    targets = np.zeros((3, 6), "int32")
    targets[:, 0] = 3
    inputs = {"source": packed, "targets": targets}
    inputs = keras.tree.map_structure(ops.convert_to_tensor, inputs)
    ids, scores = writer.generate_step(inputs, (3,))
    np.testing.assert_array_equal(to_numpy(ids)[:, 0], [[3, 3, 0, 0, 0, 0]] * 3)
    np.testing.assert_allclose(to_numpy(scores)[:, 0], 0.0, atol=1e-5)


@pytest.mark.parametrize("sampler", ["top_k", "top_p", "random"])
def test_samplers_of_keras_hub(sampler, tmp_path):
    writer = make_writer(max_target_length=4)
    sampler = getattr(
        keras_hub.samplers,
        {"random": "RandomSampler", "top_k": "TopKSampler"}.get(sampler, "TopPSampler"),
    )(seed=7, **({"p": 0.9} if sampler == "top_p" else {}))
    writer.compile(sampler=sampler)
    drawn = [writer.predict(SOURCES) for _ in range(3)]
    assert all(isinstance(text, str) for row in drawn for text in row)
    assert drawn[0] != drawn[1] or drawn[1] != drawn[2]
    with pytest.raises(ValueError, match="got a .*Sampler, which draws tokens at random"):
        export_saved_model(writer, tmp_path / "1")


def test_learns_to_copy_the_first_word():
    rows = make_reviews(64)[0]
    targets = [text.split()[0] for text in rows]
    sizes = {**ONE_LAYER, "hidden_dim": 32, "attention_pattern": "seq2seq"}
    backbone = BertBackbone(**sizes, dropout=0.0, initializer_range=0.1)
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 24, padding_lengths=(24,))
    writer = Seq2Seq(backbone, preprocessor=packer, max_target_length=3)
    writer.compile(keras.optimizers.Adam(1e-2))

    class Write(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            # Not `self.model`, by which Keras under JAX would put the weights back.
            if not written:
                written.extend(writer.predict(rows[:1], verbose=0))

    written = []
    writer.fit(rows, targets, batch_size=16, epochs=15, callbacks=[Write()], verbose=0)
    assert len(written) == 1
    scores = writer.evaluate(rows, targets, return_dict=True, verbose=0)
    assert scores["accuracy"] > 0.95 and scores["perplexity"] < 1.5
    held_out = make_reviews(32, seed=5)[0]
    written = writer.predict(held_out)
    right = [text.split()[0] == target for text, target in zip(held_out, written, strict=True)]
    assert np.mean(right) > 0.8


def test_weights_of_rows_and_packed_arrays():
    """A row of weight 0 does not count, and packed arrays give the loss of their texts."""
    writer = make_writer()
    writer.compile()
    targets = ["good", "bad film", "the plot"]
    both = writer.evaluate(SOURCES[:2], targets[:2], return_dict=True, verbose=0)
    weighted = writer.evaluate(
        SOURCES, targets, sample_weight=[1.0, 1.0, 0.0], return_dict=True, verbose=0
    )
    assert weighted["loss"] == pytest.approx(both["loss"], abs=1e-5)
    tables = [pandas.DataFrame({"a": column}) for column in (targets, [1.0, 1.0, 0.0])]
    assert weighted == pytest.approx(
        writer.evaluate(SOURCES, tables[0], sample_weight=tables[1], return_dict=True, verbose=0)
    )
    x, y, weights = writer.data.pack(writer.data.read(SOURCES[:2], targets[:2]), labelled=True)
    packed = writer.evaluate(x, y, sample_weight=weights, return_dict=True, verbose=0)
    assert packed["loss"] == pytest.approx(both["loss"], abs=1e-5)


def test_a_checkpoint_becomes_a_writer(tmp_path):
    """The head of a masked LM comes along, from transformers' files and from a preset."""
    MEMBERS["bert"].save_peer(tmp_path / "bert", "ForMaskedLM")
    writer = Seq2Seq.from_preset(tmp_path / "bert", sequence_length=12, max_target_length=4)
    assert writer.backbone.attention_pattern == "seq2seq"
    guesser = MaskedLM.from_preset(tmp_path / "bert")
    for ours, theirs in zip(writer.masked_lm.weights, guesser.masked_lm.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(ours), to_numpy(theirs))
    expected = writer.predict(["a b c", "d"])
    writer.save(tmp_path / "writer.keras")
    writer.save_to_preset(tmp_path / "writer")
    for again in (
        keras.saving.load_model(tmp_path / "writer.keras"),
        Seq2Seq.from_preset(tmp_path / "writer"),
    ):
        assert again.predict(["a b c", "d"]) == expected
    with pytest.warns(UserWarning, match="no weights for pooler"):
        pretrainer = Pretrainer.from_preset(tmp_path / "bert", next_sentence=False)
    pretrainer.save_to_preset(tmp_path / "pretrainer")
    guesser.save_to_preset(tmp_path / "guesser")
    for name in ("pretrainer", "guesser"):
        again = Seq2Seq.from_preset(tmp_path / name, sequence_length=12, max_target_length=4)
        assert again.predict(["a b c", "d"]) == expected


def test_a_writer_compares_no_texts(tmp_path):
    """The first token of a pair, which classifiers pool, does not see the second text."""
    make_writer().save_to_preset(tmp_path)
    with pytest.raises(ValueError, match="does not see the second text"):
        MultipleChoice.from_preset(tmp_path)
    classifier = TextClassifier.from_preset(tmp_path, num_classes=2)
    classifier.predict(SOURCES, verbose=0)
    with pytest.raises(ValueError, match="does not see the second text"):
        classifier.fit((SOURCES, SOURCES), [0, 1, 0], verbose=0)
    both = TextClassifier(
        change_pattern(classifier.backbone, "bidirectional"),
        num_classes=2,
        preprocessor=classifier.preprocessor,
    )
    first, second = both.predict((["good film"] * 2, ["bad", "dull plot"]), verbose=0)
    assert not np.allclose(first, second)


def test_a_checkpoint_of_a_mixture_becomes_a_writer(tmp_path):
    """A source and its target keep the segments 4 and 5, which they had in the mixture."""
    MEMBERS["bert"].save_peer(tmp_path / "mixture", "ForMaskedLM", type_vocab_size=6)
    writer = Seq2Seq.from_preset(tmp_path / "mixture", sequence_length=12, max_target_length=4)
    mixture = MaskedLM.from_preset(tmp_path / "mixture")
    learned, table = (
        to_numpy(task.backbone.embeddings.segment_embedding.embeddings)
        for task in (writer, mixture)
    )
    np.testing.assert_array_equal(learned, table[4:])
    assert (writer.max_target_length, writer.compiled) == (4, True)
    for ours, theirs in zip(writer.masked_lm.weights, mixture.masked_lm.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(ours), to_numpy(theirs))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("roberta", "this kind of backbone has no segment_ids. Use a BertBackbone"),
        ("modernbert", "which has no decoder. Load a checkpoint of a BERT"),
        ("nezha", "that of a NezhaBackbone is another"),
    ],
)
def test_checkpoints_of_other_kinds_are_refused(kind, message, tmp_path):
    MEMBERS[kind].save_peer(tmp_path / kind)
    with pytest.raises(ValueError, match=message):
        Seq2Seq.from_preset(tmp_path / kind, preprocessor=None)


#: The marks of a keyboard, and no others, as in the vocabulary of bert-base-chinese.
MARKED = [*VOCABULARY[:5], *"银行恼羞成怒京\"'-."]


def make_marked_writer(**kwargs):
    packer = SegmentPacker(WordPieceTokenizer(MARKED), 24)
    return make_writer({**ONE_LAYER, "vocabulary_size": len(MARKED)}, packer, **kwargs)


def force(writer, ids):
    """Makes a writer write some tokens first: a scripted sampler in the place of the model."""
    import keras_hub

    class Scripted(keras_hub.samplers.GreedySampler):
        def __call__(self, next, prompt, **kwargs):
            row = [*ids, *[3] * (prompt.shape[1] - 1 - len(ids))]
            rows = ops.tile(ops.convert_to_tensor([row], "int32"), (ops.shape(prompt)[0], 1))
            return ops.concatenate([prompt[:, :1], ops.cast(rows, prompt.dtype)], axis=1)

    writer.compile(sampler=Scripted())


UNKNOWN_WRITTEN = [5, 6, 1, 7, 8, 9, 10, 1]


@pytest.mark.every_backend
def test_special_tokens_are_not_written():
    writer = make_marked_writer(max_target_length=10)
    force(writer, UNKNOWN_WRITTEN)
    assert writer.predict(["银行"]) == ["银行恼羞成怒"]


@pytest.mark.backend("tensorflow")
def test_a_server_writes_no_special_tokens():
    tf = pytest.importorskip("tensorflow")
    writer = make_marked_writer(max_target_length=10)
    force(writer, UNKNOWN_WRITTEN)
    answers = trace(writer)(text=tf.constant(["银行"]))
    assert answers["texts"].numpy()[0].decode() == "银行恼羞成怒"


@pytest.mark.parametrize(
    "text, plain",
    [
        ("银行“恼羞成怒”", '银行"恼羞成怒"'),
        ("‘京’——京…", "'京'--京..."),
        ("京－京", "京-京"),
        # Its mark and its plain mark are unknown.
        ("京（京", "京（京"),
        ("", ""),
    ],
)
def test_plain_marks(text, plain):
    """A target is learned, and a source is read, as the text with plain marks."""
    plain_writer, writer = make_marked_writer(plain_marks=True), make_marked_writer()
    for x, y in (([text], ["京"]), (["京"], [text])):
        wanted = writer.data.read(*([plain if t == text else t for t in c] for c in (x, y)))
        wanted = writer.data.pack(wanted, labelled=True)
        got = plain_writer.data.pack(plain_writer.data.read(x, y), labelled=True)
        keras.tree.map_structure(np.testing.assert_array_equal, got, wanted)


@pytest.mark.backend("tensorflow")
def test_a_server_reads_plain_marks():
    tf = pytest.importorskip("tensorflow")
    writer = make_marked_writer(plain_marks=True, max_target_length=4)
    sources = ["银行“恼羞成怒”", "‘京’——京…", ""]
    texts = trace(writer)(text=tf.constant(sources))["texts"].numpy()
    assert [text.decode() for text in texts] == writer.predict(sources)


def test_words_that_a_fit_cannot_learn_to_write():
    writer = make_marked_writer()
    writer.compile()
    targets = ["银行“恼羞成怒”", "京", "“京”…上"]
    message = (
        r"2 of 3 targets have words that the vocabulary lacks, 6 in all, such as '“' \(2\), '”' "
        r"\(2\), '…' \(1\), '上' \(1\)\. .*plain_marks=True.*add_tokens"
    )
    with pytest.warns(UserWarning, match=message) as caught:
        writer.fit(["银"] * 3, targets, verbose=0)
    assert sum("words that the vocabulary lacks" in str(w.message) for w in caught) == 1
    # Only a fit learns, and a vocabulary that has all is not spoken of.
    writer.evaluate(["银"] * 3, targets, verbose=0)
    plain = make_marked_writer(plain_marks=True)
    plain.compile()
    plain.fit(["银"], targets[:1], verbose=0)


def test_scores():
    writer = make_marked_writer(max_target_length=10)
    force(writer, UNKNOWN_WRITTEN)
    scores = writer.score(["银", "行"], ["银行恼羞成怒", "京"])
    assert scores == score_targets(["银行恼羞成怒", "京"], ["银行恼羞成怒"] * 2)
    assert scores["exact_match"] == 50
    with pytest.raises(ValueError, match="Wanted rows in memory"):
        writer.score(iter([(["银"], ["银"])]), None)
    packed, labels, _ = writer.data.pack(writer.data.read(["银"], ["行"], labelled=True), True)
    with pytest.raises(
        ValueError, match="compares texts, got packed arrays. Pass sources and targ"
    ):
        writer.score(packed, labels)


def test_errors():
    with pytest.raises(ValueError, match="='seq2seq', .*got a BertBackbone with 'bidir"):
        Seq2Seq(BertBackbone(**ONE_LAYER))
    with pytest.raises(ValueError, match="needs a BertBackbone .*RobertaBackbone with 'left_to"):
        Seq2Seq(RobertaBackbone(**ONE_LAYER, attention_pattern="left_to_right"))
    with pytest.raises(ValueError, match="max_target_length must be .*, got 0"):
        make_writer(max_target_length=0)
    writer = make_writer()
    assert writer.predict(SOURCES, 2, 1) == writer.predict(SOURCES[:2]) != []
    with pytest.raises(ValueError, match="has not learned to write .* its gaps.* Open a BART"):
        writer.fill_mask(["a [MASK]"])
    with pytest.raises(ValueError, match="sampler must be 'greedy', .* got 'beem'"):
        writer.compile(sampler="beem")
    writer.compile(sampler="top_p")
    assert writer.sampler.p == 0.9  # KerasHub's 0.1 nearly always draws the most probable token.
    with pytest.raises(ValueError, match="of 22 tokens leaves 2 tokens .*sequence_length is 24"):
        writer.predict(SOURCES, max_target_length=22)
    # The length that `predict` takes by default is checked before a training.
    with pytest.raises(ValueError, match="of 22 tokens leaves 2 tokens .*sequence_length is 24"):
        make_writer(max_target_length=22)
    with pytest.raises(ValueError, match="target is missing|row 1"):
        writer.fit(SOURCES[:2], ["good", None])
    with pytest.raises(ValueError, match="needs a label for each row"):
        writer.fit(SOURCES)
    with pytest.raises(ValueError, match="has one source, got 2 columns of texts"):
        writer.predict((SOURCES, SOURCES))
    with pytest.raises(ValueError, match="has one source, got 2 columns of texts"):
        writer.fit((SOURCES, SOURCES), SOURCES)


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize(
    "sampler",
    [
        pytest.param("greedy", marks=pytest.mark.long("serving")),
        pytest.param(
            keras_hub.samplers.BeamSampler(num_beams=3), marks=pytest.mark.long("serving")
        ),
    ],
)
def test_a_server_writes_the_same_targets(sampler, tmp_path):
    tf = pytest.importorskip("tensorflow")
    writer = make_writer(max_target_length=4)
    writer.compile(sampler=sampler)
    expected = writer.predict([*SOURCES, ""])
    export_saved_model(writer, tmp_path / "1")
    served = tf.saved_model.load(str(tmp_path / "1")).signatures["serving_default"]
    answers = served(text=tf.constant([*SOURCES, ""]))
    assert [text.decode() for text in answers["texts"].numpy()] == expected
    rows = zip(answers["target_ids"].numpy(), answers["num_tokens"].numpy(), strict=True)
    tokenizer = writer.preprocessor.tokenizer
    assert [detokenize(tokenizer, row[:count].tolist()) for row, count in rows] == expected


@pytest.mark.backend("tensorflow")
def test_a_server_does_not_draw():
    writer = make_writer()
    writer.compile(sampler="top_p")
    with pytest.raises(ValueError, match="got a TopPSampler, which draws tokens at random"):
        export_saved_model(writer, "never")


@pytest.mark.backend("tensorflow")
def test_it_writes_with_the_weights_of_quantize():
    writer = make_writer(max_target_length=2)
    assert len(set(writer.predict(SOURCES))) > 1
    writer.quantize("int8")
    for weight in writer.backbone.weights:
        if weight.dtype == "int8":
            weight.assign(ops.zeros_like(weight))
    assert len(set(writer.predict(SOURCES))) == 1


def test_other_segments_are_refused():
    """The target would not be in segment 1, so that no token of it would be learned."""
    writer = make_writer()
    writer.compile()
    writer.preprocessor.segment_ids = (0, 0)
    with pytest.raises(ValueError, match=r"segment_ids=\(0, 0\). Set them to None"):
        writer.fit(["a b"], ["a"], verbose=0)
