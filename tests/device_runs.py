"""Trains a small pretrainer on devices of JAX that share it; run by the tests beside it.

    python device_runs.py FOLDER RUN...

A RUN is a row of `RUNS`. Each leaves its arrays in FOLDER/RUN.npz. The run "exchanges" leaves what
`count_exchanges` returns in FOLDER/exchanges.json, and "numbers" what `predict_numbers` returns
in FOLDER/numbers.json. JAX_NUM_CPU_DEVICES says how many devices there are.
"""

import collections
import contextlib
import json
import re
import sys
from pathlib import Path

import grain
import jax
import keras
import numpy as np
from guest_techniques import AverageOfMoved
from small_tasks import make_task

from keras_bert_suite import (
    AdamW,
    AlbertBackbone,
    BertBackbone,
    ModelParallel,
    ModernBertBackbone,
    Pretrainer,
)
from keras_bert_suite.layers import LAYOUT_ARGUMENT
from keras_bert_suite.preprocessing.sequence_packing import lay_out_sequences
from keras_bert_suite.runs.model_variables import named_variables

B, L, P, V, STEPS = 8, 12, 3, 32, 10

#: The batches of a validation that a signal should end.
VALIDATION_STEPS = 1000 * STEPS

#: name -> (shape of the mesh, or number of devices that share batches alone, or None; batches;
#: arguments of `build`, and "packed" for sequence packing).
RUNS = {
    "small alone": (None, 5, {"num_layers": 1}),
    "small 2x2": ((2, 2), 5, {"num_layers": 1}),
    "alone": (None, STEPS, {}),
    "2 devices": (2, STEPS, {}),
    "4 devices": (4, STEPS, {}),
    "2x2": ((2, 2), STEPS, {}),
    "1x4": ((1, 4), STEPS, {}),
    "remat 2x2": ((2, 2), STEPS, {"remat": True}),
    "lora alone": (None, STEPS, {"lora": True}),
    "lora 2x2": ((2, 2), STEPS, {"lora": True}),
    "albert alone": (None, STEPS, {"model": AlbertBackbone}),
    "albert 1x4": ((1, 4), STEPS, {"model": AlbertBackbone}),
    "packed alone": (None, STEPS, {"num_layers": 1, "dropout": 0.0}),
    "packed 4 devices": (4, STEPS, {"num_layers": 1, "dropout": 0.0, "packed": True}),
    "packed 2x2": ((2, 2), STEPS, {"num_layers": 1, "dropout": 0.0, "packed": True}),
    "moved alone": (None, STEPS, {"num_layers": 1, "technique": AverageOfMoved()}),
    "moved 2x2": ((2, 2), STEPS, {"num_layers": 1, "technique": AverageOfMoved()}),
    "modern alone": (None, STEPS, {"model": ModernBertBackbone}),
    "modern 1x4": ((1, 4), STEPS, {"model": ModernBertBackbone}),
}


class Batches(grain.MapDataset):
    """The batches of a run. A row of the fourth is NaN. The devices do not divide the last."""

    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self.slice(index)
        rng = np.random.default_rng(index)
        rows = B if index < STEPS - 1 else B - 3
        ids = rng.integers(5, V, (rows, L)).astype("int32")
        x = {
            "token_ids": ids,
            "segment_ids": np.zeros_like(ids),
            "padding_mask": (np.arange(L) < rng.integers(6, L + 1, (rows, 1))).astype("int32"),
            "mask_positions": np.sort(rng.integers(0, 6, (rows, P))).astype("int32"),
        }
        weights = rng.integers(0, 2, (rows, P)).astype("float32")
        if index == 3:
            weights[1] = np.nan
        return x, {"mlm": rng.integers(5, V, (rows, P)).astype("int32")}, {"mlm": weights}


def build(model=BertBackbone, lora=False, num_layers=2, dropout=0.1, technique=None, **arguments):
    """A pretrainer, by default with dropout."""
    keras.utils.set_random_seed(0)
    name = "attention_dropout" if model is ModernBertBackbone else "dropout"
    backbone = model(
        vocabulary_size=V,
        num_layers=num_layers,
        num_heads=4,
        hidden_dim=16,
        intermediate_dim=32,
        max_sequence_length=16,
        **{name: dropout},
        **arguments,
    )
    task = Pretrainer(backbone, next_sentence=False)
    if lora:
        for block in backbone.transformer_layers:
            block.self_attention.query.enable_lora(4)
            block.feedforward_output.enable_lora(4)
        backbone.token_embedding.enable_lora(4)
    task.compile(AdamW(1e-2), technique=technique)
    return task


def distribute(devices):
    """The scope in which a model is shared among devices."""
    if devices is None:
        return contextlib.nullcontext()
    if isinstance(devices, int):
        names = keras.distribution.list_devices()[:devices]
        return keras.distribution.DataParallel(devices=names).scope()
    mesh = keras.distribution.DeviceMesh(devices, ("batch", "model"))
    return ModelParallel(layout_map=BertBackbone.get_layout_map(mesh)).scope()


def train(num_batches, arguments):
    """dict of arrays: losses, outputs before the training, and all variables after it."""
    arguments = dict(arguments)
    packed = arguments.pop("packed", False)
    task = build(**arguments)
    x, _, _ = Batches()[0]
    arrays = {"outputs": np.asarray(task.predict_on_batch(x)["mlm"])}
    losses = []
    note = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: losses.append(logs["loss"])
    )
    task.fit(
        Batches(),
        steps_per_epoch=num_batches,
        sequence_packing=packed,
        verbose=0,
        callbacks=[note],
    )
    arrays["losses"] = np.array(losses)
    if num_batches == STEPS:
        arrays["evaluated"] = np.array(task.evaluate(Batches(), verbose=0))
        arrays["predicted"] = task.predict(Batches().map(lambda batch: batch[0]), verbose=0)["mlm"]
    variables = named_variables(task)
    arrays |= {name: np.asarray(v) for name, v in variables.items()}
    arrays["parts"] = json.dumps(
        {name: v.value.addressable_shards[0].data.shape for name, v in variables.items()}
    )
    return arrays


def count_exchanges():
    """Dicts of kind -> number, what devices exchange in a forward pass of two blocks on 2x2.

    The first is that of padded rows, the second that of packed rows.
    """
    with distribute((2, 2)):
        backbone = build().backbone
        mesh = keras.distribution.distribution().device_mesh
        layout = keras.distribution.TensorLayout(("batch", None), mesh)
        ones = np.ones((B, L), "int32")
        x = {name: keras.distribution.distribute_tensor(ones, layout) for name in backbone.input}
        packed = lay_out_sequences(ones, num_shares=2)
        layout = keras.distribution.TensorLayout(("batch", None, None), mesh)
        packed = {LAYOUT_ARGUMENT: keras.distribution.distribute_tensor(packed, layout)}
        state = (
            [v.value for v in backbone.trainable_variables],
            [v.value for v in backbone.non_trainable_variables],
        )

        def encode(trainable, others, x):
            return backbone.stateless_call(trainable, others, x)[0]["sequence_output"]

        programs = [
            jax.jit(encode).lower(*state, inputs).compile().as_text()
            for inputs in (x, {**x, **packed})
        ]
    kinds = "all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter"
    return [collections.Counter(re.findall(rf" ({kinds})\(", program)) for program in programs]


def predict_numbers():
    """Lists of the answers for 7 rows, of one device and of four, which do not divide the rows."""
    numbers = []
    for devices in (None, 4):
        with distribute(devices):
            keras.utils.set_random_seed(0)
            task, (rows, _) = make_task("numbers", "SegmentPacker")
            numbers.append(task.predict_labels(rows[:7], batch_size=4, verbose=0).tolist())
    return numbers


def main():
    folder, *names = sys.argv[1:]
    for name in names:
        if name == "exchanges":
            Path(folder, "exchanges.json").write_text(json.dumps(count_exchanges()))
            continue
        if name == "numbers":
            Path(folder, "numbers.json").write_text(json.dumps(predict_numbers()))
            continue
        devices, num_batches, arguments = RUNS[name]
        with distribute(devices):
            np.savez(Path(folder) / f"{name}.npz", **train(num_batches, arguments))


if __name__ == "__main__":
    main()
