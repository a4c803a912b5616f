"""What a training step keeps in memory, and the largest batch that 16 and 80 GB have room for.

    python benchmarks/memory.py                              # base and large, a minute
    python benchmarks/memory.py --sizes tiny --lengths 128

A step needs memory for the weights, their gradients and the two moments of AdamW, 16 bytes a weight
in float32, and for what the forward pass keeps for the gradient. PyTorch says what it keeps; this
is counted for one and for two rows of a TextClassifier, each piece of memory once. What does not
grow with the rows, such as weights in bfloat16, is fixed. `AdamW(momentum_dtype="bfloat16")` takes
14 bytes a weight; the numbers of rows are those without it. With `remat` a row needs the inputs of
all blocks and, while its gradient is computed, what one block keeps.

Attention goes through PyTorch's fused kernel, as on a GPU: on a CPU, dropout within attention would
keep its probabilities too. Buffers that live within an operation are not counted, nor is what a
GPU's allocator leaves unused, so the batches are upper bounds, computed and not tried.
"""

import argparse
import os

os.environ["KERAS_BACKEND"] = "torch"

from harness.result_tables import describe_run, format_table

PRECISIONS = ("float32", "mixed_bfloat16")
MEMORIES = (16e9, 80e9)


def count_kept(task, remat, length):
    """Bytes that a forward pass keeps for its gradient: (of any batch, of each row).

    With `remat` the inputs of the blocks are not counted, which PyTorch does not tell of.
    """
    task.backbone.remat = remat
    one, two = (_count(task, rows, length) for rows in (1, 2))
    return 2 * one - two, two - one


def _count(task, rows, length):
    import torch

    seen = {variable.value.untyped_storage().data_ptr() for variable in task.variables}
    kept = []

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in seen:
            seen.add(storage.data_ptr())
            # The tensor itself, or its address might be given to another one.
            kept.append(tensor)
        return tensor

    names = ("token_ids", "segment_ids", "padding_mask")
    batch = {name: torch.ones(rows, length, dtype=torch.int32) for name in names}
    batch["segment_ids"] *= 0
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = task(batch, training=True)
    assert output.requires_grad
    return sum(tensor.untyped_storage().nbytes() for tensor in kept)


def count_states(task, momentum_dtype):
    """Bytes of the weights, their gradients and the moments of AdamW."""
    import keras_bert_suite as kbs

    optimizer = kbs.AdamW(momentum_dtype=momentum_dtype)
    optimizer.build(task.trainable_variables)
    variables = [*task.variables, *task.trainable_variables, *optimizer.variables]
    return sum(variable.value.nbytes for variable in variables)


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", nargs="+", default=["base", "large"])
    parser.add_argument("--lengths", nargs="+", type=int, default=[128, 512])
    parser.add_argument("--precisions", nargs="+", default=PRECISIONS, choices=PRECISIONS)
    options = parser.parse_args()

    import keras_bert_suite as kbs

    table = []
    for size in options.sizes:
        for precision in options.precisions:
            backbone = kbs.BertBackbone.from_size(
                size, vocabulary_size=30522, attention_dropout=0.0, dtype=precision
            )
            task = kbs.TextClassifier(backbone, num_classes=2)
            states = [count_states(task, dtype) for dtype in (None, "bfloat16")]
            for length in options.lengths:
                (fixed, kept), (_, outside) = (
                    count_kept(task, remat, length) for remat in (False, True)
                )
                block = (kept - outside) / backbone.num_layers
                inputs = length * backbone.hidden_dim * (4 if precision == "float32" else 2)
                recomputed = outside + backbone.num_layers * inputs + block
                fixed, lighter = (fixed + each for each in states)
                for remat, row in (("no", kept), ("yes", recomputed)):
                    rows = [str(int((memory - fixed) / row)) for memory in MEMORIES]
                    gigabytes = f"{fixed / 1e9:.2f}", f"{lighter / 1e9:.2f}"
                    figures = *gigabytes, f"{row / 1e6:.1f}", *rows
                    table.append([size, precision, str(length), remat, *figures])
    print(f"{describe_run({}, 1, ['torch'])}\n")
    headings = ["size", "precision", "length", "remat", "GB fixed", "with a momentum in bfloat16"]
    print(format_table([*headings, "MB a row", "rows in 16 GB", "in 80 GB"], table))


if __name__ == "__main__":
    main()
