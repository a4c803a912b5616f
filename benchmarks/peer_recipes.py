"""The parts of our recipe that a peer does not have under the same name."""


def lay_google_schedule(optimizer, num_steps):
    """The rates of `LinearWarmupDecay` for an optimizer of PyTorch.

    The fall is counted from step 0. In `get_linear_schedule_with_warmup` of transformers it is
    counted from the end of the warm-up, so its mean rate is a tenth higher.

    Args:
        optimizer: `torch.optim.Optimizer`, whose learning rate is the peak.
        num_steps: int, steps of the training. A tenth of them is the warm-up.

    Returns:
        `torch.optim.lr_scheduler.LambdaLR`.
    """
    import torch

    warmup = num_steps // 10

    def rate_at(step):
        return step / warmup if step < warmup else max(0.0, 1 - step / num_steps)

    return torch.optim.lr_scheduler.LambdaLR(optimizer, rate_at)
