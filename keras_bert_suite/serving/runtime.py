"""Opens an exported folder, and answers texts without a model of Keras."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert_suite.annotations import Inputs, PathLike
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.checkpoints import check_vocabulary
from keras_bert_suite.files.checksums import check_checksums
from keras_bert_suite.files.messages import list_names, reading
from keras_bert_suite.heads.base.head import HEADS
from keras_bert_suite.heads.base.input_checks import EncoderInputs
from keras_bert_suite.heads.vectors.data import add_prompt
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.serving.served_adapters import find_served, name_arrays
from keras_bert_suite.serving.task_description import DESCRIPTION_FILE, PACKING_FILE
from keras_bert_suite.tokenizers import CharacterTokenizer, open_tokenizer


class TaskRuntime:
    """Answers texts as the task that was exported does; see `open_runtime`.

    Args:
        said: dict, what `task.json` says.
        data, answers: the parts of the task.
        run: function from a dict of int32 arrays to a list of arrays, of `answers.exported`.
        shapes: the shapes of these outputs without their rows, 0 for an open length.

    Attributes:
        description: dict, the content of `task.json`.
        data, answers, input_names: as in a task.
        label_names: list of str, or None.
        problem_type: str, of a classifier, or None.
    """

    def __init__(
        self,
        said: dict[str, Any],
        data: Any,
        answers: Any,
        run: Callable,
        shapes: list[tuple[int, ...]],
    ) -> None:
        self.description = said
        self.data, self.answers = data, answers
        self.input_names = data.input_names
        self.label_names, self.problem_type = said.get("labels"), said.get("problem_type")
        self._run, self._shapes = run, shapes

    def predict(self, x: Inputs, batch_size: int = 32, *, prompt: str | None = None) -> Any:
        """The answers for texts. Several threads may call it.

        Args:
            x: texts, or rows of texts, in memory, as for `predict` of the task.
            batch_size: int, the rows or windows that go through the model together.
            prompt: of a `TextEmbedder`, as for its `predict`.

        Returns:
            the results of `predict` of the task. But a `TextClassifier`, a `DocumentClassifier`, an
            `AttributeClassifier` and a `RelationClassifier` return probabilities, or the scores of
            a regression; and a `MultipleChoice` returns the logarithms of the probabilities.

        Raises:
            ValueError: as `predict` of the task, or for packed arrays.
        """
        check_integer("batch_size", batch_size, at_least=1)
        if prompt is not None:
            if prompt not in (prompts := self.description.get("prompts") or {}):
                raise ValueError(
                    f"This export has the prompts {list_names(prompts) or 'none'}, got {prompt!r}. "
                    "Put the prompt before the texts; if its tokens are not pooled, export a "
                    "SavedModel."
                )
            x = add_prompt(prompts, prompt, x)
        return self._answer(self.answers.decode, x, batch_size)

    def predict_labels(self, x: Inputs, batch_size: int = 32) -> Any:
        """The answers of a classifier for rows, as its `predict_labels` returns them."""
        if self.answers.name is None:
            raise ValueError(f"A {self.description['task']} has no labels of rows. Use `predict`.")
        return self._answer(self.answers.name, x, batch_size)

    def predict_probabilities(self, x: Inputs, batch_size: int = 32) -> Any:
        """The probabilities of a classifier, as its `predict_probabilities` returns them."""
        if self.answers.decode_probabilities is None:
            raise ValueError(f"A {self.description['task']} has no probabilities. Use `predict`.")
        return self._answer(self.answers.decode_probabilities, x, batch_size)

    def _answer(self, decode, x, batch_size):
        rows = self.data.read(x)
        if rows.is_packed:
            raise ValueError(
                "A runtime takes texts, got packed arrays. Run model.onnx with onnxruntime, or "
                "model.xml with openvino, on arrays."
            )
        windows = self.data.window(rows)
        if not len(windows):
            nothing = [np.zeros((0, *shape), "float32") for shape in self._shapes]
            return decode(self.answers.read_exported(*nothing), windows)
        # Rows of similar length share a batch.
        order = np.argsort(self.data.lengths(windows), kind="stable")
        found = []
        for begin in range(0, len(order), batch_size):
            inputs, _, _ = self.data.pack(windows.take(order[begin : begin + batch_size]))
            outputs = self.answers.read_exported(*self._run(inputs))
            if self.answers.condense is not None:
                outputs = self.answers.condense(outputs, windows)
            found.append(outputs)
        place = np.argsort(order)
        if all(0 not in shape for shape in self._shapes):
            joined = keras.tree.map_structure(lambda *parts: np.concatenate(parts)[place], *found)
            return decode(joined, windows)
        rows = [output for outputs in found for output in outputs]
        return decode([rows[number] for number in place], windows)


def open_runtime(path: PathLike, adapter: str | None = None) -> TaskRuntime:
    """Opens a folder of `export_onnx`, `export_openvino` or `export_adapters`, to answer texts.

    It cuts and packs texts, and makes the answers, as the task does. It needs onnxruntime, openvino
    or TensorFlow, and Keras under any backend for the tokenizer. It builds no model of Keras.

    ```python
    tagger = open_runtime("tagger_onnx")
    tagger.predict(["Ada Lovelace wrote"])  # [[Entity("PER", "Ada Lovelace", 0, 12, 0.98)]]
    ```

    Args:
        path: str or path of the folder; of a SavedModel, of its version.
        adapter: str, the name of the adapter that answers, in a folder of `export_adapters`.

    Raises:
        FileNotFoundError: if a file of the folder is missing.
        ValueError: if the files of the folder are of several exports, or one of them is damaged;
            or if it has no such adapter.
        ImportError: if onnxruntime, or openvino or TensorFlow for its models, is not installed.
    """
    root = Path(path).expanduser()
    folder = root
    if adapter is not None or any(root.glob("assets.extra/*/task.json")):
        folder = find_served(root, adapter)
        check_checksums(root)
    said, packing = (_read(folder, name) for name in (DESCRIPTION_FILE, PACKING_FILE))
    head = _find_head(folder / DESCRIPTION_FILE, said)
    characters = packing.pop("characters", None)
    if characters is None:
        tokenizer = open_tokenizer(folder)
    else:
        with reading(folder / PACKING_FILE):
            tokenizer = CharacterTokenizer(**characters)
    with reading(folder / DESCRIPTION_FILE):
        wanted, length = said["tokenizer"], said["sequence_length"]
        vocabulary_size = said["encoder_inputs"]["vocabulary_size"]
    if type(tokenizer).__name__ != wanted:
        raise ValueError(
            f"{folder} has the files of a {type(tokenizer).__name__}, and the task was exported "
            f"with a {wanted}. Pack texts with it, and run the model on arrays."
        )
    if packing.get("sequence_length") != length:
        raise ValueError(
            f"{folder / PACKING_FILE} has the sequence_length {packing.get('sequence_length')}, "
            f"and {DESCRIPTION_FILE} {length}. Export the task again."
        )
    if characters is None:
        check_vocabulary(tokenizer.vocabulary_size(), vocabulary_size)
    with reading(folder / DESCRIPTION_FILE, folder / PACKING_FILE):
        packing = {name: value for name, value in packing.items() if name != "input_names"}
        packer = SegmentPacker(tokenizer, **packing, padding_lengths=None)
        encoder = said["encoder_inputs"]
        encoder = EncoderInputs(**{**encoder, "names": tuple(encoder["names"])})
        data, answers = head.make_parts(said, packer, encoder)
    for file, open_model in (("model.onnx", _open_onnx), ("model.xml", _open_openvino)):
        if (folder / file).is_file():
            return TaskRuntime(said, data, answers, *open_model(folder / file, answers, said))
    if adapter is not None:
        return TaskRuntime(said, data, answers, *_open_served(root, adapter, answers, said))
    raise FileNotFoundError(
        f"{folder} has no model.onnx of `export_onnx` and no model.xml of `export_openvino`. "
        "Export the task to one of them. A SavedModel is opened by TensorFlow."
    )


def _read(folder, name):
    if not (folder / name).is_file():
        raise FileNotFoundError(
            f"{folder / name} is missing. A runtime is made of all files that `export_onnx` or "
            "`export_openvino` writes: copy the whole folder, or export the task again. If "
            "the folder is a SavedModel, TensorFlow opens it."
        )
    with reading(folder / name):
        return dict(json.loads((folder / name).read_bytes()))


def _find_head(file, said):
    name = said.get("head", said.get("task"))
    if name not in HEADS:
        raise ValueError(
            f"{file} is of a {said.get('task')}, whose head {name!r} is not known. If the class is "
            "yours, import its module first."
        )
    return HEADS[name]


def _open_onnx(file, answers, said):
    """(function from a dict of arrays to the arrays of outputs, the shapes of a row of them)."""
    import onnxruntime

    with reading(file):
        session = onnxruntime.InferenceSession(
            str(file), providers=onnxruntime.get_available_providers()
        )
    shapes = {
        value.name: tuple(size if isinstance(size, int) else 0 for size in value.shape[1:])
        for value in session.get_outputs()
    }
    _check_outputs(file, shapes, answers.exported, said)
    outputs = list(answers.exported)
    return lambda inputs: session.run(outputs, inputs), [shapes[name] for name in outputs]


def _open_openvino(file, answers, said):
    """As `_open_onnx`."""
    import openvino

    with reading(file, file.with_suffix(".bin")):
        # Else a CPU with bfloat16 computes in it.
        model = openvino.compile_model(file, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    shapes = {
        port.get_any_name(): tuple(
            size.get_length() if size.is_static else 0 for size in list(port.partial_shape)[1:]
        )
        for port in model.outputs
    }
    _check_outputs(file, shapes, answers.exported, said)
    outputs = list(answers.exported)

    def run(inputs):
        answers = model.create_infer_request().infer(inputs)
        return [answers[name] for name in outputs]

    return run, [shapes[name] for name in outputs]


def _open_served(path, adapter, answers, said):
    """As `_open_onnx`, of a signature of a SavedModel."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401, the ops of the other signatures

    with reading(path / "saved_model.pb"):
        model = tf.saved_model.load(str(path))
    signature = model.signatures[name_arrays(adapter)]
    shapes = {
        name: tuple(size or 0 for size in spec.shape[1:])
        for name, spec in signature.structured_outputs.items()
    }
    _check_outputs(path, shapes, answers.exported, said)
    outputs = list(answers.exported)

    def run(inputs, model=model):  # The signature does not keep the variables of the model alive.
        found = signature(**{name: tf.constant(array) for name, array in inputs.items()})
        return [found[name].numpy() for name in outputs]

    return run, [shapes[name] for name in outputs]


def _check_outputs(file, found, wanted, said):
    """Checks that a model has the outputs of its task, and a place for each label.

    `found` has the shapes of outputs, and `wanted` their axes.
    """
    labels = len(said.get("labels") or ())
    for name, axes in wanted.items():
        shape = found.get(name, ())
        sizes = dict(zip(axes, shape, strict=False))
        if (
            name not in found
            or len(shape) != len(axes)
            or sizes.get("labels", 0) not in (0, labels)
        ):
            raise ValueError(
                f"{file} has the outputs {found}, without the batch and with 0 for any size, and "
                f"the {DESCRIPTION_FILE} beside it wants {name} with the axes {', '.join(axes)}"
                + (f" for {labels} labels" if "labels" in axes else "")
                + ". They are of two exports: export the task again."
            )
