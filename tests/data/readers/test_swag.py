import pytest

from keras_bert_suite import read_swag

HEADER = (
    ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label"
)
ROW = '0,a,1,"It rains. She","It rains, hard.",She,gold,eats.,"runs, fast.",sits.,sleeps.,1'


def test_rows(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text(f"{HEADER}\n{ROW}\n{ROW[:-1]}3\n")
    rows = read_swag(path)
    assert len(rows) == 2 and rows.y == [1, 3]
    assert rows.x[0][0] == "It rains, hard."
    assert rows.x[1][0] == ["She eats.", "She runs, fast.", "She sits.", "She sleeps."]
    path.write_text(f"{HEADER.removesuffix(',label')}\n{ROW[:-2]}\n")
    assert read_swag(path, labelled=False).y is None
    with pytest.raises(ValueError, match="no column 'label'"):
        read_swag(path)


def test_another_delimiter_and_encoding(tmp_path):
    path = tmp_path / "train.txt"
    row = "Es regnet.;Sie;ißt.;läuft, schnell.;sitzt.;schläft.;1"
    header = "sent1;sent2;ending0;ending1;ending2;ending3;label"
    path.write_text(f"{header}\n{row}\n", encoding="cp1252")
    rows = read_swag(path, encoding="cp1252", delimiter=";")
    assert rows.x == (
        ["Es regnet."],
        [["Sie ißt.", "Sie läuft, schnell.", "Sie sitzt.", "Sie schläft."]],
    )
    assert rows.y == [1]


def test_wrong_labels(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text(f"{HEADER}\n{ROW}\n{ROW[:-1]}4\n")
    with pytest.raises(ValueError, match="train.csv, line 3: the label is '4', wanted 0, 1, 2 or"):
        read_swag(path)
