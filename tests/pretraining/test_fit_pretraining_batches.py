"""Pretraining batches go through `fit` as they are, on every backend."""

import keras
from small_texts import VOCABULARY, make_reviews

from keras_bert_suite import TokenMasker, WordPieceTokenizer
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.data.input_dataset import preprocess_batches
from keras_bert_suite.pretraining import PretrainingBatches

L, P, V = 24, 4, len(VOCABULARY)


def make_model():
    """Any model of those inputs and outputs."""
    names = {"token_ids": L, "segment_ids": L, "padding_mask": L, "mask_positions": P}
    inputs = {name: keras.Input((size,), dtype="int32", name=name) for name, size in names.items()}
    hidden = keras.layers.Embedding(V, 8)(inputs["token_ids"])
    chosen = keras.ops.take_along_axis(hidden, inputs["mask_positions"][:, :, None], axis=1)
    outputs = {
        "mlm": keras.layers.Dense(V, name="mlm")(chosen),
        "nsp": keras.layers.Dense(2, name="nsp")(hidden[:, 0]),
    }
    model = keras.Model(inputs, outputs)
    losses = {
        name: keras.losses.SparseCategoricalCrossentropy(from_logits=True) for name in outputs
    }
    model.compile(keras.optimizers.Adam(0.01), loss=losses)
    return model


def test_two_epochs_of_fit():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    ids = tokenizer.tokenize(make_reviews(120)[0])
    corpus = TokenCorpus.from_documents([ids[i : i + 6] for i in range(0, 120, 6)])
    masker = TokenMasker(tokenizer, max_predictions=P)
    batches = PretrainingBatches(corpus, masker, sequence_length=L, batch_size=8)
    dataset = preprocess_batches(batches, lambda batch: batch, 2 * len(batches))
    history = make_model().fit(
        dataset, epochs=2, steps_per_epoch=len(batches), shuffle=False, verbose=0
    )
    assert history.history["mlm_loss"][1] < history.history["mlm_loss"][0]
    assert set(history.history) == {"loss", "mlm_loss", "nsp_loss"}
