"""Integrated gradients: which tokens of a text make an answer."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Inputs, Tensor
from keras_bert_suite.argument_checks import check_choice, check_integer, with_article
from keras_bert_suite.heads.base.attributions import (
    Attribution,
    describe_row,
    find_tokens,
    mark_text,
)
from keras_bert_suite.heads.base.ensemble import Ensemble
from keras_bert_suite.layers import SHIFT_ARGUMENT, BertEmbeddings
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.runs.weight_lock import lock_weights
from keras_bert_suite.tokenizers.text_inputs import decode_text
from keras_bert_suite.training.techniques.differentiation import differentiate

BASELINES = {"pad": "pad_token_id", "mask": "mask_token_id"}
RULES = ("gauss_legendre", "trapezoid")


def integrated_gradients(
    task: Any,
    texts: Inputs,
    target: Any = None,
    *,
    baseline: str = "pad",
    steps: int = 50,
    rule: str = "gauss_legendre",
    batch_size: int = 32,
) -> list[Attribution]:
    """Says how much each token of a text adds to an output of a task.

    The embeddings of the tokens go in a straight line from those of the baseline to their own,
    while special tokens, positions and segments stay. The score of a token is the mean gradient of
    the output on this way, times the way. So the scores sum to the output for the text minus the
    output for the baseline. Use it to see what an answer rests on, and to find a word that gives
    labels away. It says nothing about what the model would do with another text.

    ```python
    (found,) = integrated_gradients(classifier, ["a gripping, funny film"], target="positive")
    found.words()        # [WordScore("gripping", 0.83, 0, 2, 10), ...]
    found.draw("why.png")
    Path("why.html").write_text(found.to_html(), "utf-8")
    ```

    Args:
        task: a task on an encoder of this package, with a `SegmentPacker`.
        texts: rows in memory, as `predict` takes them.
        target: the output, of the model as it is, a logit by default. None for the answer: the
            class of the highest output, the only number, or the start and the end of an answer to
            a question. A label name, or its place, for `(B, C)`. A tuple with a place for each
            further axis: `(token, label)` for tags, with the place of the token among
            `Attribution.tokens`; and with the name of the output first, if the task has several.
            Or a function from the outputs, tensors of the backend with B rows, to a tensor (B,).
            A list has a target for each row.
        baseline: "pad" or "mask", the token whose embedding stands for no word.
        steps: int, the points on the way, at least 2. If `Attribution.error` is above a hundredth
            of the difference, take more.
        rule: "gauss_legendre" or "trapezoid", the rule of the integral.
        batch_size: int, how many points go through the model together.

    Returns:
        list of `Attribution`, one for each row.

    Raises:
        ValueError: if the encoder takes no moved embeddings, such as KerasHub's; if there is no
            `SegmentPacker`; if a row has several windows; or if there is no such target.

    Source: Sundararajan et al., 2017 (https://arxiv.org/abs/1703.01365), equation 1.
    """
    check_choice("baseline", baseline, BASELINES)
    check_choice("rule", rule, RULES)
    check_integer("steps", steps, at_least=2)
    check_integer("batch_size", batch_size, at_least=1)
    if not isinstance(Encoder.of(task.backbone).embeddings, BertEmbeddings):
        raise ValueError(
            f"The embeddings of {with_article(task.backbone)} cannot be moved. Take an encoder of "
            "this package that reads tokens."
        )
    entries = read_entries(task, texts)
    targets = target if isinstance(target, list) else [target] * len(entries)
    if len(targets) != len(entries):
        raise ValueError(f"Got {len(targets)} targets for {len(entries)} rows. Pass one for each.")
    nodes, weights = make_nodes(steps, rule)
    found = []
    for (packed, row), wanted in zip(entries, targets, strict=True):
        with lock_weights(task):
            line = _Line(task, packed, baseline, batch_size)
            ends = line.compute_outputs(np.array([0.0, 1.0]))
            pick, name = choose_target(task, ends, wanted)
            values = pick(keras.tree.map_structure(ops.convert_to_tensor, ends))
            scores = line.integrate(pick, nodes, weights)
        said = describe_row(task.data, packed, row)
        before, own = map(float, ops.convert_to_numpy(values))
        found.append(
            Attribution(scores=scores, target=name, **said, output=own, baseline_output=before)
        )
    return found


def read_entries(task: Any, texts: Inputs) -> list[tuple[dict[str, Any], tuple[str, ...]]]:
    """For each row of texts its arrays (1, ..., L), as the task packs them, and its texts."""
    if isinstance(task, Ensemble):
        raise ValueError(
            f"{task!r} has an encoder for each of its tasks, so no tokens of its own. Ask one of "
            "its tasks, such as ensemble.tasks[0]."
        )
    if not isinstance(task.preprocessor, SegmentPacker):
        raise ValueError(
            f"{task.name} has the preprocessor {task.preprocessor!r}, and only a SegmentPacker "
            "says which tokens stand for which words. Set `preprocessor`."
        )
    rows = task.data.read(texts)
    if rows.is_packed:
        raise ValueError("Wanted texts, which are to be shown, got packed arrays.")
    windows = task.data.window(rows)
    if len(windows) != len(rows):
        longest = int(np.bincount(windows.sources).argmax())
        raise ValueError(
            f"Row {longest} is so long that the task cuts it into windows. Pass the part of it in "
            "question, or set a longer `preprocessor.sequence_length`."
        )
    found = []
    for place in range(len(rows)):
        row = slice(place, place + 1)
        packed, _, _ = task.data.pack(windows.take(row))
        columns = [column[place] for column in rows.inputs]
        shown = tuple(decode_text(text) for text in columns if isinstance(text, (str, bytes)))
        found.append(({name: np.asarray(array) for name, array in packed.items()}, shown))
    return found


def make_nodes(steps: int, rule: str) -> tuple[np.ndarray, np.ndarray]:
    """The points in [0, 1] of a rule for integrals, and their weights: float64 (steps,)."""
    if rule == "gauss_legendre":
        nodes, weights = np.polynomial.legendre.leggauss(steps)
        return (nodes + 1) / 2, weights / 2
    weights = np.full(steps, 1 / (steps - 1))
    weights[[0, -1]] /= 2
    return np.linspace(0, 1, steps), weights


class _Line:
    """The embeddings between those of a baseline, at 0, and those of a row, at 1."""

    def __init__(self, task: Any, packed: Any, baseline: str, batch_size: int) -> None:
        self.task, self.packed, self.batch_size = task, packed, batch_size
        ids, tokenizer = packed["token_ids"], task.preprocessor.tokenizer
        empty = getattr(tokenizer, BASELINES[baseline])
        embed = Encoder.of(task.backbone).token_embedding
        is_text = mark_text(tokenizer, ids) & (packed["padding_mask"] != 0)
        pair = (embed(ops.convert_to_tensor(x)) for x in (ids, np.where(is_text, empty, ids)))
        own, none = (ops.convert_to_numpy(ops.cast(x, "float32")) for x in pair)
        #: float32 (1, ..., L, E), the way from the baseline.
        self.way = own - none

    def compute_outputs(self, places: np.ndarray) -> Any:
        """The outputs of the task at places (N,) of the line, arrays (N, ...)."""
        outputs = self.run(ops.convert_to_tensor(self.shift(places)), len(places))
        return keras.tree.map_structure(
            lambda x: ops.convert_to_numpy(ops.stop_gradient(x)), outputs
        )

    def integrate(
        self, pick: Callable[[Any], Tensor], nodes: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """float64 (T,), the scores of the tokens of the row."""
        total = np.zeros(self.way.shape[1:])
        for begin in range(0, len(nodes), self.batch_size):
            part = slice(begin, begin + self.batch_size)
            number = len(nodes[part])

            def add_up(values: list[Any], number: int = number) -> tuple[Tensor, Any]:
                return ops.sum(ops.cast(pick(self.run(values[0], number)), "float32")), ()

            shift = ops.convert_to_tensor(self.shift(nodes[part]))
            (gradient,), _ = differentiate(add_up, [shift])
            total += np.tensordot(weights[part], ops.convert_to_numpy(gradient), axes=1)
        return (total * self.way[0]).sum(axis=-1).reshape(-1)[find_tokens(self.packed)]

    def shift(self, places: np.ndarray) -> np.ndarray:
        """float32 (N, ..., L, E), what is added to the embeddings of the row."""
        factors = (places - 1).reshape(-1, *[1] * (self.way.ndim - 1))
        return (factors * self.way).astype("float32")

    def run(self, shift: Tensor, number: int) -> Any:
        """The outputs, without dropout, for as many copies of the row."""
        copies = {
            name: ops.convert_to_tensor(np.repeat(array, number, axis=0))
            for name, array in self.packed.items()
        }
        return self.task({**copies, SHIFT_ARGUMENT: shift}, training=False)


def choose_target(task: Any, outputs: Any, target: Any) -> tuple[Callable[[Any], Tensor], str]:
    """(function from outputs (B, ...) to (B,), the name of the target).

    `outputs` are those of the baseline and of the row.
    """
    if callable(target):
        return target, getattr(target, "__name__", "the target")
    keys = [] if target is None else [*target] if isinstance(target, tuple) else [target]
    split = getattr(task.answers, "split", lambda outputs: outputs)
    outputs = split(outputs)
    if not isinstance(outputs, dict):
        return _choose_place(task, outputs[1], keys, None)
    if keys and keys[0] in outputs:
        output, *keys = keys
    else:
        raise ValueError(
            f"The task has the outputs {', '.join(outputs)}, so the target must be a tuple that "
            f"begins with one of them, got {target!r}."
        )
    pick, name = _choose_place(task, outputs[output][1], keys, output)
    return lambda found: pick(split(found)[output]), f"{output}: {name}"


def _choose_place(task, row, keys, output):
    """The same for one output, from its array for the row."""
    if not keys and task.HEAD.task == "QuestionAnswerer":
        start, end = map(int, row.argmax(axis=-1))
        return lambda found: found[:, 0, start] + found[:, 1, end], f"answer {start} to {end}"
    if not keys and row.ndim == 1:
        keys = [int(row.argmax())]
    labels = getattr(task, "label_names", ())
    if output is not None:
        labels = getattr(getattr(task.answers.parts[output], "labels", None), "names", ())
    if row.ndim == 0 or len(labels) != row.shape[-1]:
        labels = ()  # Those of a CRF or of spans stand elsewhere.
    places = [labels.index(key) if key in labels else key for key in keys]
    are_places = all(isinstance(place, int) for place in places)
    sizes = zip(places, row.shape, strict=False)
    if not are_places or len(places) != row.ndim or any(not 0 <= p < n for p, n in sizes):
        known = f" The labels are {', '.join(labels)[:200]}." if labels else ""
        raise ValueError(
            f"There is no target {', '.join(map(repr, keys)) or None}: the output for a row has "
            f"the shape {row.shape}. Pass a place for each axis, several as a tuple.{known}"
        )
    names = [*map(str, places[:-1]), labels[places[-1]]] if labels else map(str, places)
    name = ", ".join(names) or "the output"
    return lambda found: found[(slice(None), *places)], name
