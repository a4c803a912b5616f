"""The update of AdamW as one pass over memory, by each backend's own kernel.

JAX needs none of this, its compiler fuses the formula.
"""


def torch_adamw(variables, gradients, momentums, velocities, learning_rate, decay, optimizer):
    """Updates PyTorch parameters in place.

    Args:
        variables, gradients, momentums, velocities: lists of tensors, one to one.
        learning_rate: float scalar tensor.
        decay: float, weight decay of all of these.
        optimizer: the `AdamW` whose settings hold.
    """
    import torch

    # The kernel corrects the bias by 1 - beta ** step, which is 1 after 1e9 steps.
    step = optimizer.step() if optimizer.bias_correction else 1e9
    step = torch.as_tensor(step, dtype=torch.float32, device=variables[0].device)
    torch._fused_adamw_(
        variables,
        gradients,
        momentums,
        velocities,
        [],
        [step] * len(variables),
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
        optimizer: the `AdamW` whose settings hold.
    """
    import tensorflow as tf

    def scalar(value):
        return tf.cast(value, variable.dtype)

    learning_rate, epsilon = scalar(learning_rate), scalar(optimizer.epsilon)
    if decay:
        variable.assign(variable * (1.0 - learning_rate * scalar(decay)))
    # The kernel corrects the bias by 1 - beta ** step, and adds epsilon to the square
    # root of the velocity before it is corrected; the formula adds it after.
    powers = [scalar(0.0), scalar(0.0)]
    if optimizer.bias_correction:
        powers = [scalar(beta ** optimizer.step()) for beta in (optimizer.beta_1, optimizer.beta_2)]
        epsilon *= tf.sqrt(1.0 - powers[1])
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=momentum.handle,
        v=velocity.handle,
        beta1_power=powers[0],
        beta2_power=powers[1],
        lr=learning_rate,
        beta1=scalar(optimizer.beta_1),
        beta2=scalar(optimizer.beta_2),
        epsilon=epsilon,
        grad=tf.cast(gradient, variable.dtype),
        use_locking=True,
    )


def torch_clip(gradients, norm):
    """Scales PyTorch gradients in place to a global norm of at most `norm`."""
    import torch

    total = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    # If the norm is not finite all become NaN, as Keras has it.
    torch._foreach_mul_(gradients, torch.clamp(norm / total, max=1.0) + (total - total))
    return gradients


def tensorflow_clip(gradients, norm):
    """Returns TensorFlow gradients scaled to a global norm of at most `norm`."""
    import tensorflow as tf

    return tf.clip_by_global_norm(gradients, norm)[0]


CLIP_BY_GLOBAL_NORM = {"torch": torch_clip, "tensorflow": tensorflow_clip}


def sum_slices(gradients):
    """Makes TensorFlow's gradients dense.

    That of an embedding arrives as one slice for each occurrence of a token, and the norm
    of the slices is not that of their sum.
    """
    import tensorflow as tf

    return [tf.convert_to_tensor(gradient) for gradient in gradients]
