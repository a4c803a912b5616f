import pytest

from keras_bert_suite import read_conll
from keras_bert_suite.heads.tags.tag_schemes import detect_scheme


def write(folder, content, encoding="utf-8"):
    path = folder / "train.txt"
    path.write_bytes(content.encode(encoding))
    return path


def test_columns_and_sentences(tmp_path):
    path = write(
        tmp_path,
        "\ufeff-DOCSTART- -X- O O\r\n\r\nEU NNP I-NP I-ORG\r\nrejects VBZ I-VP O\r\n\r\n\r\n"
        "-DOCSTART- -X- O O\n\nPeter NNP I-NP  I-PER\n",
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
        ("EU\tB-ORG\nNew York\n", "utf-8", {}, "line 2: the line 'New York' has no tab"),
        ("EU B-ORG\nNew York B-LOC\n", "utf-8", {}, "line 2: got 3 fields.* and line 1 has 2"),
        ("EU\tNNP\tB-ORG\nin\tIN\n", "utf-8", {}, "line 2: got 2 fields.* and line 1 has 3"),
        ("EU\tNNP\tB-ORG\nin\tIN\t\n", "utf-8", {}, "line 2: '' is the tag of 'in'"),
        ("EU,B-ORG\nin,O\n", "utf-8", {}, "line 1: got 1 fields.* with tabs or spaces between"),
        ('{"text": "浙商", "label": {"ORG": {"浙商": [[0, 1]]}}}\n' * 2, "utf-8", {}, "is JSON"),
        ('[{"text": "浙商"}]', "utf-8", {}, "is JSON. Wanted a word and its tag"),
    ],
)
def test_wrong_files(tmp_path, content, encoding, arguments, error):
    with pytest.raises(ValueError, match=error):
        read_conll(write(tmp_path, content, encoding), **arguments)


def test_a_table_of_words(tmp_path):
    """As Kaggle's NER data. The remedy of the message reads it."""
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "a.csv"
    path.write_text('Sentence #,Word,Tag\nSentence: 1,null,O\n,"a,b",O\nSentence: 2,EU,B-ORG\n')
    with pytest.raises(ValueError, match="CSV table. .* begins with 'Sentence #,Word,Tag'") as one:
        read_conll(path)
    names = {"pandas": pandas, "path": path}
    for statement in str(one.value).partition("is in: ")[2].partition(" Then")[0].split("; "):
        exec(statement.rstrip("."), names)
    read = names["rows"]
    assert read["Word"].apply(list).tolist() == [["null", "a,b"], ["EU"]]
    assert read["Tag"].apply(list).tolist() == [["O", "O"], ["B-ORG"]]
    path.write_text("EU\tB-ORG\n")
    assert read_conll(path).x == [["EU"]]


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


def test_numbered_characters_of_long_words(tmp_path):
    """Words of 1 to 120 characters, digits among them."""
    words = ["科技", "2" * 120, "a1b2c3d4e5f6g7", "0", "StarWars7awakens", "10", "90123456789"]
    lines = [f"{c}{place}\tO\n" for word in words for place, c in enumerate(word)]
    assert read_conll(write(tmp_path, "".join(lines))).x == [list("".join(words))]


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (["en:Rio", "en::", "en:is"], ["Rio", ":", "is"]),
        (["en:Rio", "de:is"], ["en:Rio", "de:is"]),
        (["en:Rio", "is"], ["en:Rio", "is"]),
        (["en:"], ["en:"]),
    ],
)
def test_languages_before_the_words_of_wikiann(tmp_path, words, read):
    lines = "".join(f"{word}\tO\n" for word in words)
    assert read_conll(write(tmp_path, lines)).x == [read]


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


COMMENTS = """\
# id 5 domain=en
# _ _ O
Ada _ _ B-PER
# _ _ O

# id 6 domain=en
#ada _ _ B-TAG
"""

GERMEVAL = """\
#\thttp://de.wikipedia.org/wiki/WNBA_2009\t[2010-01-10]\t
1\tSC\tB-ORG\tO
2\tFreiburg\tI-ORG\tB-LOC

#\tspiegel.de vom 01.02.2005\t[2005-02-01]
1\t#\tO\tO
"""

CONLLU = """\
# newdoc id = d
# text = vámonos  al mar
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tvamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
2.1\tir\tir\tVERB\t_\t_\t_\t_\t_\t_
3\tNew York\tmar\tX\t_\t_\t1\tobl\t_\t_
"""

ONE_WORD = "1\tDu\tdu\tPRON\t_\t_\t0\troot\t_\t_\n\n1\tJa\tja\tINTJ\t_\t_\t0\troot\t_\t_\n"


@pytest.mark.parametrize(
    ("content", "arguments", "words", "tags"),
    [
        # Comments of MultiCoNER, and words that begin with #.
        (COMMENTS, {}, [["#", "Ada", "#"], ["#ada"]], [["O", "B-PER", "O"], ["B-TAG"]]),
        (GERMEVAL, {"tag_column": 3}, [["SC", "Freiburg"], ["#"]], [["B-ORG", "I-ORG"], ["O"]]),
        (GERMEVAL, {"tag_column": 4}, [["SC", "Freiburg"], ["#"]], [["O", "B-LOC"], ["O"]]),
        (CONLLU, {"tag_column": "UPOS"}, [["vamos", "nos", "New York"]], [["VERB", "PRON", "X"]]),
        (ONE_WORD, {"tag_column": "UPOS"}, [["Du"], ["Ja"]], [["PRON"], ["INTJ"]]),
        (ONE_WORD.replace("1", "5"), {"tag_column": 4}, [["5"], ["5"]], [["PRON"], ["INTJ"]]),
        (CONLLU, {"tag_column": 4}, [["vamos", "nos", "New York"]], [["VERB", "PRON", "X"]]),
        (
            "# global.columns = FORM NER\nAda\tB-PER\n",
            {"word_column": "FORM", "tag_column": "NER"},
            [["Ada"]],
            [["B-PER"]],
        ),
        # Names of columns in the first line, in another order.
        (
            "tag word\nB-PER Ada\n",
            {"word_column": "word", "tag_column": "tag"},
            [["Ada"]],
            [["B-PER"]],
        ),
        # A document mark ends a sentence, also without a blank line.
        ("Ada B-PER\n-DOCSTART- O\nBob B-PER\n", {}, [["Ada"], ["Bob"]], [["B-PER"], ["B-PER"]]),
        # In files of characters a space is a word.
        ("你 O\n  O\n好 B-X\n", {}, [["你", " ", "好"]], [["O", "O", "B-X"]]),
        ("你\tO\n \tO\n好\tB-X\n", {}, [["你", " ", "好"]], [["O", "O", "B-X"]]),
        # The words of CoNLL 2012 are counted from 0.
        (
            "0\tAda\tB-PER\n1\twrote\tO\n\n0\tBob\tB-PER\n",
            {},
            [["Ada", "wrote"], ["Bob"]],
            [["B-PER", "O"], ["B-PER"]],
        ),
        # Numbers that do not count are words.
        ("1 CD O\n1 CD B-X\n", {}, [["1", "1"]], [["O", "B-X"]]),
    ],
)
def test_what_public_files_hold(tmp_path, content, arguments, words, tags):
    """The right values are what the guidelines of the corpora say."""
    read = read_conll(write(tmp_path, content), **arguments)
    assert (read.x, read.y) == (words, tags)


def test_rows_of_conllu_that_are_no_words_are_counted(tmp_path):
    read = read_conll(write(tmp_path, CONLLU), tag_column="UPOS")
    assert read.left_out == {"a row of several words": [3], "an empty node": [6]}


WORDS = "".join(f"w{number} t{number}\n" for number in range(101))


@pytest.mark.parametrize(
    ("content", "arguments", "error"),
    [
        (GERMEVAL.replace("B-LOC", "B-ORG"), {}, "same types in the columns 3 and 4, such as ORG"),
        (CONLLU, {}, 'ten columns of CoNLL-U, ID, .* tag_column="UPOS"'),
        (CONLLU, {"tag_column": "NER"}, "0 columns with the name 'NER'. Its columns are ID, FORM"),
        (
            WORDS,
            {"tag_column": 2},
            "101 different tags, more than 100. Number 101 is 't100' .* in line 101",
        ),
        ("Ada B-PER\nBob\u00a0O Bob\n", {}, "line 2: 'Bob' is the tag of .* likely a word"),
        ("word tag\nAda B-PER\n", {}, "line 1: 'tag' is the tag of 'word'"),
        ("# x\n\n", {}, "holds no sentences"),
    ],
)
def test_columns_that_hold_no_tags(tmp_path, content, arguments, error):
    with pytest.raises(ValueError, match=error):
        read_conll(write(tmp_path, content), **arguments)


def test_more_tags_on_request(tmp_path):
    assert len(read_conll(write(tmp_path, WORDS), None, 2, max_tags=101).label_names) == 101


def test_tags_in_another_form_than_most(tmp_path):
    path = write(tmp_path, "Ada B-PER\nB I_PER\nc X\n")
    with pytest.warns(UserWarning, match="train.txt: .* 'I_PER' as the type 'I_PER', 'X' as outs"):
        read = read_conll(path, scheme="spans")
    assert read.y == [[(0, 1, "PER"), (1, 2, "I_PER")]]
