"""Projects the pretraining of a BERT-large to many devices, and writes docs/scaling.md.

    python benchmarks/scaling.py > docs/scaling.md

Nothing is measured here. The speed of one device and the speeds of links are stated figures of
others, with their sources. Give your own: `--share` is what one of your devices reaches of its
peak, as `speed.py` reports it.
"""

import argparse
import dataclasses

from harness.machine_figures import count_operations
from harness.result_tables import format_table

LAYERS, HIDDEN, INNER, VOCABULARY, LENGTH, PREDICTIONS = 24, 1024, 4096, 30522, 512, 76

#: Weights of a BERT-large with its head for masked tokens.
WEIGHTS = 336_000_000

#: Rows of 512 tokens in the pretraining of Devlin et al., 2018: 1,000,000 steps of 256. With 3.3
#: billion words of Wikipedia and books they are 40 epochs.
ROWS = 256_000_000

#: The largest batch of rows of 512 tokens of You et al., 2020, with which LAMB kept the scores.
LARGEST_BATCH = 32768

#: Bytes a weight: float32 weight, gradient and two moments, and the bfloat16 copy for the products.
STATE_BYTES = 4 * 4 + 2

#: Bytes of a gradient that devices exchange, and of a hidden state.
GRADIENT_BYTES, HIDDEN_BYTES = 4, 2

#: The share of the bfloat16 peak that the record of MLPerf reaches, with products in FP8.
RECORD_SHARE = 0.52

#: The share of its stated speed that a link reaches.
LINK_SHARE = 0.8


@dataclasses.dataclass(frozen=True)
class Device:
    """An accelerator, by the figures of its maker.

    Args:
        peak: float, operations/s of dense bfloat16 products.
        memory: float, bytes.
        near: float, bytes/s that it sends to the devices of its host or pod.
        far: float, bytes/s that it sends to other hosts.
        group: int, the devices that the near links join.
    """

    name: str
    peak: float
    memory: float
    near: float
    far: float
    group: int


H200 = Device("H200", 989e12, 141e9, 450e9, 50e9, 8)
V5E = Device("v5e", 197e12, 16e9, 200e9, 6.4e12 / 8 / 256, 256)

#: (device, number, rows a device, devices that share the weights).
SETTINGS = [
    (H200, 1, 64, 1),
    (H200, 8, 64, 1),
    (H200, 64, 64, 1),
    (H200, 512, 64, 1),
    (H200, 8, 64, 2),
    (H200, 8, 64, 8),
    (H200, 64, 64, 8),
    (H200, 512, 64, 8),
    (V5E, 256, 8, 1),
    (V5E, 256, 8, 4),
]


def compute_seconds(device, rows, sharers, share):
    """The seconds of a step without exchanges, for `rows` rows for each device."""
    dense = count_operations(LAYERS, HIDDEN, INNER, [LENGTH])
    head = PREDICTIONS * 2 * HIDDEN * (HIDDEN + VOCABULARY)
    # Devices that share the weights work on the rows of all of them, each on its part.
    return 3 * (dense + head) * rows / (share * device.peak)


def sum_seconds(device, num_bytes, number):
    """The seconds of an all-reduce over `number` devices: first near links, then far ones."""
    near = min(number, device.group)
    hosts = number // near
    seconds = 2 * (near - 1) / near * num_bytes / (LINK_SHARE * device.near)
    return seconds + 2 * (hosts - 1) / hosts * num_bytes / near / (LINK_SHARE * device.far)


def gradient_bytes(sharers):
    """The bytes that each device adds up with the other replicas in a step."""
    return WEIGHTS * GRADIENT_BYTES / sharers


def hidden_bytes(rows, sharers):
    """The bytes that the sharers of the weights add up in a step, forward and backward."""
    if sharers == 1:
        return 0
    sums = 4 * LAYERS + 2  # Two of each block and one of the embeddings, and as many backward.
    return sums * rows * sharers * LENGTH * HIDDEN * HIDDEN_BYTES


def exchange_seconds(device, number, rows, sharers):
    """(seconds for gradients, seconds for hidden states) of a step."""
    replicas = number // sharers
    # The sharers are neighbours, so a replica has far links if the sharers fill the near ones.
    spread = dataclasses.replace(device, group=max(device.group // sharers, 1))
    gradients = sum_seconds(spread, gradient_bytes(sharers), replicas)
    return gradients, sum_seconds(device, hidden_bytes(rows, sharers), sharers)


def needed_memory(rows, sharers, remat):
    """The bytes of a device: state, and activations of Korthikanti et al., 2022, table 2."""
    tokens = rows * sharers * LENGTH
    factor = 2 if remat else 10 + 24 / sharers
    activations = tokens * HIDDEN * factor * LAYERS
    logits = rows * sharers * PREDICTIONS * VOCABULARY * 4 / sharers
    return WEIGHTS * STATE_BYTES / sharers + activations + logits


def efficiencies(device, number, rows, sharers, share):
    """(the share of a step that computes if gradients wait for it, and if they go beside it)."""
    compute = compute_seconds(device, rows, sharers, share)
    gradients, hidden = exchange_seconds(device, number, rows, sharers)
    # The backward pass, two thirds of a step, may hide the gradients.
    hidden_part = max(gradients - compute * 2 / 3, 0)
    return compute / (compute + gradients + hidden), compute / (compute + hidden_part + hidden)


def describe_setting(device, number, rows, sharers, share):
    """The cells of a row of the table."""
    compute = compute_seconds(device, rows, sharers, share)
    worst, best = efficiencies(device, number, rows, sharers, share)
    speeds = [rows * number / compute * efficiency for efficiency in (worst, best)]
    hours = [ROWS / speed / 3600 for speed in speeds]
    exchanged = gradient_bytes(sharers) * (number > sharers) + hidden_bytes(rows, sharers)
    memory = [needed_memory(rows, sharers, remat) / 1e9 for remat in (False, True)]
    fits = "" if memory[0] * 1e9 < device.memory else ", needs remat"
    return [
        f"{number} x {device.name}",
        f"{number // sharers} x {sharers}",
        f"{rows * number:,}",
        f"{memory[0]:.0f} / {memory[1]:.0f}{fits}",
        f"{exchanged / 1e9:.2f}",
        f"{worst:.0%} to {best:.0%}",
        f"{speeds[0]:,.0f} to {speeds[1]:,.0f}",
        f"{hours[0]:,.1f} to {hours[1]:,.1f}",
    ]


def find_end(device, batch, share, least=0.5):
    """The most devices, a power of two, that compute half of the time on a batch of this size."""
    number = 1
    while number < batch:
        rows = batch / (2 * number)
        if efficiencies(device, 2 * number, rows, 1, share)[1] < least:
            break
        number *= 2
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=0.31, help="of the peak of one device")
    share = parser.parse_args().share
    headings = [
        *("devices", "data x model", "batch", "GB a device, without / with remat"),
        *("GB summed a step", "efficiency", "rows/s", "hours"),
    ]
    table = format_table(headings, [describe_setting(*row, share) for row in SETTINGS])
    ends = format_table(
        ["batch", "H200", "v5e"],
        [
            [f"{batch:,}", *(f"{find_end(device, batch, share):,}" for device in (H200, V5E))]
            for batch in (256, 4096, LARGEST_BATCH)
        ],
    )
    single = LENGTH and 1 / compute_seconds(H200, 1, 1, share)
    eight = describe_setting(H200, 8, 64, 1, share)[6]
    as_record = describe_setting(H200, 8, 64, 1, RECORD_SHARE)[6]
    print(TEXT.format(**globals(), **locals(), percent=f"{share:.0%}"))


TEXT = """# Scaling, projected

This page projects how long the pretraining of a BERT-large takes on many devices, and where more \
devices stop helping. It is the output of `python benchmarks/scaling.py`. **Nothing here was \
measured on several accelerators**: the page is arithmetic on published figures, which are listed \
at the end.

The case is that of Devlin et al.: rows of 512 tokens, 1,000,000 steps of 256 rows, {ROWS:,} rows \
in all. That is 40 epochs of Wikipedia and books. A larger batch takes the same rows in fewer \
steps. Whether the model then becomes as good is another question.

{table}

- **data x model**: the number of replicas, and the number of devices that share the weights of \
one replica.
- **batch**: the rows of the whole batch.
- **GB a device**: the memory without and with `remat`, which computes activations a second time.
- **GB summed a step**: the gradients and hidden states that each device sums in a step.
- **efficiency**: the part of the time in which a device computes. The lower figure is for a sum \
of gradients that waits for the backward pass, the higher one for a sum that runs beside it. The \
sums of model parallelism always wait.

## Where it stops

The table has the largest number of devices (a power of two) that compute at least half of the \
time, with data parallelism alone and with the sum of gradients beside the backward pass:

{ends}

If the batch stays the same, twice the devices have half the rows each, but the sum of gradients \
takes as long as before. A device with few rows also reaches less of its peak, which these numbers \
leave out. Beyond this point, a larger batch helps, up to the {LARGEST_BATCH:,} rows with which \
LAMB was shown to keep the scores.

Model parallelism does not make a model of this size faster. It saves memory, but each block waits \
for four sums of hidden states. Use it for a model that does not fit on a device.

## Compared with a record

MLPerf Training v4.0 has a BERT-large on 8 x H200 at about 8,000 sequences/s. Its sequences have \
255 tokens on average, so two of them fit into a row of 512. The projection for 8 x H200 is \
{eight} rows/s, which is twice as many such sequences/s.

Most of the difference is the share of the bfloat16 peak that a device reaches. The record reaches \
{RECORD_SHARE:.0%}, with products in FP8. This page assumes {percent}. With the share of the \
record, the projection is {as_record} rows/s, twice as many sequences/s: the speed of the record, \
within a few percent.

## Formulas and sources

- **Operations of a step**: three times those of the forward pass, which are the products of the \
dense layers and of attention (`count_operations`), and of the head for {PREDICTIONS} masked tokens.
- **Speed of a device**: {percent} of its bfloat16 peak, {single:,.0f} rows/s on an H200. NVIDIA's \
DeepLearningExamples reach this with BERT-large in TensorFlow on an A100: 96.5 rows of 512 \
tokens/s are 97 of 312 TFLOP/s. Pass the figure of your device as `--share`.
- **H200**: 989 TFLOP/s dense bfloat16, 141 GB, NVLink 450 GB/s in each direction (NVIDIA's data \
sheet); between hosts 400 Gb/s for each GPU, 50 GB/s (DGX H200).
- **v5e**: 197 TFLOP/s, 16 GB, four links with 1,600 Gb/s together, 200 GB/s, 256 chips in a \
torus, and 6.4 Tb/s between pods (cloud.google.com/tpu/docs/v5e).
- **Links** are assumed to reach {LINK_SHARE:.0%} of these speeds.
- **Sums**: a sum over n devices sends 2 (n - 1) / n times its bytes through each link (ring). \
Over several hosts it is done within the hosts first, so that each GPU sends its share of the \
bytes to other hosts.
- **Data parallelism** sums the gradients, {WEIGHTS:,} weights in float32. **Model parallelism** \
sums a hidden state in bfloat16 twice in each block, forward and backward, and once for the \
embeddings (Shoeybi et al., 2019). A test counts as many sums in the program that XLA compiles.
- **Memory of the weights**: {STATE_BYTES} bytes for each weight.
- **Memory of the activations**: in each layer 34 bytes for each number of the hidden states; \
10 + 24 / t bytes with t devices that share the weights; 2 bytes with `remat=True` (Korthikanti et \
al., 2022, https://arxiv.org/abs/2205.05198, table 2). Attention scores are left out, because a \
fused kernel does not keep them. The logits of masked tokens are in float32.
- **{LARGEST_BATCH:,} rows**: You et al., 2020 (https://arxiv.org/abs/1904.00962).
- **MLPerf**: https://mlcommons.org/benchmarks/training/, closed division, v4.0."""


if __name__ == "__main__":
    main()
