"""What the process of `test_strategy.py` does, which has two logical devices."""

from quick_frameworks import run_plain_graphs
from replicas.cases import run_case


def run_steps(rank, names):
    """Yields (name, result) of each case on two devices."""
    import tensorflow as tf

    run_plain_graphs()
    processor = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        processor, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    # TensorFlow confuses the sums of two strategies of one process.
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    for name in names.split(","):
        yield name, run_case(name, scope=strategy.scope)
