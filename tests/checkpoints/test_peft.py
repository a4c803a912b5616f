"""Folders of peft, against peft itself."""

import json
import re
import warnings

import keras
import numpy as np
import pytest
from peer_weights import to_numpy
from safetensors.numpy import load_file, save_file
from tables import everywhere_for

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import read_peft

SIZES = {
    "vocab_size": 30,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 20,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
#: Our class -> (that of transformers, further fields of the configuration, peft's targets).
FAMILIES = {
    "bert": ("BertForSequenceClassification", {}, ["query", "value"]),
    "albert": ("AlbertForSequenceClassification", {"embedding_size": 8}, ["query", "ffn"]),
    "roberta": (
        "RobertaForSequenceClassification",
        {"pad_token_id": 1, "max_position_embeddings": 22},
        ["query", "key", "intermediate.dense"],
    ),
    "electra": ("ElectraForSequenceClassification", {"embedding_size": 8}, ["query", "value"]),
    "modernbert": (
        "ModernBertForSequenceClassification",
        {"local_attention": 4, "global_attn_every_n_layers": 2, "pad_token_id": 0},
        ["Wqkv", "Wo"],
    ),
    "distilbert": (
        "DistilBertForSequenceClassification",
        {"dim": 16, "hidden_dim": 24, "n_layers": 2, "n_heads": 2, "seq_classif_dropout": 0.0},
        ["q_lin", "v_lin"],
    ),
}

#: Our task -> (the class of transformers, peft's type of it, its labels). peft has no choices.
HEADS = {
    "TokenClassifier": ("BertForTokenClassification", "TOKEN_CLS", 3),
    "QuestionAnswerer": ("BertForQuestionAnswering", "QUESTION_ANS", 2),
    "MultipleChoice": ("BertForMultipleChoice", None, 1),
}


def make_theirs(folder, family="bert", prompts=0, head=None, **arguments):
    """(model of peft with random LoRA or prompts, folder of its base). B is not zero.

    `head` is one of `HEADS`; None for that of texts.
    """
    import peft
    import torch
    import transformers

    torch.manual_seed(0)
    name, fields, targets = FAMILIES[family]
    name, task_type, num_labels = HEADS.get(head, (name, "SEQ_CLS", 3))
    sizes = {**SIZES, **fields, "num_labels": num_labels}
    config = transformers.AutoConfig.for_model(family, **sizes)
    config.classifier_dropout = config.classifier_dropout_prob = 0.0
    model = getattr(transformers, name)(config).eval()
    model.save_pretrained(folder / "base")
    (folder / "base/vocab.txt").write_text("\n".join(["[PAD]", *map(str, range(29))]))
    if prompts:
        width = getattr(config, "embedding_size", 16)  # That of the token embeddings.
        sizes = {"token_dim": width, "num_layers": 2, "num_attention_heads": 2}
        prompts = peft.PromptTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=prompts, **sizes)
        return peft.get_peft_model(model, prompts).eval(), folder / "base"
    arguments = {"r": 2, "lora_alpha": 6, "target_modules": targets, **arguments}
    adapted = peft.get_peft_model(model, peft.LoraConfig(task_type=task_type, **arguments))
    for key, weight in adapted.named_parameters():
        if "lora_" in key:
            torch.nn.init.normal_(weight, std=0.5)
    return adapted.eval(), folder / "base"


def make_ours(base, **arguments):
    return kbs.TextClassifier.from_preset(base, preprocessor=None, **arguments)


def make_rows(task):
    rng = np.random.default_rng(0)
    mask = (np.arange(7) < [[7], [4], [5]]).astype("int32")
    ids = rng.integers(5, 30, (3, 7)).astype("int32") * mask
    pad = 1 if isinstance(task.backbone, kbs.RobertaBackbone) else 0
    ids = np.where(mask, ids, pad).astype("int32")
    rows = {"token_ids": ids, "padding_mask": mask, "segment_ids": np.zeros_like(ids)}
    return {name: rows[name] for name in task.backbone.input}


def score_theirs(model, rows):
    import torch

    with torch.no_grad():
        given = {
            "input_ids": torch.tensor(rows["token_ids"]).long(),
            "attention_mask": torch.tensor(rows["padding_mask"]),
        }
        return model(**given).logits.numpy()


def ask_theirs(head, model, rows):
    """What a head of `HEADS` says of tokens that are there, or of choices."""
    import torch

    given = {"input_ids": torch.tensor(rows["token_ids"]).long()}
    given["attention_mask"] = torch.tensor(rows["padding_mask"])
    with torch.no_grad():
        found = model(**given)
    if head == "QuestionAnswerer":
        return pick_tokens(torch.stack([found.start_logits, found.end_logits], -1).numpy(), rows)
    return pick_tokens(found.logits.numpy(), rows)


def ask_ours(head, task, rows):
    found = score_ours(task, rows)
    return pick_tokens(found.swapaxes(1, 2) if head == "QuestionAnswerer" else found, rows)


def pick_tokens(outputs, rows):
    return outputs[rows["padding_mask"] == 1] if outputs.ndim == 3 else outputs


def score_ours(task, rows):
    outputs = task(rows, training=False)
    return to_numpy(outputs)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*(holds a classification layer|no pooler|Train them).*")
        warnings.filterwarnings("ignore", ".*", module="peft")
        yield


@pytest.mark.parametrize("family", FAMILIES)
def test_folder_is_read_and_written(family, tmp_path):
    """peft's outputs are ours, and ours are those of peft that has read our folder."""
    import peft
    import transformers

    theirs, base = make_theirs(tmp_path, family, use_rslora=family == "roberta")
    theirs.save_pretrained(tmp_path / "theirs")
    task = make_ours(base)
    rows = make_rows(task)
    before = score_ours(task, rows)
    task.load_adapter(tmp_path / "theirs")
    wanted = score_theirs(theirs, rows)
    np.testing.assert_allclose(score_ours(task, rows), wanted, atol=1e-5)
    assert np.abs(before - wanted).max() > 1e-3
    for weight in task.trainable_weights:
        weight.assign(weight + 0.1)
    task.save_peft(tmp_path / "ours", base=str(base))
    plain = getattr(transformers, FAMILIES[family][0]).from_pretrained(base)
    again = peft.PeftModel.from_pretrained(plain, tmp_path / "ours").eval()
    np.testing.assert_allclose(score_theirs(again, rows), score_ours(task, rows), atol=1e-5)


@pytest.mark.parametrize("policy", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_new_adapter_is_written(family, policy, tmp_path):
    """Whole modules, in float32: also what is not trained of them, as the pooler of a RoBERTa."""
    import peft
    import transformers

    _, base = make_theirs(tmp_path, family)
    task = make_ours(base, dtype=policy)
    rows = make_rows(task)
    task.adapt(kbs.LoRA(2), verbose=False)
    for weight in task.trainable_weights:
        weight.assign(weight + 0.1)
    task.save_peft(tmp_path / "ours", base=str(base))
    tensors = load_file(tmp_path / "ours" / "adapter_model.safetensors")
    assert {array.dtype for array in tensors.values()} == {np.dtype("float32")}
    opened = make_ours(base, dtype=policy)
    opened.load_adapter(tmp_path / "ours")
    np.testing.assert_array_equal(score_ours(opened, rows), score_ours(task, rows))
    if policy == "float32":
        plain = getattr(transformers, FAMILIES[family][0]).from_pretrained(base)
        again = peft.PeftModel.from_pretrained(plain, tmp_path / "ours").eval()
        np.testing.assert_allclose(score_theirs(again, rows), score_ours(task, rows), atol=1e-5)


@pytest.mark.parametrize("head", HEADS)
def test_heads_of_words_spans_and_choices(head, tmp_path):
    """Heads of texts, words and choices have one name there."""
    import peft
    import transformers

    also = {"modules_to_save": ["classifier"]} if head == "MultipleChoice" else {}
    theirs, base = make_theirs(tmp_path, head=head, **also)
    for key, weight in theirs.named_parameters():
        if "modules_to_save" in key:
            weight.data.add_(0.3)
    theirs.save_pretrained(tmp_path / "theirs")
    task = getattr(kbs, head).from_preset(base, preprocessor=None)
    rows = make_rows(task)
    if head == "MultipleChoice":
        rows = {name: x[None] for name, x in rows.items()}
    task.load_adapter(tmp_path / "theirs")
    wanted = ask_theirs(head, theirs, rows)
    np.testing.assert_allclose(ask_ours(head, task, rows), wanted, atol=1e-5)
    for weight in task.trainable_weights:
        weight.assign(weight + 0.1)
    task.save_peft(tmp_path / "ours", base=str(base))
    plain = getattr(transformers, HEADS[head][0]).from_pretrained(base)
    again = peft.PeftModel.from_pretrained(plain, tmp_path / "ours").eval()
    got = ask_theirs(head, again, rows)
    np.testing.assert_allclose(got, ask_ours(head, task, rows), atol=1e-5)
    assert np.abs(got - wanted).max() > 1e-3


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "modernbert"])
def test_prompts_are_read_and_written(family, tmp_path):
    """The head reads the state of the first prompt, and the text has later positions."""
    import peft
    import transformers

    theirs, base = make_theirs(tmp_path, family, prompts=4)
    theirs.save_pretrained(tmp_path / "theirs")
    task = make_ours(base)
    rows = make_rows(task)
    before = score_ours(task, rows)
    task.load_adapter(tmp_path / "theirs")
    assert task.backbone.adapters["default"].adaptation == kbs.PromptTuning(4)
    wanted = score_theirs(theirs, rows)
    np.testing.assert_allclose(score_ours(task, rows), wanted, atol=1e-5)
    assert np.abs(before - wanted).max() > 1e-3
    for weight in task.trainable_weights:
        weight.assign(weight + 0.1)
    task.save_peft(tmp_path / "ours", base=str(base))
    names = {"ours": None, "theirs": None}
    for folder in names:
        config = json.loads((tmp_path / folder / "adapter_config.json").read_text())
        names[folder] = config["peft_type"], config["num_virtual_tokens"], config["token_dim"]
    assert names["ours"] == names["theirs"]
    plain = getattr(transformers, FAMILIES[family][0]).from_pretrained(base)
    again = peft.PeftModel.from_pretrained(plain, tmp_path / "ours").eval()
    np.testing.assert_allclose(score_theirs(again, rows), score_ours(task, rows), atol=1e-5)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_virtual_tokens": 3}, r"prompt_embeddings has the shape \(4, 16\), wanted \(3, 16\)"),
        ({"num_virtual_tokens": 0}, "must have an integer above 0 as 'num_virtual_tokens', got 0"),
        ({"num_transformer_submodules": 2}, "has num_transformer_submodules=2 in adapter_config"),
        ({"encoder_dropout": 0.1}, "has encoder_dropout=0.1"),
    ],
)
def test_other_prompts_are_refused(fields, message, tmp_path):
    theirs, base = make_theirs(tmp_path, prompts=4)
    theirs.save_pretrained(tmp_path / "theirs")
    file = tmp_path / "theirs/adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))
    task = make_ours(base)
    with pytest.raises(ValueError, match=message):
        task.load_adapter(tmp_path / "theirs")
    assert task.adapter is None


@pytest.mark.parametrize("prompts", everywhere_for([0, 4], 4))
def test_one_step_is_that_of_peft(prompts, tmp_path):
    import torch

    theirs, base = make_theirs(tmp_path, prompts=prompts)
    theirs.save_pretrained(tmp_path / "theirs")
    task = make_ours(base)
    task.load_adapter(tmp_path / "theirs")
    rows, labels = make_rows(task), np.array([0, 2, 1])
    task.compile(keras.optimizers.SGD(0.1))
    frozen = {w.path: to_numpy(w) for w in task.weights if not w.trainable}
    task.fit(rows, labels, batch_size=3, shuffle=False, verbose=0)
    optimizer = torch.optim.SGD([p for p in theirs.parameters() if p.requires_grad], 0.1)
    theirs(
        input_ids=torch.tensor(rows["token_ids"]).long(),
        attention_mask=torch.tensor(rows["padding_mask"]),
        labels=torch.tensor(labels),
    ).loss.backward()
    optimizer.step()
    theirs.save_pretrained(tmp_path / "stepped")
    _, matrices, head = read_peft(task, tmp_path / "stepped")
    found = {**task.backbone.weights_of_adapter("default"), **{w.path: w for w in task.weights}}
    for path, wanted in {**matrices, **head}.items():
        np.testing.assert_allclose(to_numpy(found[path]), wanted, atol=1e-6, err_msg=path)
    assert len(matrices) == (1 if prompts else 8) and len(head) == 2
    for weight in task.weights:
        if weight.path in frozen:
            np.testing.assert_array_equal(to_numpy(weight), frozen[weight.path])


def test_short_names_of_modules_name_no_other(tmp_path):
    """All layers called "dense" are not those of one kind."""
    _, base = make_theirs(tmp_path)
    task = make_ours(base, num_classes=2)
    task.adapt(kbs.LoRA(2, targets=".*/intermediate"), verbose=False)
    task.save_peft(tmp_path / "ours")
    config = json.loads((tmp_path / "ours/adapter_config.json").read_text())
    names = [f"bert.encoder.layer.{i}.intermediate.dense" for i in range(2)]
    assert config["target_modules"] == names and config["modules_to_save"] == ["classifier"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"peft_type": "LOHA"}, "peft_type 'LOHA', wanted 'LORA' or 'PROMPT_TUNING'"),
        ({"use_dora": True}, "use_dora=True"),
        ({"rank_pattern": {"query": 4}}, "rank_pattern"),
        ({"bias": "all"}, "bias='all'"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights='pissa'"),
        ({"r": 3}, "has the shape"),
        ({"r": 0}, "must have a number above 0"),
    ],
)
def test_other_folders_are_refused(fields, message, tmp_path):
    theirs, base = make_theirs(tmp_path)
    theirs.save_pretrained(tmp_path / "theirs")
    file = tmp_path / "theirs/adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))
    task = make_ours(base)
    with pytest.raises(ValueError, match=message):
        task.load_adapter(tmp_path / "theirs")
    assert task.adapter is None


@pytest.mark.parametrize(
    ("targets", "labels", "message"),
    [
        ("all-linear", 3, r"LoRA on bert\.pooler\.dense, and .*merge_and_unload\(\)"),
        (["word_embeddings"], 3, r"LoRA on .*lora_embedding_A, .*merge_and_unload\(\)"),
        (["query"], 2, "is for another base or head: classifier/bias has the shape"),
    ],
)
def test_a_refused_folder_leaves_the_task_as_it_was(targets, labels, message, tmp_path):
    theirs, base = make_theirs(tmp_path, target_modules=targets)
    theirs.save_pretrained(tmp_path / "theirs")
    task = make_ours(base, num_classes=labels)
    before = {weight.path: (weight.trainable, to_numpy(weight)) for weight in task.weights}
    with pytest.raises(ValueError, match=message):
        task.load_adapter(tmp_path / "theirs")
    assert task.adapter is None and [w.path for w in task.weights] == [*before]
    for weight in task.weights:
        trainable, value = before[weight.path]
        assert weight.trainable == trainable
        np.testing.assert_array_equal(to_numpy(weight), value)
    task.adapt(kbs.LoRA(2), verbose=False)  # Its name is free.


def test_another_base_and_another_kind_of_adapter_are_refused(tmp_path):
    theirs, base = make_theirs(tmp_path)
    theirs.save_pretrained(tmp_path / "theirs")
    with pytest.raises(ValueError, match="is for another base or head"):
        make_ours(base, num_classes=2).load_adapter(tmp_path / "theirs")
    narrow = kbs.TextClassifier(kbs.BertBackbone(30, 2, 2, 8, 16), num_classes=3)
    with pytest.raises(ValueError, match=r"is for another base: . of .* has the shape"):
        narrow.load_adapter(tmp_path / "theirs")
    with pytest.raises(ValueError, match="TextClassifier.from_preset"):
        kbs.TextClassifier.from_adapter(tmp_path / "theirs", base)
    task = make_ours(base)
    task.adapt(kbs.BitFit(), verbose=False)
    with pytest.raises(ValueError, match=r"written of LoRA and PromptTuning, got BitFit\(\)"):
        task.save_peft(tmp_path / "ours")
    backbone = make_ours(base).backbone.keep_units([[0, 1], [2]])
    task = kbs.TextClassifier(backbone, num_classes=2)
    task.adapt(kbs.LoRA(2), verbose=False)
    with pytest.raises(ValueError, match=r"LoRA is for intermediate_by_layer=\[2, 1\]\. Write"):
        task.save_peft(tmp_path / "ours")


def remove_weights(folder):
    (folder / "adapter_model.safetensors").unlink()


def keep_tensors(pattern):
    """Function that leaves the tensors out of a folder whose names have no match of a pattern."""

    def keep(folder):
        file = folder / "adapter_model.safetensors"
        save_file({n: x for n, x in load_file(file).items() if re.search(pattern, n)}, file)

    return keep


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            remove_weights,
            "theirs has no adapter_model.safetensors. Save it by peft of at least 0.5",
        ),
        (keep_tensors("classifier"), "no place for: no LoRA. Open the base that .* with its head"),
        (
            keep_tensors("lora|weight"),
            "has the weights classifier/kernel, and not classifier/bias of this TextClassifier. Bu",
        ),
        (
            keep_tensors("lora_A|layer.0|class"),
            "theirs has no .*_layer_1/.*adapter/b. Save it by p",
        ),
    ],
)
def test_folders_that_lack_something(change, message, tmp_path):
    theirs, base = make_theirs(tmp_path)
    theirs.save_pretrained(tmp_path / "theirs")
    change(tmp_path / "theirs")
    task = make_ours(base)
    with pytest.raises(ValueError, match=message):
        task.load_adapter(tmp_path / "theirs")
    assert task.adapter is None


def test_tensors_without_a_place(tmp_path):
    theirs, base = make_theirs(tmp_path)
    theirs.save_pretrained(tmp_path / "theirs")
    shorter = kbs.TextClassifier(make_ours(base).backbone.keep_layers([0]), num_classes=3)
    message = r"this TextClassifier has no place for: .*layer\.1\..*\. Open the base .* its head"
    with pytest.raises(ValueError, match=message):
        shorter.load_adapter(tmp_path / "theirs")


@pytest.mark.parametrize(
    ("cls", "arguments", "message"),
    [
        (kbs.XLNetBackbone, {}, "query of XLNet is no linear layer in tr.* it. Use `save_adapter`"),
        (
            *(kbs.BertBackbone, {"features": {"price": "number"}}),
            "feature.*/kernel has no name in transformers' BERT. Use `save_adapter`",
        ),
    ],
)
def test_what_peft_has_no_place_for(cls, arguments, message, tmp_path):
    task = kbs.TextClassifier(cls(30, 1, 2, 8, 16), num_classes=2, **arguments)
    task.adapt(kbs.LoRA(2), verbose=False)
    with pytest.raises(ValueError, match=message):
        task.save_peft(tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_an_encoder_that_transformers_does_not_have(tmp_path):
    theirs, _ = make_theirs(tmp_path)
    theirs.save_pretrained(tmp_path / "theirs")
    task = kbs.TextEmbedder(kbs.StaticBackbone(30, 8))
    message = "transformers has no .*, so peft has no adapters of it; got a StaticBackbone. Use `sa"
    with pytest.raises(ValueError, match=message):
        read_peft(task, tmp_path / "theirs")
