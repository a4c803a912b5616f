"""Tasks with adapters: folders with the head, their bases, several on one encoder, and training."""

import copy
import functools
import json
import re
import shutil

import keras
import numpy as np
import pytest
from heads.cases import LENGTH
from peer_weights import randomize, to_numpy
from safetensors.numpy import load_file
from small_tasks import make_parts
from small_texts import ONE_LAYER, make_reviews
from tables import left_out

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import save_hugging_face
from keras_bert_suite.files.safetensors_file import write_safetensors
from keras_bert_suite.heads.base.attention_maps import encode_with_attention
from keras_bert_suite.models.adaptations.adapted_encoder import find_digest

TEXTS, LABELS = make_reviews(12)
FIRST = kbs.LoRA(2, targets=".*", dropout=0.1)


def make_task(folder=None, labels=("no", "yes"), **arguments):
    """A classifier on a base, which is saved in a folder."""
    keras.utils.set_random_seed(0)
    backbone, packer = make_parts("SegmentPacker", arguments)
    randomize(backbone)
    if folder is not None and not folder.exists():
        backbone.save_to_preset(folder)
        packer.tokenizer.save_to_preset(folder)
    return kbs.TextClassifier(backbone, preprocessor=packer, label_names=list(labels))


def train(task, labels=LABELS, **arguments):
    task.compile(keras.optimizers.Adam(0.05))
    task.fit(TEXTS, labels, batch_size=4, epochs=2, verbose=0, **arguments)
    return score(task)


def score(task):
    return task.predict_probabilities(TEXTS)


def test_only_the_adapter_and_the_head_train(capsys, tmp_path):
    task = make_task()
    before = {weight.path: to_numpy(weight) for weight in task.weights}
    task.adapt(kbs.LoRA(2))
    assert capsys.readouterr().out == (
        "162 of 4,194 weights train (3.86%): 128 of the encoder, 34 of the head\n"
    )
    with pytest.raises(ValueError, match="call `compile` first"):
        task.fit(TEXTS, LABELS, verbose=0)
    task.compile()
    assert task.optimizer._learning_rate.peak_learning_rate == kbs.LoRA.learning_rate
    train(task)
    for weight in task.weights:
        is_own = weight.path not in before or weight.path.startswith("classifier/")
        moved = weight.path not in before or (to_numpy(weight) != before[weight.path]).any()
        assert is_own == moved == weight.trainable, weight.path
    task.save_adapter(tmp_path / "adapter")
    other = make_task()
    other.load_adapter(tmp_path / "adapter")
    np.testing.assert_allclose(score(other), score(task), atol=1e-6)
    assert np.abs(train(other) - score(task)).max() > 1e-3  # It goes on.


@pytest.mark.parametrize(
    "adaptation",
    [
        FIRST,
        kbs.HoulsbyAdapters(3, initializer_range=0.1),
        pytest.param(kbs.PfeifferAdapters(4), marks=left_out("combinations")),
        kbs.BitFit(),
        kbs.PrefixTuning(2, 3),
        pytest.param(kbs.PromptTuning(2, "good film"), marks=left_out("combinations")),
    ],
    ids=lambda adaptation: type(adaptation).__name__,
)
def test_saved_in_every_form(adaptation, tmp_path):
    task = make_task(tmp_path / "base")
    task.adapt(adaptation, verbose=False)
    for weight in task.trainable_weights:
        weight.assign(weight + 0.2)
    wanted = score(task)
    trained = [weight.path for weight in task.trainable_weights]
    task.save_adapter(tmp_path / "adapter")
    task.save(tmp_path / "task.keras")
    opened = [
        kbs.TextClassifier.from_adapter(tmp_path / "adapter", tmp_path / "base", "default"),
        keras.saving.load_model(tmp_path / "task.keras"),
    ]
    if adaptation is FIRST:
        task.save_to_preset(tmp_path / "preset")
        opened += [kbs.TextClassifier.from_preset(tmp_path / "preset"), copy.deepcopy(task)]
    for other in opened:
        np.testing.assert_allclose(score(other), wanted, atol=1e-6)
        assert [weight.path for weight in other.trainable_weights] == trained
        assert other.label_names == task.label_names
    size = (tmp_path / "adapter/adapter.safetensors").stat().st_size
    assert size < (tmp_path / "base/model.weights.h5").stat().st_size / 2


def test_a_copy_of_the_base_in_another_format(tmp_path):
    task = make_task(tmp_path / "base")
    other_format = tmp_path / "hugging_face"
    save_hugging_face(task.backbone, other_format, task.preprocessor.tokenizer)
    task.adapt(FIRST, verbose=False)
    wanted = train(task)
    task.save_adapter(tmp_path / "adapter")
    other = kbs.TextClassifier.from_adapter(tmp_path / "adapter", other_format)
    assert other.adapter == "adapter"
    np.testing.assert_allclose(score(other), wanted, atol=1e-6)
    mixed = kbs.TextClassifier.from_adapter(
        tmp_path / "adapter", other_format, dtype="mixed_bfloat16"
    )
    np.testing.assert_allclose(score(mixed), wanted, atol=0.1)


def test_a_new_pooler_is_saved(tmp_path):
    """A checkpoint of a masked language model has none, and each load draws another."""
    task, folder = make_task(), tmp_path / "masked_lm"
    save_hugging_face(task.backbone, folder, task.preprocessor.tokenizer)
    tensors = load_file(folder / "model.safetensors")
    kept = {name: x for name, x in tensors.items() if "pooler" not in name}
    write_safetensors(folder / "model.safetensors", kept, {"format": "pt"})
    with pytest.warns(UserWarning, match="pooler"):
        task = kbs.TextClassifier.from_preset(folder, label_names=["no", "yes"])
    task.adapt(kbs.LoRA(2), verbose=False)
    paths = [weight.path for weight in task.trainable_weights]
    assert {"pooler/kernel", "pooler/bias"} < {*paths}
    wanted = train(task)
    task.save_adapter(tmp_path / "adapter")
    with pytest.warns(UserWarning, match="pooler"):
        other = kbs.TextClassifier.from_adapter(tmp_path / "adapter", folder)
    np.testing.assert_allclose(score(other), wanted, atol=1e-6)
    tagger = kbs.TokenClassifier(task.backbone.from_preset(folder), num_classes=2)
    tagger.adapt(kbs.LoRA(2), verbose=False)
    assert "pooler/kernel" not in [weight.path for weight in tagger.trainable_weights]


def test_other_bases_are_refused(tmp_path):
    task = make_task(tmp_path / "base")
    task.adapt(kbs.LoRA(2), verbose=False)
    task.save_adapter(tmp_path / "adapter")
    other = make_task()
    other.backbone.pooler.bias.assign(np.ones(16))
    digest = task.backbone.adapters["default"].digest
    with pytest.raises(ValueError, match=f"begins with {digest[:16]}, and that of this one with "):
        other.load_adapter(tmp_path / "adapter")
    assert other.adapter is None and not any("low_rank" in w.path for w in other.weights)
    other.load_adapter(tmp_path / "adapter", any_base=True)
    assert find_digest(other.backbone) != digest
    with pytest.raises(ValueError, match="num_layers is 2 here, and 1 there. Open the checkpoint"):
        make_task(num_layers=2).load_adapter(tmp_path / "adapter", any_base=True)
    with pytest.raises(ValueError, match="label_names is .*'a', 'b'.* here, and .*'no', 'yes'"):
        make_task(labels=("a", "b")).load_adapter(tmp_path / "adapter")
    with pytest.raises(ValueError, match="Call TextClassifier.from_adapter"):
        kbs.TextRanker.from_adapter(tmp_path / "adapter", tmp_path / "base")
    ranker = kbs.TextRanker(make_task().backbone)
    message = (
        "adapter was trained with a TextClassifier, got a TextRanker. Call TextClassifier.from"
    )
    with pytest.raises(ValueError, match=message):
        ranker.load_adapter(tmp_path / "adapter")
    roberta = kbs.TextClassifier(kbs.RobertaBackbone(**ONE_LAYER), label_names=["no", "yes"])
    message = "was trained on a BertBackbone.*, got a RobertaBackbone. Open the checkpoint of its b"
    with pytest.raises(ValueError, match=message):
        roberta.load_adapter(tmp_path / "adapter")
    with pytest.raises(ValueError, match="holds no adapter: it has no adapter.json"):
        task.load_adapter(tmp_path / "base", "second")
    with pytest.raises(ValueError, match=r"has no adapter\. Call `adapt`"):
        make_task().save_adapter(tmp_path / "second")
    file = tmp_path / "adapter/adapter.safetensors"
    file.write_bytes(file.read_bytes()[:-4] + b"\0\0\0\1")
    with pytest.raises(ValueError, match=r"does not have its SHA-256 in .*SHA256SUMS"):
        make_task().load_adapter(tmp_path / "adapter")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("base", ..., "it has no entry base"),
        ("base.sha256", ..., r"it has no entry base\.sha256"),
        ("base.sha256", 3, r"base\.sha256 must be of the type str, got 3"),
        ("base.left_out", [3], r"base\.left_out must be a list of paths of weights, got 3 in it"),
        ("trained", "pooler/.*", "trained must be of the type list, got 'pooler"),
        ("task.config", [], r"task\.config must be of the type dict, got \[\]"),
        ("task.config", {"colour": 3}, r"task\.config makes nothing, TypeError: .*'colour'"),
        ("preprocessor", "none", "preprocessor must be of the type dict or null, got 'none'"),
        ("preprocessor.lowercase", 3, "lowercase must be of the type bool or null, got 3"),
        ("base.settings", {"colour": 3}, r"base\.settings makes nothing, TypeError: .*'colour'"),
        ("adaptation", {}, r"adaptation must describe one such as LoRA, got \{\}"),
        ("adaptation", {"class_name": "Other", "config": {}}, "Could not locate class 'Other'"),
        ("adaptation.config", {"rank": "x"}, "rank must be an integer of at least 1, got 'x'"),
        ("adaptation.config", {"colour": 3}, "'colour'"),
    ],
)
def test_a_folder_that_was_edited(adapter_folders, tmp_path, place, value, message):
    """Without its checksums, so that the entries themselves are read."""
    folder = shutil.copytree(adapter_folders / "adapter", tmp_path / "edited")
    (folder / "SHA256SUMS").unlink()
    description = json.loads((folder / "adapter.json").read_text())
    *parents, name = place.split(".")
    entries = functools.reduce(dict.__getitem__, parents, description)
    if value is ...:
        del entries[name]
    else:
        entries[name] = value
    (folder / "adapter.json").write_text(json.dumps(description))
    with pytest.raises(ValueError, match=rf"(?s)adapter\.json cannot be read: .*{message}"):
        kbs.TextClassifier.from_adapter(folder, adapter_folders / "base")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: make_task().adapt(FIRST, train_also=["pool("]), r"train_also .*'pool\('"),
        (lambda x: make_task().adapt(FIRST, train_also=3), "train_also .* strings, got 3"),
        (lambda x: make_task().load_adapter(None), "folder that `save_adapter` .*got None"),
        (lambda x: kbs.TextClassifier.from_adapter(None, x / "base"), "`save_adapter` .*got None"),
        (lambda x: kbs.TextClassifier.from_adapter(x / "adapter", None), "checkpoint .* got None"),
        (
            lambda x: kbs.TextClassifier.from_adapter(
                x / "adapter", make_task().backbone, dtype="bfloat16"
            ),
            "dtype='bfloat16' is for a checkpoint, got a BertBackbone",
        ),
    ],
)
def test_arguments_are_checked(adapter_folders, call, message):
    with pytest.raises(ValueError, match=message):
        call(adapter_folders)


def test_what_from_adapter_does_not_take(adapter_folders, tmp_path):
    with pytest.raises(
        TypeError, match="TextClassifier.from_adapter has no argument 'label_names'"
    ):
        kbs.TextClassifier.from_adapter(
            *(adapter_folders / "adapter", adapter_folders / "base"), label_names=["no", "yes"]
        )
    folder = shutil.copytree(adapter_folders / "adapter", tmp_path / "edited")
    (folder / "SHA256SUMS").unlink()
    description = json.loads((folder / "adapter.json").read_text())
    description["base"]["class"] = "OwnBackbone"
    (folder / "adapter.json").write_text(json.dumps(description))
    message = "class OwnBackbone, which is not of this package. Open it, and pass it as `base`"
    with pytest.raises(ValueError, match=message):
        kbs.TextClassifier.from_adapter(folder, adapter_folders / "base")


def test_the_case_of_the_letters_is_that_of_the_training(tmp_path):
    task = make_task(tmp_path / "base")
    packer = task.preprocessor
    cased = packer.tokenizer.with_lowercase(False)
    packer = kbs.SegmentPacker.from_config({**packer.get_config(), "tokenizer": cased})
    task = kbs.TextClassifier(task.backbone, preprocessor=packer, label_names=["no", "yes"])
    task.adapt(kbs.LoRA(2), verbose=False)
    task.save_adapter(tmp_path / "adapter")
    again = kbs.TextClassifier.from_adapter(tmp_path / "adapter", tmp_path / "base")
    assert again.preprocessor.tokenizer.lowercase is False
    texts = ["A GOOD film"]
    packed = again.preprocessor.pack(texts)["token_ids"]
    np.testing.assert_array_equal(packed, packer.pack(texts)["token_ids"])
    assert (
        packed.tolist()
        != task.preprocessor.from_config(
            {**packer.get_config(), "tokenizer": cased.with_lowercase(True)}
        )
        .pack(texts)["token_ids"]
        .tolist()
    )


def test_a_task_that_writes_shares_no_encoder(tmp_path):
    backbone, packer = make_parts("SegmentPacker", {"attention_pattern": "seq2seq"})
    writer = kbs.Seq2Seq(backbone, preprocessor=packer, max_target_length=3)
    writer.adapt(kbs.LoRA(2), verbose=False)
    writer.save_adapter(tmp_path / "adapter")
    message = "A Seq2Seq writes token by token, .* Pass the checkpoint as `base`"
    with pytest.raises(ValueError, match=message):
        kbs.Seq2Seq.from_adapter(tmp_path / "adapter", writer, name="second")


def test_a_folder_without_a_tensor_changes_nothing(adapter_folders, tmp_path):
    """Also where tasks share the encoder."""
    folder = shutil.copytree(adapter_folders / "adapter", tmp_path / "damaged")
    (folder / "SHA256SUMS").unlink()
    tensors = load_file(folder / "adapter.safetensors")
    write_safetensors(folder / "adapter.safetensors", dict([*tensors.items()][1:]))
    task = kbs.TextClassifier.from_adapter(adapter_folders / "adapter", adapter_folders / "base")
    before, trained = score(task), [weight.path for weight in task.trainable_weights]
    for load in (
        lambda: task.load_adapter(folder, "second"),
        lambda: kbs.TextClassifier.from_adapter(folder, task, "second"),
    ):
        with pytest.raises(ValueError, match="does not fit this model:\n .*: not in the file"):
            load()
    assert [*task.backbone.adapters] == ["adapter"] and task.adapter == "adapter"
    assert [weight.path for weight in task.trainable_weights] == trained
    np.testing.assert_array_equal(score(task), before)
    task.load_adapter(adapter_folders / "adapter", "second")


@pytest.mark.parametrize(
    ("method", "resize"),
    [
        ("resize_vocabulary", lambda task, size: task.resize_vocabulary(size + 3, seed=0)),
        ("take_tokens", lambda task, size: copy_on(task, task.backbone.take_tokens([*range(9)]))),
        ("resize", lambda task, size: copy_on(task, task.backbone.resize(max_sequence_length=8))),
        ("for_frames", lambda task, size: copy_on(task, task.backbone.for_frames(4))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_adapter_of_a_resized_encoder_is_not_saved(tmp_path, method, resize):
    """Its folder would have the digest of the encoder as it was, on which it does not fit."""
    task = make_task()
    task.adapt(kbs.LoRA(2), "mine", verbose=False)
    size = task.backbone.vocabulary_size
    resized = resize(task, size)
    again = type(resized).from_config(resized.get_config())
    for other in (resized, again):
        for save in (other.save_adapter, other.save_peft):
            message = f"'mine' was added before `{method}` .*Resize first"
            with pytest.raises(ValueError, match=message):
                save(tmp_path / "adapter")
    assert not (tmp_path / "adapter").exists()
    task.resize_vocabulary(size).save_adapter(tmp_path / "same")
    # The remedy of the message.
    resized = resize(make_task(), size)
    resized.adapt(kbs.LoRA(2), verbose=False)
    resized.save_adapter(tmp_path / "adapter")
    kbs.TextClassifier.from_adapter(tmp_path / "adapter", resize(make_task(), size).backbone)


def copy_on(task, backbone):
    """A task with the head of another on a backbone."""
    return kbs.TextClassifier(backbone, label_names=task.label_names)


@pytest.fixture(scope="module")
def adapter_folders(tmp_path_factory):
    """A folder with a base and an adapter of it."""
    folder = tmp_path_factory.mktemp("adapters")
    task = make_task(folder / "base")
    task.adapt(kbs.LoRA(2), verbose=False)
    task.save_adapter(folder / "adapter")
    return folder


def test_the_base_is_opened_with_the_settings_of_the_task(tmp_path):
    """Of which the checkpoint says nothing: here the pattern of attention."""
    make_task(tmp_path / "base")
    backbone, packer = make_parts("SegmentPacker", {"attention_pattern": "left_to_right"})
    backbone.load_weights(tmp_path / "base/model.weights.h5")
    task = kbs.CausalLM(backbone, preprocessor=packer, max_length=8)
    task.adapt(kbs.LoRA(2), verbose=False)
    task.save_adapter(tmp_path / "adapter")
    other = kbs.CausalLM.from_adapter(tmp_path / "adapter", tmp_path / "base")
    assert other.backbone.attention_pattern == "left_to_right"
    task = make_task()
    task.adapt(kbs.LoRA(2), verbose=False)
    task.save_adapter(tmp_path / "classifier")
    with pytest.raises(ValueError, match="activation is relu here, and .*gelu_tanh there"):
        make_task(activation="relu").load_adapter(tmp_path / "classifier")


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "bfloat16"])
def test_in_16_bits_the_adapter_stays_in_float32(dtype, tmp_path):
    task = make_task(dtype=dtype)
    task.adapt(FIRST, verbose=False)
    before = {weight.path: to_numpy(weight) for weight in task.trainable_weights}
    task.compile(kbs.AdamW(0.05))  # Keras' Adam computes in 16 bits, in which 0.999 is 1.
    task.fit(TEXTS, LABELS, batch_size=4, epochs=2, verbose=0)
    wanted = score(task)
    for weight in task.trainable_weights:
        assert (to_numpy(weight) != before[weight.path]).any(), weight.path
        assert weight.dtype == "float32" or weight.path.startswith("classifier")
    task.save(tmp_path / "task.keras")
    opened = keras.saving.load_model(tmp_path / "task.keras")
    np.testing.assert_allclose(score(opened), wanted, atol=1e-2)


def test_a_stopped_training_goes_on_as_it_would_have(tmp_path):
    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            raise InterruptedError

    def run(folder, *stops):
        task = make_task()
        task.adapt(kbs.LoRA(2), verbose=False)
        task.compile(keras.optimizers.Adam(0.05))
        callbacks = [kbs.TrainingCheckpoint(tmp_path / folder, every=1), *stops]
        task.fit(TEXTS, LABELS, batch_size=4, epochs=2, verbose=0, callbacks=callbacks)
        return task.get_weights()

    # The matrices that are drawn are those of the checkpoint, which has another draw.
    with pytest.raises(InterruptedError):
        run("stopped", Stop())
    for got, wanted in zip(run("stopped"), run("whole"), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-6)


def test_prompts_and_rows_have_positions():
    task = make_task(max_sequence_length=LENGTH + 2)
    with pytest.raises(ValueError, match=f"Build the task with sequence_length={LENGTH - 1} or le"):
        task.adapt(kbs.PromptTuning(3))
    assert task.adapter is None
    task.adapt(kbs.PromptTuning(2), verbose=False)
    assert score(task).shape == (len(TEXTS), 2)


def test_prompts_have_no_labels():
    """A head on tokens, and attention of a task, are about the text alone."""
    backbone, packer = make_parts("SegmentPacker", {})
    task = kbs.TokenClassifier(backbone, preprocessor=packer, label_names=["O", "X"])
    task.adapt(kbs.PromptTuning(2), verbose=False)
    task.compile(keras.optimizers.Adam(0.05))
    words = [text.split() for text in TEXTS]
    labels = [["X" if word == "good" else "O" for word in row] for row in words]
    task.fit(words, labels, batch_size=4, verbose=0)
    assert [len(row) for row in task.predict_tags(words)] == [len(row) for row in words]
    with pytest.raises(ValueError, match="attention to prompts"):
        encode_with_attention(task.backbone, task.preprocessor(TEXTS[:1]))
    backbone, packer = make_parts("SegmentPacker", {"attention_pattern": "seq2seq"})
    writer = kbs.Seq2Seq(backbone, preprocessor=packer, max_target_length=3)
    with pytest.raises(ValueError, match="writes token by token.*without those of PromptTuning"):
        writer.adapt(kbs.PromptTuning(2))


def test_an_encoder_of_keras_hub_is_refused():
    backbone, packer = make_parts("KerasHub's BERT", {})
    task = kbs.TextClassifier(backbone, preprocessor=packer, num_classes=2)
    with pytest.raises(ValueError, match="Adapters are for encoders of this package, got a Bert"):
        task.adapt(kbs.LoRA(2))


def test_several_adapters_on_one_encoder(tmp_path):
    """Each task computes what it computes alone; training one leaves the other as it is."""
    wanted = {}
    for name, labels, adaptation in (
        ("two", ["no", "yes"], FIRST),
        ("three", ["a", "b", "c"], kbs.PfeifferAdapters(4)),
    ):
        task = make_task(tmp_path / "base", labels)
        task.adapt(adaptation, verbose=False)
        wanted[name] = train(task, [labels[i % len(labels)] for i in range(len(TEXTS))])
        task.save_adapter(tmp_path / name)
    two = kbs.TextClassifier.from_adapter(tmp_path / "two", tmp_path / "base")
    three = kbs.TextClassifier.from_adapter(tmp_path / "three", two)
    assert two.backbone is three.backbone and (two.adapter, three.adapter) == ("two", "three")
    for _ in range(2):
        np.testing.assert_allclose(score(two), wanted["two"], atol=1e-6)
        np.testing.assert_allclose(score(three), wanted["three"], atol=1e-6)
    assert np.abs(train(two) - wanted["two"]).max() > 1e-3
    np.testing.assert_allclose(score(three), wanted["three"], atol=1e-6)
    paths = [weight.path for weight in two.trainable_weights]
    assert all(re.search("-two/|^classifier", path) for path in paths)
    two.save(tmp_path / "two.keras")
    opened = keras.saving.load_model(tmp_path / "two.keras")
    assert opened.adapter == "two"
    np.testing.assert_allclose(score(opened), score(two), atol=1e-6)


@pytest.mark.every_backend
def test_switched_per_call_by_compiled_functions(tmp_path):
    task = make_task(tmp_path / "base")
    plain = score(task)
    results, rng = [], np.random.default_rng(0)
    for name in ("first", "second"):
        task.adapt(kbs.LoRA(2, targets=".*"), name, verbose=False)
        for weight in task.backbone.weights_of_adapter(name).values():
            weight.assign(rng.normal(size=weight.shape))
        results.append(score(task))
    parts = {"backbone": task.backbone, "preprocessor": task.preprocessor, "adapter": "first"}
    first = kbs.TextClassifier.from_config({**task.get_config(), **parts})
    first.classifier.set_weights(task.classifier.get_weights())
    for _ in range(2):
        np.testing.assert_allclose(score(first), results[0], atol=1e-6)
        np.testing.assert_allclose(score(task), results[1], atol=1e-6)
    assert np.abs(results[0] - plain).max() > 1e-4 < np.abs(results[0] - results[1]).max()


def test_int8_base(tmp_path):
    """QLoRA: the encoder stays in 8 bits, the adapter learns in float32, and both are saved."""
    task = make_task(tmp_path / "base")
    task.quantize("int8")
    task.adapt(kbs.LoRA(2, targets=".*"), verbose=False)
    kernels = {w.path: to_numpy(w) for w in task.weights if w.dtype == "int8"}
    assert kernels
    before = score(task)
    wanted = train(task)
    assert np.abs(wanted - before).max() > 1e-3
    for weight in task.weights:
        if weight.path in kernels:
            np.testing.assert_array_equal(to_numpy(weight), kernels[weight.path])
    task.save_adapter(tmp_path / "adapter")
    task.save(tmp_path / "task.keras")
    for other in (
        kbs.TextClassifier.from_adapter(tmp_path / "adapter", tmp_path / "base"),
        keras.saving.load_model(tmp_path / "task.keras"),
    ):
        np.testing.assert_allclose(score(other), wanted, atol=1e-5)
    with pytest.raises(ValueError, match=r"was quantized, and this one is not.*quantize\('int8'\)"):
        make_task().load_adapter(tmp_path / "adapter")
    with pytest.raises(ValueError, match="has 8-bit integers, to which no product"):
        task.merge_adapter()


def test_an_adapted_encoder_is_not_quantized(tmp_path):
    """Layers with LoRA would stay in float32, and the folder of the adapter would fit no base."""
    task = make_task(tmp_path / "base")
    task.adapt(kbs.LoRA(2), verbose=False)
    task.save_adapter(tmp_path / "adapter")
    with pytest.raises(ValueError, match=r"has the adapter 'default', LoRA\(.* before `adapt`"):
        task.quantize("int8")
    task.merge_adapter().quantize("int8")
    base = make_task()
    base.quantize("int8")
    with pytest.raises(
        ValueError, match=r"was not quantized, .*as it was before `quantize`, or pa"
    ):
        base.load_adapter(tmp_path / "adapter")
    base.load_adapter(tmp_path / "adapter", any_base=True)
    assert any(layer.quantization_mode for layer in base.backbone._flatten_layers())


def test_int8_layer_adds_the_product_before_its_activation():
    task = make_task()
    layer = task.backbone.transformer_layers[0].intermediate
    task.quantize("int8")
    x = np.random.default_rng(0).normal(size=(2, 3, 16)).astype("float32")
    plain, activation = layer(x), layer.activation
    task.adapt(kbs.LoRA(2, targets=".*/intermediate"), verbose=False)
    low_rank = layer.find_adapter("low_rank")
    np.testing.assert_array_equal(to_numpy(layer(x)), to_numpy(plain))
    low_rank.b.assign(np.ones(low_rank.b.shape))
    inner = x @ to_numpy(low_rank.a) @ np.ones(low_rank.b.shape)
    layer.activation = None
    vars(layer)["adapters"].clear()
    total = to_numpy(layer(x)) + inner
    layer.activation = activation
    vars(layer)["adapters"]["low_rank", "default"] = low_rank
    np.testing.assert_allclose(to_numpy(layer(x)), to_numpy(activation(total)), atol=1e-5)


@pytest.mark.parametrize(
    "technique",
    [None, kbs.FGM(1.0), kbs.EMA(0.5), kbs.RDrop(), kbs.Mixup(0.5)],
    ids=["plain", "fgm", "ema", "r_drop", "mixup"],
)
@pytest.mark.parametrize("adaptation", [FIRST, kbs.PromptTuning(2)], ids=["lora", "prompt"])
def test_with_techniques_and_packing(adaptation, technique):
    task = make_task(remat=isinstance(adaptation, kbs.PromptTuning))
    task.adapt(adaptation, verbose=False)
    before = {weight.path: to_numpy(weight) for weight in task.weights}
    task.compile(keras.optimizers.Adam(0.05), technique=technique)
    packs = technique is None
    task.fit(TEXTS, LABELS, batch_size=4, verbose=0, sequence_packing=packs)
    for weight in task.weights:
        moved = bool((to_numpy(weight) != before[weight.path]).any())
        assert moved == weight.trainable, weight.path


PARTS = {
    "distillation": lambda: kbs.Distillation(make_task(num_layers=2), terms=[kbs.HiddenStates()]),
    "layer drop": lambda: kbs.LayerDrop(1e-6),
    "mixup": lambda: kbs.Mixup(),
    "theseus": lambda: kbs.Theseus(make_task(num_layers=2), 1.0),
}


@pytest.mark.parametrize("name", PARTS)
def test_the_adapter_of_a_task_acts_in_its_parts(name):
    """Techniques run parts of a task, whose backbone another task adapts, too."""
    task = make_task()
    task.adapt(kbs.LoRA(2, dropout=0.5), "first", verbose=False)
    for weight in task.backbone.weights_of_adapter("first").values():
        weight.assign(weight + 0.5)
    other = kbs.TextClassifier(task.backbone, 2, preprocessor=task.preprocessor)
    other.adapt(kbs.LoRA(2, dropout=0.5), "second", verbose=False)
    task.classifier_dropout.rate = 0.0
    before = {weight.path: to_numpy(weight) for weight in task.backbone.weights}
    inputs = dict(task.data.pack(task.data.read(TEXTS))[0])
    task.compile(keras.optimizers.Adam(0.05), technique=PARTS[name]())
    technique = task.technique
    part = technique.encoder if name == "mixup" else getattr(technique, "model", None)
    part = technique.inner[0].model if part is None else part
    if "own_modules" in part.input:
        inputs["own_modules"] = np.ones(1, bool)
    draws = [keras.tree.flatten(part(inputs, training=True)) for _ in range(2)]
    assert np.abs(to_numpy(draws[0][0]) - to_numpy(draws[1][0])).max() > 1e-3  # Its dropout.
    task.fit(TEXTS, LABELS, batch_size=4, verbose=0)
    for weight in task.backbone.weights:
        moved = bool((to_numpy(weight) != before[weight.path]).any())
        assert moved == ("low_rank-first" in weight.path), weight.path


def add_random_lora(task, name):
    task.adapt(kbs.LoRA(2, targets=".*"), name, verbose=False)
    rng = np.random.default_rng(len(name))
    for weight in task.backbone.weights_of_adapter(name).values():
        weight.assign(rng.normal(size=weight.shape))


@pytest.mark.parametrize("place", ["student", "teacher"])
def test_attention_of_a_task_has_its_adapter(place):
    """A copy of the teacher has nothing to learn, also if another task adapts the encoder."""
    task = make_task()
    add_random_lora(task, "first")
    merged = task.merge_adapter()
    other = kbs.TextClassifier(task.backbone, 2, preprocessor=task.preprocessor)
    add_random_lora(other, "second")
    student, teacher = (task, merged) if place == "student" else (merged, task)
    terms = [kbs.AttentionScores(), kbs.AttentionRelations()]
    technique = kbs.Distillation(teacher, alpha=0.0, label_weight=0.0, terms=terms)
    student.compile(keras.optimizers.SGD(1e-9), technique=technique)
    (loss,) = student.fit(TEXTS, LABELS, batch_size=12, verbose=0).history["loss"]
    assert loss < 1e-6


@pytest.mark.parametrize("place", ["student", "teacher"])
def test_one_of_student_and_teacher_has_prompts(place):
    """Packed rows have places for those of the student."""
    losses = []
    for packs in (False, True):
        tasks = {"student": make_task(), "teacher": make_task(num_layers=2)}
        tasks[place].adapt(kbs.PromptTuning(2, "good film"), verbose=False)
        student = tasks["student"]
        student.classifier_dropout.rate = 0.0
        terms = [kbs.HiddenStates(), kbs.AttentionScores()]
        student.compile(
            keras.optimizers.SGD(0.1), technique=kbs.Distillation(tasks["teacher"], terms=terms)
        )
        found = student.fit(TEXTS, LABELS, batch_size=12, verbose=0, sequence_packing=packs)
        losses += found.history["loss"]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


def test_features_of_a_task_have_its_adapter():
    task = make_task()
    task.adapt(kbs.LoRA(2), "first", verbose=False)
    for weight in task.backbone.weights_of_adapter("first").values():
        weight.assign(weight + 0.5)
    other = kbs.TextClassifier(task.backbone, 2, preprocessor=task.preprocessor)
    other.adapt(kbs.LoRA(2), "second", verbose=False)
    found = []
    for adapted in (task, task.merge_adapter()):
        keras.utils.set_random_seed(0)
        adapted.classifier_dropout.rate = 0.0
        adapted.compile()
        adapted.fit_on_features(TEXTS, LABELS, epochs=2, shuffle=False, verbose=0)
        found += [score(adapted), kbs.attended_tokens(adapted, TEXTS[:1])[0].scores]
    np.testing.assert_allclose(found[0], found[2], atol=1e-5)
    np.testing.assert_allclose(found[1], found[3], atol=1e-5)
    other.compile()
    assert np.abs(kbs.attended_tokens(other, TEXTS[:1])[0].scores - found[1]).max() > 1e-3


def test_tasks_that_are_made_of_a_task_have_its_adapter():
    task = make_task(labels=["contradiction", "entailment"])
    task.adapt(kbs.LoRA(2), "first", verbose=False)
    embedder = kbs.TextEmbedder(task.backbone, preprocessor=task.preprocessor)
    embedder.adapt(kbs.LoRA(2), "second", verbose=False)
    other = kbs.TextClassifier(task.backbone, 2, preprocessor=task.preprocessor)
    other.adapt(kbs.LoRA(2), "third", verbose=False)
    assert task.zero_shot(["a film", "a plot"]).adapter == "first"
    few = kbs.fit_few_shot(embedder, TEXTS, LABELS, epochs=0, verbose=0)
    assert few.adapter == "second"


def test_layers_of_a_teacher_have_its_adapter():
    teacher = make_task(num_layers=2)
    teacher.adapt(kbs.LoRA(2), "teacher", verbose=False)
    for weight in teacher.backbone.weights_of_adapter("teacher").values():
        weight.assign(weight + 0.5)
    student = teacher.merge_adapter().keep_layers([1])
    inputs = dict(teacher.data.pack(teacher.data.read(TEXTS))[0])
    student.adapt(kbs.LoRA(2), "student", verbose=False)
    student.compile(technique=kbs.Theseus(teacher, 0.5))
    mixed = student.technique.model({**inputs, "own_modules": np.zeros(1, bool)}, training=False)
    wanted = to_numpy(teacher(inputs))
    np.testing.assert_allclose(to_numpy(mixed), wanted, atol=1e-5)


def test_merged_is_a_task_as_any_other(tmp_path):
    task = make_task()
    task.adapt(kbs.LoRA(2, targets=".*", use_rslora=True, alpha=3), verbose=False)
    wanted = train(task)
    merged = task.merge_adapter()
    np.testing.assert_allclose(score(merged), wanted, atol=1e-5)
    assert merged.adapter is None and all(weight.trainable for weight in merged.weights)
    save_hugging_face(merged, tmp_path / "merged")
    opened = kbs.TextClassifier.from_preset(tmp_path / "merged")
    np.testing.assert_allclose(score(opened), wanted, atol=1e-5)
    with pytest.raises(ValueError, match="merge_adapter"):
        save_hugging_face(task, tmp_path / "adapted")


def test_the_folder_says_what_it_fits(tmp_path):
    task = make_task()
    task.adapt(FIRST, verbose=False)
    task.save_adapter(tmp_path / "adapter")
    description = json.loads((tmp_path / "adapter/adapter.json").read_text())
    assert description["base"]["sha256"] == find_digest(make_task().backbone)
    assert description["base"]["class"] == "BertBackbone"
    assert description["task"]["config"]["label_names"] == ["no", "yes"]
