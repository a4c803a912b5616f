"""A `PatternClassifier` follows PET's rule, transcribed on transformers' masked language model."""

import keras
import numpy as np
import pytest
import torch
from peer_weights import randomize
from small_tasks import make_task
from small_texts import ONE_LAYER, VOCABULARY
from tables import everywhere_for
from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

import keras_bert_suite as kbs
from keras_bert_suite.heads.patterns.pattern import read_pattern

TEXTS = ["the acting was great", "", "a dull plot , and very bad acting", "good film ! " * 9]
PATTERN = "{text} it was {mask} ."
ONE = {"plus": "great", "minus": "awful"}
SEVERAL = {"plus": "very good", "minus": "dull", "both": "good and bad"}
LENGTH = 18


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    """(folder of a checkpoint, transformers' model, its tokenizer)."""
    folder = tmp_path_factory.mktemp("mlm")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY), "utf-8")
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=LENGTH,
        initializer_range=0.4,
    )
    model = BertForMaskedLM(config).eval()
    model.save_pretrained(folder)
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=LENGTH)
    tokenizer.save_pretrained(folder)
    return folder, model, tokenizer


def score_words(model, tokenizer, texts, verbalizers):
    """Torch (N, C): for each label the sum of the log-probabilities of its tokens at the masks."""
    words = [
        tokenizer(word, add_special_tokens=False)["input_ids"] for word in verbalizers.values()
    ]
    num_masks = max(map(len, words))
    after = tokenizer(f"it was {'[MASK] ' * num_masks}.", add_special_tokens=False)["input_ids"]
    scores = []
    for text in texts:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"][: LENGTH - 2 - len(after)]
        row = torch.tensor([[tokenizer.cls_token_id, *ids, *after, tokenizer.sep_token_id]])
        logits = model(input_ids=row).logits[row == tokenizer.mask_token_id]
        logs = torch.log_softmax(logits, dim=-1)
        scores.append(torch.stack([sum(logs[i, t] for i, t in enumerate(w)) for w in words]))
    return torch.stack(scores)


@pytest.mark.parametrize(
    "verbalizers", everywhere_for([ONE, SEVERAL], SEVERAL), ids=["one token", "several"]
)
def test_the_rule_of_the_paper(peer, verbalizers):
    folder, model, tokenizer = peer
    classifier = kbs.PatternClassifier.from_preset(folder, pattern=PATTERN, verbalizers=verbalizers)
    wanted = score_words(model, tokenizer, TEXTS, verbalizers).detach().numpy()
    np.testing.assert_allclose(classifier.predict(TEXTS), wanted, atol=2e-5)
    assert classifier.predict_labels(TEXTS) == [[*verbalizers][i] for i in wanted.argmax(axis=1)]


@pytest.mark.every_backend
def test_the_loss_is_the_cross_entropy_over_the_words(peer):
    folder, model, tokenizer = peer
    classifier = kbs.PatternClassifier.from_preset(folder, pattern=PATTERN, verbalizers=SEVERAL)
    scores = score_words(model, tokenizer, TEXTS, SEVERAL)
    wanted = torch.nn.functional.cross_entropy(scores, torch.tensor([0, 2, 1, 0])).item()
    found = classifier.evaluate(TEXTS, ["plus", "both", "minus", "plus"], verbose=0)
    np.testing.assert_allclose(found[0], wanted, atol=1e-5)


def test_a_step_moves_the_weights_as_in_pytorch(peer):
    """One step of plain SGD; the matrix of the embedding is the head's, too."""
    folder, _, tokenizer = peer
    model = BertForMaskedLM.from_pretrained(folder).eval()
    classifier = kbs.PatternClassifier.from_preset(folder, pattern=PATTERN, verbalizers=SEVERAL)
    config = {**classifier.backbone.get_config(), "dropout": 0.0, "attention_dropout": 0.0}
    without = kbs.BertBackbone.from_config(config)
    weights, packer = classifier.get_weights(), classifier.preprocessor
    classifier = kbs.PatternClassifier(without, PATTERN, SEVERAL, preprocessor=packer)
    classifier.set_weights(weights)
    classifier.compile(keras.optimizers.SGD(0.5))
    labels = [0, 2, 1, 0]
    scores = score_words(model, tokenizer, TEXTS, SEVERAL)
    torch.nn.functional.cross_entropy(scores, torch.tensor(labels)).backward()
    embedding = model.bert.embeddings.word_embeddings.weight
    wanted = (embedding - 0.5 * embedding.grad).detach().numpy()
    classifier.fit(TEXTS, labels, batch_size=4, shuffle=False, verbose=0)
    found = keras.ops.convert_to_numpy(classifier.backbone.token_embedding.embeddings)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_a_pair_and_the_end_of_texts(peer):
    folder, _, tokenizer = peer
    classifier = kbs.PatternClassifier.from_preset(
        folder, pattern="{title} : {mask} , {body}", verbalizers=SEVERAL
    )
    assert classifier.input_names == ("title", "body")
    rows = {"body": ["the plot " * 9], "title": ["a b c"]}
    packed = classifier.data.pack(classifier.data.read(rows))[0]
    tokens = tokenizer.decode(packed["token_ids"][0])
    assert tokens == (
        "[CLS] a [UNK] [UNK] [UNK] [MASK] [MASK] [MASK], the plot the plot the plot the plot [SEP]"
    )
    rows["body"] = ["the plot " * 9 + "was good"]
    classifier.preprocessor.truncation = "tail"
    packed = classifier.data.pack(classifier.data.read(rows))[0]
    assert tokenizer.decode(packed["token_ids"][0]).endswith(
        ", the plot the plot the plot was good [SEP]"
    )
    classifier.preprocessor.sequence_length = 7
    with pytest.raises(ValueError, match="no place for a text beside .* at least 8"):
        classifier.predict(rows)


def test_presets(peer, tmp_path):
    """One of its own, and one of a `MaskedLM`, whose head it takes over."""
    arguments = {"pattern": PATTERN, "verbalizers": SEVERAL}
    model = kbs.MaskedLM.from_preset(peer[0])
    model.save_to_preset(tmp_path / "mlm")
    classifier = kbs.PatternClassifier.from_preset(tmp_path / "mlm", **arguments)
    wanted = kbs.PatternClassifier.from_preset(peer[0], **arguments).predict(TEXTS)
    np.testing.assert_array_equal(classifier.predict(TEXTS), wanted)
    classifier.save_to_preset(tmp_path / "own")
    opened = kbs.PatternClassifier.from_preset(tmp_path / "own")
    np.testing.assert_array_equal(opened.predict(TEXTS), wanted)
    assert opened.verbalizers == SEVERAL and opened.label_names == [*SEVERAL]


def test_rows_teach():
    classifier, (texts, labels) = make_task("patterns")
    classifier.compile(kbs.AdamW(1e-2))
    before, _ = classifier.evaluate(texts, labels, verbose=0)
    classifier.fit(texts, labels, batch_size=4, epochs=5, verbose=0)
    assert classifier.evaluate(texts, labels, verbose=0)[0] < 0.8 * before


def make_classifier(pattern=PATTERN, verbalizers=ONE, **packing):
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), LENGTH, **packing)
    return randomize(
        kbs.PatternClassifier(
            kbs.BertBackbone(**ONE_LAYER), pattern, verbalizers, preprocessor=packer
        )
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pattern": "{text} it was"}, r"one \{mask\}, .* got '\{text\} it was'"),
        ({"pattern": "it was {mask}"}, "the place of each text of a row once"),
        ({"pattern": "{mask} {text} {text}"}, "the place of each text of a row once"),
        ({"verbalizers": {"plus": "good"}}, "dict of two or more labels"),
        (
            {"verbalizers": {"plus": "splendid", "minus": "bad"}},
            r"lacks the verbalizer 'splendid' of 'plus': its pieces are \[UNK\]. Choose",
        ),
        (
            {"verbalizers": {"plus": "very nice", "minus": "bad"}},
            r"'very nice' of 'plus': its pieces are very \[UNK\]",
        ),
        ({"verbalizers": {"plus": "good", "minus": "Good"}}, "'plus' and 'minus' are the same"),
        ({"truncation": "head_tail"}, "truncation='head_tail'. Pass 'longest_first'"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_classifier(**arguments)


def test_other_rows_and_encoders_are_refused():
    with pytest.raises(ValueError, match="has places for text, got rows of 2 texts"):
        make_classifier().predict((["a"], ["b"]))
    encoder = kbs.change_pattern(kbs.BertBackbone(**ONE_LAYER), "left_to_right")
    with pytest.raises(ValueError, match="guesses no masked tokens"):
        kbs.PatternClassifier(encoder, PATTERN, ONE)


def test_the_parts_of_a_pattern():
    assert read_pattern("{a}? {mask}, {b}") == [
        *((True, "a"), (False, "? "), (True, "mask"), (False, ", "), (True, "b"))
    ]


def test_no_verbalizers(peer):
    with pytest.raises(ValueError, match="two or more labels -> the word.*got {}"):
        kbs.PatternClassifier.from_preset(peer[0], pattern=PATTERN, verbalizers={})
