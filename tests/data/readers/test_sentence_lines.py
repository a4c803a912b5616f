"""Files with a sentence in each line, its words before its tags."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_suite import read_conll


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("sentences") / "train.txt"


TAGS = st.sampled_from(["O", "B-LOC", "I-LOC"])


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("我在ab，"), TAGS), min_size=2, max_size=6),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([" ", "\x02"]),
    st.sampled_from(["\t", "|||", " ||| "]),
    st.booleans(),
)
def test_sentences_in_lines_are_read_as_words_in_lines(path, rows, mark, between, is_text):
    words = [[word for word, _ in row] for row in rows]
    tags = [[tag for _, tag in row] for row in rows]
    if mark == "\x02":
        between = between.strip(" ")
    path.write_text(
        "".join(
            f"{('' if is_text else mark).join(row)}{between}{mark.join(row_tags)}\n"
            for row, row_tags in zip(words, tags, strict=True)
        ),
        encoding="utf-8",
    )
    found = read_conll(path)
    assert (found.x, found.y, found.lines) == (words, tags, list(range(1, len(rows) + 1)))
    lines = "\n\n".join("\n".join(map("\t".join, row)) for row in rows)
    path.write_text(lines, encoding="utf-8")
    assert read_conll(path).label_names == found.label_names


def test_columns_and_names(path):
    rows = "我\x02在\x02北\x02京\tO\x02O\x02B-LOC\x02I-LOC\n"
    path.write_text(f"text_a\tlabel\n{rows}", encoding="utf-8")  # MSRA of PaddleNLP
    found = read_conll(path, "text_a", "label")
    assert (found.x, found.y) == ([list("我在北京")], [["O", "O", "B-LOC", "I-LOC"]])
    path.write_text("B-PER O\tAda runs\nO O\tIt runs\n")
    with pytest.raises(ValueError, match="Pass word_column=2, tag_column=1"):
        read_conll(path)
    assert read_conll(path, 2, 1).x == [["Ada", "runs"], ["It", "runs"]]
    # One tag in each line: a word may hold spaces.
    path.write_text("New York\tB-LOC\nis big\tO\n")
    assert read_conll(path).x == [["New York", "is big"]]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("我在\tO O\n\n上海\tB-LOC\n", "line 3: got 2 words and 1 tags. .* its characters"),
        ("a b|||O O\na b c|||O O\n", "line 2: got 3 words and 2 tags. .* spaces between"),
        ("我\x02在\tO\x02O\n上\x02海\tO\n", "line 2: got 2 words and 1 tags"),
        ("a b\tO O\na b\t\n", "line 2: got 2 words and 0 tags"),
        ("a b\tO O\na b O O\n", "line 2: the line 'a b O O' has no tab"),
    ],
)
def test_other_numbers_of_words_than_of_tags_are_named(path, content, error):
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=error):
        read_conll(path)
