"""The update of AdamW as one pass over memory, by each backend's own kernel.

JAX needs no such kernel, because its compiler fuses the formula. A step whose gradients are not
finite changes nothing. The code does this without a branch, because a GPU would wait for the
condition.
"""

import functools
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor


def torch_adamw(
    variables: list[Tensor],
    gradients: list[Tensor],
    momentums: list[Tensor],
    velocities: list[Tensor],
    learning_rate: Tensor,
    decay: float,
    finite: Tensor,
    optimizer: keras.optimizers.Optimizer,
) -> None:
    """Updates PyTorch parameters in place, by lists with a tensor for each.

    All have the dtype of the variables, but the momentums may be bfloat16. All these parameters
    have the same `decay`. If `finite`, a bool scalar tensor, is false, nothing changes. The
    settings come from the optimizer, an `AdamW`.
    """
    import torch

    # The kernel corrects the bias by 1 - beta ** step. At step 1e9 this is 1, no correction.
    step = optimizer.step() if optimizer.bias_correction else 1e9
    step = torch.as_tensor(step, dtype=torch.float32, device=variables[0].device)
    _torch_kernel()(
        variables,
        gradients,
        momentums,
        velocities,
        [step] * len(variables),
        lr=learning_rate,
        beta1=optimizer.beta_1,
        beta2=optimizer.beta_2,
        weight_decay=decay,
        eps=optimizer.epsilon,
        amsgrad=False,
        maximize=False,
        found_inf=torch.logical_not(finite).float(),
    )


@functools.cache
def _torch_kernel() -> Callable[..., None]:
    """PyTorch's AdamW, hidden from PyTorch's compiler, which does not know the kernel's shapes."""
    import torch

    return torch.compiler.disable(_run_torch_kernel)


def _run_torch_kernel(
    variables: list[Tensor],
    gradients: list[Tensor],
    momentums: list[Tensor],
    velocities: list[Tensor],
    steps: list[Tensor],
    **settings: Any,
) -> None:
    import torch

    states = variables, gradients, momentums, velocities
    if momentums[0].dtype == variables[0].dtype:
        torch._fused_adamw_(*states, [], steps, **settings)
        return
    # The kernel takes only one dtype. To update one variable after another needs the least memory
    # for the copies.
    for variable, gradient, momentum, velocity, step in zip(*states, steps, strict=True):
        copy = momentum.to(variable.dtype)
        torch._fused_adamw_([variable], [gradient], [copy], [velocity], [], [step], **settings)
        momentum.copy_(copy)


class TensorFlowAdamW:
    """AdamW's update of one `tf.Variable` after another in one step.

    The scalars of the step are made once. Made for each variable they were 30 of its operations,
    and a third of the time that TensorFlow needs to trace a step.

    Args:
        learning_rate: float scalar tensor. If the gradients are not finite, it and they must be 0.
        optimizer: `AdamW`. If its `finite`, a bool scalar tensor, is false, nothing changes.
    """

    def __init__(self, learning_rate: Tensor, optimizer: keras.optimizers.Optimizer) -> None:
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self._find_kernel = functools.cache(self._make_kernel)
        self._find_rate = functools.cache(self._make_rate)
        self._find_share = functools.cache(self._make_share)

    def update(
        self,
        variable: Tensor,
        gradient: Tensor,
        momentum: Tensor,
        velocity: Tensor,
        decay: float,
        rate_multiplier: float,
    ) -> None:
        """Updates a variable and its moments, of the same dtype, in place, by a dense gradient."""
        import tensorflow as tf

        if decay:
            variable.assign(variable * self._find_share(decay, rate_multiplier, variable.dtype))
        self._find_kernel(variable.dtype)(
            var=variable.handle,
            m=momentum.handle,
            v=velocity.handle,
            lr=self._find_rate(rate_multiplier, variable.dtype),
            grad=tf.cast(gradient, variable.dtype),
        )

    def _make_rate(self, multiplier: float, dtype: Any) -> Tensor:
        import tensorflow as tf

        return tf.cast(self.learning_rate * multiplier, dtype)

    def _make_share(self, decay: float, multiplier: float, dtype: Any) -> Tensor:
        """The share of a decayed variable that a step leaves."""
        import tensorflow as tf

        return 1.0 - self._find_rate(multiplier, dtype) * tf.cast(decay, dtype)

    def _make_kernel(self, dtype: Any) -> Callable[..., None]:
        """TensorFlow's kernel for variables of this dtype."""
        import tensorflow as tf

        optimizer = self.optimizer
        # The kernel corrects the bias by 1 - beta ** step. It adds epsilon to the square root of
        # the velocity before the correction, and the formula adds epsilon after the correction.
        powers, epsilon = [tf.zeros([], dtype)] * 2, tf.cast(optimizer.epsilon, dtype)
        betas = optimizer.beta_1, optimizer.beta_2
        if optimizer.bias_correction:
            powers = [tf.cast(beta ** optimizer.step(), dtype) for beta in betas]
            epsilon *= tf.sqrt(1.0 - powers[1])
        beta_1, beta_2 = (tf.where(optimizer.finite, tf.cast(beta, dtype), 1) for beta in betas)
        return functools.partial(
            tf.raw_ops.ResourceApplyAdam,
            beta1_power=powers[0],
            beta2_power=powers[1],
            beta1=beta_1,
            beta2=beta_2,
            epsilon=epsilon,
            use_locking=True,
        )


def torch_clip(gradients: list[Tensor], bound: float | None) -> tuple[list[Tensor], Tensor]:
    """(gradients, bool scalar: whether their global norm was finite). Clips them in place.

    `bound` is the largest global norm, or None.
    """
    import torch

    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    if bound:
        torch._foreach_mul_(gradients, torch.clamp(bound / norm, max=1.0))
    return gradients, torch.isfinite(norm)


def tensorflow_clip(gradients: list[Tensor], bound: float | None) -> tuple[list[Tensor], Tensor]:
    """Does the same as `torch_clip` for TensorFlow, but returns zeros if the norm is not finite."""
    import tensorflow as tf

    # Adapters have float32 gradients beside those of a 16-bit head.
    dtype = keras.backend.result_type("float32", *(g.dtype for g in gradients))
    norm = tf.linalg.global_norm([tf.cast(g, dtype) for g in gradients])
    finite = tf.math.is_finite(norm)
    scale = tf.where(finite, tf.minimum(bound / norm, 1.0) if bound else 1.0, 0.0)
    return [tf.math.multiply_no_nan(g, tf.cast(scale, g.dtype)) for g in gradients], finite


def jax_clip(gradients: list[Tensor], bound: float | None) -> tuple[list[Tensor], Tensor]:
    """Does the same as `torch_clip` for JAX, but returns new arrays."""
    norm = ops.sqrt(sum(ops.sum(ops.square(ops.cast(g, "float32"))) for g in gradients))
    if bound:
        scale = ops.minimum(bound / norm, 1.0)
        gradients = [gradient * ops.cast(scale, gradient.dtype) for gradient in gradients]
    return gradients, ops.isfinite(norm)


CLIP_BY_GLOBAL_NORM = {"torch": torch_clip, "tensorflow": tensorflow_clip, "jax": jax_clip}
