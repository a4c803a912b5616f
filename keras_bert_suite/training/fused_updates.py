"""The update of AdamW as one pass over memory, by each backend's own kernel.

Both kernels were made for Adam with bias correction and are told that the
correction is over: 1 - beta^t is 1. JAX needs none of this, its compiler fuses the
formula.
"""


def torch_adamw(variables, gradients, momentums, velocities, learning_rate, decay, optimizer):
    """Updates PyTorch parameters in place.

    Args:
        variables, gradients, momentums, velocities: lists of tensors, one to one.
        learning_rate: float scalar tensor.
        decay: float, weight decay of all of these.
        optimizer: the `AdamW` whose betas and epsilon hold.
    """
    import torch

    # 0.999 ** 1e9 is 0 in every float type: no correction is left.
    settled = torch.tensor(1e9, device=variables[0].device)
    torch._fused_adamw_(
        variables,
        gradients,
        momentums,
        velocities,
        [],
        [settled] * len(variables),
        lr=learning_rate,
        beta1=optimizer.beta_1,
        beta2=optimizer.beta_2,
        weight_decay=decay,
        eps=optimizer.epsilon,
        amsgrad=False,
        maximize=False,
    )


def tensorflow_adamw(variable, gradient, momentum, velocity, learning_rate, decay, optimizer):
    """Updates one `tf.Variable` in place.

    Args:
        variable, momentum, velocity: `tf.Variable`s of one shape.
        gradient: dense tensor of that shape.
        learning_rate: float scalar tensor.
        decay: float, weight decay of this variable.
        optimizer: the `AdamW` whose betas and epsilon hold.
    """
    import tensorflow as tf

    def scalar(value):
        return tf.cast(value, variable.dtype)

    learning_rate = scalar(learning_rate)
    if decay:
        variable.assign(variable * (1.0 - learning_rate * scalar(decay)))
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=momentum.handle,
        v=velocity.handle,
        beta1_power=scalar(0.0),
        beta2_power=scalar(0.0),
        lr=learning_rate,
        beta1=scalar(optimizer.beta_1),
        beta2=scalar(optimizer.beta_2),
        epsilon=scalar(optimizer.epsilon),
        grad=tf.cast(gradient, variable.dtype),
        use_locking=True,
    )


def sum_slices(gradients):
    """Makes TensorFlow's gradients dense.

    That of an embedding arrives as one slice for each occurrence of a token, and the norm
    of the slices is not that of their sum.
    """
    import tensorflow as tf

    return [tf.convert_to_tensor(gradient) for gradient in gradients]
