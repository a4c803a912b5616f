"""Tasks with RoBERTa: pretrained on a corpus, saved, read again by KerasHub's loader too."""

import json

import keras
import keras_hub
import numpy as np
import pytest
from small_byte_pairs import MERGES, make_vocabulary
from small_texts import TINY, make_reviews

from keras_bert_suite import (
    BytePairTokenizer,
    Pretrainer,
    RobertaBackbone,
    SegmentPacker,
    TextClassifier,
    TokenClassifier,
    TokenMasker,
)
from keras_bert_suite.corpus import open_corpus, prepare_corpus, read_tokenizer
from keras_bert_suite.data.word_rows import as_column
from keras_bert_suite.heads.tags.windows import tokenize_rows
from keras_bert_suite.pretraining import PretrainingBatches

TEXTS, LABELS = make_reviews(8)
SIZES = {**TINY, "num_layers": 1, "vocabulary_size": len(make_vocabulary())}


@pytest.fixture(scope="module")
def packer():
    return SegmentPacker(BytePairTokenizer(make_vocabulary(), MERGES), 24)


@pytest.fixture(scope="module")
def corpus(packer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    documents = [{"text": ". ".join(TEXTS[i : i + 3])} for i in range(0, 6)]
    (folder / "texts.jsonl").write_text("\n".join(map(json.dumps, documents)))
    prepare_corpus(folder / "texts.jsonl", packer.tokenizer, folder / "tokens")
    return folder / "tokens"


def test_corpus_keeps_its_tokenizer(corpus, packer):
    found = read_tokenizer(corpus)
    assert type(found) is BytePairTokenizer
    assert found.asset_contents() == packer.tokenizer.asset_contents()
    (corpus / "merges.txt").rename(corpus / "merges")
    with pytest.raises(ValueError, match="merges.txt is damaged"):
        read_tokenizer(corpus)
    (corpus / "merges").rename(corpus / "merges.txt")


def test_pretraining(corpus, packer, tmp_path):
    tokenizer = read_tokenizer(corpus)
    masker = TokenMasker(tokenizer, rate=0.3, unit="word")
    batches = PretrainingBatches(open_corpus(corpus), masker, 32, 2, mode="full_sentences")
    x, y, _ = batches[0]
    assert sorted(x) == ["mask_positions", "padding_mask", "token_ids"]
    assert set(x["token_ids"][:, 0]) == {tokenizer.start_token_id}
    assert not set(y["mlm"].ravel()) & {1, 2, 3, 4}  # 0 fills slots
    pretrainer = Pretrainer(RobertaBackbone(**SIZES), next_sentence=False, preprocessor=packer)
    pretrainer.compile()
    history = pretrainer.fit(batches, epochs=1, verbose=0).history
    assert np.isfinite(history["mlm_loss"]).all()
    guesses = pretrainer.fill_mask(["the <mask> film"], top_k=3)
    assert [len(guess) for guess in guesses[0]] == [3]
    pretrainer.save_to_preset(str(tmp_path / "preset"))
    again = Pretrainer.from_preset(tmp_path / "preset")
    assert again.fill_mask(["the <mask> film"], top_k=3)[0][0][0][0] == guesses[0][0][0][0]
    classifier = TextClassifier.from_preset(tmp_path / "preset", label_names=["no", "yes"])
    assert type(classifier.backbone) is RobertaBackbone


def test_presets_of_parts(packer, tmp_path):
    backbone = RobertaBackbone(**SIZES)
    backbone.save_to_preset(str(tmp_path))
    packer.save_to_preset(str(tmp_path))
    for cls in (SegmentPacker, keras_hub.models.TextClassifierPreprocessor):
        again = cls.from_preset(str(tmp_path))
        assert isinstance(again, SegmentPacker) and again.sequence_length == 24
        for name, array in packer.pack(TEXTS, TEXTS).items():
            np.testing.assert_array_equal(again.pack(TEXTS, TEXTS)[name], array)
    assert type(keras_hub.models.Backbone.from_preset(str(tmp_path))) is RobertaBackbone
    assert type(BytePairTokenizer.from_preset(tmp_path)) is BytePairTokenizer
    config = RobertaBackbone.from_config(backbone.get_config()).get_config()
    assert config == backbone.get_config()
    rows = keras.ops.convert_to_numpy(backbone.embeddings.position_embedding.embeddings)
    assert len(rows) == SIZES["max_sequence_length"] + 2


def test_words(packer):
    """Each word has the ids that it has after a space."""
    classifier = TokenClassifier(
        RobertaBackbone(**SIZES), label_names=["O", "B-X", "I-X"], preprocessor=packer
    )
    words = [["the", "good", "film"], ["a"]]
    ids, lengths = packer.tokenizer.tokenize_words(["the", "good", "film"])
    assert lengths.tolist() == [1, 1, 1]
    assert packer.tokenizer.detokenize(ids) == " the good film"
    labels = [["O", "B-X", "I-X"], ["O"]]
    classifier.fit(words, labels, verbose=0)
    answers = classifier.predict(words, verbose=0)
    assert len(answers) == 2


@pytest.mark.parametrize("add_prefix_space", [False, True])
def test_words_of_a_text(add_prefix_space):
    """Spaces are no words, however many, and punctuation marks are."""
    tokenizer = BytePairTokenizer(make_vocabulary(), MERGES, add_prefix_space)
    texts = ["it's  good,\n\tlow film. ", " ", "", "\u3000é\xa0 low", b"the\xff  low\r\n"]
    tokenized = tokenize_rows(tokenizer, as_column(texts))
    assert tokenized.words == [
        ["it", "'s", "good", ",", "low", "film", "."],
        *([], [], ["é", "low"], ["the", "low"]),
    ]
    assert tokenized.characters[0] == [
        *((0, 2), (2, 4), (6, 10), (10, 11), (13, 16), (17, 21), (21, 22)),
    ]
    assert len(tokenized.first_tokens) == 11
    pieces = [tokenizer.id_to_token(tokenized.ids[i]) for i in tokenized.first_tokens]
    assert [pieces[i] for i in (2, 5, 6, 10)] == ["Ġgood", "Ġfilm", ".", "Ġ"]
