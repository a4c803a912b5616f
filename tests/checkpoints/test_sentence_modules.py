"""Poolings and Dense modules of sentence-transformers, against the rules of its published code.

`pool` and `apply_dense` transcribe `Pooling.forward` and `Dense.forward` of sentence-transformers
5.1.2 (sentence_transformers/models), `prompt_length` is its `_get_prompt_length`. Encoder and
tokenizer are those of transformers.
"""

import json

import keras
import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from serving.traced import called_or_saved
from small_embedder import make_embedder
from tables import short_for

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import save_sentence_transformers

TEXTS = ["a b c", "d", "e f g h i j k l m n o p", "q a"]
ACTIVATIONS = {
    "torch.nn.modules.activation.Tanh": torch.nn.Tanh(),
    "torch.nn.modules.linear.Identity": torch.nn.Identity(),
    "torch.nn.modules.activation.GELU": torch.nn.GELU(),
}


def pool(config, states, mask, prompt_length=0):
    mask = mask.clone()
    if not config.get("include_prompt", True):
        mask[:, :prompt_length] = 0
    wide = mask.unsqueeze(-1).expand(states.size()).to(states.dtype)
    vectors = []
    if config.get("pooling_mode_cls_token"):
        vectors.append(states[:, 0])
    if config.get("pooling_mode_max_tokens"):
        vectors.append(torch.max(states.masked_fill(wide == 0, -1e9), 1)[0])
    if config.get("pooling_mode_mean_tokens"):
        vectors.append(torch.sum(states * wide, 1) / torch.clamp(wide.sum(1), min=1e-9))
    if config.get("pooling_mode_weightedmean_tokens"):
        places = torch.arange(1, states.shape[1] + 1).unsqueeze(0).unsqueeze(-1)
        wide = wide * places.expand(states.size()).to(states.dtype)
        vectors.append(torch.sum(states * wide, 1) / torch.clamp(wide.sum(1), min=1e-9))
    if config.get("pooling_mode_lasttoken"):
        last = mask.shape[1] - 1 - mask.flip(1).max(1)[1]
        vectors.append(states[torch.arange(len(states)), last])
    return torch.cat(vectors, 1)


def encode(path, texts, prompt=""):
    """The vectors of a directory, by its files alone."""
    length = json.loads((path / "sentence_bert_config.json").read_text())["max_seq_length"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    model = transformers.AutoModel.from_pretrained(path).eval()

    def tokenize(rows):
        options = {"padding": True, "truncation": True, "max_length": length}
        return tokenizer(rows, return_tensors="pt", **options)

    prompt_length = 0
    if prompt:
        ids = tokenize([prompt])["input_ids"]
        prompt_length = ids.shape[-1] - (ids[0, -1].item() in tokenizer.all_special_ids)
    features = tokenize([prompt + text for text in texts])
    with torch.no_grad():
        vectors = model(**features).last_hidden_state
        for module in json.loads((path / "modules.json").read_text())[1:]:
            kind, folder = module["type"].rpartition(".")[2], path / module["path"]
            if kind == "Normalize":
                vectors = torch.nn.functional.normalize(vectors, p=2, dim=1)
                continue
            config = json.loads((folder / "config.json").read_text())
            if kind == "Pooling":
                vectors = pool(config, vectors, features["attention_mask"], prompt_length)
            else:
                vectors = apply_dense(folder, config, vectors)
    return vectors.numpy()


def apply_dense(folder, config, vectors):
    linear = torch.nn.Linear(
        config["in_features"], config["out_features"], bias=config.get("bias", True)
    )
    if (folder / "model.safetensors").is_file():
        state = load_file(folder / "model.safetensors")
    else:
        state = torch.load(folder / "pytorch_model.bin", weights_only=True)
    linear.load_state_dict({name.removeprefix("linear."): t for name, t in state.items()})
    return ACTIVATIONS[config["activation_function"]](linear(vectors))


def write_directory(path, flags, dense=(), normalize=True, prompts=None, form="safetensors"):
    """Adds the files of modules, as sentence-transformers writes them, to a saved encoder.

    Args:
        dense: tuple of (width, whether there is a bias, name of an activation).
    """
    modules, width = ["Transformer", "Pooling"], 8
    folders = ["", "1_Pooling"]
    (path / "1_Pooling").mkdir()
    names = ("cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens")
    config = {"word_embedding_dimension": width}
    config |= {f"pooling_mode_{name}": False for name in names} | flags
    (path / "1_Pooling" / "config.json").write_text(json.dumps(config))
    width *= sum(value for flag, value in flags.items() if flag != "include_prompt")
    generator = torch.Generator().manual_seed(0)
    for number, (units, bias, activation) in enumerate(dense, start=2):
        folder = path / f"{number}_Dense"
        folder.mkdir()
        fields = {"in_features": width, "out_features": units, "activation_function": activation}
        fields |= {} if bias else {"bias": False}  # The default is a bias.
        (folder / "config.json").write_text(json.dumps(fields))
        tensors = {"linear.weight": torch.randn(units, width, generator=generator)}
        tensors |= {"linear.bias": torch.randn(units, generator=generator)} if bias else {}
        if form == "bin":
            torch.save(tensors, folder / "pytorch_model.bin")
        else:
            save_file(tensors, folder / "model.safetensors")
        modules.append("Dense")
        folders.append(folder.name)
        width = units
    if normalize:
        modules.append("Normalize")
        folders.append("9_Normalize")
    entries = [
        {"idx": i, "name": str(i), "path": folder, "type": f"sentence_transformers.models.{kind}"}
        for i, (folder, kind) in enumerate(zip(folders, modules, strict=True))
    ]
    (path / "modules.json").write_text(json.dumps(entries))
    (path / "sentence_bert_config.json").write_text('{"max_seq_length": 12}')
    if prompts:  # Models of 2020 lack this file.
        settings = {"prompts": prompts, "default_prompt_name": None}
        (path / "config_sentence_transformers.json").write_text(json.dumps(settings))


TANH, IDENTITY, GELU = ACTIVATIONS
CLS, MAX, MEAN = (f"pooling_mode_{name}" for name in ("cls_token", "max_tokens", "mean_tokens"))
WEIGHTED, LAST = "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"

#: name -> arguments of `write_directory`
DIRECTORIES = {
    "LaBSE": ({CLS: True}, [(8, True, TANH)]),
    "distiluse": ({MEAN: True}, [(5, True, TANH)], False),
    "mean + max": ({MEAN: True, MAX: True}, [], False),
    "all": ({LAST: True, WEIGHTED: True, MEAN: True, MAX: True, CLS: True},),
    "weighted mean": ({WEIGHTED: True}, [], False),
    "two layers": ({MAX: True, CLS: True}, [(6, False, IDENTITY), (4, True, GELU)], False),
}


@pytest.mark.parametrize(
    ("name", "form"),
    short_for(
        [(name, form) for name in DIRECTORIES for form in ("safetensors", "bin")],
        # Each pooling, layers with and without biases, norms, and both kinds of files.
        *(("all", "safetensors"), ("two layers", "safetensors"), ("LaBSE", "bin")),
        part="combinations",
    ),
)
def test_read_and_written(save_peer, tmp_path, name, form):
    _, path = save_peer()
    write_directory(path, *DIRECTORIES[name], form=form)
    wanted = encode(path, TEXTS)
    embedder = kbs.TextEmbedder.from_preset(path)
    np.testing.assert_allclose(embedder.predict(TEXTS, verbose=0), wanted, atol=1e-5)
    save_sentence_transformers(embedder, tmp_path / "again")
    np.testing.assert_allclose(encode(tmp_path / "again", TEXTS), wanted, atol=1e-5)
    modules = [json.loads((p / "modules.json").read_text()) for p in (path, tmp_path / "again")]
    assert [m["type"] for m in modules[0]] == [m["type"] for m in modules[1]]
    if form == "bin":
        return
    embedder.save(tmp_path / "embedder.keras")
    embedder.save_to_preset(tmp_path / "preset")
    for copy in (
        kbs.TextEmbedder.from_preset(tmp_path / "again"),
        kbs.TextEmbedder.from_preset(tmp_path / "preset"),
        keras.saving.load_model(tmp_path / "embedder.keras"),
    ):
        np.testing.assert_allclose(copy.predict(TEXTS, verbose=0), wanted, atol=1e-5)


def test_tokens_of_a_prompt_are_not_pooled(save_peer, tmp_path):
    _, path = save_peer()
    prompts = {"query": "r s "}
    flags = {MEAN: True, MAX: True, "include_prompt": False}
    write_directory(path, flags, prompts=prompts)
    embedder = kbs.TextEmbedder.from_preset(path)
    for prompt in (None, "query", None):
        wanted = encode(path, TEXTS, prompts.get(prompt, ""))
        got = embedder.predict(TEXTS, prompt=prompt, verbose=0)
        np.testing.assert_allclose(got, wanted, atol=1e-5)
    save_sentence_transformers(embedder, tmp_path / "again")
    np.testing.assert_allclose(
        encode(tmp_path / "again", TEXTS, "r s "), encode(path, TEXTS, "r s "), atol=1e-5
    )
    plain = tmp_path / "again" / "1_Pooling" / "config.json"
    plain.write_text(json.dumps({**json.loads(plain.read_text()), "include_prompt": True}))
    with_prompts = encode(tmp_path / "again", TEXTS, "r s ")
    assert np.abs(with_prompts - encode(path, TEXTS, "r s ")).max() > 0.01


@pytest.mark.parametrize(
    ("folder", "field"),
    [
        ("1_Pooling", "include_prompt"),
        ("1_Pooling", MEAN),
        ("2_Dense", "activation_function"),
        ("2_Dense", "bias"),
    ],
)
def test_a_field_that_is_missing_has_the_default_of_the_library(save_peer, folder, field):
    _, path = save_peer()
    flags = {MEAN: True, "include_prompt": True}
    write_directory(path, flags, [(5, True, TANH)], prompts={"query": "r s "})
    file = path / folder / "config.json"
    config = {"bias": True, **json.loads(file.read_text())}
    file.write_text(json.dumps(config))
    wanted = encode(path, TEXTS, "r s ")
    del config[field]
    file.write_text(json.dumps(config))
    got = kbs.TextEmbedder.from_preset(path).predict(TEXTS, prompt="query", verbose=0)
    np.testing.assert_allclose(got, wanted, atol=1e-5)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"activation_function": "own.Swish"}, "is Swish, wanted Identity, Tanh, .* alone"),
        ({"out_features": 0}, "'out_features' in .* must be a positive integer"),
        ({"out_features": 7}, r"dense_0.linear.weight: has shape \(5, 8\), wanted \(7, 8\)"),
        ({"module_input_name": "token_embeddings"}, "'module_input_name' .* only 'sentence_emb"),
    ],
)
def test_what_is_refused(save_peer, change, message):
    _, path = save_peer()
    write_directory(path, {MEAN: True}, [(5, True, TANH)])
    file = path / "2_Dense" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(ValueError, match=message):
        kbs.TextEmbedder.from_preset(path)


def test_a_dense_layer_that_another_task_leaves_out_is_named(save_peer):
    _, path = save_peer()
    write_directory(path, {MEAN: True}, [(5, True, TANH)])
    for cls, arguments in ((kbs.BertBackbone, {}), (kbs.TextClassifier, {"num_classes": 2})):
        with pytest.warns(
            UserWarning, match="not have: dense_0.linear.*, dense_0.linear"
        ) as warned:
            cls.from_preset(path, **arguments)
        assert len(warned) == 1


def test_what_the_format_cannot_hold(tmp_path):
    for arguments, message in (
        ({"pooling": ["mean", "cls"]}, "no module for ConcatenatedPooling .*'mean', 'cls'.* order"),
        ({"dense_layers": [keras.layers.Dense(4, "elu")]}, "Dense layers with the .* elu"),
        ({"dense_layers": [keras.layers.LayerNormalization()]}, "a LayerNormalization with"),
    ):
        with pytest.raises(ValueError, match=message):
            save_sentence_transformers(make_embedder(**arguments), tmp_path / "written")


@pytest.mark.backend("tensorflow")
@called_or_saved
def test_served_from_texts(save_peer, open_signatures, tmp_path):
    """A signature takes strings, and does not pool the tokens of a prompt."""
    import tensorflow as tf

    _, path = save_peer()
    prompts = {"query": "r s ", "passage": "s "}
    flags, *dense = DIRECTORIES["two layers"]
    write_directory(path, {**flags, MEAN: True, "include_prompt": False}, *dense, prompts=prompts)
    signatures = open_signatures(kbs.TextEmbedder.from_preset(path), tmp_path / "served")
    for name in (None, *prompts):
        signature = signatures["serving_default" if name is None else f"prompt_{name}"]
        (got,) = signature(text=tf.constant(TEXTS)).values()
        np.testing.assert_allclose(got, encode(path, TEXTS, prompts.get(name, "")), atol=1e-5)
