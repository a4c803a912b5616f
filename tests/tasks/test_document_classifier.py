import re

import keras
import keras_hub
import numpy as np
import pytest
from kerashub_models import make_distil_bert
from peer_weights import randomize, to_numpy
from small_byte_pairs import MERGES, make_vocabulary
from small_texts import ONE_LAYER, VOCABULARY, WORDS

from keras_bert_suite import (
    AdamW,
    AttentionPooling,
    BertBackbone,
    BytePairTokenizer,
    DocumentClassifier,
    LinearWarmupDecay,
    MeanPooling,
    RobertaBackbone,
    ScalarMix,
    SegmentPacker,
    TextClassifier,
    WindowTransformer,
    WordPieceTokenizer,
    export_litert,
)
from keras_bert_suite.checkpoints import save_hugging_face

#: A window has room for six words, and a document below has three windows.
LENGTH, ROOM = 8, 6


def make_documents(num_rows):
    """Documents of 13 to 18 words, and whether "good" is among them ("yes" or "no")."""
    rng = np.random.default_rng(0)
    others = [word for word in WORDS if word != "good"]
    rows = [list(rng.choice(others, rng.integers(13, 19))) for _ in range(num_rows)]
    labels = ["yes" if row % 2 else "no" for row in range(num_rows)]
    for words in rows[1::2]:
        words[rng.integers(len(words))] = "good"
    return [" ".join(words) for words in rows], labels


DOCUMENTS, LABELS = make_documents(48)


def make_packer(**kwargs):
    # One length, so that JAX compiles each step once.
    return SegmentPacker(
        WordPieceTokenizer(VOCABULARY), LENGTH, padding_lengths=(LENGTH,), **kwargs
    )


def make_classifier(dtype=None, **kwargs):
    kwargs = {"label_names": ["no", "yes"], "preprocessor": make_packer(), **kwargs}
    return DocumentClassifier(BertBackbone(**ONE_LAYER, dropout=0.0, dtype=dtype), **kwargs)


@pytest.fixture(scope="module")
def classifier():
    keras.utils.set_random_seed(0)
    classifier = make_classifier(window_pooling="max", max_windows=3)
    classifier.compile(AdamW(LinearWarmupDecay(3e-3)))
    classifier.history_of_fit = classifier.fit(
        DOCUMENTS, LABELS, batch_size=16, epochs=30, verbose=0
    ).history
    return classifier


def classify_by_hand(classifier, documents, folder, pool):
    """The logits of transformers' BertModel for each window, and NumPy."""
    import torch
    from transformers import BertModel

    save_hugging_face(classifier.backbone, folder)
    reference = BertModel.from_pretrained(folder).eval()
    kernel, bias = (to_numpy(weight) for weight in classifier.classifier.weights)
    logits = []
    for document in documents:
        words = [VOCABULARY.index(word) for word in document.split()]
        windows = [words[i : i + ROOM] for i in range(0, max(len(words), 1), ROOM)]
        with torch.no_grad():
            vectors = [
                reference(torch.tensor([[2, *window, 3]])).pooler_output[0].numpy()
                for window in windows
            ]
        logits.append(pool(vectors, axis=0) @ kernel + bias)
    return np.stack(logits)


def test_one_answer_for_a_document(classifier, tmp_path):
    assert classifier.history_of_fit["accuracy"][-1] > 0.9
    # A document of one window and an empty document share a batch with longer documents.
    documents = [*DOCUMENTS[:14], "good film", ""]
    logits = classifier.predict(documents, verbose=0)
    wanted = classify_by_hand(classifier, documents, tmp_path / "hf", np.max)
    np.testing.assert_allclose(logits, wanted, atol=1e-5)
    alone = classifier.predict(documents[14:], verbose=0)
    np.testing.assert_allclose(alone, logits[14:], atol=1e-5)


def test_all_that_a_text_classifier_does(classifier):
    labels = classifier.predict_labels(DOCUMENTS, verbose=0)
    accuracy = np.mean(np.array(labels) == LABELS)
    assert accuracy > 0.9
    assert classifier.score(DOCUMENTS, LABELS)["accuracy"] == pytest.approx(accuracy)
    assert classifier.evaluate(DOCUMENTS, LABELS, verbose=0)[1] == pytest.approx(accuracy)
    packed = classifier.data.pack_texts((DOCUMENTS,))
    assert {array.shape for array in packed.values()} == {(48, 3, LENGTH)}
    wanted = classifier.predict(DOCUMENTS, verbose=0)
    np.testing.assert_allclose(classifier.predict(packed, verbose=0), wanted, atol=1e-5)
    assert classifier.predict([], verbose=0).shape == (0, 2)
    history = classifier.fit_on_features(DOCUMENTS, LABELS, epochs=1, verbose=0).history
    assert history["accuracy"][0] > 0.9


def test_mean_of_windows(tmp_path):
    classifier = randomize(make_classifier())
    wanted = classify_by_hand(classifier, DOCUMENTS[:4], tmp_path / "hf", np.mean)
    np.testing.assert_allclose(classifier.predict(DOCUMENTS[:4], verbose=0), wanted, atol=1e-5)


def test_a_document_of_a_hundred_thousand_words():
    """The model reads the first window, the last one, and windows at equal distances."""
    classifier = randomize(make_classifier(max_windows=3))
    middle = 100_000 // 2 // ROOM
    words = ["film"] * 100_000
    kept = {0: "good", middle * ROOM: "bad", (100_000 - 1) // ROOM * ROOM: "plot"}
    for place, word in kept.items():
        words[place] = word
    long = classifier.data.pack_texts(([" ".join(words)],))["token_ids"]
    assert long.shape == (1, 3, LENGTH)
    assert [VOCABULARY[token] for token in long[0, :, 1]] == list(kept.values())
    assert np.isfinite(classifier.predict([" ".join(words)], verbose=0)).all()
    classifier.fit([" ".join(words), "good film"], ["no", "yes"], verbose=0)


@pytest.mark.long("combinations")
@pytest.mark.parametrize("dtype", [None, "mixed_bfloat16"])
def test_a_learned_pooling_on_samples_of_windows(dtype, tmp_path):
    classifier = make_classifier(
        dtype,
        window_pooling=WindowTransformer(num_heads=2),
        max_windows=3,
        training_windows=2,
        problem_type="multi_label_classification",
        thresholds=[0.4, 0.5],
    )
    randomize(classifier)
    before = {weight.path: to_numpy(weight) for weight in classifier.trainable_weights}
    # Probabilities do not depend on this bias, because it adds the same to all keys.
    before = {path: value for path, value in before.items() if "key/bias" not in path}
    history = classifier.fit(DOCUMENTS, [[x] for x in LABELS], batch_size=16, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    for weight in classifier.trainable_weights:
        moved = weight.path not in before or (to_numpy(weight) != before[weight.path]).any()
        assert moved, weight.path

    wanted = classifier.predict(DOCUMENTS[:8], verbose=0)
    assert wanted.dtype == "float32"
    classifier.save(tmp_path / "documents.keras")
    again = keras.saving.load_model(tmp_path / "documents.keras")
    classifier.save_to_preset(tmp_path / "preset")
    twin = DocumentClassifier.from_preset(tmp_path / "preset", dtype=dtype)
    # KerasHub finds the task of the preset, too.
    other = keras_hub.models.TextClassifier.from_preset(str(tmp_path / "preset"), dtype=dtype)
    for copy in (again, twin, other):
        assert type(copy) is DocumentClassifier
        assert type(copy.window_pooling) is WindowTransformer
        for name in ("max_windows", "training_windows", "stride", "query_length", "thresholds"):
            assert getattr(copy, name) == getattr(classifier, name), name
        np.testing.assert_allclose(copy.predict(DOCUMENTS[:8], verbose=0), wanted, atol=1e-6)


def test_a_query_is_repeated_in_each_window():
    classifier = make_classifier(query_length=2, stride=2, problem_type="regression")
    pairs = (["the film", "bad"], ["a b c", "good plot very dull of it"])
    packed = classifier.data.pack_texts(pairs)
    texts = [[" ".join(VOCABULARY[t] for t in row) for row in doc] for doc in packed["token_ids"]]
    assert texts[1] == [
        "[CLS] bad [SEP] good plot very dull [SEP]",
        "[CLS] bad [SEP] very dull of it [SEP]",
    ]
    assert packed["segment_ids"][1, 0].tolist() == [0, 0, 0, 1, 1, 1, 1, 1]
    classifier.fit(pairs, [[0.0, 0.0], [1.0, 1.0]], verbose=0)
    assert classifier.predict(pairs, verbose=0).shape == (2, 2)


def test_the_head_of_a_classifier_of_texts(tmp_path):
    """A checkpoint for texts answers for documents, with the mean of their windows."""
    texts = TextClassifier(
        BertBackbone(**ONE_LAYER), label_names=["no", "yes"], preprocessor=make_packer()
    )
    save_hugging_face(texts, tmp_path / "hf")
    short = ["good film", "bad plot"]
    wanted = texts.predict(short, verbose=0)
    for window_pooling in ("mean", WindowTransformer(num_heads=2, name="over_windows")):
        documents = DocumentClassifier.from_preset(
            tmp_path / "hf", sequence_length=LENGTH, window_pooling=window_pooling
        )
        np.testing.assert_allclose(documents.predict(short, verbose=0), wanted, atol=1e-5)
    with pytest.raises(ValueError, match="with window_pooling=WindowTransformer"):
        save_hugging_face(documents, tmp_path / "again")
    documents.save_to_preset(tmp_path / "preset")
    with pytest.raises(ValueError, match="With `window_pooling`, pass `num_classes`"):
        DocumentClassifier.from_preset(tmp_path / "preset", window_pooling="max")
    with pytest.warns(UserWarning, match="holds a classification layer"):
        new = DocumentClassifier.from_preset(
            tmp_path / "preset", num_classes=3, window_pooling=AttentionPooling()
        )
    assert new.predict(short, verbose=0).shape == (2, 3)
    with pytest.warns(UserWarning, match="holds a classification layer"):
        new = DocumentClassifier.from_preset(tmp_path / "preset", num_classes=3)
    assert type(new.window_pooling) is MeanPooling  # The default, as everywhere.


def test_other_encoders():
    vocabulary = make_vocabulary()
    backbone = RobertaBackbone(**{**ONE_LAYER, "vocabulary_size": len(vocabulary)})
    packer = SegmentPacker(BytePairTokenizer(vocabulary, MERGES), LENGTH)
    roberta = DocumentClassifier(
        backbone, 2, preprocessor=packer, pooling=ScalarMix(), window_pooling="max"
    )
    backbone, preprocessor = make_distil_bert()
    distil = DocumentClassifier(backbone, 2, preprocessor=preprocessor, window_pooling="max")
    for model in (roberta, distil):
        model.fit(DOCUMENTS[:4], [0, 1, 0, 1], verbose=0)
        short = model.predict(["good film"], verbose=0)
        beside = model.predict(["good film", DOCUMENTS[0]], verbose=0)
        np.testing.assert_allclose(beside[:1], short, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"max_windows": 0}, "max_windows must be an integer of at least 1, got 0"),
        ({"max_windows": None}, "max_windows must be an integer of at least 1, got None"),
        ({"training_windows": 1.5}, "training_windows must be an integer of at least 1"),
        ({"window_pooling": "middle"}, "pooling must be one of mean"),
        (
            {"window_pooling": keras.layers.GlobalAveragePooling1D(keepdims=True)},
            "A pooling layer must return one vector (B, P) for each row",
        ),
    ],
)
def test_wrong_arguments(arguments, error):
    with pytest.raises(ValueError, match=re.escape(error)):
        make_classifier(**arguments)


def test_wrong_rows(classifier, tmp_path):
    wrong = make_classifier(stride=7)
    with pytest.raises(ValueError, match="stride must be from 1 to 6"):
        wrong.predict(["good film"], verbose=0)
    with pytest.raises(ValueError, match=r"the axes \(rows, windows, tokens\), got token_ids"):
        classifier.predict(make_packer()(["good film"]), verbose=0)
    with pytest.raises(ValueError, match="was trained on single texts"):
        classifier.predict((["good"], ["film"]), verbose=0)
    with pytest.raises(ValueError, match="LiteRT has no pooling of any number of windows"):
        export_litert(classifier, tmp_path / "litert")
