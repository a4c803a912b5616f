"""The named sizes have the numbers of parameters of transformers' models, and of the papers.

Nothing is allocated: PyTorch keeps shapes alone on its device "meta". `test_other_backbones.py` and
`test_bert_backbone.py` count the others.
"""

import keras
import pytest
import torch
import transformers

from keras_bert_suite import (
    AlbertBackbone,
    ModernBertBackbone,
    NezhaBackbone,
    RoFormerBackbone,
    XLNetBackbone,
)

#: (class, size, vocabulary) -> (the prefix of transformers' class, millions of parameters). The
#: papers give 12, 18, 60 and 235 million for ALBERT, 149 and 395 million for ModernBERT.
COUNTED = {
    (AlbertBackbone, "base", 30_000): ("Albert", 11.7),
    (AlbertBackbone, "large", 30_000): ("Albert", 17.7),
    (AlbertBackbone, "xlarge", 30_000): ("Albert", 58.7),
    (AlbertBackbone, "xxlarge", 30_000): ("Albert", 222.6),
    (RoFormerBackbone, "small", 50_000): ("RoFormer", 29.8),
    (RoFormerBackbone, "base", 50_000): ("RoFormer", 123.5),
    # NEZHA is BERT without a table of positions.
    (NezhaBackbone, "base", 21_128): ("Bert", 101.9),
    (NezhaBackbone, "large", 21_128): ("Bert", 325.0),
    (ModernBertBackbone, "base", 50_368): ("ModernBert", 149.0),
    (ModernBertBackbone, "large", 50_368): ("ModernBert", 394.8),
    (XLNetBackbone, "base", 32_000): ("XLNet", 116.7),
    (XLNetBackbone, "large", 32_000): ("XLNet", 360.3),
}

#: The names of our arguments in the configurations of transformers.
NAMES = {
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "hidden_dim": "hidden_size",
    "intermediate_dim": "intermediate_size",
    "embedding_dim": "embedding_size",
}


@pytest.mark.backend("torch")
@pytest.mark.parametrize(
    ("cls", "size", "vocabulary_size"),
    [pytest.param(*case, id=f"{case[0].__name__} {case[1]}") for case in COUNTED],
)
def test_named_sizes_have_the_published_parameters(cls, size, vocabulary_size):
    prefix, millions = COUNTED[cls, size, vocabulary_size]
    config = {NAMES[name]: value for name, value in cls.sizes[size].items()}
    if cls is XLNetBackbone:
        config["d_inner"] = config.pop("intermediate_size")
    config = getattr(transformers, f"{prefix}Config")(vocab_size=vocabulary_size, **config)
    with torch.device("meta"):
        peer = getattr(transformers, f"{prefix}Model")(config)
    expected = sum(p.numel() for p in peer.parameters() if p.requires_grad)
    if cls is NezhaBackbone:
        expected -= peer.embeddings.position_embeddings.weight.numel()
    # By linearity, from two and three layers: the rest would take seconds.
    with keras.device("meta"):
        two, backbone = (
            cls(vocabulary_size, **{**cls.sizes[size], "num_layers": n}) for n in (2, 3)
        )
    layer = backbone.count_params() - two.count_params()
    count = backbone.count_params() + (cls.sizes[size]["num_layers"] - 3) * layer
    if cls in (
        RoFormerBackbone,
        ModernBertBackbone,
        XLNetBackbone,
    ):  # Their pooler belongs to the heads.
        count -= backbone.pooler.count_params()
    assert count == expected
    assert round(count / 1e6, 1) == millions
