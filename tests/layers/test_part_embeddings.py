"""Embeddings of characters and radicals beside tokens."""

import keras
import numpy as np
import pytest
from peer_weights import randomize, to_numpy
from serving.traced import called_or_saved
from small_byte_pairs import MERGES, make_vocabulary
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

import keras_bert_suite as kbs

#: The last token has no parts, and the one before it a single part.
PARTS = [[0, 1, 2], [3, 3], [2, 0], [1], []]
IDS = np.array([[0, 1, 2, 3], [4, 4, 3, 0]], "int32")
EMBEDDED = np.random.default_rng(0).standard_normal((2, 4, 6)).astype("float32")
TOKENIZER = kbs.WordPieceTokenizer(VOCABULARY)


def pool(layer, parts):
    """The vector of the parts of a token, by a loop."""
    table = to_numpy(layer.part_embedding.embeddings)
    if layer.filters is None:
        return np.mean([table[i] for i in parts], axis=0) if parts else np.zeros(table.shape[1])
    widest = max(width for width, _ in layer.filters)
    vectors = np.zeros((len(parts) + widest - 1, table.shape[1]))
    vectors[: len(parts)] = table[parts]
    found = []
    for convolution in layer.convolutions:
        kernel, bias = to_numpy(convolution.kernel), to_numpy(convolution.bias)
        width = len(kernel)
        places = [
            np.einsum("wi,wio->o", vectors[i : i + width], kernel) + bias for i in range(len(parts))
        ]
        found.append(np.max([np.zeros_like(bias), *places], axis=0))
    return np.concatenate(found)


@pytest.mark.every_backend
@pytest.mark.parametrize("filters", [None, [[1, 2], [2, 3], [5, 1]]])
@pytest.mark.parametrize("merge", ["add", "concat"])
def test_vectors_are_those_of_a_loop(filters, merge):
    layer = kbs.PartEmbeddings(PARTS, 4, embedding_dim=3, filters=filters, merge=merge)
    layer(IDS, EMBEDDED)
    randomize(layer)
    pooled = np.array([[pool(layer, PARTS[i]) for i in row] for row in IDS])
    kernel = to_numpy(layer.projection.kernel)
    if merge == "add":
        expected = EMBEDDED + pooled @ kernel
    else:
        both = np.concatenate([EMBEDDED, pooled], axis=-1)
        expected = both @ kernel + to_numpy(layer.projection.bias)
    np.testing.assert_allclose(to_numpy(layer(IDS, EMBEDDED)), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_parts": 3}, r"parts of token 1 must be in \[0, 3\), the num_parts, got \[3, 3\]"),
        ({"parts": [[], []]}, "No token of 2 has a part"),
        ({"merge": "mean"}, "merge must be one of add, concat"),
        ({"filters": []}, r"filters must be pairs of positive integers, .* got \[\]"),
        ({"filters": (3, 8)}, r"such as \[\(1, 8\), \(2, 8\)\], .* got \(3, 8\)"),
        ({"filters": [(0, 8)]}, r"filters must be pairs of positive integers"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        kbs.PartEmbeddings(**{"parts": PARTS, "num_parts": 4, **arguments})


def make_backbone(cls=kbs.BertBackbone, **arguments):
    spelled = kbs.spell_tokens(TOKENIZER)
    layer = kbs.PartEmbeddings(spelled.parts, spelled.num_parts, 4, filters=[[1, 3], [2, 3]])
    return cls(**{**ONE_LAYER, "dropout": 0.0, **arguments}, part_embeddings=layer)


@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (kbs.BertBackbone, {}),
        (kbs.AlbertBackbone, {"embedding_dim": 4}),
        (kbs.RoFormerBackbone, {}),
        (kbs.XLNetBackbone, {}),
    ],
)
def test_a_new_layer_changes_nothing_until_it_is_trained(cls, arguments):
    """The weights of an encoder without parts give the same outputs; other spellings do not."""
    plain = randomize(cls(**{**ONE_LAYER, "dropout": 0.0, **arguments}))
    backbone = make_backbone(cls, **arguments)
    ours = {w.path: w for w in plain.weights}
    new = [w for w in backbone.weights if w.path not in ours]
    assert all(w.path.startswith("embeddings/part_embeddings/") for w in new) and len(new) == 6
    for weight in backbone.weights:
        if weight.path in ours:
            weight.assign(ours[weight.path])
    inputs = kbs.SegmentPacker(TOKENIZER, 12).pack(make_reviews(2)[0])
    inputs = {name: inputs[name] for name in backbone.input}
    expected = to_numpy(plain(inputs)["sequence_output"])
    np.testing.assert_allclose(to_numpy(backbone(inputs)["sequence_output"]), expected, atol=1e-5)
    randomize(backbone.embeddings.part_embeddings)
    assert np.abs(to_numpy(backbone(inputs)["sequence_output"]) - expected).max() > 1e-3


def test_a_task_from_strings_is_trained_saved_and_opened(tmp_path):
    texts, labels = make_reviews(8)
    packer = kbs.SegmentPacker(TOKENIZER, 12)
    classifier = kbs.TextClassifier(make_backbone(), label_names=["no", "yes"], preprocessor=packer)
    before = to_numpy(classifier.backbone.embeddings.part_embeddings.projection.kernel).copy()
    classifier.fit(texts, labels, verbose=0)
    after = to_numpy(classifier.backbone.embeddings.part_embeddings.projection.kernel)
    assert np.abs(after - before).max() > 0
    randomize(classifier)
    expected = classifier.predict(texts, verbose=0)
    classifier.save(tmp_path / "task.keras")
    classifier.save_to_preset(tmp_path / "preset")
    for again in (
        keras.saving.load_model(tmp_path / "task.keras"),
        kbs.TextClassifier.from_preset(tmp_path / "preset"),
    ):
        np.testing.assert_allclose(again.predict(texts, verbose=0), expected, atol=1e-5)


def test_tokens_that_are_added_or_kept_have_their_parts():
    backbone = randomize(make_backbone())
    parts = backbone.part_embeddings.parts
    larger = backbone.resize_vocabulary(len(parts) + 2, seed=0)
    assert larger.part_embeddings.parts == [*parts, [], []]
    kept = [0, 7, 9, 1]
    smaller = backbone.take_tokens(kept)
    assert smaller.part_embeddings.parts == [parts[i] for i in kept]
    ids, kept = np.array([[0, 1, 2, 3]], "int32"), np.array([kept], "int32")
    ones = np.ones_like(ids)

    def run(encoder, ids):
        inputs = {"token_ids": ids, "segment_ids": ones - 1, "padding_mask": ones}
        return to_numpy(encoder(inputs)["sequence_output"])

    expected = run(backbone, kept)
    np.testing.assert_allclose(run(smaller, ids), expected, atol=1e-5)
    np.testing.assert_allclose(run(larger, kept), expected, atol=1e-5)


@pytest.mark.backend("tensorflow")
@called_or_saved
def test_signatures_take_strings(open_signatures, tmp_path):
    import tensorflow as tf

    texts, _ = make_reviews(4)
    packer = kbs.SegmentPacker(TOKENIZER, 12)
    task = kbs.TextClassifier(make_backbone(), label_names=["no", "yes"], preprocessor=packer)
    randomize(task)
    expected = task.predict_probabilities(texts, verbose=0)
    serve = open_signatures(task, tmp_path)["serving_default"]
    found = serve(text=tf.constant(texts))["probabilities"].numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_a_runtime_of_onnx(tmp_path):
    texts, _ = make_reviews(4)
    packer = kbs.SegmentPacker(TOKENIZER, 12)
    task = kbs.TextClassifier(make_backbone(), label_names=["no", "yes"], preprocessor=packer)
    randomize(task)
    expected = task.predict_probabilities(texts, verbose=0)
    kbs.export_onnx(task, tmp_path / "onnx")
    found = kbs.open_runtime(tmp_path / "onnx").predict_probabilities(texts)
    np.testing.assert_allclose(found, expected, atol=1e-5)


class OwnParts(keras.layers.Layer):
    def build(self, *shapes):
        self.built = True

    def call(self, token_ids, embedded):
        return embedded


def test_parts_of_another_vocabulary_and_of_frames_are_refused():
    layer = kbs.PartEmbeddings(PARTS, 4)
    with pytest.raises(ValueError, match="parts of 5 tokens, and the vocabulary has"):
        kbs.BertBackbone(**ONE_LAYER, part_embeddings=layer)
    message = "part_embeddings must be a layer, such as PartEmbeddings, got 'radicals'"
    with pytest.raises(ValueError, match=message):
        kbs.BertBackbone(**ONE_LAYER, part_embeddings="radicals")
    own = kbs.BertBackbone(**ONE_LAYER, part_embeddings=OwnParts())
    message = r"an OwnParts, has no method take_tokens\(token_ids\), so the copy would not know"
    with pytest.raises(ValueError, match=message):
        own.take_tokens([0, 1, 2])
    sizes = {**ONE_LAYER, "vocabulary_size": None}
    with pytest.raises(ValueError, match="the encoder reads frames"):
        kbs.BertBackbone(**sizes, frame_dim=3, part_embeddings=layer)


def test_new_parts_have_no_place_in_a_preset(tmp_path):
    kbs.BertBackbone(**ONE_LAYER).save_to_preset(tmp_path)
    spelled = kbs.spell_tokens(TOKENIZER)
    layer = kbs.PartEmbeddings(spelled.parts, spelled.num_parts)
    with pytest.raises(ValueError, match="Write its encoder by `save_hugging_face`"):
        kbs.BertBackbone.from_preset(tmp_path, part_embeddings=layer)


def test_spelled_tokens():
    spelled = kbs.spell_tokens(TOKENIZER, max_characters=3)
    for token, row in zip(TOKENIZER.get_vocabulary(), spelled.parts, strict=True):
        special = token in TOKENIZER.special_tokens
        text = "" if special else token.removeprefix("##")[:3]
        assert "".join(spelled.names[i] for i in row) == text
    pairs = kbs.BytePairTokenizer(make_vocabulary(), MERGES)
    spelled = kbs.spell_tokens(pairs)
    texts = dict(zip(pairs.get_vocabulary(), spelled.parts, strict=True))
    assert [spelled.names[i] for i in texts["\u0120"]] == []  # A space.
    assert [spelled.names[i] for i in texts["a"]] == ["a"]


def test_radicals_of_a_file(tmp_path, caplog):
    path = tmp_path / "radicals.txt"
    path.write_text("# a table\n\n河\t氵 可\n江\t氵 工\n林\t木 木\n", "utf-8")
    tokenizer = kbs.WordPieceTokenizer(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "河", "##河", "林", "a"]
    )
    read = kbs.read_token_parts(path, tokenizer)
    assert read.names == sorted(["氵", "可", "木"])
    named = [[read.names[i] for i in row] for row in read.parts]
    assert named == [[]] * 5 + [["氵", "可"], ["氵", "可"], ["木", "木"], []]
    assert read.missing == ["a"] and read.num_parts == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("河\t氵\n林 木", r"line 2: wanted a token, a tab and its parts.*'林 木'"),
        ("河\t \n", "line 1: wanted"),
        ("\t木\n", "line 1: wanted"),
        ("河\t氵\n\n河\t可\n", "line 3: '河' is in line 1, too"),
        ("中\t丨\n", "none of its 1 texts, such as '中', is a token"),
    ],
)
def test_wrong_files_are_named_by_line(text, message, tmp_path):
    path = tmp_path / "radicals.txt"
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=message):
        kbs.read_token_parts(path, kbs.WordPieceTokenizer([*VOCABULARY, "河"]))
