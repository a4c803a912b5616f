"""Projects the pretraining of BERT-large to many devices, by formulas and stated speeds.

    python benchmarks/scaling.py > docs/scaling.md
    python benchmarks/scaling.py --gpu_tflops 355 --tpu_tflops 80

Nothing is measured here. `--gpu_tflops` and `--tpu_tflops` are what one device reaches in training;
measure yours with `keras-bert benchmark --size large`, and pass it.
"""

import argparse
import dataclasses

from keras_bert_cli.result_tables import format_table

#: BERT-large with its heads for masked tokens and for pairs.
LAYERS, HIDDEN, HEADS, VOCABULARY, POSITIONS = 24, 1024, 16, 30522, 512
#: You et al., 2020, LAMB (https://arxiv.org/abs/1904.00962), table 1, as in
#: NVIDIA/DeepLearningExamples: (tokens of a row, predictions of a row, rows of a step, steps).
PHASES = [(128, 20, 65536, 7038), (512, 80, 32768, 1563)]
#: Rows that a device computes at once, the most of these that fit.
ROWS_AT_ONCE = (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)

FORMULAS = [
    [
        "operations of a row of L tokens and P predictions",
        "3 (24 (24 H^2 L + 4 H L^2) + 2 P (H^2 + H V)): forward once, backward twice",
    ],
    ["weights, gradients, moments", "16 bytes a parameter: each float32, and two moments"],
    [
        "activations of n rows",
        "24 n L H (10 + 24 / m) bytes if layers are split over m devices: [Korthikanti et al., "
        "2022](https://arxiv.org/abs/2205.05198), equation 2, without the matrix of attention, "
        "which a fused kernel does not keep; 4 n P V / m bytes of logits",
    ],
    [
        "rows at once",
        "the largest power of two for which 90% of the memory is enough; the rest is accumulated",
    ],
    [
        "sum of gradients",
        "by rings, float32: 2 (d - 1) / d x 4 bytes x parameters on the d devices of a host, then "
        "2 (h - 1) / h x the part of a device between h hosts",
    ],
    [
        "sum of activations",
        "two sums forward and two backward in each layer, bfloat16: [Shoeybi et al., 2019]"
        "(https://arxiv.org/abs/1909.08053), section 3",
    ],
]
LINKS = [
    ["NVLink, inside of a host of 8 H200", "450", "NVIDIA H200: 900 GB/s in both directions"],
    ["InfiniBand, between hosts", "50", "NVIDIA DGX H200: 400 Gb/s for each GPU"],
    [
        "ICI of a TPU v5e",
        "200",
        "[Google Cloud](https://cloud.google.com/tpu/docs/v5e): 1,600 Gb/s a chip; 51.2 TB/s in an "
        "all-reduce of 256 chips",
    ],
]


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Devices, and the links between them.

    Attributes:
        title: str.
        devices: int.
        tflops: float, reached by one device in training, TFLOP/s.
        memory: float, of one device, GB.
        host_devices: int, devices that `inner` connects.
        inner: float, GB/s that a device sends to the others of its host in an all-reduce.
        outer: float, GB/s that a device sends to other hosts. It is 0 if `inner` connects all.
    """

    title: str
    devices: int
    tflops: float
    memory: float
    host_devices: int
    inner: float
    outer: float


@dataclasses.dataclass(frozen=True)
class Step:
    """What a step costs a device.

    Attributes:
        memory: float, GB.
        computing: float, seconds.
        gradients: float, seconds to sum the gradients.
        activations: float, seconds to sum the activations of split layers.
        gigabytes: float, sent by a device.
    """

    memory: float
    computing: float
    gradients: float
    activations: float
    gigabytes: float

    @property
    def seconds(self):
        """float, if nothing is sent while the device computes."""
        return self.computing + self.gradients + self.activations

    @property
    def hidden_seconds(self):
        """float, if gradients are sent during the backward pass, two thirds of the computing."""
        return self.computing / 3 + max(2 * self.computing / 3, self.gradients) + self.activations


def count_parameters():
    """int: embeddings, layers, pooler, and the heads, whose table is that of the embeddings."""
    embeddings = (VOCABULARY + POSITIONS + 2) * HIDDEN + 2 * HIDDEN
    attention = 4 * (HIDDEN * HIDDEN + HIDDEN) + 2 * HIDDEN
    feedforward = 2 * 4 * HIDDEN * HIDDEN + 4 * HIDDEN + HIDDEN + 2 * HIDDEN
    pooler = HIDDEN * HIDDEN + HIDDEN
    heads = HIDDEN * HIDDEN + HIDDEN + 2 * HIDDEN + VOCABULARY + 2 * HIDDEN + 2
    return embeddings + LAYERS * (attention + feedforward) + pooler + heads


def count_operations(length, predictions):
    """float, the operations of a row in training: three times those of the forward pass."""
    layers = LAYERS * (2 * 12 * HIDDEN**2 * length + 2 * 2 * HIDDEN * length**2)
    head = 2 * predictions * (HIDDEN**2 + HIDDEN * VOCABULARY)
    return 3.0 * (layers + head)


def plan_step(cluster, split, length, predictions, rows):
    """The `Step` of a device, if each layer is split over `split` devices; None if none fits.

    Args:
        cluster: `Cluster`.
        split: int, devices that share the layers.
        length, predictions, rows: of a phase.
    """
    replicas = cluster.devices // split
    if cluster.devices % split or rows < replicas:
        return None
    share = rows / replicas
    weights = count_parameters() / split
    state = 16 * weights / 1e9
    fitting = []
    for at_once in ROWS_AT_ONCE:
        # Korthikanti et al., 2022, https://arxiv.org/abs/2205.05198, equation 2, without the
        # matrix of attention, which a fused kernel does not keep.
        held = LAYERS * length * at_once * HIDDEN * (10 + 24 / split)
        logits = at_once * predictions * VOCABULARY * 4 / split
        if at_once <= share and state + (held + logits) / 1e9 <= 0.9 * cluster.memory:
            fitting.append((at_once, state + (held + logits) / 1e9))
    if not fitting:
        return None
    _, memory = fitting[0]
    computing = share * count_operations(length, predictions) / split / (cluster.tflops * 1e12)
    gradient_bytes, gradients = sum_over_devices(cluster, 4 * weights, replicas, split)
    # Two sums forward and two backward in a layer, of bfloat16.
    sent = 4 * LAYERS * share * length * HIDDEN * 2
    activation_bytes = 2 * (split - 1) / split * sent
    activations = activation_bytes / (cluster.inner * 1e9)
    return Step(
        memory, computing, gradients, activations, (gradient_bytes + activation_bytes) / 1e9
    )


def sum_over_devices(cluster, size, replicas, split):
    """(bytes that a device sends, seconds) of the sum of arrays of `size` bytes by rings.

    The devices of a host first sum their parts, then each sends its part to the other hosts.
    """
    if replicas == 1:
        return 0.0, 0.0
    inside = min(replicas, max(1, cluster.host_devices // split))
    hosts = replicas // inside if cluster.outer else 1
    inside = inside if cluster.outer else replicas
    inner = 2 * (inside - 1) / inside * size
    outer = 2 * (hosts - 1) / hosts * size / inside
    seconds = inner / (cluster.inner * 1e9) + (outer / (cluster.outer * 1e9) if outer else 0.0)
    return inner + outer, seconds


def format_row(cluster, split):
    """The cells of a table: both phases with one way to split, or None if it does not fit."""
    plans = [
        (plan_step(cluster, split, length, predictions, rows), steps)
        for length, predictions, rows, steps in PHASES
    ]
    if any(step is None for step, _ in plans):
        return None
    hours, hidden, computing = (
        sum(getattr(step, name) * steps for step, steps in plans) / 3600
        for name in ("seconds", "hidden_seconds", "computing")
    )
    first, second = (step for step, _ in plans)
    ways = [f"data {cluster.devices // split}"] + ([f"model {split}"] if split > 1 else [])
    return [
        cluster.title,
        " x ".join(ways),
        f"{max(first.memory, second.memory):.0f}",
        f"{first.gigabytes:.1f} / {second.gigabytes:.1f}",
        f"{first.seconds:.2f} / {second.seconds:.2f}",
        f"{computing / hours:.0%} to {computing / hidden:.0%}",
        f"{hidden:.1f} to {hours:.1f}",
    ]


def find_limit(cluster, length, predictions, rows):
    """int, the first power of two of devices at which sending takes as long as computing."""
    for exponent in range(3, 17):
        larger = dataclasses.replace(cluster, devices=2**exponent)
        step = plan_step(larger, 1, length, predictions, rows)
        if step is None:
            return None
        if step.gradients >= step.computing:
            return larger.devices
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--gpu_tflops", type=float, default=0.45 * 790, help="of an H200")
    parser.add_argument("--tpu_tflops", type=float, default=0.45 * 197, help="of a TPU v5e")
    options = parser.parse_args()
    hopper = {"tflops": options.gpu_tflops, "memory": 141, "host_devices": 8, "inner": 450}
    clusters = [Cluster(f"{n} H200", n, **hopper, outer=50 if n > 8 else 0) for n in (8, 64, 512)]
    clusters.append(Cluster("256 TPU v5e", 256, options.tpu_tflops, 16, 256, 200, 0))
    rows = [format_row(cluster, split) for cluster in clusters for split in (1, 2, 4, 8)]
    columns = [
        "devices",
        "split",
        "memory, GB",
        "sent in a step, GB",
        "seconds of a step",
        "efficiency",
        "hours",
    ]
    total = sum(rows * steps * count_operations(length, p) for length, p, rows, steps in PHASES)
    tokens = sum(length * rows * steps for length, _, rows, steps in PHASES)
    eight = clusters[0]
    mlperf = 8 * eight.tflops * 1e12 / count_operations(512, 76) * 2
    print(f"""# BERT-large on many devices

    python benchmarks/scaling.py > docs/scaling.md

This page is a projection by formulas. It shows where a split of the work can pay, before anyone
rents machines. **No figure on this page was measured.** A device is taken to reach
{options.gpu_tflops:.0f} TFLOP/s (H200) or {options.tpu_tflops:.0f} TFLOP/s (TPU v5e) in bfloat16.
The defaults are 45% of 790 TFLOP/s, which a large matrix product reaches on an H200, and 45% of the
197 TFLOP/s of the specification of a TPU v5e. Measure yours with `keras-bert benchmark --size
large`, and pass it as `--gpu_tflops` or `--tpu_tflops`.

The training is that of LAMB (You et al., 2020): 7,038 steps of 65,536 rows of 128 tokens, then
1,563 steps of 32,768 rows of 512 tokens. These are {tokens / 1e9:.0f} billion tokens and
{total / 1e18:,.0f} x 10^18 operations. Wikipedia and BookCorpus have 3.3 billion words, so about
4.3 billion tokens, which the training passes {tokens / 4.3e9:.0f} times. BERT-large has
{count_parameters() / 1e6:.0f} million parameters.

In the table, two figures with a stroke are the steps of 128 and of 512 tokens. An efficiency is the
computing as a share of the step: first if nothing is sent while the device computes, then if the
gradients are sent during the backward pass. The hours have the same two cases.

{format_table(columns, [row for row in rows if row])}

## Where it stops

With these large steps, data parallelism alone loses little, and to split layers loses more:
BERT-large fits on every one of these devices. A split of the layers helps only where a step has
fewer rows than there are devices. In steps of 512 tokens, the sum of gradients takes as long as the
computing with {_describe_limit(clusters[1])} H200 and 50 GB/s between hosts. With steps of 256
rows, which Devlin et al. had, this point is at {_describe_limit(clusters[1], rows=256)} devices.

Not in the formulas: the time that a device waits for the slowest, data that come late, smaller
matrix products when a device has few rows, and the latency of a message. All of them lower the
efficiency of the largest clusters most.

## Beside a record

MLPerf Training v4.0, BERT-large, 512 tokens, 8 H200: 7,970 to 8,125 rows/s, in FP8, with kernels
written for it. Two texts share a packed row there. The same formulas give {mlperf:,.0f} texts/s for
8 H200 at {options.gpu_tflops:.0f} TFLOP/s in bfloat16, two texts a row. The record corresponds to
{8000 / mlperf * options.gpu_tflops:.0f} TFLOP/s a device.

## Formulas

H is 1,024 and V is 30,522.

{format_table(["what", "formula"], FORMULAS)}

{format_table(["link", "GB/s that a device sends", "source"], LINKS)}""")


def _describe_limit(cluster, rows=PHASES[1][2]):
    length, predictions, _, _ = PHASES[1]
    limit = find_limit(cluster, length, predictions, rows)
    return "no number of" if limit is None else f"{limit:,}"


if __name__ == "__main__":
    main()
