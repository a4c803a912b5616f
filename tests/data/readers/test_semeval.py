import pytest

from keras_bert_suite import read_semeval

#: The form of TRAIN_FILE.TXT, with its carriage returns.
TRAIN = (
    '1\t"The <e1>child</e1> was in the <e2>cradle</e2>."\r\nEntity-Destination(e1,e2)\r\n'
    'Comment: "in" may be "into".\r\n\r\n'
    '12\t"He said: "a <e1>fire</e1> by a <e2>lamp</e2>" "\r\nOther\r\nComment:\r\n\r\n'
)


def test_sentences_and_relations(tmp_path):
    path = tmp_path / "TRAIN_FILE.TXT"
    path.write_bytes(TRAIN.encode())
    train = read_semeval(path)
    assert train.x == [
        "The <e1>child</e1> was in the <e2>cradle</e2>.",
        'He said: "a <e1>fire</e1> by a <e2>lamp</e2>" ',
    ]
    assert train.y == ["Entity-Destination(e1,e2)", "Other"] == train.label_names
    assert train.ids == ["1", "12"] and train.locate(1) == f"{path}, line 5"
    alone = read_semeval(path, labelled=False)
    assert alone.x == train.x and alone.y is None
    path.write_text("".join(TRAIN.splitlines(keepends=True)[::4]))
    assert read_semeval(path, labelled=False).x == train.x
    path.write_bytes(TRAIN.encode("utf-16"))
    assert read_semeval(path, encoding="utf-16").x == train.x


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TRAIN.replace("Other\r\n", ""), "line 5: the sentence has no relation .*labelled=False"),
        (TRAIN.replace("Other", "Other\r\nOther"), "line 7: got 'Other', wanted a number, a tab"),
        (TRAIN.replace('12\t"', "12\t"), "line 5: got '12.tHe said.*wanted a number, a tab"),
        ("sentence\tlabel\n", "line 1: got 'sentence.*read_table"),
        ("\n", "has no sentences"),
    ],
)
def test_wrong_lines(tmp_path, text, message):
    path = tmp_path / "train.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_semeval(path)
