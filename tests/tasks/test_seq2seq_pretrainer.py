"""An encoder-decoder learns from corrupted texts, and a `Seq2Seq` goes on with it."""

import keras
import numpy as np
import pytest
from peer_weights import to_numpy
from small_pretraining import At, all_arrays, assert_same, interrupt
from small_texts import ONE_LAYER, VOCABULARY, make_reviews
from tables import short_for

import keras_bert_suite as kbs
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.pretraining import PretrainingBatches, objectives

TOKENIZER = kbs.WordPieceTokenizer(VOCABULARY)
L, B = 24, 8
OBJECTIVES = ("denoising", "mass")
#: With "bart" the model is a BART, whose decoder begins with the end token.
RUNS = (*OBJECTIVES, "bart")


def make_batches(objective):
    ids = TOKENIZER.tokenize(make_reviews(96)[0])
    corpus = TokenCorpus.from_documents([ids[i : i + 4] for i in range(0, 96, 4)])
    if objective == "bart":
        corruption = kbs.DenoisingCorruption(TOKENIZER, starts_with_end=True)
        return PretrainingBatches(corpus, corruption, L, B, "doc_sentences")
    row = objectives.get(objective)
    return PretrainingBatches(corpus, row.make_masker(TOKENIZER), L, B, **row.instances)


def make_pretrainer(objective):
    keras.utils.set_random_seed(1)
    arguments = {**ONE_LAYER, "initializer_range": 0.2}
    packer = kbs.SegmentPacker(TOKENIZER, L)
    if objective == "bart":
        return kbs.Seq2SeqPretrainer(kbs.BartBackbone(**arguments), preprocessor=packer)
    backbone = kbs.BertEncoderDecoder(arguments, arguments)
    return objectives.get(objective).make_task(backbone, preprocessor=packer)


@pytest.mark.parametrize("objective", short_for(RUNS, "mass", part="combinations"))
def test_the_loss_falls_and_a_stopped_run_ends_bit_for_bit_the_same(objective, tmp_path):
    batches = make_batches(objective)
    expected = [batches[i] for i in range(2 * len(batches))]
    np.testing.assert_equal([batches[i] for i in (5, 0)], [expected[5], expected[0]])

    def train(folder, *callbacks):
        task = make_pretrainer(objective)
        task.compile(kbs.AdamW(2e-2))
        every = 2 if callbacks else 100
        checkpoint = kbs.TrainingCheckpoint(tmp_path / folder, every)
        history = task.fit(batches, epochs=4, callbacks=[checkpoint, *callbacks], verbose=0).history
        return task, history

    task, history = train("whole")
    losses = history["mlm_loss"]
    assert losses[-1] < losses[0] - 0.1
    np.testing.assert_allclose(history["perplexity"], np.exp(losses), rtol=1e-5)
    with pytest.raises(KeyboardInterrupt):
        train("stopped", At(len(batches) + 1, interrupt))
    assert_same(train("stopped")[0], all_arrays(task))


def test_the_decoder_reads_at_its_positions():
    """A part of a target at its positions is as the part of the whole target that it sees."""
    whole, part = (make_pretrainer(name) for name in OBJECTIVES)
    part.set_weights(whole.get_weights())
    x, _, _ = make_batches("denoising")[0]
    rng = np.random.default_rng(0)
    decoder = {"decoder_token_ids": rng.integers(5, len(VOCABULARY), (B, 9)).astype("int32")}
    # The tokens before the fourth are hidden.
    decoder["decoder_padding_mask"] = np.repeat([[0] * 3 + [1] * 6], B, axis=0).astype("int32")
    x = {**x, **decoder}
    later = {name: array[:, 3:] for name, array in decoder.items()}
    positions = np.repeat(np.arange(3, 9, dtype="int32")[None], B, axis=0)
    found = to_numpy(part({**x, **later, "decoder_positions": positions})["mlm"])
    np.testing.assert_allclose(found, to_numpy(whole(x)["mlm"])[:, 3:], atol=1e-5)
    elsewhere = to_numpy(part({**x, **later, "decoder_positions": positions - 3})["mlm"])
    assert np.abs(elsewhere - found).max() > 0.1


@pytest.mark.parametrize("objective", short_for(RUNS, "mass", "bart", part="combinations"))
def test_a_seq2seq_begins_with_all_of_it(objective, tmp_path):
    pretrainer = make_pretrainer(objective)
    pretrainer.save_to_preset(tmp_path / "run")
    again = kbs.Seq2SeqPretrainer.from_preset(tmp_path / "run")
    assert again.decoder_positions == (objective == "mass")
    batch = make_batches(objective)[0]
    for name, value in pretrainer.test_on_batch(*batch, return_dict=True).items():
        np.testing.assert_allclose(again.test_on_batch(*batch, return_dict=True)[name], value)
    writer = kbs.Seq2Seq.from_preset(tmp_path / "run", max_target_length=4)
    for ours, theirs in zip(writer.weights, pretrainer.weights, strict=True):
        assert ours.path == theirs.path
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    sources, targets = ["good film", "a bad film"], ["good", "bad"]
    writer.fit(sources, targets, verbose=0)
    assert len(writer.predict(sources)) == 2


def test_the_head_of_a_backbone_alone(tmp_path):
    """Two BERTs lack the layers of their head. A BART has none but a bias of zeros."""
    for objective in ("denoising", "bart"):
        make_pretrainer(objective).backbone.save_to_preset(tmp_path / objective)
    with pytest.warns(UserWarning, match="backbone are new and random. Train them before use"):
        kbs.Seq2SeqPretrainer.from_preset(tmp_path / "denoising", preprocessor=None)
    kbs.Seq2SeqPretrainer.from_preset(tmp_path / "bart", preprocessor=None)


@pytest.mark.parametrize("decoder", [None, "shared", "other"])
def test_it_begins_with_bert(decoder, tmp_path):
    berts = {}
    for seed, name in enumerate(("bert", "other")):
        keras.utils.set_random_seed(seed)
        backbone = kbs.BertBackbone(**ONE_LAYER)
        bert = kbs.MaskedLM(backbone, preprocessor=kbs.SegmentPacker(TOKENIZER, L))
        bert.save_to_preset(tmp_path / name)
        berts[name] = bert
    path = tmp_path / "other" if decoder == "other" else decoder
    task = kbs.Seq2SeqPretrainer.from_preset(
        tmp_path / "bert", decoder=path, decoder_positions=True, sequence_length=L
    )
    assert (task.preprocessor.sequence_length, task.compiled) == (L, True)
    assert (task.backbone.decoder_arguments is None) == (decoder == "shared")
    writes = berts["other" if decoder == "other" else "bert"]
    decoder_block = task.backbone.decoder.blocks[0].self_attention
    for found, wanted in (
        (task.backbone.encoder.embeddings, berts["bert"].backbone.embeddings),
        (task.backbone.decoder.embeddings, writes.backbone.embeddings),
        (decoder_block, writes.backbone.transformer_layers[0].self_attention),
        (task.masked_lm, writes.masked_lm),
    ):
        for ours, theirs in zip(found.get_weights(), wanted.get_weights(), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    task.fit(make_batches("mass"), verbose=0)


def test_sentences_that_cannot_change_places():
    """3 of 4 documents have a single sentence."""
    ids = TOKENIZER.tokenize(make_reviews(8)[0])
    documents = [[ids[i]] for i in range(6)]
    corpus = TokenCorpus.from_documents([*documents, ids[:2], ids[2:4]])
    noises = [kbs.masking.SentencePermutation(1.0)]

    def make(corpus, noises=None, mode="doc_sentences"):
        return PretrainingBatches(corpus, kbs.DenoisingCorruption(TOKENIZER, noises), L, 2, mode)

    for given in (None, noises):
        with pytest.warns(
            UserWarning, match="6 of 8 documents have a single sentence, .* Use mode"
        ):
            make(corpus, given)
    single = TokenCorpus.from_documents(documents)
    with pytest.raises(ValueError, match="would learn to copy: 6 of 6 documents have a single"):
        make(single, noises)
    with pytest.warns(UserWarning, match="6 of 6 documents"):
        make(single)
    make(single, noises, "full_sentences")
    make(single, [kbs.masking.TokenDeletion()])


def test_refusals(tmp_path):
    with pytest.raises(ValueError, match="trains an encoder-decoder, got a BertBackbone. Join two"):
        kbs.Seq2SeqPretrainer(kbs.BertBackbone(**ONE_LAYER))
    unilm = kbs.Seq2Seq(kbs.BertBackbone(**ONE_LAYER, attention_pattern="seq2seq")).decoder
    with pytest.raises(ValueError, match="A UnilmDecoder reads targets from their first token on"):
        unilm.connect_parts()
    pretrainer = make_pretrainer("denoising")
    with pytest.raises(ValueError, match="Seq2SeqPretrainer has no input decoder_positions. Train"):
        pretrainer.fit(make_batches("mass"), verbose=0)
    bart = kbs.Seq2SeqPretrainer(kbs.BartBackbone(**ONE_LAYER), decoder_positions=True)
    with pytest.raises(ValueError, match="reads an end token first, and its positions"):
        bart.fit(make_batches("mass"), verbose=0)
    corruption = kbs.DenoisingCorruption(TOKENIZER, starts_with_end=True)
    with pytest.raises(ValueError, match="got .* with True. Pass starts_with_end=False"):
        corruption.check_task(pretrainer)
    mass = make_pretrainer("mass")
    with pytest.raises(ValueError, match="has decoder_positions=True, for the segments of MASS"):
        mass.fit(make_batches("denoising"), verbose=0)
    mass.save_to_preset(tmp_path / "mass")
    reset = kbs.Seq2SeqPretrainer.from_preset(tmp_path / "mass", decoder_positions=False)
    np.testing.assert_equal(reset.get_weights(), mass.get_weights())
    make_batches("denoising").check_task(reset)
    pretrainer.save_to_preset(tmp_path / "run")
    with pytest.raises(ValueError, match="holds an encoder and a decoder, got decoder='shared'"):
        kbs.Seq2SeqPretrainer.from_preset(tmp_path / "run", decoder="shared")
