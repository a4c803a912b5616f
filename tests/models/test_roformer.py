"""What is special about RoFormer: its vocabularies of Chinese words, and its second version."""

import json
import warnings

import pytest
from family import MEMBERS, PIECES

from keras_bert_suite import RoFormerBackbone, TextClassifier
from keras_bert_suite.checkpoints import open_checkpoint

MEMBER = MEMBERS["roformer"]

pytestmark = pytest.mark.backend_free


def test_chinese_words_are_warned_of(tmp_path):
    """transformers would cut a text into words. A vocabulary of characters needs no warning."""
    MEMBER.save_peer(tmp_path / "peer", "ForSequenceClassification")
    (tmp_path / "peer" / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "RoFormerTokenizer"})
    )
    for last, is_word in (("天", False), ("今天", True)):
        pieces = [*PIECES[:-2], "今", last]
        (tmp_path / "peer" / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            task = TextClassifier.from_preset(tmp_path / "peer")
        assert any("Chinese words, such as 今天" in str(w.message) for w in caught) == is_word
        ids = task.preprocessor.tokenizer("今天")
        assert len(ids) == 2


@pytest.mark.parametrize("field", [{"norm_type": "rms_norm"}, {"use_bias": False}])
def test_the_second_version_is_refused_by_name(field, tmp_path):
    MEMBER.save_peer(tmp_path / "peer")
    path = tmp_path / "peer" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **field}))
    with pytest.raises(ValueError, match=next(iter(field))):
        open_checkpoint(tmp_path / "peer")


def test_a_head_of_odd_width_is_refused():
    with pytest.raises(ValueError, match="width of a head must be even, got hidden_dim=6"):
        RoFormerBackbone(10, 1, 2, 6, 8)
