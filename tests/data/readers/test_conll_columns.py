"""Which columns of a file in CoNLL's form have the words and the tags."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_suite import read_conll


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("conll") / "train.txt"


def read(path, content, **arguments):
    path.write_text(content, encoding="utf-8")
    return read_conll(path, **arguments)


RATINGS = "B-Rating five\nI-Rating stars\nO movies\n\nB-Genre comedy\n"  # MIT movies


@pytest.mark.parametrize(
    ("content", "error", "arguments", "words", "tags"),
    [
        (
            "Rio B-LOC -\nis O +\n",
            "line 1: '-' in the last column .* column 2 has tags such as 'B-LOC'. Pass tag_col",
            {"tag_column": 2},
            [["Rio", "is"]],
            [["B-LOC", "O"]],
        ),
        (
            "Rio B-LOC 3\nis O 0\n",
            "line 1: '3' in the last column .* Pass tag_column=2, or tag_column=3 for the last",
            {"tag_column": 3},
            [["Rio", "is"]],
            [["3", "0"]],
        ),
        (
            "Rio B-LOC 0.93\nis O 0.81\n",
            "'0.93' in the last column .* tag_column=2",
            {"tag_column": "2"},
            [["Rio", "is"]],
            [["B-LOC", "O"]],
        ),
        (
            RATINGS,
            "'five' in the last column .* Pass word_column=2, tag_column=1",
            {"word_column": 2, "tag_column": 1},
            [["five", "stars", "movies"], ["comedy"]],
            [["B-Rating", "I-Rating", "O"], ["B-Genre"]],
        ),
        (
            "Rio 3\nis 0\n",
            "'3' in the last column .* Pass tag_column=2 if .* speech. .* as `outside`",
            {"tag_column": 2, "outside": "0"},
            [["Rio", "is"]],
            [["3", "O"]],
        ),
        (
            "The DT\ncat NN\n. .\n",
            "'DT' in the last column .* Pass tag_column=2 if these are other tags",
            {"tag_column": -1},
            [["The", "cat", "."]],
            [["DT", "NN", "."]],
        ),
        (
            "d1 Rio B-LOC\nd1 is O\nd1 big O\n",
            "line 1: the column 1 has 'd1' in many lines, which is no word. `word_column` names",
            {"word_column": 2},
            [["Rio", "is", "big"]],
            [["B-LOC", "O", "O"]],
        ),
        (
            "Sentence: 1\tRio\tB-geo\n\tis\tO\n\tbig\tO\nSentence: 2\tIran\tB-gpe\n",  # Kaggle
            "the column 1 has 'Sentence: 1' in many lines",
            {"word_column": 2},
            [["Rio", "is", "big", "Iran"]],
            [["B-geo", "O", "O", "B-gpe"]],
        ),
    ],
)
def test_a_column_that_may_be_another_is_named(path, content, error, arguments, words, tags):
    with pytest.raises(ValueError, match=error):
        read(path, content)
    found = read(path, content, **arguments)
    assert (found.x, found.y) == (words, tags)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("中国/nt 政府/o 在/o\n北京/ns 是/o 的/o\n", "line 1: '中国/nt' .* joined by '/'"),  # MSRA
        ("中国/nt 政府/o 在/o\n北京/ns 是/o\n", "line 1: '中国/nt' is a word and its tag"),
        ("19980101/m 迈向/v\n[中国/ns 政府/n]nt\n", r"Read first the brackets, as in \[中国"),
        ("Rio|B-LOC\nis|O\n", "line 1: 'Rio.B-LOC' is a word and its tag, joined by '.'"),
        ("The_DT cat_NN\nHe_PRP sat_VBD\n", r"field.rsplit\('_', 1\)"),  # the Stanford tagger
    ],
)
def test_words_joined_with_their_tags_are_named(path, content, error):
    with pytest.raises(ValueError, match=error):
        read(path, content)


WORDS = st.text("abé中1#-", min_size=1, max_size=3)
TOKENS = st.lists(st.tuples(WORDS, st.sampled_from(["NOUN", "VERB", "_"])), min_size=2, max_size=5)


def write_conllu(sentences, multiword):
    lines = []
    for number, sentence in enumerate(sentences):
        lines.append(f"# sent_id = {number}")
        if multiword:
            lines.append("1-2\tab" + "\t_" * 8)
        for place, (word, tag) in enumerate(sentence, 1):
            lines.append(f"{place}\t{word}\t_\t{tag}\t_\tCase=Nom\t0\troot\t_\t_")
        if multiword:
            lines.append(f"{len(sentence)}.1\tab" + "\t_" * 8)
        lines.append("")
    return lines


def transcribe_conllu(lines):
    """The rules of https://universaldependencies.org/format.html."""
    sentences = [[]]
    for line in lines:
        if not line:
            sentences.append([])
        elif not line.startswith("#") and line.split("\t")[0].isdecimal():
            sentences[-1].append((line.split("\t")[1], line.split("\t")[3]))
    return [sentence for sentence in sentences if sentence]


@given(st.lists(TOKENS, min_size=2, max_size=4), st.booleans(), st.data())
def test_a_space_for_a_tab_in_conllu_is_named(path, sentences, multiword, data):
    lines = write_conllu(sentences, multiword)
    found = read(path, "\n".join(lines), tag_column="UPOS")
    rows = [list(zip(*pair, strict=True)) for pair in zip(found.x, found.y, strict=True)]
    assert rows == transcribe_conllu(lines)
    wrong = data.draw(
        st.sampled_from([n for n, line in enumerate(lines) if line.split("\t")[0].isdecimal()])
    )
    fields = lines[wrong].split("\t")
    place = data.draw(st.integers(1, len(fields) - 1))
    lines[wrong] = " ".join(["\t".join(fields[:place]), "\t".join(fields[place:])])
    for columns in ({"tag_column": "UPOS"}, {"word_column": 2, "tag_column": 4}):
        with pytest.raises(ValueError, match=f"line {wrong + 1}: got 9 fields"):
            read(path, "\n".join(lines), **columns)


ROWS = ["1\tRio\t_\tNOUN\t_\t_\t0\t_\t_\t_", "2\tis\t_\tVERB\t_\t_\t0\t_\t_\t_"]


GOOD = "Rio B-LOC\nis O\n\n"


@pytest.mark.parametrize(
    ("bad", "line", "reason"),
    [
        ("big\n", 4, "another number of fields"),
        ("big O\nNew York O\n", 5, "another number of fields"),
        ("big\tO\n", 4, "other marks between fields"),
        ("big O\n# next\nis O\n", 5, "a comment within a sentence"),
        ("big _\nis O\n", 4, "a tag that is likely none"),
    ],
)
def test_sentences_with_faults_are_left_out_on_request(path, bad, line, reason):
    good = read(path, GOOD * 3)
    content = GOOD + bad + "\n" + GOOD * 2
    with pytest.raises(ValueError, match=f"train.txt, line {line}: "):
        read(path, content)
    left = read(path, content, errors="skip")
    assert (left.x, left.y, left.label_names) == (good.x, good.y, good.label_names)
    assert left.left_out == {reason: [line]}


def test_each_form_leaves_out_its_faults(path):
    numbered = "1 Rio B-LOC\n2 is O\n\n" * 3
    left = read(path, f"{numbered}1 big O\n3 is O\n", errors="skip")
    assert left.left_out == {"another number than the place of the word": [11]}
    left = read(path, "A (ORG*\nB *\n\nC (GPE)\nD *\n", errors="skip")
    assert (left.y, left.left_out) == ([["B-GPE", "O"]], {"brackets that are not read": [2]})
    left = read(path, "a b\tO O\na b c\tO O\n", errors="skip")
    assert (left.x, left.lines) == ([["a", "b"]], [1])
    assert left.left_out == {"another number of words than of tags": [2]}
    with pytest.raises(ValueError, match="line 1: .*; line 3: .* 2 of 3 rows have such faults"):
        read(path, "a b c\tO O\na b\tO O\na b c d\tO O\n")
    with pytest.raises(ValueError, match="line 1: .* No other row is left"):
        read(path, "a b c\tO O\n", errors="skip")


@pytest.mark.parametrize(
    ("content", "arguments", "error"),
    [
        (
            "word\tpos\tner\na b\tX\nc\tY\tO\n",
            {"word_column": "word", "tag_column": "pos"},
            "line 2",
        ),
        ("a\tX\tO\nb Y\tO\n", {"word_column": 1, "tag_column": 2}, "line 2: got 2 fields"),
        ("a\tX\tO\n\nb Y\tO\n", {"word_column": 1, "tag_column": 2}, "line 3: got 2 fields"),
        ("a X O\nb O\n", {"word_column": 1, "tag_column": 2}, "line 2: got 2 fields"),
        ("\n".join(ROWS * 2), {"tag_column": "UPOS"}, "line 3: the first column counts.* wanted 3"),
        ("\n".join([*ROWS, "# id 2", *ROWS]), {"tag_column": 4}, "line 3: '# id 2' begins with #"),
        (
            "a X\nb\tO\nc O\n",
            {},
            "line 2: .* has a tab, and other lines have spaces",
        ),
        ("Rio B-LOC\n# id 2\nAda B-PER\n", {}, "line 2: '# id 2' .* put an empty line before it"),
        ("Rio B-LOC\n# next\nAda B-PER\n", {}, "line 2: '# next' begins with #"),
    ],
)
def test_lines_that_do_not_fit_are_named(path, content, arguments, error):
    with pytest.raises(ValueError, match=error):
        read(path, content, **arguments)


def test_fields_at_the_end_may_be_empty(path):
    content = "word\ttag\tnote\nRio\tB-LOC\t\nis\tO\twhy\n"
    assert read(path, content, word_column="word", tag_column="tag").y == [["B-LOC", "O"]]
    assert read(path, "Rio\tB-LOC\t\nis\tO\t\nbig\tO\n").y == [["B-LOC", "O", "O"]]
    assert read(path, "Rio B-LOC\t\t\nis O\n").x == [["Rio", "is"]]


def test_a_tag_may_be_the_sign_of_comments(path):
    content = "# #\n30 CD\n\n% NN\n# #\n#fun #\n"
    assert read(path, content, tag_column=2).y == [["#", "CD"], ["NN", "#", "#"]]


def test_each_line_end_and_blank_line_is_one(path):
    content = "Rio\tB-LOC\nis\tO\n\nAda\tB-PER\n"
    wanted = read(path, content)
    for end in ("\r", "\r\n"):
        path.write_bytes(content.replace("\n", end).encode())
        assert (read_conll(path).x, read_conll(path).y) == (wanted.x, wanted.y)
    for blank in (" ", "\t", "\u3000", "\u00a0"):
        found = read(path, content.replace("\n\n", f"\n{blank}\n"))
        assert (found.x, found.lines) == (wanted.x, [1, 4])
