"""Tasks with a preprocessor of KerasHub, served without Python."""

import keras_hub
import numpy as np
import pytest
from keras import ops
from kerashub_models import MODELS
from peer_weights import randomize
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.serving.signatures import _embed

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")
read_warmup_requests = pytest.importorskip("serving.native_server").read_warmup_requests

pytestmark = pytest.mark.backend("tensorflow")

FIRST, SECOND = make_reviews(6)[0], make_reviews(6, seed=1)[0]


def make_with_our_backbone():
    """(backbone, preprocessor)."""
    tokenizer = keras_hub.models.BertTokenizer(VOCABULARY, lowercase=True)
    preprocessor = keras_hub.models.BertTextClassifierPreprocessor(tokenizer, sequence_length=16)
    return kbs.BertBackbone(**ONE_LAYER), preprocessor


@pytest.mark.long("serving")
@pytest.mark.parametrize(
    ("make", "input_names"),
    [
        (make_with_our_backbone, ("premise", "hypothesis")),
        (MODELS["BERT"], ("text",)),
        (MODELS["DistilBERT"], ("premise", "hypothesis")),
        (MODELS["RoBERTa"], ("text",)),
    ],
    ids=["BERT on our backbone", *MODELS],
)
def test_a_server_answers_as_the_task(make, input_names, native_server, tmp_path):
    backbone, preprocessor = make()
    task = kbs.TextClassifier(
        backbone, label_names=["no", "yes"], preprocessor=preprocessor, input_names=input_names
    )
    randomize(task)
    texts = (FIRST, SECOND)[: len(input_names)]
    x = texts if len(texts) > 1 else FIRST
    # The vectors of a small model are much alike.
    task.classifier.kernel.assign(300 * task.classifier.kernel)
    margins = np.diff(task.predict(x, verbose=0))
    task.classifier.bias.assign_sub([0, np.median(margins)])
    wanted = ops.convert_to_numpy(ops.softmax(task.predict(x, verbose=0)))
    assert np.ptp(wanted, axis=0).min() > 0.1, "answers that are all alike prove little"

    folder = kbs.export_saved_model(task, tmp_path / "reviews")
    columns = dict(zip(input_names, texts, strict=True))
    scalars = dict.fromkeys(input_names, "a good film")
    requests = [(signature, inputs) for _, signature, inputs in read_warmup_requests(folder)]
    answer, embedded, error, *warm = native_server.try_to_ask(
        folder,
        [("serving_default", columns), ("embed", columns), ("serving_default", scalars), *requests],
    )
    np.testing.assert_allclose(answer["probabilities"], wanted, atol=1e-5)
    packed = task.data.pack_texts(texts)
    for name in ("token_ids", "padding_mask"):
        np.testing.assert_array_equal(embedded[name], packed[name])
    assert error.error_code == tf.errors.INVALID_ARGUMENT
    assert len(warm) == 8 and all(isinstance(answer, dict) for answer in warm), warm


def test_vectors_of_an_encoder_with_one_output():
    """Such as KerasHub's DistilBERT, whose output is no dict."""
    backbone, _ = MODELS["DistilBERT"]()
    packed = {name: tf.ones((2, 3), "int32") for name in backbone.input}
    vectors = _embed(backbone, packed)
    assert set(vectors) == {"sequence_output", "token_ids", "padding_mask"}
    np.testing.assert_allclose(vectors["sequence_output"], backbone(packed), atol=1e-6)


@pytest.mark.backend("torch")
@pytest.mark.parametrize("export", [kbs.export_onnx, kbs.export_openvino, kbs.export_litert])
def test_other_formats_are_refused_by_name(export, tmp_path):
    backbone, preprocessor = MODELS["RoBERTa"]()
    task = kbs.TextClassifier(backbone, num_classes=2, preprocessor=preprocessor)
    message = "has a RobertaTextClassifierPreprocessor, and only the tokenizer of a SegmentPacker"
    with pytest.raises(ValueError, match=message):
        export(task, tmp_path / "model")
