"""Corruptions before the packer: one of a guest, and their way to a model that learns from them."""

import pickle

import grain
import keras
import keras_hub
import numpy as np
import pytest
from small_pretraining import At, all_arrays, assert_same, interrupt
from small_texts import ONE_LAYER, VOCABULARY, make_reviews
from tables import short_for

import keras_bert_suite as kbs
from keras_bert_suite.corpus import token_corpus
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.heads.base.input_checks import EncoderInputs
from keras_bert_suite.heads.base.task import Task
from keras_bert_suite.heads.pretraining.data import PretrainingData
from keras_bert_suite.masking import Corruption, RaggedRows
from keras_bert_suite.masking.masking_layer import MaskerWrapper
from keras_bert_suite.pretraining import PretrainingBatches
from keras_bert_suite.pretraining.objectives import ROW_MODES
from keras_bert_suite.training import MaskedLMLoss

CLS, SEP = 2, 3
TOKENIZER = kbs.WordPieceTokenizer(VOCABULARY)
L, B = 24, 4


def permute_sentences(rows, draw):
    keys = draw(rows["sentences"].max() + 1)[rows.numbers, rows["sentences"]]
    return rows.take(np.lexsort((rows.places, keys, rows.numbers)), rows.lengths)


def delete_tokens(rows, draw):
    keys = draw(rows.lengths.max())[rows.numbers, rows.places]
    return rows.keep(keys >= 0.3)


class Denoising(Corruption):
    """A guest: the decoder writes the text that functions have spoilt."""

    labels = {"text": ("text_ids", "text_weights")}

    def __init__(self, *noises, **arguments):
        super().__init__(TOKENIZER, **arguments)
        self.noises = noises

    def corrupt(self, rows, draw):
        source = rows
        for noise in self.noises:
            source = noise(source, draw)
        # [CLS] and the text are read, the text and [SEP] are written.
        lengths = rows.lengths + 1
        written = RaggedRows({"text_ids": np.full(lengths.sum(), SEP)}, lengths)
        written["text_ids"][written.places < rows.lengths[written.numbers]] = rows["token_ids"]
        read = np.where(written.places == 0, CLS, np.roll(written["text_ids"], 1))
        return source, written.change(
            decoder_token_ids=read.astype("int32"), decoder_padding_mask=np.ones_like(read)
        )


def make_rows(num_rows=60):
    """Rows of 1 to 4 sentences, some of them a single token."""
    rng = np.random.default_rng(3)
    rows = []
    for _ in range(num_rows):
        sizes = rng.integers(1, 7, rng.integers(1, 5))
        ids = rng.integers(5, len(VOCABULARY), sizes.sum()).tolist()
        rows.append((ids, np.repeat(np.arange(len(sizes)), sizes).tolist()))
    arrays = {
        name: np.concatenate([row[i] for row in rows]).astype("int32")
        for i, name in enumerate(("token_ids", "sentences"))
    }
    return rows, RaggedRows(arrays, np.array([len(ids) for ids, _ in rows], "int32"))


def split_rows(rows, name="token_ids"):
    return [part.tolist() for part in np.split(rows[name], rows.starts[1:])]


@pytest.mark.parametrize("dynamic", [True, False])
def test_an_epoch_draws_anew_if_a_corruption_is_dynamic(dynamic):
    _, ragged = make_rows()
    corruption, row_ids = Denoising(delete_tokens, dynamic=dynamic), np.arange(len(ragged.lengths))
    first, later = (
        corruption.make_arrays([ragged], 64, row_ids, epoch)["token_ids"].tolist()
        for epoch in (0, 3)
    )
    assert (first != later) == dynamic


def make_batches(corruption, **arguments):
    ids = TOKENIZER.tokenize(make_reviews(120)[0])
    corpus = TokenCorpus.from_documents([ids[i : i + 4] for i in range(0, 120, 4)])
    arguments = {"mode": "doc_sentences", "seed": 5, **arguments}
    return PretrainingBatches(corpus, corruption, L, B, **arguments)


def test_sources_and_targets_become_arrays_by_name():
    x, y, weights = make_batches(Denoising(permute_sentences, delete_tokens))[0]
    names = {
        "token_ids",
        "segment_ids",
        "padding_mask",
        "decoder_token_ids",
        "decoder_padding_mask",
    }
    assert x.keys() == names and y.keys() == weights.keys() == {"text"}
    assert {array.shape for part in (x, y, weights) for array in part.values()} == {(B, L)}
    plain, written, _ = make_batches(Denoising())[0]
    for row in range(B):  # Without a noise the text is its own source.
        ids = plain["token_ids"][row][plain["padding_mask"][row] == 1]
        assert (ids[0], ids[-1]) == (CLS, SEP)
        size = len(ids) - 1
        np.testing.assert_array_equal(written["text"][row], [*ids[1:], *[0] * (L - size)])
        np.testing.assert_array_equal(plain["decoder_token_ids"][row, :size], ids[:-1])
        assert plain["decoder_padding_mask"][row].tolist() == [1] * size + [0] * (L - size)
    # The target has no weights, so each of its tokens counts, and no padding.
    np.testing.assert_array_equal(weights["text"], x["decoder_padding_mask"])
    np.testing.assert_array_equal(y["text"], written["text"])
    # Masks may make a source longer than its row, which loses its end.
    longer = Denoising(
        lambda rows, draw: rows.take(np.repeat(np.arange(rows.lengths.sum()), 9), rows.lengths * 9)
    )
    assert make_batches(longer)[0][0]["padding_mask"].all()


@pytest.mark.parametrize("mode", ROW_MODES)
def test_rows_know_their_sentences(mode, monkeypatch):
    """Also in the second section of an epoch, and beside the separators between documents."""
    monkeypatch.setattr(token_corpus, "SENTENCES_PER_BLOCK", 20)
    known = {
        (*ids, *end) for ids in TOKENIZER.tokenize(make_reviews(120)[0]) for end in ((), (SEP,))
    }
    seen = []
    recorder = Denoising(lambda rows, draw: seen.append(rows) or rows)
    batches = make_batches(recorder, mode=mode, shuffle_blocks=2)
    for i in range(len(batches)):
        batches[i]
    num_sentences = []
    for rows in seen:
        for ids, numbers in zip(split_rows(rows), split_rows(rows, "sentences"), strict=True):
            found = [
                tuple(ids[place] for place in range(len(ids)) if numbers[place] == number)
                for number in range(numbers[-1] + 1)
            ]
            assert sum(found, ()) == tuple(ids) and known.issuperset(found)
            num_sentences.append(len(found))
    assert len(seen) == len(batches) and max(num_sentences) > 2


class Writer(Task, keras_hub.models.Task):
    """A decoder of one layer, whose inputs and output have the names of the arrays of MASS."""

    def __init__(self, backbone, preprocessor=None, **kwargs):
        self.check_further_arguments(kwargs)
        self.backbone = backbone
        names = ("decoder_token_ids", "decoder_positions", "decoder_padding_mask")
        read = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
        width = backbone.hidden_dim
        states = keras.layers.Embedding(len(VOCABULARY), width)(read["decoder_token_ids"])
        states += keras.layers.Embedding(L, width)(read["decoder_positions"])
        source = backbone(backbone.input)["sequence_output"]
        seen = read["decoder_padding_mask"][:, :, None] & backbone.input["padding_mask"][:, None]
        states += keras.layers.MultiHeadAttention(2, 8)(states, source, attention_mask=seen)
        outputs = {"mlm": keras.layers.Dense(len(VOCABULARY))(states)}
        encoder = EncoderInputs.of(backbone)
        self.data = PretrainingData(
            preprocessor,
            encoder,
            inputs=names,
        )
        self.preprocessor = preprocessor
        super().__init__(inputs={**backbone.input, **read}, outputs=outputs, **kwargs)

    def make_loss(self):
        return {"mlm": MaskedLMLoss()}


def make_writer():
    return Writer(kbs.BertBackbone(**ONE_LAYER))


def make_seq2seq():
    return kbs.Seq2Seq(kbs.BertEncoderDecoder(dict(ONE_LAYER)))


GUESTS = {
    "MASS": (make_writer, kbs.MassCorruption(TOKENIZER)),
    "a guest": (make_seq2seq, Denoising(permute_sentences, delete_tokens, seed=7)),
}


@pytest.mark.parametrize("guest", short_for(GUESTS, "a guest", part="combinations"))
def test_a_model_learns_and_a_stopped_training_goes_on_with_the_same_batches(guest, tmp_path):
    make_task, corruption = GUESTS[guest]
    batches = make_batches(corruption)
    expected = [batches[i] for i in range(2 * len(batches))]
    copy = pickle.loads(pickle.dumps(batches))
    options = grain.ReadOptions(num_threads=8, prefetch_buffer_size=8)
    threads = [*copy.repeat(2).to_iter_dataset(options)]
    for found in (threads, [copy[i] for i in reversed(range(len(expected)))][::-1]):
        np.testing.assert_equal(found, expected)
    assert np.mean(expected[0][0]["token_ids"] != expected[len(batches)][0]["token_ids"]) > 0.1

    def train(folder, *callbacks):
        keras.utils.set_random_seed(1)
        task = make_task()
        task.compile(kbs.AdamW(1e-2))
        every = 3 if callbacks else 100
        checkpoint = kbs.TrainingCheckpoint(tmp_path / folder, every)
        callbacks = [checkpoint, *callbacks]
        return task, task.fit(batches, epochs=3, callbacks=callbacks, verbose=0).history

    task, history = train("whole")
    assert history["loss"][-1] < history["loss"][0] - 0.1
    with pytest.raises(KeyboardInterrupt):
        train("stopped", At(len(batches) + 2, interrupt))
    assert_same(train("stopped")[0], all_arrays(task))


@pytest.mark.parametrize(
    ("make_task", "corruption", "mode", "message"),
    [
        (make_seq2seq, kbs.MassCorruption(TOKENIZER), "pairs",
         "A MassCorruption takes rows of one text, and mode='pairs'"),
        (make_writer, Denoising(), "doc_sentences", "The model reads decoder_positions, and the .* "
         "corruption of PretrainingBatches makes all others.* makes decoder_positions, or"),
        (make_seq2seq, kbs.TokenMasker(TOKENIZER), "doc_sentences", "reads decoder_token_ids, d"),
        (lambda: kbs.Pretrainer(kbs.BertBackbone(**ONE_LAYER)), kbs.TokenMasker(TOKENIZER),
         "doc_sentences", "learns mlm, nsp, and the batches have labels for mlm.*sentence=True"),
        (lambda: kbs.Pretrainer(kbs.BertBackbone(**ONE_LAYER), next_sentence=False), Denoising(),
         "doc_sentences", "The model reads mask_positions, and .* Pass one that makes mask_pos"),
        (lambda: kbs.MaskedLM(kbs.BertBackbone(**ONE_LAYER)), kbs.TokenMasker(TOKENIZER), "sop",
         "has one output, and the batches have labels for mlm, nsp.*mode='full_sentences'"),
        (lambda: kbs.Pretrainer(kbs.BertEncoderDecoder(dict(ONE_LAYER))), Denoising(),
         "doc_sentences", "BertEncoderDecoder has encoder_sequence_.* with a Seq2SeqPretrainer"),
    ],
)  # fmt: skip
def test_arrays_that_no_one_makes(make_task, corruption, mode, message):
    with pytest.raises(ValueError, match=message):
        make_task().fit(make_batches(corruption, mode=mode), verbose=0)


class Infilled(MaskerWrapper):
    """A masker whose labels have a name of their own, as the output of a model that learns them."""

    labels = {"infilled": ("mask_ids", "mask_weights")}

    def call(self, inputs, row_ids, epoch=0):
        return self.masker(inputs, row_ids, epoch)


def test_a_wrapper_names_its_labels_and_asks_the_masker_in_it():
    batches = make_batches(Infilled(kbs.TokenMasker(TOKENIZER)))
    assert batches[0][1].keys() == batches[0][2].keys() == {"infilled"}
    pretrainer = kbs.Pretrainer(kbs.BertBackbone(**ONE_LAYER), next_sentence=False)
    with pytest.raises(ValueError, match="learns mlm, and the batches have labels for infilled"):
        pretrainer.fit(batches, verbose=0)

    def rename(batch):
        x, y, weights = batch
        return x, {"mlm": y["infilled"]}, {"mlm": weights["infilled"]}

    assert np.isfinite(pretrainer.fit(batches.map(rename), verbose=0).history["loss"]).all()
    for masker, message in (
        (kbs.NextTokenTargets(TOKENIZER), "attention_pattern='left_to_right', got 'bidirectional'"),
        (kbs.TokenMasker(TOKENIZER, rate=0.0), r"TokenMasker\(rate=0\) masks no token"),
    ):
        wrapped = make_batches(Infilled(masker)).map(rename).repeat(2)
        with pytest.raises(ValueError, match=message):
            pretrainer.fit(wrapped.to_iter_dataset(), verbose=0)
