"""A copy of a model has arrays of its own: a step of JAX deletes those that it was given."""

import numpy as np
import pytest

import keras_bert_suite as kbs

SIZES = {"vocabulary_size": 40, "num_layers": 2, "num_heads": 2, "hidden_dim": 8}


def make_encoder(cls=kbs.BertBackbone, **arguments):
    return cls(**SIZES, intermediate_dim=16, max_sequence_length=12, **arguments)


def make_classifier():
    return kbs.TextClassifier(make_encoder(), num_classes=2)


def join(encoder):
    return kbs.BertEncoderDecoder.from_backbones(encoder, make_encoder(num_segments=1))


def merge(classifier):
    classifier.adapt(kbs.LoRA(2), verbose=False)
    return classifier.merge_adapter()


#: Name -> (what makes the original, what copies it).
COPIES = {
    "resize": (make_encoder, lambda old: old.resize()),
    "keep_layers": (make_encoder, lambda old: old.keep_layers([1])),
    "take_tokens": (make_encoder, lambda old: old.take_tokens(range(20))),
    "resize_vocabulary": (make_encoder, lambda old: old.resize_vocabulary(44, seed=0)),
    "for_frames": (make_encoder, lambda old: old.for_frames()),
    "add_condition": (make_encoder, lambda old: old.add_condition(kbs.NormCondition(2))),
    "keep_heads": (make_encoder, lambda old: old.keep_heads([[0], [0, 1]])),
    "factorize_embeddings": (make_encoder, lambda old: old.factorize_embeddings(4)),
    "to_full_size": (
        lambda: make_encoder(heads_by_layer=[1, 2]),
        lambda old: old.to_full_size(),
    ),
    "Longformer": (
        make_encoder,
        lambda old: kbs.LongformerBackbone.from_encoder(old, 3, 24, attention_window=4),
    ),
    "BertEncoderDecoder": (make_encoder, join),
    "keep_layers of a task": (make_classifier, lambda old: old.keep_layers([1])),
    "merge_adapter": (make_classifier, merge),
    "EarlyExitClassifier": (make_classifier, kbs.EarlyExitClassifier.from_classifier),
    "change_pattern": (
        lambda: kbs.Pretrainer(make_encoder()),
        lambda old: old.change_pattern("unilm"),
    ),
}


def list_arrays(model):
    return {weight.value.unsafe_buffer_pointer(): weight.path for weight in model.weights}


@pytest.mark.backend("jax")
@pytest.mark.parametrize(
    "name",
    [
        # It compiles the sums of its kernels.
        pytest.param(name, marks=pytest.mark.long("combinations"))
        if name == "merge_adapter"
        else name
        for name in COPIES
    ],
)
def test_a_copy_has_arrays_of_its_own(name):
    make, copy = COPIES[name]
    old = make()
    new = copy(old)
    before, after = list_arrays(old), list_arrays(new)
    assert not before.keys() & after.keys(), [before[i] for i in before.keys() & after.keys()]


@pytest.mark.long("combinations")
@pytest.mark.backend("jax")
def test_a_teacher_answers_after_a_step_of_its_student():
    teacher = make_classifier()
    ids = np.ones((4, 6), "int32")
    rows = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids}
    before = teacher.predict(rows, verbose=0)
    student = teacher.keep_layers([0])
    student.compile()
    student.fit(rows, np.array([0, 1, 0, 1]), verbose=0)
    np.testing.assert_array_equal(teacher.predict(rows, verbose=0), before)
