"""The SavedModel of a `MultipleChoice` takes prompts and endings, and answers as `predict` does."""

import keras
import numpy as np
import pytest
from peer_weights import randomize
from serving.traced import called_or_saved
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    BertBackbone,
    MultipleChoice,
    SegmentPacker,
    WordPieceTokenizer,
    export_saved_model,
)

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")

pytestmark = pytest.mark.backend("tensorflow")

PROMPTS = [*make_reviews(4)[0], "", "好 good"]
ENDINGS = np.array(make_reviews(18, seed=1)[0], object).reshape(6, 3)


@pytest.fixture(scope="module")
def chooser():
    keras.utils.set_random_seed(2)
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), sequence_length=16)
    return randomize(MultipleChoice(BertBackbone(**ONE_LAYER), preprocessor=packer))


@called_or_saved
def test_signatures_choose_as_predict_does(chooser, open_signatures, tmp_path):
    signatures = open_signatures(chooser, tmp_path)
    assert set(signatures) == {"serving_default", "serve_ids", "serve_examples"}
    serve = signatures["serving_default"]
    logits = chooser.predict((PROMPTS, ENDINGS), verbose=0)
    wanted = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    strings = {"prompt": tf.constant(PROMPTS), "endings": tf.constant(ENDINGS.tolist())}
    examples = [
        tf.train.Example(
            features=tf.train.Features(
                feature={
                    name: tf.train.Feature(
                        bytes_list=tf.train.BytesList(value=[text.encode() for text in texts])
                    )
                    for name, texts in (("prompt", [prompt]), ("endings", row))
                }
            )
        ).SerializeToString()
        for prompt, row in zip(PROMPTS, ENDINGS, strict=True)
    ]
    packed = chooser.data.pack(chooser.data.read((PROMPTS, ENDINGS)))[0]
    for answer in (
        serve(**strings),
        signatures["serve_examples"](examples=tf.constant(examples)),
        signatures["serve_ids"](**{name: tf.constant(array) for name, array in packed.items()}),
    ):
        np.testing.assert_allclose(answer["probabilities"], wanted, atol=1e-5)
        np.testing.assert_array_equal(answer["choices"], logits.argmax(axis=-1))
        np.testing.assert_array_equal(answer["ranking"], (-logits).argsort(axis=-1, kind="stable"))
    nothing = {"prompt": tf.constant([], tf.string), "endings": tf.zeros((0, 3), tf.string)}
    assert serve(**nothing)["probabilities"].shape == (0, 3)
    with pytest.raises(tf.errors.InvalidArgumentError):
        serve(prompt=strings["prompt"], endings=strings["endings"][:4])


@pytest.mark.long("serving")
def test_every_signature_in_a_server(chooser, native_server, tmp_path):
    native_server.answer_warmup(export_saved_model(chooser, tmp_path / "chooser"))
