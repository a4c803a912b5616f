"""Tasks without some heads and units, and with a table of low rank, beside transformers' models."""

import keras
import numpy as np
import pytest
import torch
import transformers
from family import MEMBERS, run_peer
from peer_weights import randomize, to_numpy
from serving.traced import trace
from small_texts import VOCABULARY
from tables import short_for

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import save_hugging_face
from keras_bert_suite.heads.base.part_importance import measure_importance
from keras_bert_suite.heads.base.probabilities import softmax
from keras_bert_suite.heads.base.size_comparison import count_weights
from keras_bert_suite.layers.gates import hold_gates
from keras_bert_suite.models.pruned_encoder import HEADS, UNITS

pytestmark = pytest.mark.filterwarnings("ignore:.*has no weights for")

TEXTS = ["the film was not very good .", "good acting , very good", "a dull film", "very bad"]
LABELS = [0, 1, 2, 1]
#: The sizes of transformers' model: three layers of four heads.
SIZES = {"num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 12}


def make(kind=kbs.TextClassifier, backbone=kbs.BertBackbone, **arguments):
    encoder = backbone(len(VOCABULARY), 3, 4, 16, 12)
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 24)
    if kind is kbs.TextClassifier:
        arguments["num_classes"] = 3
    task = kind(encoder, preprocessor=packer, **arguments)
    randomize(task)
    return task


def run(task, texts=TEXTS):
    packed = task.preprocessor.pack(texts)
    packed["mask_positions"] = np.tile(np.arange(1, 5, dtype="int32"), (len(texts), 1))
    outputs = task({tensor.name: packed[tensor.name] for tensor in task.inputs})
    return to_numpy(outputs)


def open_peer(path, model="ForSequenceClassification"):
    """transformers' classifier, and our task with its weights."""
    peer = MEMBERS["bert"].save_peer(path, model, **SIZES)
    kind = kbs.MaskedLM if model == "ForMaskedLM" else kbs.TextClassifier
    return peer, kind.from_preset(path)


class Gates:
    """Factors of the heads, or of the units, of transformers' model, by hooks."""

    def __init__(self, peer, kind, masks, num_rows):
        self.values = [torch.tensor(np.tile(mask, (num_rows, 1))) for mask in masks]
        self.hooks = []
        for layer, gate in zip(peer.bert.encoder.layer, self.values, strict=True):
            gate.requires_grad_()
            module = layer.attention.self if kind == HEADS else layer.intermediate
            self.hooks.append(module.register_forward_hook(self.multiply(gate)))

    @staticmethod
    def multiply(gate):
        def hook(module, inputs, outputs):
            x = outputs[0] if isinstance(outputs, tuple) else outputs
            rows, length, width = x.shape
            x = x.view(rows, length, gate.shape[1], -1) * gate[:, None, :, None]
            x = x.view(rows, length, width)
            return (x, *outputs[1:]) if isinstance(outputs, tuple) else x

        return hook

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for hook in self.hooks:
            hook.remove()


def find_importance(peer, kind, masks, inputs, label_ids):
    """The rule of the papers, in PyTorch: for each layer float (parts,)."""
    with Gates(peer, kind, masks, len(label_ids)) as gates:
        logits = run_peer(peer, inputs).logits
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor(label_ids), reduction="sum")
        gradients = torch.autograd.grad(loss, gates.values)
    found = []
    for gradient, mask in zip(gradients, masks, strict=True):
        scores = gradient.abs().mean(dim=0).numpy() * mask
        found.append(scores / np.linalg.norm(scores))
    return found


def run_masked(peer, kind, masks, inputs):
    with torch.no_grad(), Gates(peer, kind, masks, len(inputs["token_ids"])):
        return run_peer(peer, inputs).logits.numpy()


@pytest.mark.parametrize("kind", [HEADS, UNITS])
def test_importance_is_that_of_the_paper(kind, tmp_path):
    peer, task = open_peer(tmp_path)
    inputs, label_ids = MEMBERS["bert"].make_inputs(), [0, 2, 1]
    masks = [np.ones(4 if kind == HEADS else 12, "float32") for _ in range(3)]
    masks[1][2] = 0
    task.compile()
    # Two batches of different sizes.
    batches = [
        ({name: array[rows] for name, array in inputs.items()}, np.array(label_ids[rows]), None)
        for rows in (slice(0, 2), slice(2, 3))
    ]
    got = measure_importance(task, kind, batches, masks)
    wanted = find_importance(peer, kind, masks, inputs, label_ids)
    np.testing.assert_allclose(got, wanted, atol=1e-5)
    assert got[1][2] == 0


@pytest.mark.parametrize(
    ("kind", "by_layer"), [(HEADS, True), (UNITS, True), (UNITS, False)], ids=str
)
def test_the_least_important_parts_go_step_by_step(kind, by_layer, tmp_path):
    peer, task = open_peer(tmp_path)
    inputs, label_ids = MEMBERS["bert"].make_inputs(), [0, 2, 1]
    labels = [task.label_names[i] for i in label_ids]
    masks = [np.ones(4 if kind == HEADS else 12, "float32") for _ in range(3)]
    # Half of the parts, a quarter of all at a time.
    for _ in range(2):
        scores = find_importance(peer, kind, masks, inputs, label_ids)
        ranked = sorted(
            (score, i, part)
            for i, (layer, mask) in enumerate(zip(scores, masks, strict=True))
            for part, score in enumerate(layer)
            if mask[part]
        )
        groups = [ranked] if by_layer else [[r for r in ranked if r[1] == i] for i in range(3)]
        for group in groups:
            left = (1 if not by_layer else 3) * len(masks[0]) // 4
            for _, layer, part in group:
                if left and masks[layer].sum() > 1:
                    masks[layer][part], left = 0, left - 1
    task.compile()
    before = to_numpy(task(inputs))
    prune = task.prune_heads if kind == HEADS else task.prune_feed_forward
    options = {} if kind == HEADS else {"by_layer": by_layer}
    small = prune(inputs, labels, share=0.5, step=0.25, batch_size=2, **options)
    counts = [int(mask.sum()) for mask in masks]
    backbone = small.backbone
    if kind == HEADS:
        assert backbone.heads_by_layer == counts
        widths = [block.self_attention.query.kernel.shape[1] for block in backbone.list_calls()]
        assert widths == [count * 8 // 4 for count in counts]
    else:
        assert backbone.intermediate_by_layer == (counts if len({*counts}) > 1 else None)
        assert backbone.intermediate_dim == max(counts)
        assert [b.intermediate.units for b in backbone.list_calls()] == counts
    assert sum(counts) * 2 == sum(len(mask) for mask in masks)
    wanted = run_masked(peer, kind, masks, inputs)
    np.testing.assert_allclose(to_numpy(small(inputs)), wanted, atol=1e-5)
    np.testing.assert_array_equal(to_numpy(task(inputs)), before)
    assert small.count_params() < task.count_params()


@pytest.mark.parametrize("kind", [kbs.NezhaBackbone, kbs.RoFormerBackbone, kbs.RobertaBackbone])
def test_other_attention_without_some_heads(kind):
    task = make(backbone=kind)
    heads = [[0, 3], [1], [0, 1, 2, 3]]
    gates = {}
    for block, kept in zip(task.backbone.transformer_layers, heads, strict=True):
        mask = np.isin(np.arange(4), kept).astype("float32")
        gates[block.self_attention] = keras.ops.convert_to_tensor(np.tile(mask, (len(TEXTS), 1)))
    with hold_gates(gates):
        wanted = run(task)
    small = task._resize("keep_heads", heads=heads)
    np.testing.assert_allclose(run(small), wanted, atol=1e-5)
    np.testing.assert_allclose(run(small.to_full_size()), wanted, atol=1e-5)
    # Layers are chosen with their sizes, and heads of a pruned layer can go.
    fewer = small.keep_layers([0, 2])
    assert fewer.backbone.heads_by_layer == [2, 4]
    assert fewer.backbone.keep_heads([[1], [0, 2]]).heads_by_layer == [1, 2]


def prune(task, way):
    if way == "heads":
        return task.prune_heads(TEXTS, LABELS, share=0.5)
    if way == "table":
        return task.factorize_embeddings(6)
    return task.prune_feed_forward(TEXTS, LABELS, share=0.5, by_layer=way == "units by layer")


@pytest.mark.parametrize(
    "way",
    short_for(["heads", "units", "units by layer", "table"], "heads", "units", part="combinations"),
)
def test_a_smaller_task_is_saved_trained_and_opened_elsewhere(way, tmp_path):
    task = make()
    small = prune(task, way)
    assert small.count_params() < task.count_params()
    wanted = run(small)
    small.save(tmp_path / "small.keras")
    small.save_to_preset(tmp_path / "preset")
    for again in (
        keras.saving.load_model(tmp_path / "small.keras"),
        kbs.TextClassifier.from_preset(tmp_path / "preset"),
    ):
        np.testing.assert_allclose(run(again), wanted, atol=1e-6)
        assert again.backbone.get_config() == small.backbone.get_config()
    written = small
    if way != "units":
        with pytest.raises(ValueError, match=r"one size .* got \w+=.*model.to_full_size\(\)"):
            save_hugging_face(small, tmp_path / "theirs")
        written = small.to_full_size()
        np.testing.assert_allclose(run(written), wanted, atol=1e-5)
    save_hugging_face(written, tmp_path / "theirs")
    cls = transformers.BertForSequenceClassification
    peer = cls.from_pretrained(tmp_path / "theirs").eval()
    packed = small.preprocessor.pack(TEXTS)
    with torch.no_grad():
        logits = run_peer(peer, {tensor.name: packed[tensor.name] for tensor in small.inputs})
    np.testing.assert_allclose(logits.logits.numpy(), wanted, atol=1e-5)
    small.compile()
    small.fit(TEXTS, LABELS, batch_size=2, verbose=0)
    trained = run(small)
    assert np.abs(trained - wanted).max() > 1e-6
    small.quantize("int8")
    np.testing.assert_allclose(run(small), trained, atol=0.1)
    assert count_weights(small)[1] < count_weights(again)[1]


@pytest.mark.backend("tensorflow")
@pytest.mark.long("serving")
def test_a_server_of_a_smaller_task():
    tf = pytest.importorskip("tensorflow")
    small = make(dropout=0.0).prune_heads(TEXTS, LABELS, share=0.5).factorize_embeddings(6)
    got = trace(small)(text=tf.constant(TEXTS))["probabilities"].numpy()
    np.testing.assert_allclose(got, softmax(run(small)), atol=1e-6)


@pytest.mark.parametrize("rank", [3, 8])
def test_a_table_of_a_rank(rank, tmp_path):
    peer, task = open_peer(tmp_path, "ForMaskedLM")
    inputs = MEMBERS["bert"].make_inputs()
    inputs["mask_positions"] = np.tile(np.arange(1, 4, dtype="int32"), (3, 1))
    small = task.factorize_embeddings(rank)
    assert small.backbone.token_embedding.embeddings.shape[1] == rank
    table = peer.bert.embeddings.word_embeddings.weight
    left, values, right = np.linalg.svd(table.detach().numpy(), full_matrices=False)
    with torch.no_grad():
        # The head of transformers shares the table.
        table.copy_(torch.tensor((left[:, :rank] * values[:rank]) @ right[:rank]))
        places = inputs.pop("mask_positions")
        logits = run_peer(peer, inputs).logits.numpy()
    wanted = np.take_along_axis(logits, places[:, :, None], axis=1)
    got = to_numpy(small({**inputs, "mask_positions": places}))
    np.testing.assert_allclose(got, wanted, atol=1e-5)
    whole = to_numpy(task({**inputs, "mask_positions": places}))
    assert (rank == 8) == np.allclose(whole, got, atol=1e-5)
    # Fewer tokens, and more, of a table of low rank.
    few = small.backbone.take_tokens([0, 5, 7])
    kept = np.array([[0, 1, 2]], "int32")
    few_inputs = {"token_ids": kept, "segment_ids": kept * 0, "padding_mask": kept * 0 + 1}
    same = {**few_inputs, "token_ids": np.array([[0, 5, 7]], "int32")}
    np.testing.assert_allclose(
        to_numpy(few(few_inputs)["sequence_output"]),
        to_numpy(small.backbone(same)["sequence_output"]),
        atol=1e-6,
    )


def test_characters_of_other_words_stay():
    tokenizer = kbs.WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])
    few = kbs.trim_vocabulary(tokenizer, ["good"])
    more = kbs.trim_vocabulary(tokenizer, ["good"], keep_characters=True)
    assert [token for token in more if token not in few] == ["b", "##a", "##d"]
    kept = tokenizer.keep_tokens(more)
    assert [kept.id_to_token(i) for i in kept.tokenize("bad")] == ["b", "##a", "##d"]
    assert [tokenizer.id_to_token(i) for i in tokenizer.tokenize("bad")] == ["bad"]


WORDS = ["good", "bad", "b", "##a", "##d", "##ad"]


def test_sizes_are_compared():
    task = make()
    small = prune(task, "units")
    other = task.keep_tokens(["good", "the"])
    tasks = {"whole": task, "small": small, "few tokens": other}
    compared = kbs.compare_sizes(tasks, TEXTS, LABELS, batch_size=3, rounds=1)
    for size, kept in zip(compared.sizes, tasks.values(), strict=True):
        assert size.parameters == kept.count_params()
        assert size.megabytes == pytest.approx(4e-6 * size.parameters)
        assert size.milliseconds > 0
        change = np.abs(run(kept) - run(task))
        assert size.greatest_change == pytest.approx(change.max(), abs=1e-5)
        assert size.mean_change == pytest.approx(change.mean(), abs=1e-5)
        assert size.scores["accuracy"] == np.mean(run(kept).argmax(axis=-1) == LABELS)
    lines = str(compared).splitlines()
    assert lines[0].split()[:2] == ["parameters", "MB"]
    assert [line.split("  ")[0] for line in lines[1:]] == list(tasks)
    guesser = make(kbs.MaskedLM)
    fewer = guesser.keep_tokens(["good", "the"])
    masked = ["good [MASK]", "the [MASK] film"]
    unscored = kbs.compare_sizes({"whole": guesser, "few": fewer}, masked, rounds=1).sizes[1]
    assert (unscored.greatest_change, unscored.mean_change, unscored.scores) == (None, None, {})
    with pytest.raises(ValueError, match="A MaskedLM has no scores of labels. Leave out `y`"):
        kbs.compare_sizes({"whole": guesser}, masked, LABELS[:2])


def test_what_reads_the_heads_of_a_layer():
    """Maps of attention, and a distillation of relations into equal parts."""
    task = make()
    small = task._resize("keep_heads", heads=[[0, 3], [1], [0, 1, 2, 3]])
    maps = kbs.encode_with_attention(small.backbone, small.preprocessor.pack(TEXTS))["attentions"]
    assert [array.shape[1] for array in maps] == [2, 1, 4]
    (found,) = kbs.attended_tokens(small, TEXTS[:1], layer=2, head=3)
    np.testing.assert_allclose(found.scores, maps[2][0, 3, 0, : len(found.tokens)], atol=1e-5)
    (whole,) = kbs.attended_tokens(small, TEXTS[:1])
    assert whole.scores.sum() == pytest.approx(1)
    with pytest.raises(ValueError, match=r"head must be in \[-1, 1\), got 1"):
        kbs.attended_tokens(small, TEXTS[:1], head=1)
    with pytest.raises(ValueError, match="num_heads=8 of .* and the student has 4"):
        small.compile(technique=kbs.Distillation(task, terms=[relate(8)]))
    small.compile(technique=kbs.Distillation(task, terms=[relate(4)]))
    small.fit(TEXTS, LABELS, batch_size=2, verbose=0)


def relate(num_heads):
    return kbs.AttentionRelations(["qk"], num_heads=num_heads, layers={1: 1})


def test_what_is_refused():
    bert = kbs.BertBackbone(24, 2, 2, 8, 16)
    for heads in ([[0], []], [[0, 2], [1]], [[0, 0], [1]]):
        with pytest.raises(ValueError, match=r"keeps some of its 2 heads, 0 to 1, .* got \["):
            bert.keep_heads(heads)
    with pytest.raises(ValueError, match="units must have a list for each of 2 layers"):
        bert.keep_units([[0]])
    for sizes in ([1], [1, 3]):
        with pytest.raises(ValueError, match="heads_by_layer must have 2 integers, .* at most 2"):
            kbs.BertBackbone(24, 2, 2, 8, 16, heads_by_layer=sizes)
    for kind in (kbs.AlbertBackbone, kbs.LongformerBackbone, kbs.XLNetBackbone):
        with pytest.raises(ValueError, match=rf"heads of an? {kind.__name__} cannot be removed"):
            kind(24, 2, 2, 8, 16).keep_heads([[0], [1]])
        with pytest.raises(ValueError, match=f"this {kind.__name__} are of one size, got heads"):
            kind(24, 2, 2, 8, 16, heads_by_layer=[1, 2])
    with pytest.raises(ValueError, match="units of a ModernBertBackbone cannot be removed"):
        kbs.ModernBertBackbone(24, 2, 2, 8, 16).keep_units([[0], [1]])
    with pytest.raises(ValueError, match="table of a ModernBertBackbone cannot be factorised"):
        kbs.ModernBertBackbone(24, 2, 2, 8, 16).factorize_embeddings(2)
    with pytest.raises(ValueError, match=r"rank must be at most 8, .* got 9"):
        bert.factorize_embeddings(9)
    small = bert.keep_heads([[0], [1]]).factorize_embeddings(2)
    inputs = {name: np.ones((1, 3), "int32") for name in bert.input}
    np.testing.assert_allclose(
        *(to_numpy(each(inputs)["sequence_output"]) for each in (small, small.to_full_size())),
        atol=1e-5,
    )
    with pytest.raises(ValueError, match="has the rank 2 already"):
        bert.factorize_embeddings(2).factorize_embeddings(1)
    with pytest.raises(ValueError, match="embedding_rank=2 is of a table of tokens"):
        kbs.BertBackbone(None, 2, 2, 8, 16, frame_dim=4, embedding_rank=2)
    task = make()
    for share in (-0.1, 1.5):
        with pytest.raises(ValueError, match="share must be from 0 to 1"):
            task.prune_heads(TEXTS, LABELS, share=share)
    # A layer keeps a head.
    assert task.prune_heads(TEXTS, LABELS, share=1.0, step=1.0).backbone.heads_by_layer == [1] * 3
    assert task.prune_heads(TEXTS, LABELS, share=0.0).backbone.heads_by_layer is None
    with pytest.raises(ValueError, match="call `compile` first"):
        task.keep_layers([0]).prune_heads(TEXTS, LABELS, share=0.5)
    with pytest.raises(ValueError, match=r"layers have lost heads, .* Take LoRA"):
        bert.keep_heads([[0], [1]]).add_adapter(kbs.PrefixTuning(2, 3), "few")
    bert.add_adapter(kbs.PrefixTuning(2, 3), "few")
    for cut in (lambda: bert.keep_heads([[0], [1]]), bert.to_full_size):
        with pytest.raises(ValueError, match=r"adapters few of this .* `merge_adapter`"):
            cut()
    for tasks in ({}, {"one": bert}):
        with pytest.raises(ValueError, match="tasks must be"):
            kbs.compare_sizes(tasks, TEXTS)
