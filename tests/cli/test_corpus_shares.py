import os

import pytest

from keras_bert_cli.command_flags import UsageError
from keras_bert_cli.corpus_shares import read_shares


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("shards", {"shards": 1}),
        ("a,b", {"a,b": 1}),
        ("run=x/shards", {"run=x/shards": 1}),
        ("a=0.7,gs://b/c=d=0.3", {"a": 0.7, "gs://b/c=d": 0.3}),
        ("~/a=.5,b=5e-1", {os.path.expanduser("~/a"): 0.5, "b": 0.5}),
        ("a=1", {"a": 1}),
    ],
)
def test_shares(text, shares):
    assert read_shares(text) == shares


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=0.7,b=0.4", "whose sum is 1.1; the shares must be over 0"),
        ("a=1.5,b=-0.5", "the shares must be over 0"),
        ("a=nan,b=1", "the shares must be over 0"),
        ("a,b=1", "must name different folders, each with its share"),
        ("a=0.5,a=0.5", "must name different folders"),
        ("=0.5,a=0.5", "must name different folders"),
    ],
)
def test_what_are_no_shares(text, message):
    with pytest.raises(UsageError, match=message):
        read_shares(text)


def test_a_folder_whose_name_ends_like_a_share(tmp_path):
    (tmp_path / "date=20261124").mkdir()
    assert read_shares(str(tmp_path / "date=20261124")) == {str(tmp_path / "date=20261124"): 1.0}
