"""What is special about Longformer: global tokens, windows, and an encoder that it continues."""

import json
import re

import keras
import numpy as np
import pytest
import torch
import transformers
from family import MEMBERS, open_task, run_peer
from heads.cases import NUM_ROWS
from keras import ops
from peer_weights import randomize, to_numpy
from portable_runtimes import run_onnx
from small_byte_pairs import MERGES, make_vocabulary
from small_tasks import LONGFORMER, compile_model, make_task, predict, predicted_columns
from small_texts import VOCABULARY

import keras_bert_suite as kbs
from keras_bert_suite import (
    BertBackbone,
    BytePairTokenizer,
    LongformerBackbone,
    Pretrainer,
    QuestionAnswerer,
    RobertaBackbone,
    SegmentPacker,
    TextClassifier,
    TextEmbedder,
    WordPieceTokenizer,
    encode_with_attention,
    export_onnx,
)
from keras_bert_suite.checkpoints import save_hugging_face, save_keras_hub
from keras_bert_suite.heads.base.part_checks import check_separator
from keras_bert_suite.layers import LongformerAttention
from keras_bert_suite.layers.attention.global_tokens import GLOBAL_TOKENS, GlobalTokens

pytestmark = pytest.mark.filterwarnings("ignore:.*has no weights for.*pooler")

MEMBER = MEMBERS["longformer"]
SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 6}
V = MEMBER.vocabulary_size


@pytest.mark.parametrize(("size", "millions"), [("base", 149), ("large", 435)])
def test_sizes_have_the_parameters_of_the_released_models(size, millions, monkeypatch):
    zeros = keras.initializers.Zeros()  # To draw weights takes seconds.
    monkeypatch.setattr(keras.initializers, "TruncatedNormal", lambda stddev: zeros)
    sizes = LongformerBackbone.sizes[size]
    names = {"num_layers": "num_hidden_layers", "num_heads": "num_attention_heads"}
    names.update(hidden_dim="hidden_size", intermediate_dim="intermediate_size")
    with torch.device("meta"):
        config = transformers.LongformerConfig(
            vocab_size=50265,
            max_position_embeddings=4098,
            type_vocab_size=1,
            **{names[name]: value for name, value in sizes.items()},
        )
        peer = transformers.LongformerModel(config)
    count = sum(parameter.numel() for parameter in peer.parameters())
    assert round(count / 1e6) == millions
    # By linearity, from one and two layers and a vocabulary of one: nothing large is built.
    one, two = (LongformerBackbone(1, **{**sizes, "num_layers": n}).count_params() for n in (1, 2))
    ours = one + (sizes["num_layers"] - 1) * (two - one) + 50264 * sizes["hidden_dim"]
    assert ours == count


def make_rows(length):
    """Two rows, the second with padding, with global tokens at other places."""
    rng = np.random.default_rng(length)
    mask = np.ones((2, length), "int32")
    mask[1, length - length // 3 :] = 0
    ids = np.where(mask, rng.integers(5, V, mask.shape), MEMBER.pad_token_id)
    marked = np.zeros_like(mask)
    marked[0, [0, length - 1]] = marked[1, length // 2] = 1
    return {
        "token_ids": ids.astype("int32"),
        "padding_mask": mask,
        "global_attention_mask": marked,
    }


@pytest.mark.parametrize("length", [3, 13, 24, 31])
def test_rows_of_any_length_equal_transformers(length, tmp_path):
    """Shorter than a window, and no multiple of it."""
    peer = MEMBER.save_peer(tmp_path, max_position_embeddings=34)
    backbone = LongformerBackbone.from_preset(tmp_path)
    inputs = make_rows(length)
    seen = inputs["padding_mask"] == 1
    unmarked = {name: inputs[name] for name in ("token_ids", "padding_mask")}
    for batch, rule in ((inputs, "first_text"), (unmarked, "none")):
        backbone.global_tokens = rule
        expected = run_peer(peer, batch).last_hidden_state.detach().numpy()
        got = to_numpy(backbone(batch)["sequence_output"])
        np.testing.assert_allclose(got[seen], expected[seen], rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*heads? of the pretrainer")
@pytest.mark.parametrize("head", MEMBER.heads)
def test_a_task_has_the_global_tokens_of_transformers(head, tmp_path):
    """Without a mask, transformers' class for a head marks the tokens that the head is about."""
    peer = MEMBER.save_peer(tmp_path, head)
    task = open_task(head, tmp_path)
    packer = SegmentPacker(BytePairTokenizer(make_vocabulary(), MERGES), 16, padding_lengths=(16,))
    packed = packer.pack(["a b", "good"], ["the lower film", "bad"])
    inputs = {name: np.asarray(array) for name, array in packed.items()}
    seen = inputs["padding_mask"] == 1
    if head == "ForMultipleChoice":
        inputs = MEMBER.make_choices(inputs)
    theirs = run_peer(peer, inputs)
    if head == "ForQuestionAnswering":
        got = to_numpy(task(inputs)).swapaxes(0, 1)[:, seen]
        expected = torch.stack([theirs.start_logits, theirs.end_logits])[:, seen]
    elif head == "ForMaskedLM":
        positions = np.tile(np.arange(16, dtype="int32"), (2, 1))
        got = to_numpy(task({**inputs, "mask_positions": positions})["mlm"])[seen]
        expected = theirs.logits[seen]
    else:
        seen = seen if head == "ForTokenClassification" else slice(None)
        got, expected = to_numpy(task(inputs))[seen], theirs.logits[seen]
    np.testing.assert_allclose(got, expected.detach().numpy(), rtol=0, atol=1e-5)


def test_a_preset_of_another_task_gets_the_global_tokens_of_the_new_one(tmp_path):
    packer = SegmentPacker(BytePairTokenizer(make_vocabulary(), MERGES), 16)
    backbone = LongformerBackbone(V, **SIZES, attention_window=4, max_sequence_length=16)
    backbone.global_tokens = "none"
    frozen = "transformer_layer_0/self_attention/global_key/kernel"
    assert frozen not in [v.path for v in backbone.trainable_variables]
    Pretrainer(backbone, next_sentence=False, preprocessor=packer).save_to_preset(
        str(tmp_path / "pretrained")
    )
    with pytest.warns(UserWarning, match="holds a backbone, but no QuestionAnswerer"):
        answerer = QuestionAnswerer.from_preset(tmp_path / "pretrained")
    assert answerer.backbone.global_tokens == "first_text"
    assert frozen in [v.path for v in answerer.backbone.trainable_variables]
    answerer.backbone.global_tokens = "first_token"
    answerer.save_to_preset(str(tmp_path / "tuned"))
    assert QuestionAnswerer.from_preset(tmp_path / "tuned").backbone.global_tokens == "first_token"
    with pytest.warns(UserWarning, match="are 'first_token', and a LongformerForQ.*'first_text'"):
        save_hugging_face(answerer, tmp_path / "written")
    # sentence-transformers has no global tokens.
    with pytest.warns(UserWarning, match=r"not have: qa_outputs.bias, .* They are left out\.$"):
        embedder = TextEmbedder.from_preset(tmp_path / "written")
    assert embedder.backbone.global_tokens == "none"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("none", [[0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0]]),
        ("first_token", [[1, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0]]),
        ("first_text", [[1, 1, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0]]),
        ("later_texts", [[0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0, 0]]),
    ],
)
def test_patterns(pattern, expected):
    """RoBERTa has two separators between texts, and BERT one."""
    ids = np.array([[0, 8, 9, 2, 2, 7, 2], [0, 8, 2, 7, 2, 1, 1]], "int32")
    rows = GlobalTokens(pattern)(ids, (ids != 1).astype("int32"))
    np.testing.assert_array_equal(to_numpy(rows.is_global).astype(int), expected)
    places, taken = to_numpy(rows.places), to_numpy(rows.is_taken)
    for row in range(2):
        assert list(places[row][taken[row]]) == list(np.flatnonzero(expected[row]))


def test_the_first_tokens_of_a_long_text_are_global():
    ids = np.full((1, 20), 9, "int32")
    rows = GlobalTokens("first_text", max_tokens=10)(ids, np.ones_like(ids))
    assert list(np.flatnonzero(to_numpy(rows.is_global))) == list(range(10))
    assert to_numpy(rows.is_taken).sum() == 10


def test_too_many_global_tokens():
    backbone = LongformerBackbone(
        V, **SIZES, attention_window=4, max_global_tokens=1, max_sequence_length=16
    )
    inputs = make_rows(6)
    with pytest.raises(ValueError, match=r"2 global tokens in a row.*`max_global_tokens=2`"):
        backbone(inputs)
    task = TextClassifier(backbone, num_classes=2)
    with pytest.raises(ValueError, match=r"2 global tokens in a row.*`max_global_tokens=2`"):
        task.fit(inputs, np.array([0, 1]), verbose=0)


def test_attention_equals_the_formula_in_memory_linear_in_the_length(monkeypatch):
    """`compute_probabilities` fills the array of all pairs of tokens; the layer never does."""
    sizes = []
    choose = LongformerAttention.choose_kernel

    def choose_watched(self, query, training):
        kernel = choose(self, query, training)

        def attend(q, k, v, mask):
            sizes.append(q.shape[0] * q.shape[2] * k.shape[2])
            return kernel(q, k, v, mask)

        return attend

    monkeypatch.setattr(LongformerAttention, "choose_kernel", choose_watched)
    layer = LongformerAttention(2, reach=2, dropout=0.0)
    layer.build((None, None, 8))
    randomize(layer)
    for length in (24, 48):
        batch = make_rows(length)
        rows = GlobalTokens(max_tokens=8)(
            **{
                "token_ids": batch["token_ids"],
                "padding_mask": batch["padding_mask"],
                "global_attention_mask": batch["global_attention_mask"],
            }
        )
        hidden = np.random.default_rng(0).standard_normal((2, length, 8)).astype("float32")
        got = to_numpy(layer(hidden, attention_mask=rows))
        probabilities = layer.compute_probabilities(ops.convert_to_tensor(hidden), rows)
        contexts = [
            to_numpy(ops.matmul(probabilities, layer._split_heads(project(hidden))))
            for project in (layer.value, layer.global_value)
        ]
        is_global = batch["global_attention_mask"][:, None, :, None] == 1
        context = ops.convert_to_tensor(np.where(is_global, contexts[1], contexts[0]))
        expected = to_numpy(layer.merge(context))
        seen = batch["padding_mask"] == 1
        np.testing.assert_allclose(got[seen], expected[seen], rtol=0, atol=1e-5)
    # Of each length, the scores of the windows and those of the global tokens.
    assert sizes == [2 * 24 * (3 * 2 + 8), 2 * 8 * 24, 2 * 48 * (3 * 2 + 8), 2 * 8 * 48]


@pytest.mark.parametrize(
    "task",
    [
        pytest.param("questions", marks=()),
        *(
            pytest.param(task, marks=pytest.mark.long("combinations"))
            for task in (
                "texts",
                "words",
                "masks",
                "choices",
                "vectors",
                "documents",
                "pretraining",
            )
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*are in no window as a whole:UserWarning")
def test_every_kind_of_head_trains_with_remat(task):
    """In packed rows, as without either; and predicts."""
    losses = []
    for remat in (False, True):
        keras.utils.set_random_seed(0)
        model, (x, y, *weights) = make_task(task, LONGFORMER, remat=remat)
        model.backbone.global_tokens = model.global_tokens
        compile_model(model)
        history = model.fit(
            *(x, y),
            batch_size=4,
            verbose=0,
            shuffle=False,
            sequence_packing=remat,
            sample_weight=weights[0] if weights else None,
        )
        losses.append(history.history["loss"][0])
    np.testing.assert_allclose(*losses, rtol=1e-5)
    if task != "pretraining":
        assert len(predict(model, x=predicted_columns(model, x))) == NUM_ROWS


def test_a_mask_of_global_tokens_in_packed_rows_of_a_task():
    """The mask stays in the shape of the batch, and a `fit` takes it among the packed arrays."""
    losses = []
    for packing in (False, True):
        keras.utils.set_random_seed(0)
        backbone = LongformerBackbone(
            V, **SIZES, attention_window=4, dropout=0.0, max_sequence_length=16
        )
        task = TextClassifier(backbone, num_classes=2, dropout=0.0)
        task.compile(keras.optimizers.SGD(0.1))
        history = task.fit(
            make_rows(9), np.array([0, 1]), batch_size=2, verbose=0, sequence_packing=packing
        )
        losses.append(history.history["loss"][0])
    np.testing.assert_allclose(*losses, rtol=1e-5)


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_onnx(tmp_path):
    """The sizes of rows are open, so windows are computed block by block."""
    pytest.importorskip("tf2onnx")
    task, (x, _) = make_task("pairs", LONGFORMER)
    task.backbone.global_tokens = "first_text"
    export_onnx(task, tmp_path / "1")
    rows = task.preprocessor.pack(*x)
    for length in (16, 15, 3):  # whole blocks, and others
        inputs = {name: array[:, :length] for name, array in rows.items()}
        got = run_onnx(tmp_path / "1", inputs)["probabilities"]
        expected = keras.ops.softmax(task.predict(inputs, verbose=0))
        np.testing.assert_allclose(got, to_numpy(expected), rtol=0, atol=1e-5)


# === An encoder that a Longformer continues ===


@pytest.mark.parametrize("kind", [BertBackbone, RobertaBackbone])
def test_within_the_window_it_computes_what_the_encoder_does(kind):
    encoder = randomize(kind(V, **SIZES, max_sequence_length=10))
    longformer = LongformerBackbone.from_encoder(
        encoder, separator_id=2, max_sequence_length=23, attention_window=20
    )
    member = MEMBERS["bert" if kind is BertBackbone else "roberta"]
    inputs = member.make_inputs()
    seen = inputs["padding_mask"] == 1
    got, expected = longformer(inputs), encoder(inputs)
    for name, keep in (("sequence_output", seen), ("pooled_output", slice(None))):
        got_, expected_ = to_numpy(got[name])[keep], to_numpy(expected[name])[keep]
        np.testing.assert_allclose(got_, expected_, rtol=0, atol=1e-5)
    # So does the head for masked tokens.
    heads = [Pretrainer(model, next_sentence=False) for model in (encoder, longformer)]
    heads[1].masked_lm.set_weights(heads[0].masked_lm.get_weights())
    positions = np.tile(np.arange(3, dtype="int32"), (3, 1))
    got_, expected_ = (
        to_numpy(head({**inputs, "mask_positions": positions})["mlm"]) for head in reversed(heads)
    )
    np.testing.assert_allclose(got_, expected_, rtol=0, atol=1e-5)
    old, new = (
        to_numpy(model.embeddings.position_embedding.embeddings)[model.position_offset :]
        for model in (encoder, longformer)
    )
    np.testing.assert_array_equal(new, np.concatenate([old, old, old[:3]]))
    # It can be saved, with its segments.
    again = LongformerBackbone.from_config(json.loads(json.dumps(longformer.get_config())))
    assert list(again.input) == list(longformer.input)
    assert ("segment_ids" in again.input) == (kind is BertBackbone)


def test_arguments_override_those_of_the_encoder():
    encoder = BertBackbone(V, **SIZES, dropout=0.1, attention_dropout=0.2, max_sequence_length=10)
    longformer = LongformerBackbone.from_encoder(encoder, separator_id=2, dropout=0.3)
    assert (longformer.dropout, longformer.attention_dropout) == (0.3, 0.2)


def test_it_continues_smaller_encoders():
    sizes = {"intermediate_by_layer": [3, 5], "embedding_rank": 4}
    encoder = randomize(RobertaBackbone(V, **SIZES, **sizes, max_sequence_length=10))
    longformer = LongformerBackbone.from_encoder(
        encoder, separator_id=2, max_sequence_length=23, attention_window=20
    )
    inputs = make_rows(9)
    got, expected = (to_numpy(model(inputs)["pooled_output"]) for model in (longformer, encoder))
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6)


def test_a_continued_roberta_is_read_by_transformers(tmp_path):
    encoder = randomize(RobertaBackbone(V, **SIZES, max_sequence_length=10))
    longformer = LongformerBackbone.from_encoder(
        encoder, separator_id=2, max_sequence_length=32, attention_window=[4, 8]
    )
    save_hugging_face(longformer, tmp_path / "long")
    peer = transformers.AutoModel.from_pretrained(tmp_path / "long")
    inputs = make_rows(24)
    seen = inputs["padding_mask"] == 1
    expected = run_peer(peer, inputs).last_hidden_state.detach().numpy()
    got = to_numpy(longformer(inputs)["sequence_output"])
    np.testing.assert_allclose(got[seen], expected[seen], rtol=0, atol=1e-5)


def test_models_that_cannot_be(tmp_path):
    with pytest.raises(ValueError, match="even number of at least 2, or 2 of them.* got 5"):
        LongformerBackbone(V, **SIZES, attention_window=5)
    with pytest.raises(ValueError, match=r"or 2 of them, one for each layer, got \[4\]"):
        LongformerBackbone(V, **SIZES, attention_window=[4])
    for windows in (4.0, [4.0, 4.0], "4"):
        with pytest.raises(
            ValueError, match=f"an even number of .* got {re.escape(repr(windows))}"
        ):
            LongformerBackbone(V, **SIZES, attention_window=windows)
    with pytest.raises(ValueError, match="separator_id must be an integer .* got -1"):
        LongformerBackbone(V, **SIZES, separator_id=-1)
    no_separator = LongformerBackbone(V, **SIZES, separator_id=V)
    with pytest.raises(ValueError, match=f"below vocabulary_size={V}, got {V}. Pass the `end_to"):
        LongformerBackbone(V, **SIZES, global_tokens="first_text", separator_id=V)
    with pytest.raises(ValueError, match="global_tokens='later_texts' needs a separator_id below"):
        no_separator.global_tokens = "later_texts"
    with pytest.raises(ValueError, match="max_global_tokens must be an integer .* got 0"):
        LongformerBackbone(V, **SIZES, max_global_tokens=0)
    with pytest.raises(
        ValueError, match=f"global_tokens must be one of {', '.join(GLOBAL_TOKENS)}"
    ):
        LongformerBackbone(V, **SIZES, global_tokens="all")
    with pytest.raises(ValueError, match="attention_pattern must be 'bidirectional', got 'left"):
        LongformerBackbone(V, **SIZES, attention_pattern="left_to_right")
    causal = BertBackbone(V, **SIZES, attention_pattern="left_to_right")
    with pytest.raises(ValueError, match="got a BertBackbone with 'left_to_right'"):
        LongformerBackbone.from_encoder(causal, separator_id=2)
    pruned = BertBackbone(V, **SIZES, heads_by_layer=[1, 2])
    with pytest.raises(ValueError, match=r"heads_by_layer=\[1, 2\]. Pass `encoder.to_full_size"):
        LongformerBackbone.from_encoder(pruned, separator_id=2)
    finder = LongformerBackbone(V, **SIZES, global_tokens="first_text", separator_id=V - 1)
    with pytest.raises(ValueError, match=f"by separator_id={V - 1}, and the separator of the"):
        check_separator(WordPieceTokenizer(VOCABULARY), finder)
    longformer = LongformerBackbone(V, **SIZES, takes_segments=True, num_segments=2)
    with pytest.raises(ValueError, match="Longformer has takes_segments=False, got True"):
        save_hugging_face(longformer, tmp_path / "segments")
    with pytest.raises(ValueError, match="computes the same as LongformerBackbone"):
        save_keras_hub(longformer, tmp_path / "preset")


@pytest.mark.parametrize(
    "cls",
    [
        *(kbs.AlbertBackbone, kbs.BartBackbone, kbs.ModernBertBackbone, kbs.NezhaBackbone),
        *(kbs.RoFormerBackbone, kbs.XLNetBackbone, LongformerBackbone),
    ],
)
def test_no_encoder_of_other_layers_is_continued(cls):
    encoder = cls(V, **SIZES)
    with pytest.raises(ValueError, match=f"whose layers it has, .*got an? {cls.__name__}"):
        LongformerBackbone.from_encoder(encoder, separator_id=2)


@pytest.mark.parametrize("windows", [5, [4], "4", [4, 3], True])
def test_windows_of_a_file_that_cannot_be(windows, tmp_path):
    MEMBER.save_peer(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "attention_window": windows}))
    with pytest.raises(ValueError, match="'attention_window' in .* must be an even number, or a l"):
        LongformerBackbone.from_preset(tmp_path)


def test_attentions_are_those_of_transformers(tmp_path):
    peer = MEMBER.save_peer(tmp_path, attn_implementation="eager")
    backbone = LongformerBackbone.from_preset(tmp_path)
    inputs = make_rows(12)
    marked = inputs["global_attention_mask"]
    marked[0] = np.arange(12) == 5
    got = encode_with_attention(backbone, inputs)["attentions"]
    peer.config.output_attentions = True
    theirs = run_peer(peer, inputs)
    for ours, window, global_ in zip(got, theirs.attentions, theirs.global_attentions, strict=True):
        # The row without padding. Theirs are columns of distances behind that of the global token.
        ours, window, global_ = ours[0], window[0].detach().numpy(), global_[0].detach().numpy()
        reach = (window.shape[-1] - 2) // 2
        expected = np.zeros_like(ours)
        for place in range(12):
            for distance in range(-reach, reach + 1):
                if 0 <= place + distance < 12:
                    weight = window[:, place, 1 + reach + distance]
                    expected[:, place, place + distance] = weight
        expected[:, :, 5] = window[:, :12, 0]
        expected[:, 5] = global_[:, :12, 0]
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-5)
