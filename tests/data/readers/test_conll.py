import pytest

from keras_bert_suite import read_conll
from keras_bert_suite.data.tag_schemes import detect_scheme


def write(folder, content, encoding="utf-8"):
    path = folder / "train.txt"
    path.write_bytes(content.encode(encoding))
    return path


def test_columns_and_sentences(tmp_path):
    path = write(
        tmp_path,
        "\ufeff-DOCSTART- -X- O O\r\n\r\nEU NNP I-NP I-ORG\r\nrejects VBZ I-VP O\r\n\r\n\r\n"
        "-DOCSTART- -X- O O\n\nPeter\tNNP\tI-NP\tI-PER\n",
    )
    read = read_conll(path)
    assert read.x == [["EU", "rejects"], ["Peter"]]
    assert read.y == [["I-ORG", "O"], ["I-PER"]]
    assert read_conll(path, tag_column=2).y == [["NNP", "VBZ"], ["NNP"]]
    assert read.label_names == ["O", "I-ORG", "I-PER"]
    assert [read.locate(row) for row in range(2)] == [f"{path}, line 3", f"{path}, line 9"]
    # In UTF-16 the byte of a line feed is also in other characters.
    path = write(tmp_path, "EU B-ORG\n\n\u0a0a\u4e0a I-ORG\n", "utf-16")
    assert read_conll(path, encoding="utf-16").x == [["EU"], ["\u0a0a\u4e0a"]]


def test_a_word_may_hold_a_space_between_tabs(tmp_path):
    assert read_conll(write(tmp_path, "New York\tB-LOC\n")).x == [["New York"]]


def test_tabs_alone_end_a_sentence_and_an_empty_field_is_a_field(tmp_path):
    read = read_conll(write(tmp_path, "EU\tB-ORG\n\t\nHe\tO\n"))
    assert (read.x, read.y) == ([["EU"], ["He"]], [["B-ORG"], ["O"]])
    rows = "\tEU\tB-ORG\n1\tagreed\tO\n"
    assert read_conll(write(tmp_path, rows), word_column=2).x == [["EU", "agreed"]]


@pytest.mark.parametrize(
    ("content", "encoding", "arguments", "error"),
    [
        ("EU B-ORG\nMünchen B-LOC\n", "latin-1", {}, "line 2: .utf-8. codec .* position 10"),
        ("EU B-ORG\n", "utf-8", {"encoding": "utf-9"}, "unknown encoding: utf-9. Wanted"),
        ("EU B-ORG\nrejects\n", "utf-8", {}, "line 2: got 1 fields, wanted at least 2"),
        ("EU B-ORG\n", "utf-8", {"tag_column": 4}, "line 1: got 2 fields, wanted at least 4"),
        ("\n\n", "utf-8", {}, "holds no sentences"),
        ("EU B-ORG\n", "utf-8", {"word_column": 0}, "count from 1"),
    ],
)
def test_wrong_files(tmp_path, content, encoding, arguments, error):
    with pytest.raises(ValueError, match=error):
        read_conll(write(tmp_path, content, encoding), **arguments)


@pytest.mark.parametrize(
    ("file", "sentences", "scheme"),
    [
        ("conll2003_en/eng.train", 14041, "IOB1"),
        ("resume_zh/train.char.bmes", 3821, "BMES"),
        ("weibo_zh/weiboNER_2nd_conll.train", 1350, "BIO"),
    ],
)
def test_published_corpora(shared_data, file, sentences, scheme):
    """The numbers of sentences are those of the corpora's authors."""
    read = read_conll(shared_data / "ner" / file)
    assert len(read) == sentences
    assert detect_scheme(read.y) == scheme


def test_numbered_characters_of_weibo(tmp_path):
    read = read_conll(write(tmp_path, "科0\tO\n技1\tB-ORG\n\n:0\tO\n70\tO\n"))
    assert read.x == [["科", "技"], [":", "7"]] and read.y == [["O", "B-ORG"], ["O", "O"]]
    for unnumbered in ("科0 A", "A1 B2", "科0 7"):
        read = read_conll(write(tmp_path, unnumbered.replace(" ", "\tO\n") + "\tO\n"))
        assert read.x == [unnumbered.split()]


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_numbered_characters_of_the_published_files(shared_data, part):
    words = read_conll(shared_data / "ner" / "weibo_zh" / f"weiboNER_2nd_conll.{part}").x
    # A few characters were damaged before they were published.
    assert {len(word) for row in words for word in row} <= {1, 2}


def test_tags_of_another_scheme_and_spans(tmp_path):
    """The right values are those of the table in `tag_schemes.py`."""
    path = write(tmp_path, "New I-LOC\nYork I-LOC\nAda B-PER\n\nParis B-LOC\nis O\n")
    assert read_conll(path).y == [["I-LOC", "I-LOC", "B-PER"], ["B-LOC", "O"]]
    read = read_conll(path, scheme="BIOES")
    assert read.y == [["B-LOC", "E-LOC", "S-PER"], ["S-LOC", "O"]]
    assert read.label_names == ["O", "B-LOC", "E-LOC", "S-LOC", "S-PER"]
    read = read_conll(path, scheme="spans")
    assert read.y == [[(0, 2, "LOC"), (2, 3, "PER")], [(0, 1, "LOC")]]
    assert read.label_names == ["LOC", "PER"]
    with pytest.raises(ValueError, match="scheme must be one of .* got 'bio'"):
        read_conll(path, scheme="bio")
