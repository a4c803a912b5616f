"""examples/write_and_search.py beside SimBERT's rule, transcribed on a model of transformers."""

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from family import MEMBERS

import keras_bert_suite as kbs

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "write_and_search.py"
PAIRS = [("a b c", "good film"), ("the", "plot of d"), ("bad", "very dull")]


def measure_peer(peer, tokenizer):
    """The two losses, by a transcription of `TotalLoss` in simbert.py.

    Source: Su, 2020 (https://github.com/ZhuiyiTechnology/simbert). The vector is the state of
    [CLS].
    """
    rows = []
    for pair in PAIRS:
        for source, target in (pair, pair[::-1]):
            first, second = (tokenizer.tokenize(text) for text in (source, target))
            first, second = [2, *first, 3], [*second, 3]
            rows.append((first + second, [0] * len(first) + [1] * len(second)))
    length = max(len(ids) for ids, _ in rows)
    ids, segments = (
        torch.tensor([row[part] + [0] * (length - len(row[part])) for row in rows])
        for part in (0, 1)
    )
    order = segments.cumsum(dim=1)
    mask = torch.where(order[:, None, :] <= order[:, :, None], 0.0, -1e30)
    states = peer.bert(ids, token_type_ids=segments, attention_mask=mask[:, None]).last_hidden_state
    log_p = peer.cls(states).log_softmax(dim=-1)[:, :-1]
    log_p = log_p.gather(2, ids[:, 1:, None])[:, :, 0]
    tokens = -(log_p * segments[:, 1:]).sum() / segments[:, 1:].sum()

    vectors = torch.nn.functional.normalize(states[:, 0], dim=1)
    scores = (vectors @ vectors.T - torch.eye(len(rows)) * 1e12) * 30
    places = torch.arange(len(rows))
    similarity = torch.nn.functional.cross_entropy(scores, places + 1 - places % 2 * 2)
    return float(tokens), float(similarity)


def test_losses_of_a_batch_and_a_step(tmp_path):
    peer = MEMBERS["bert"].save_peer(tmp_path, "ForMaskedLM").eval()
    names = runpy.run_path(str(SCRIPT))
    writer = kbs.Seq2Seq.from_preset(tmp_path, sequence_length=16, max_target_length=6)
    trainer = names["PairTrainer"](writer)
    trainer.compile()
    columns = [list(column) for column in zip(*PAIRS, strict=True)]
    found = trainer.evaluate(*columns, return_dict=True, verbose=0)
    with torch.no_grad():
        tokens, similarity = measure_peer(peer, writer.preprocessor.tokenizer)
    assert found["tokens_loss"] == pytest.approx(tokens, rel=1e-6)
    assert found["vectors_loss"] == pytest.approx(similarity, rel=1e-6)
    assert found["loss"] == pytest.approx(tokens + similarity, rel=1e-6)
    # One step trains what writes and what searches.
    packer = writer.preprocessor
    embedder = kbs.TextEmbedder(writer.backbone, pooling="cls", preprocessor=packer)
    vectors, loss = embedder.predict(columns[0], verbose=0), writer.evaluate(*columns, verbose=0)
    trainer.fit(*columns, epochs=1, verbose=0)
    assert np.abs(embedder.predict(columns[0], verbose=0) - vectors).max() > 1e-5
    assert writer.evaluate(*columns, verbose=0)[0] < loss[0]
    # Of two outputs, one is as long as the texts of its batch.
    outputs = np.stack(trainer.predict(columns[0], batch_size=2, verbose=0)["vectors"])
    outputs /= np.linalg.norm(outputs, axis=1, keepdims=True)
    np.testing.assert_allclose(outputs, embedder.predict(columns[0], verbose=0), atol=1e-6)
