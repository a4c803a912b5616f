"""Writes the files beside this script: small random NEZHAs of transformers, and their outputs.

transformers has no NEZHA since version 5. So this script needs an older version in a folder of its
own. From the root of the repository:

    pip install --no-deps --target old transformers==4.35.2 tokenizers==0.15.2 \
        huggingface_hub==0.20.3
    PYTHONPATH=old:tests:. KERAS_BACKEND=torch python tests/nezha_golden/make.py
"""

from pathlib import Path

import numpy as np
import torch
from family import MEMBERS, Member, run_peer
from safetensors.numpy import save_file

FOLDER = Path(__file__).resolve().parent


def main():
    member = MEMBERS["nezha"]
    inputs = member.make_inputs()
    for model in ("Model", *member.heads):
        peer = Member.save_peer(member, FOLDER / model, model)
        batch = inputs
        if model == "ForMultipleChoice":
            batch = member.make_choices(inputs)
        outputs = run_peer(peer, batch)
        recorded = {f"output.{name}": tensor for name, tensor in outputs.items()}
        if model == "Model":
            rng = np.random.default_rng(1)
            for name in list(outputs):
                weights = 0.1 * rng.standard_normal(outputs[name].shape).astype("float32")
                if name == "last_hidden_state":
                    weights *= inputs["padding_mask"][..., None]
                recorded[f"weights.{name}"] = torch.from_numpy(weights)
            sum((outputs[name] * recorded[f"weights.{name}"]).sum() for name in outputs).backward()
            for name, parameter in peer.named_parameters():
                recorded[f"gradient.{name}"] = parameter.grad
        save_file(
            {name: tensor.detach().numpy() for name, tensor in recorded.items()},
            FOLDER / model / "recorded.safetensors",
        )
        for name in ("vocab.txt", "generation_config.json"):
            (FOLDER / model / name).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
