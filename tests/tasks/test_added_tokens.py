"""Tasks on tokenizers with added tokens: from transformers' files, trained here, saved, served."""

import json

import keras
import keras_hub
import numpy as np
import pytest
import torch
import transformers
from peer_weights import randomize, to_numpy, transformers_peer
from serving.traced import trace
from small_tasks import make_task
from small_texts import ONE_LAYER
from tokenizers import AddedToken

from keras_bert_suite import (
    BertBackbone,
    ElectraBackbone,
    ElectraPretrainer,
    MaskedLM,
    Pretrainer,
    SegmentPacker,
    TextClassifier,
    WordPieceTokenizer,
)
from keras_bert_suite.checkpoints import save_google_tf1, save_hugging_face

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh19-[]/", "##a", "ada", "in"]
TEXTS = ["[E1] ada [/E1] in a", "covid-19 ada", "COVID-19[E1]b", "a b c"]
SIZES = {
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "hidden_size": 8,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
}
MARKERS = ["[E1]", "[/E1]"]


def make_classifier():
    tokenizer = WordPieceTokenizer(PIECES, max_word_length=100)
    backbone = BertBackbone(len(PIECES), 1, 2, 8, 16, max_sequence_length=16, num_segments=2)
    tokenizer.add_tokens(MARKERS, special=True)
    tokenizer.add_tokens(["covid-19"])
    backbone = backbone.resize_vocabulary(tokenizer.vocabulary_size(), seed=0)
    task = TextClassifier(backbone, preprocessor=SegmentPacker(tokenizer, 16), num_classes=3)
    randomize(task)
    return task


def run_peer(path):
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(path).eval()
    with torch.no_grad():
        return model(**tokenizer(TEXTS, padding=True, return_tensors="pt")).logits.numpy()


def run_ours(task):
    return to_numpy(task(task.preprocessor.pack(TEXTS)))


def save_and_open(task, path):
    """Saves a task in each format, for transformers in `path / "theirs"`, and yields it opened."""
    save_hugging_face(task, path / "theirs")
    task.save(path / "task.keras")
    task.save_to_preset(str(path / "preset"))
    yield keras.models.load_model(path / "task.keras")
    yield type(task).from_preset(path / "preset")
    yield type(task).from_preset(path / "theirs")


@pytest.mark.parametrize("version", [4, 5])
def test_a_fine_tuned_model_of_transformers(tmp_path, version):
    """Version 4 writes vocab.txt and added_tokens.json, version 5 tokenizer.json alone."""
    tokenizer = transformers.BertTokenizer(vocab={piece: i for i, piece in enumerate(PIECES)})
    tokenizer.add_tokens(MARKERS, special_tokens=True)
    tokenizer.add_tokens([AddedToken("covid-19")])
    config = transformers.BertConfig(vocab_size=len(tokenizer), num_labels=3, **SIZES)
    model = transformers_peer(transformers.BertForSequenceClassification, config)
    model.save_pretrained(tmp_path)
    if version == 5:
        tokenizer.save_pretrained(tmp_path)
    else:
        (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
        names = {**dict(zip(MARKERS, range(len(PIECES), len(tokenizer)), strict=False))}
        names["covid-19"] = len(tokenizer) - 1
        for name, content in (
            ("added_tokens", names),
            ("special_tokens_map", {"additional_special_tokens": MARKERS}),
            ("tokenizer_config", {"do_lower_case": True}),
        ):
            (tmp_path / f"{name}.json").write_text(json.dumps(content))
    task = TextClassifier.from_preset(tmp_path)
    np.testing.assert_allclose(run_ours(task), run_peer(tmp_path), atol=1e-5)


def test_markers_of_our_own_are_saved_in_every_format(tmp_path):
    task = make_classifier()
    wanted = run_ours(task)
    for again in save_and_open(task, tmp_path):
        np.testing.assert_allclose(run_ours(again), wanted, atol=1e-5)
    np.testing.assert_allclose(run_peer(tmp_path / "theirs"), wanted, atol=1e-5)
    # Google's format has a vocabulary alone.
    with pytest.raises(ValueError, match="cannot hold added_tokens="):
        save_google_tf1(task, tmp_path / "google")


@pytest.mark.backend("tensorflow")
def test_markers_are_found_in_a_graph():
    tf = pytest.importorskip("tensorflow")
    task = make_classifier()
    got = trace(task)(text=tf.constant(TEXTS))["probabilities"].numpy()
    wanted = keras.ops.softmax(run_ours(task))
    np.testing.assert_allclose(got, wanted, atol=1e-5)
    assert np.abs(got[0] - got[3]).max() > 1e-4


@pytest.mark.every_backend
def test_new_rows_leave_the_others_alone():
    backbone = BertBackbone(20, 1, 2, 8, 16, max_sequence_length=16)
    arrays = {name: np.ones((1, 4), "int32") for name in backbone.input_names}
    rows = []
    for seed in (0, 0, 1):
        resized = backbone.resize_vocabulary(23, seed=seed)
        assert resized.vocabulary_size == 23
        outputs = (to_numpy(model(arrays)["sequence_output"]) for model in (backbone, resized))
        np.testing.assert_array_equal(*outputs)
        rows.append(to_numpy(resized.token_embedding.embeddings)[20:])
    np.testing.assert_array_equal(rows[0], rows[1])
    assert (rows[0] != rows[2]).all() and 0 < np.abs(rows[0]).max() < 0.05
    with pytest.raises(ValueError, match="of this encoder, 20, got 19.*`task.keep_tokens"):
        backbone.resize_vocabulary(19)
    backbone.token_embedding.enable_lora(2)
    with pytest.raises(ValueError, match="before `quantize` or `enable_lora`"):
        backbone.resize_vocabulary(23)


def test_tasks_that_get_no_more_tokens():
    theirs = keras_hub.models.BertBackbone(len(PIECES), 1, 2, 8, 16, max_sequence_length=16)
    tokenizer = WordPieceTokenizer(PIECES)
    task = TextClassifier(theirs, preprocessor=SegmentPacker(tokenizer, 16), num_classes=3)
    with pytest.raises(ValueError, match="for encoders of this package, got a BertBackbone"):
        task.resize_vocabulary(24)
    tokenizer.add_tokens(MARKERS)
    with pytest.raises(ValueError, match=r"backbone was trained with\.$"):
        TextClassifier(theirs, preprocessor=SegmentPacker(tokenizer, 16), num_classes=3)
    task = make_classifier()
    task.classifier.enable_lora(2)
    with pytest.raises(ValueError, match="TextClassifier before `quantize` or `enable_lora`"):
        task.resize_vocabulary(40)


def run_guesser(path, arrays):
    model = transformers.AutoModelForMaskedLM.from_pretrained(path).eval()
    names = {"token_ids": "input_ids", "padding_mask": "attention_mask"}
    inputs = {names[n]: torch.tensor(a, dtype=torch.long) for n, a in arrays.items() if n in names}
    with torch.no_grad():
        logits = model(**inputs).logits.numpy()
    return np.take_along_axis(logits, arrays["mask_positions"][..., None], axis=1), model


def test_pretraining_goes_on_with_more_tokens(tmp_path):
    """Against transformers, which resizes its own copy of the model."""
    tokenizer = transformers.BertTokenizer(vocab={piece: i for i, piece in enumerate(PIECES)})
    config = transformers.BertConfig(vocab_size=len(PIECES), **SIZES)
    peer = transformers_peer(transformers.BertForMaskedLM, config)
    peer.save_pretrained(tmp_path / "peer")
    tokenizer.save_pretrained(tmp_path / "peer")
    small = MaskedLM.from_preset(tmp_path / "peer", masking={"rate": 0.5})
    small.preprocessor.tokenizer.add_tokens(MARKERS, special=True)
    with pytest.raises(ValueError, match=r"`backbone.resize_vocabulary\(24, seed=0\)`"):
        small.fit(TEXTS, verbose=0)
    task = small.resize_vocabulary(24, seed=0)
    assert task.masking == {"rate": 0.5} and not task.compiled
    arrays = task.preprocessor.pack(TEXTS)
    assert (arrays["token_ids"] >= 22).any()
    arrays["mask_positions"] = np.tile(np.arange(1, 4, dtype="int32"), (len(TEXTS), 1))
    peer.resize_token_embeddings(24, mean_resizing=False)
    with torch.no_grad():
        rows = to_numpy(task.backbone.token_embedding.embeddings)
        peer.get_input_embeddings().weight[22:] = torch.tensor(rows[22:])
    peer.save_pretrained(tmp_path / "resized")
    wanted, _ = run_guesser(tmp_path / "resized", arrays)
    np.testing.assert_allclose(to_numpy(task(arrays)), wanted, atol=1e-5)
    task.compile()
    task.fit(TEXTS, verbose=0)
    wanted = to_numpy(task(arrays))
    for again in save_and_open(task, tmp_path):
        np.testing.assert_allclose(to_numpy(again(arrays)), wanted, atol=1e-5)
        assert again.preprocessor.tokenizer.vocabulary_size() == 24
    theirs, model = run_guesser(tmp_path / "theirs", arrays)
    np.testing.assert_allclose(theirs, wanted, atol=1e-5)
    assert model.config.vocab_size == len(model.cls.predictions.bias) == 24


@pytest.mark.parametrize("task", ["words", "masks", "targets", "pretraining", "spans", "electra"])
def test_the_outputs_of_a_resized_task_are_those_before(task):
    if task in ("spans", "electra"):
        (x, *_) = make_task("pretraining", "none")[1]
        small = Pretrainer(BertBackbone(**ONE_LAYER), span_boundary=True)
        if task == "electra":
            small = ElectraPretrainer(ElectraBackbone(**ONE_LAYER), generator_width=0.5)
    else:
        small, (x, *_) = make_task(task, "none")
    randomize(small)
    small.backbone.trainable = task == "electra"
    size = small.backbone.vocabulary_size
    resized = small.resize_vocabulary(size + 3, seed=1)
    assert [v.path for v in resized.trainable_weights] == [v.path for v in small.trainable_weights]
    before, after = small(x), resized(x)
    if not isinstance(before, dict):
        before, after = {"outputs": before}, {"outputs": after}
    for name in {*before} - {"token_ids", "rtd"}:  # They depend on draws from more tokens.
        a, b = to_numpy(before[name]), to_numpy(after[name])
        np.testing.assert_allclose(a, b[..., : a.shape[-1]], atol=1e-6, err_msg=name)
        assert b.shape[-1] in (a.shape[-1], size + 3)


def test_no_guess_is_beyond_a_short_vocabulary():
    tokenizer = WordPieceTokenizer(PIECES)
    backbone = BertBackbone(len(PIECES) + 40, 1, 2, 8, 16, max_sequence_length=16)
    task = MaskedLM(backbone, preprocessor=SegmentPacker(tokenizer, 16))
    guesses = task.predict(["a [MASK]"], top_k=len(PIECES), verbose=0)
    assert {token for token, _ in guesses[0][0]} == {*PIECES}
