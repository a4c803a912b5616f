"""What a machine can do, and what a model asks of it."""

import pytest
from harness.machine_figures import count_operations, find_peak


def test_operations_of_bert_base():
    """The papers of TinyBERT and MobileBERT give BERT-base 22.5 billion for 128 tokens."""
    assert count_operations(12, 768, 3072, [128]) == pytest.approx(22.5e9, rel=0.01)


def test_operations_as_pytorch_counts_them():
    import torch
    import transformers
    from torch.utils.flop_counter import FlopCounterMode

    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=3, num_attention_heads=2, intermediate_size=80
    )
    encoder = transformers.BertModel(config, add_pooling_layer=False)
    total = 0
    for length in (7, 12):
        with FlopCounterMode(display=False) as counter:
            encoder(torch.zeros((1, length), dtype=torch.long))
        total += counter.get_total_flops()
    assert count_operations(3, 32, 80, [7, 12]) == total


def test_the_peak_is_a_speed():
    assert 1e8 < find_peak("float32") < 1e16
