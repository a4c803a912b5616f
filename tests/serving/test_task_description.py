"""Every exported folder says which task it answers."""

import json

import pytest
from small_texts import ONE_LAYER, VOCABULARY

import keras_bert_suite as kbs
from keras_bert_suite.serving.task_description import describe_task, write_description


def make_task(cls=kbs.TextClassifier, **arguments):
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), sequence_length=16)
    return cls(kbs.BertBackbone(**ONE_LAYER), preprocessor=packer, **arguments)


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (
            lambda: make_task(
                label_names=["a", "b"],
                problem_type="multi_label_classification",
                thresholds=[0.25, 0.5],
                input_names="review",
            ),
            {
                "task": "TextClassifier",
                "labels": ["a", "b"],
                "problem_type": "multi_label_classification",
                "thresholds": [0.25, 0.5],
                "input_names": ["review"],
            },
        ),
        (
            lambda: make_task(kbs.CrfTokenClassifier, label_names=["O", "B-A"], scheme="BIO"),
            {"task": "CrfTokenClassifier", "labels": ["O", "B-A"], "scheme": "BIO"},
        ),
        (
            lambda: make_task(kbs.QuestionAnswerer, no_answer_threshold=1.5, max_answer_length=9),
            {"task": "QuestionAnswerer", "no_answer_threshold": 1.5, "max_answer_length": 9},
        ),
        (lambda: make_task(kbs.TextEmbedder), {"task": "TextEmbedder"}),
    ],
)
def test_what_a_client_must_know(make, wanted, tmp_path):
    task = make()
    write_description(task, tmp_path)
    description = json.loads((tmp_path / "task.json").read_text())
    assert description == describe_task(task)
    assert {name: description.get(name) for name in wanted} == wanted
    assert (description["encoder"], description["sequence_length"]) == ("BertBackbone", 16)
    # A checkout that is not installed has no version.
    names = ("keras_bert_suite", f"keras_bert_suite {kbs.__version__}")
    assert description["package"] in names


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_an_onnx_file_names_its_axes(tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("tf2onnx")
    cases = {
        "classes": (make_task(label_names=["no", "yes"]), ["batch", 2]),
        "masks": (make_task(kbs.MaskedLM), ["batch", "masks", len(VOCABULARY)]),
    }
    for name, (task, outputs) in cases.items():
        kbs.export_onnx(task, tmp_path / name)
        model = onnx.load(tmp_path / name / "model.onnx")
        onnx.checker.check_model(model)
        found = {
            value.name: [axis.dim_param or axis.dim_value for axis in axes]
            for value in (*model.graph.input, *model.graph.output)
            for axes in [value.type.tensor_type.shape.dim]
        }
        rows = ["batch", "length"]
        wanted = {"token_ids": rows, "segment_ids": rows, "padding_mask": rows}
        if name == "masks":
            wanted["mask_positions"] = ["batch", "masks"]
        assert found == {**wanted, "probabilities": outputs}
        written = json.loads((tmp_path / name / "task.json").read_text())
        props = {row.key: row.value for row in model.metadata_props}
        assert props.keys() == written.keys() and props["task"] == written["task"]
