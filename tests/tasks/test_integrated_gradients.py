"""Integrated gradients follow the paper's rule, transcribed on transformers' model in PyTorch."""

import re

import numpy as np
import pytest
import torch
from heads.cases import CASES
from peer_weights import randomize
from small_tasks import make_task, predicted_columns
from small_texts import ONE_LAYER, VOCABULARY
from tables import everywhere_for
from transformers import BertConfig, BertForSequenceClassification

import keras_bert_suite as kbs

FIRST, SECOND = "The acting, was un good films", "a dull plot"


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    """(folder of a checkpoint, transformers' model)."""
    folder = tmp_path_factory.mktemp("bert")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY), "utf-8")
    torch.manual_seed(5)
    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=24,
        initializer_range=0.3,
        num_labels=3,
    )
    model = BertForSequenceClassification(config).eval()
    model.save_pretrained(folder)
    return folder, model


def integrate(model, packed, empty, target, steps):
    """Float64 (L,): the rule of the paper, by Gauss and Legendre, one point after the other."""
    ids, segments = (torch.tensor(packed[name]).long() for name in ("token_ids", "segment_ids"))
    words = model.bert.embeddings.word_embeddings.weight.detach()
    is_text = (ids != 2) & (ids != 3) & (ids != 0)
    own, none = words[ids], words[torch.where(is_text, torch.full_like(ids, empty), ids)]
    total = torch.zeros_like(own)
    for node, weight in zip(*np.polynomial.legendre.leggauss(steps), strict=True):
        embeddings = (none + (node + 1) / 2 * (own - none)).requires_grad_()
        mask = (ids != 0).long()
        logits = model(
            inputs_embeds=embeddings, token_type_ids=segments, attention_mask=mask
        ).logits
        total += weight / 2 * torch.autograd.grad(logits[0, target], embeddings)[0]
    return (total * (own - none)).sum(dim=-1)[0].numpy()


@pytest.mark.parametrize("baseline", everywhere_for(["pad", "mask"], "mask"))
def test_the_rule_of_the_paper(peer, baseline):
    folder, model = peer
    classifier = kbs.TextClassifier.from_preset(folder)
    (found,) = kbs.integrated_gradients(
        classifier, ([FIRST], [SECOND]), "LABEL_2", baseline=baseline, steps=9, batch_size=4
    )
    packed = classifier.preprocessor.pack([FIRST], [SECOND])
    wanted = integrate(model, packed, {"pad": 0, "mask": 4}[baseline], 2, steps=9)
    np.testing.assert_allclose(found.scores, wanted[: len(found.scores)], atol=1e-5)
    assert np.abs(wanted).max() > 0.05
    assert found.error < 1e-3 and found.target == "LABEL_2"
    logits = classifier.predict(([FIRST], [SECOND]))
    np.testing.assert_allclose(found.output, logits[0, 2], atol=1e-5)


TARGETS = {
    "words": (1, 0),
    "chains": (1, 1),
    "attributes": ("length", "long"),
    "spans": (0, 1, 2),
    "vectors": lambda outputs: outputs[:, 3],
    "masks": (0, 7),
    "exits": (2, 1),
}
NAMES = [name for name in CASES if name not in ("masks", "vectors")]
NAMES = [*NAMES[: NAMES.index("pretraining")], "vectors", "masks"]


@pytest.mark.parametrize("name", NAMES)
def test_scores_sum_to_the_difference_of_outputs(name):
    task, (x, _) = make_task(name)
    for weight in randomize(task).weights:  # Weights as small as at first make a linear model.
        if len(weight.shape) > 1:
            weight.assign(3 * weight)
    rows = predicted_columns(task, x)
    rows = tuple(column[:1] for column in rows) if isinstance(rows, tuple) else rows[:1]
    if name == "documents":
        rows = [" ".join(x[0].split()[:8])]
    (found,) = kbs.integrated_gradients(task, rows, TARGETS.get(name), steps=60, batch_size=64)
    assert found.error < 1e-3
    assert np.abs(found.scores).sum() > 1e-2
    special = np.isin(found.tokens, ["[CLS]", "[SEP]", "[MASK]"])
    assert not found.scores[special].any() and found.scores[~special].any()


def test_the_rule_of_the_trapezoid():
    classifier = make_classifier()
    exact, found = (
        kbs.integrated_gradients(classifier, [FIRST], "good", rule=rule, steps=steps)[0]
        for rule, steps in (("gauss_legendre", 30), ("trapezoid", 100))
    )
    np.testing.assert_allclose(found.scores, exact.scores, atol=1e-4)
    assert np.abs(exact.scores).max() > 1e-2


def make_classifier(**arguments):
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 16)
    arguments = {"label_names": ["<b>", "good"], **arguments}
    backbone = kbs.BertBackbone(**ONE_LAYER, initializer_range=0.3)
    classifier = kbs.TextClassifier(backbone, preprocessor=packer, **arguments)
    classifier.classifier.kernel.assign(10 * classifier.classifier.kernel)
    return classifier


def test_words_and_their_places():
    classifier = make_classifier()
    first, second = kbs.integrated_gradients(
        classifier, ([FIRST, "good"], [SECOND, "bad"]), ["good", None], steps=4
    )
    assert (first.target, second.tokens) == ("good", ["[CLS]", "good", "[SEP]", "bad", "[SEP]"])
    assert second.target == ["<b>", "good"][classifier.predict((["good"], ["bad"]))[0].argmax()]
    words = first.words()
    assert [word.word for word in words] == [
        *("[CLS]", "The", "acting", ",", "was", "un", "good", "films", "[SEP]"),
        *("a", "dull", "plot", "[SEP]"),
    ]
    for word in words:
        if word.column is not None:
            text = (FIRST, SECOND)[word.column]
            assert text[word.start : word.end] == word.word
    np.testing.assert_allclose(sum(word.score for word in words), first.scores.sum())
    at = first.tokens.index("##s")
    films = next(word for word in words if word.word == "films")
    assert films.score == pytest.approx(first.scores[at - 1] + first.scores[at])


@pytest.mark.parametrize("truncation", ["tail", "head_tail"])
def test_places_in_texts_that_are_cut(truncation):
    classifier = make_classifier()
    classifier.preprocessor.truncation = truncation
    classifier.preprocessor.sequence_length = 8
    text = "the acting was very good and the plot was awful"
    (found,) = kbs.integrated_gradients(classifier, [text], steps=2)
    spelled = [text[place[1] : place[2]] for place in found.places if place]
    assert spelled == [token for token in found.tokens if token[0] != "["]


def test_a_page_and_a_picture(tmp_path):
    text = 'good <script>alert("&")</script> $x$ film'
    (found,) = kbs.integrated_gradients(make_classifier(), [text], "<b>", steps=4)
    page = found.to_html()
    assert "<script" not in page and "http" not in page and "&lt;b&gt;" in page
    shown = re.findall(r"<span [^>]*>([^<]*)</span>", page)
    assert shown[0] == "[CLS]" and "&lt;" in shown and len(shown) == len(found.words())
    colors = re.findall(r"rgba\((\d+),.*?,([\d.]+)\)", page)
    for (red, share), word in zip(colors, found.words(), strict=True):
        assert (red == "0") == (word.score >= 0)
        largest = max(abs(word.score) for word in found.words())
        assert float(share) == pytest.approx(0.6 * abs(word.score) / largest, abs=1e-3)
    pytest.importorskip("matplotlib")
    (axes,) = found.draw(tmp_path / "why.png").axes
    widths = [bar.get_width() for bar in axes.patches]
    np.testing.assert_allclose(widths, [word.score for word in found.words()])
    assert (tmp_path / "why.png").read_bytes()[:4] == b"\x89PNG"


def test_attention_of_the_first_token(peer):
    classifier = kbs.TextClassifier.from_preset(peer[0])
    packed = classifier.preprocessor.pack([FIRST], [SECOND])
    maps = np.stack(kbs.encode_with_attention(classifier.backbone, packed)["attentions"])[:, 0]
    number = int(packed["padding_mask"].sum())
    rows = ([FIRST], [SECOND])
    (found,) = kbs.attended_tokens(classifier, rows, layer=-1, head=1)
    np.testing.assert_allclose(found.scores, maps[1, 1, 0, :number], rtol=1e-6)
    assert found.target == "attention of layer 1, head 1" and found.words()[1].word == "The"
    (found,) = kbs.attended_tokens(classifier, rows)
    first, second = (layer.mean(axis=0)[:number, :number] for layer in maps)
    unit = np.eye(number)
    wanted = ((second + unit) / 2 @ ((first + unit) / 2))[0]
    np.testing.assert_allclose(found.scores, wanted, rtol=1e-5)
    np.testing.assert_allclose(found.scores.sum(), 1, rtol=1e-5)
    assert "attention of all layers" in found.to_html()
    with pytest.raises(ValueError, match="no parts of a difference"):
        _ = found.error
    with pytest.raises(ValueError, match=r"layer must be in \[-2, 2\), got 2"):
        kbs.attended_tokens(classifier, rows, layer=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "bad"}, r"no target 'bad': .* shape \(2,\).* labels are <b>, good"),
        ({"target": (0, 1)}, "no target 0, 1"),
        ({"target": 2}, "no target 2"),
        ({"target": ["good", "good"]}, "Got 2 targets for 1 rows"),
        ({"baseline": "zero"}, "baseline .*'zero'"),
        ({"rule": "simpson"}, "rule .*'simpson'"),
        ({"steps": 1}, "steps .* 1"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        kbs.integrated_gradients(make_classifier(), ["a film"], **arguments)


def test_other_rows_and_tasks_are_refused():
    classifier = make_classifier()
    with pytest.raises(ValueError, match="Wanted texts, .* got packed arrays"):
        kbs.integrated_gradients(classifier, classifier.preprocessor.pack(["a"]))
    task, (x, _) = make_task("documents")
    with pytest.raises(ValueError, match=r"Row 0 is so long|no target"):
        kbs.integrated_gradients(task, x[:1], (0, 0, 0))
    task, (x, _) = make_task("questions")
    task.preprocessor.sequence_length = 8
    with pytest.raises(ValueError, match=r"Row 1 is so long .* a longer `preprocessor.sequence_l"):
        kbs.integrated_gradients(task, ([x[0][0]] * 2, ["film", "a film " * 9]), (0, 0, 0))
    task, _ = make_task("texts", "KerasHub's BERT")
    with pytest.raises(
        ValueError, match="embeddings of a BertBackbone cannot be moved. Take an en"
    ):
        kbs.integrated_gradients(task, ["a film"])
    task, (x, _) = make_task("choices")
    with pytest.raises(
        ValueError, match="is several rows of tokens. Pass a task whose rows are te"
    ):
        kbs.attended_tokens(task, tuple(column[:1] for column in x))
    task, (x, _) = make_task("attributes")
    with pytest.raises(ValueError, match="outputs tone, length, .* got None"):
        kbs.integrated_gradients(task, x[:1])
    task, _ = make_task("words")
    with pytest.raises(ValueError, match="no target None"):
        kbs.integrated_gradients(task, [["a", "film"]])
    task.preprocessor = None
    with pytest.raises(ValueError, match="SegmentPacker"):
        kbs.integrated_gradients(task, [["a", "film"]])
