"""`MaskedLM`: training from texts, guesses of its logits, and logits beside transformers'."""

import keras
import numpy as np
import pytest
from input_kinds import DATASETS
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    AdamW,
    BertBackbone,
    MaskedLM,
    Pretrainer,
    SegmentPacker,
    WordPieceTokenizer,
)
from keras_bert_suite.checkpoints import save_hugging_face

TEXTS = make_reviews(12)[0]
LENGTH = 16


def make_model(**arguments):
    keras.utils.set_random_seed(0)
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), LENGTH)
    return MaskedLM(BertBackbone(**ONE_LAYER), preprocessor=packer, **arguments)


@pytest.fixture(scope="module")
def trained():
    model = make_model(masking={"unit": "word", "rate": 0.3})
    model.compile(AdamW(1e-2))
    model.history = model.fit(
        TEXTS, validation_data=(TEXTS,), batch_size=4, epochs=5, verbose=0
    ).history
    return model


def test_texts_alone_train_it(trained):
    history = trained.history
    assert {"loss", "perplexity", "mlm_accuracy", "val_perplexity"} <= set(history)
    assert history["loss"][-1] < history["loss"][0] - 0.1
    np.testing.assert_allclose(history["perplexity"], np.exp(history["loss"]), rtol=1e-4)
    # An evaluation has the same masks each time, in any batches.
    scores = trained.evaluate(TEXTS, batch_size=12, verbose=0, return_dict=True)
    assert scores["mlm_accuracy"] == pytest.approx(history["val_mlm_accuracy"][-1], abs=1e-6)


def test_each_epoch_has_other_masks():
    model = make_model()
    rows = model.data.read(TEXTS)
    masked = [model.data.pack(rows.take(slice(4), epoch), True)[0] for epoch in (0, 1, 0)]
    ids = [batch["token_ids"] for batch in masked]
    assert (ids[0] != ids[1]).any() and (ids[0] == ids[2]).all()
    # Other settings count from the next batch on.
    model.masking = {"rate": 1.0, "mask_token_rate": 1.0, "random_token_rate": 0.0}
    inputs, _, _ = model.data.pack(rows.take(slice(4), 0), True)
    is_text = np.flatnonzero(inputs["padding_mask"][0])[1:-1]
    mask_id = model.preprocessor.tokenizer.mask_token_id
    assert len(is_text) and (inputs["token_ids"][0, is_text] == mask_id).all()


def test_in_a_dataset_masks_do_not_depend_on_other_rows():
    model = make_model(masking={"rate": 0.5})
    packer = model.preprocessor
    model.preprocessor = SegmentPacker(packer.tokenizer, LENGTH, padding_lengths=(8, LENGTH))
    text, longer = "a film", "a film that was so good that nobody could"
    alone, beside = (
        model.data.pack(model.data.read_batch((texts,)), labelled=True)[0]["token_ids"][0]
        for texts in ([text], [text, longer])
    )
    assert len(alone) < len(beside)
    np.testing.assert_array_equal(alone, beside[: len(alone)])


def test_guesses_are_those_of_the_logits(trained):
    tokenizer = trained.preprocessor.tokenizer
    first, second = trained.predict(["the [MASK] was [MASK]!", "a [MASK]"], top_k=3, verbose=0)
    assert [len(first), len(second)] == [2, 1] and all(len(guesses) == 3 for guesses in first)
    packed = trained.preprocessor(["a x"])
    packed["token_ids"][0, 2] = tokenizer.mask_token_id
    logits = trained.predict({**packed, "mask_positions": np.array([[2]])}, verbose=0)[0, 0]
    probabilities = np.exp(logits) / np.exp(logits).sum()
    tokens = np.argsort(-probabilities)
    assert [token for token, _ in second[0]] == [VOCABULARY[token] for token in tokens[:3]]
    np.testing.assert_allclose([p for _, p in second[0]], probabilities[tokens[:3]], rtol=1e-4)
    # A text by itself is one row.
    alone = trained.predict("a [MASK]", top_k=3, verbose=0)
    assert [token for token, _ in alone[0]] == [token for token, _ in second[0]]
    # Every token is asked for, so the continuations would be among them.
    whole = trained.predict("a [MASK]", top_k=len(VOCABULARY) - 2, whole_words=True, verbose=0)
    assert [token for token, _ in whole[0]] == [
        VOCABULARY[token] for token in tokens if not VOCABULARY[token].startswith("##")
    ]


@pytest.mark.parametrize(
    "kind",
    ["tf.data", "grain.MapDataset", "PyDataset", "DataLoader"],
)
def test_datasets_of_texts(trained, kind):
    before = trained.get_weights()
    dataset = DATASETS[kind]((TEXTS,), 4)
    history = trained.fit(dataset, validation_data=dataset, epochs=2, verbose=0).history
    trained.set_weights(before)
    assert np.isfinite(history["val_loss"]).all()
    masked = [f"the [MASK] was {word} [MASK]" for word in ("good", "bad", "dull")]
    guesses = trained.predict(DATASETS[kind]((masked,), 2), top_k=2, verbose=0)
    wanted = trained.predict(masked, top_k=2, verbose=0)
    assert [[[t for t, _ in slot] for slot in row] for row in guesses] == [
        [[t for t, _ in slot] for slot in row] for row in wanted
    ]


@pytest.mark.parametrize("whole_words", [False, True])
def test_pseudo_perplexity(whole_words):
    """By one masked copy of the text at a time, with weights to which each token matters."""
    model, rng = make_model(), np.random.default_rng(0)
    model.set_weights([rng.normal(size=weight.shape) for weight in model.get_weights()])
    text = "unly films zzz was good"
    tokens = ["un", "##ly", "film", "##s", "[UNK]", "was", "good"]
    ids = [VOCABULARY.index(token) for token in tokens]
    surprise = 0
    for place in range(len(ids)):
        copy = [2, *ids, 3]
        copy[place + 1] = 4
        if whole_words and place in (0, 2):
            copy[place + 2] = 4
        logits = model.predict(
            {
                "token_ids": np.array([copy]),
                "segment_ids": np.zeros((1, 9), "int32"),
                "padding_mask": np.ones((1, 9), "int32"),
                "mask_positions": np.array([[place + 1]]),
            },
            verbose=0,
        )[0, 0]
        surprise -= logits[ids[place]] - np.log(np.exp(logits).sum())
    got = model.pseudo_perplexity([text, "", "good"], batch_size=4, whole_words=whole_words)
    assert got[0] == pytest.approx(np.exp(surprise / len(ids)), rel=1e-4)
    assert np.isnan(got[1]) and got[2] > 1


def test_saved_and_loaded(trained, tmp_path):
    wanted = trained.predict("a [MASK] film", verbose=0)
    trained.save(tmp_path / "model.keras")
    trained.save_to_preset(str(tmp_path / "preset"))
    tokenizer = trained.preprocessor.tokenizer
    save_hugging_face(trained, tmp_path / "huggingface", tokenizer=tokenizer)
    for model in (
        keras.saving.load_model(tmp_path / "model.keras"),
        MaskedLM.from_preset(tmp_path / "preset"),
        MaskedLM.from_preset(tmp_path / "huggingface", sequence_length=LENGTH),
    ):
        got = model.predict("a [MASK] film", verbose=0)
        assert [token for token, _ in got[0]] == [token for token, _ in wanted[0]]
        assert [p for _, p in got[0]] == pytest.approx([p for _, p in wanted[0]], abs=1e-5)
    assert MaskedLM.from_preset(tmp_path / "preset").data.masking == trained.data.masking


def test_a_set_of_phrases_is_saved(tmp_path):
    model = make_model(masking={"unit": "word", "phrases": {"the film", "a film"}})
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert list(loaded.data.masking["phrases"]) == ["a film", "the film"]


def test_transformers_reads_it(trained, tmp_path):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    save_hugging_face(trained, tmp_path / "model")
    peer = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "model").eval()
    packed = trained.preprocessor(["a x film"])
    packed["token_ids"][0, 2] = 4
    with torch.no_grad():
        logits = peer(
            input_ids=torch.tensor(packed["token_ids"]),
            attention_mask=torch.tensor(packed["padding_mask"]),
        ).logits[0, 2]
    ours = trained.predict({**packed, "mask_positions": np.array([[2]])}, verbose=0)[0, 0]
    np.testing.assert_allclose(ours, logits.numpy(), atol=1e-4)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    fill_mask = transformers.pipeline("fill-mask", model=peer, tokenizer=tokenizer)
    words = ["plot", "good", "bad"]
    wanted = fill_mask("a [MASK] film", targets=words)
    (guesses,) = trained.predict("a [MASK] film", targets=words, verbose=0)
    assert [word for word, _ in guesses] == [guess["token_str"] for guess in wanted]
    np.testing.assert_allclose([p for _, p in guesses], [g["score"] for g in wanted], rtol=1e-4)
    assert trained.predict("a [MASK] film", targets=words, top_k=1, verbose=0) == [guesses[:1]]


def test_a_checkpoint_without_a_pooler_loads_without_a_warning(tmp_path):
    """A pooler is no part of the guesses. A warning would be an error here."""
    transformers = pytest.importorskip("transformers")
    sizes = transformers.BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=LENGTH,
    )
    peer = transformers.BertForMaskedLM(sizes)
    peer.save_pretrained(tmp_path)
    model = MaskedLM.from_preset(tmp_path, preprocessor=None)
    kernel = peer.cls.predictions.transform.dense.weight.detach().numpy().T
    got = keras.ops.convert_to_numpy(model.masked_lm.transform.kernel)
    np.testing.assert_array_equal(got, kernel)


def test_the_head_of_a_pretrainer(tmp_path):
    keras.utils.set_random_seed(1)
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), LENGTH)
    pretrainer = Pretrainer(BertBackbone(**ONE_LAYER), preprocessor=packer)
    pretrainer.save_to_preset(str(tmp_path / "preset"))
    model = MaskedLM.from_preset(tmp_path / "preset")
    got = model.predict(["a [MASK]"], top_k=3, verbose=0)
    wanted = pretrainer.fill_mask(["a [MASK]"], top_k=3)
    assert [token for token, _ in got[0][0]] == [token for token, _ in wanted[0][0]]


def test_masks_beyond_the_length_get_no_guesses():
    """The other texts of a batch are answered as without them, and so does a SavedModel."""
    model = make_model()
    # [CLS] and [SEP] leave room for 14 tokens, so the last mask of both is the first beyond.
    long, longer = "film [MASK] " + "film " * 12 + "[MASK]", "film " * 14 + "[MASK]"
    with pytest.warns(UserWarning, match="beyond sequence_length=16 get no guesses: 2 .* 3 texts"):
        both, short, none = model.predict([long, "a [MASK]", longer], verbose=0)
    assert none == [] and len(both) == 1 and len(both[0]) == model.top_k
    assert [t for t, _ in short[0]] == [t for t, _ in model.predict("a [MASK]", verbose=0)[0]]
    with pytest.warns(UserWarning, match="1 .* of 1 texts"):
        assert model.predict(longer, verbose=0) == []
    assert len(model.predict("film " * 13 + "[MASK]", verbose=0)) == 1


def test_bad_input():
    model = make_model()
    with pytest.raises(ValueError, match="'a film' has no \\[MASK\\]"):
        model.predict(["a film"], verbose=0)
    with pytest.raises(ValueError, match="takes no labels"):
        model.fit(TEXTS, [1] * len(TEXTS))
    with pytest.raises(ValueError, match="top_k must be an integer of at least 1, got 0"):
        model.predict("a [MASK]", top_k=0)
    for targets, error in (
        (["good film"], "'good film' is 2 tokens, good film, and a mask stands for one"),
        (["good", "Good"], "'good' and 'Good' are one token"),
        (["zzz"], "no token for the target 'zzz'"),
        ("good", "targets must be a list of words, at least one, got 'good'"),
    ):
        with pytest.raises(ValueError, match=error):
            model.predict("a [MASK]", targets=targets, verbose=0)
    with pytest.raises(ValueError, match="targets are all words .* Leave out whole_words"):
        model.predict("a [MASK]", targets=["good"], whole_words=True, verbose=0)
    with pytest.raises(ValueError, match="single texts, got rows of 2 texts"):
        model.predict((["a [MASK]"], ["a"]), verbose=0)
    with pytest.raises(ValueError, match="unit"):
        make_model(masking={"unit": "letter"})
    with pytest.raises(ValueError, match="masking must be a dict .*, got 'word'"):
        make_model(masking="word")
    model.preprocessor = None
    with pytest.raises(ValueError, match="no preprocessor"):
        model.predict("a [MASK]")
