"""Every signature, fed tensors of every shape by a server without Python."""

import itertools
import re

import numpy as np
import pytest
from serving.traced import call_signatures

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")

pytestmark = pytest.mark.backend("tensorflow")

TEXT_SHAPES = [(), (0,), (1,), (2,), (1, 0), (1, 1), (2, 2), (1, 1, 1)]
ID_SHAPES = [(), (2,), (0, 3), (1, 3), (2, 3), (2, 1), (2, 0), (1, 2, 3)]
TOKEN_INPUTS = ("token_ids", "segment_ids", "padding_mask")


def make_example(*names):
    value = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"the film was good"]))
    features = tf.train.Features(feature=dict.fromkeys(names, value))
    return tf.train.Example(features=features).SerializeToString()


def make_questions(input_names):
    """(signature, inputs) of every combination of shapes."""
    texts = [np.full(shape, "the film was good", object) for shape in TEXT_SHAPES]
    for columns in itertools.product(texts, repeat=len(input_names)):
        for signature in ("serving_default", "embed"):
            yield signature, dict(zip(input_names, columns, strict=True))
    for shape in TEXT_SHAPES:
        yield "serve_examples", {"examples": np.full(shape, make_example(*input_names), object)}
    for shape, other_shape in itertools.product(ID_SHAPES, repeat=2):
        for other in TOKEN_INPUTS if shape != other_shape else TOKEN_INPUTS[:1]:
            arrays = {name: np.ones(shape, "int32") for name in TOKEN_INPUTS}
            yield "serve_ids", {**arrays, other: np.ones(other_shape, "int32")}


@pytest.mark.parametrize(
    ("model", "input_names"),
    [
        ("saved_model", ["text"]),
        pytest.param("pair_model", ["premise", "hypothesis"], marks=pytest.mark.long("serving")),
    ],
)
def test_a_signature_answers_or_refuses(model, input_names, native_server, request):
    questions = list(make_questions(input_names))
    answers = native_server.try_to_ask(request.getfixturevalue(model), questions)
    num_answers = 0
    for (signature, inputs), answer in zip(questions, answers, strict=True):
        shapes = {value.shape for value in inputs.values()}
        shape = shapes.pop()
        if shapes or len(shape) != (2 if signature == "serve_ids" else 1) or shape[1:] == (0,):
            assert isinstance(answer, tf.errors.OpError), (signature, inputs)
            assert answer.error_code == tf.errors.INVALID_ARGUMENT, (signature, inputs, answer)
        else:
            assert {len(value) for value in answer.values()} == {shape[0]}, (signature, inputs)
            num_answers += 1
    # 0, 1 or 2 texts in three signatures, and four shapes of ids with a token in each row.
    assert num_answers == 3 * 3 + 4


def test_the_message_says_the_shapes(classifier, saved_model):
    serve = tf.saved_model.load(str(saved_model)).signatures["serving_default"]
    for shape, printed in (((), "[]"), ((1, 1), "[1,1]")):
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            serve(text=tf.fill(shape, "film"))
        assert f"{printed} is not compatible with expected shape [?]" in caught.value.message
    serve = call_signatures(classifier, inputs=("premise", "hypothesis"))["serving_default"]
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        serve(premise=tf.constant(["a", "b"]), hypothesis=tf.constant(["c"]))
    wanted = r"premise, hypothesis must have the same number of rows\. Their shapes are:\W+2\W+1\b"
    assert re.search(wanted, caught.value.message), caught.value.message
