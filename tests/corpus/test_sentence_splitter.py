"""Sentences against literal examples."""

import pytest

from keras_bert_suite.corpus.sentence_splitter import split_sentences

# Each is split where the bar stands.
ENGLISH = [
    "It rained. | We left! | Why? | Nobody knew.",
    "Mr. and Mrs. Smith met Dr. No. | They talked.",
    "J. R. R. Tolkien wrote it. | George W. Bush and Newton P. 'Stalky' S. did.",
    "The U.S. Army left the U.S. | The rest stayed.",
    "Some fruit, e.g. Apples, i.e. food. | See Fig. 3 and pp. 5 on Jan. 7. | No. | Five left.",
    "It costs $3.50. | Version 2.0.1 is out. | Visit example.com today.",
    "Apple Inc. CEO Tim Cook spoke. | He works at Apple Inc. | The firm is large.",
    "Apples, pears, etc. are fruit. | Bring cups etc. | Bob will come.",
    "Wait... what? | Well... | Then he left.",
    "Wait… what? | Well… | Then he left.",
    '"Stop!" he cried. | "Why?" | She did not stop.',
    "“Go.” | ‘No.’ | (It was late.) | [Really.] | The end",
    "He left in 1990. | She left at 5 p.m. Monday. | It was over at 6 p.m. | The rest is history.",
    "1. The first thing. | 2 is a number.",
    "100. The last thing. | When? | 1990. | She left.",
    "What?! | No!!! | Yes.",
    "Vitamin C. | It helps. | Solve for x. | Bob did.",
    "É. Zola was here. | Él no.",
]
CHINESE = [
    "他来了。|她走了！|真的吗？|是的；|好。",
    "他说：“你好！”|我走了。|「是。」|『不。』|好",
    "“你好！”，他说。|最后",
    "（他来了。）|我知道……|后来呢?|好吧!|行",
    "价格是3.5元。|版本2.0。|OK。|Yes, OK",
    "我用TensorFlow 2.21.0训练。|完成。",
    "等等……|什么？！|好。",
]


@pytest.mark.parametrize("marked", ENGLISH)
def test_english(marked):
    assert split_sentences(marked.replace(" |", "")) == marked.split(" | ")


@pytest.mark.parametrize("marked", CHINESE)
def test_chinese(marked):
    assert split_sentences(marked.replace("|", "")) == marked.split("|")


def test_lines_end_sentences():
    text = "A title\n\nIt rained\r\n  It stopped. It  rained.  \u2028 \n他来了\n"
    expected = ["A title", "It rained", "It stopped.", "It  rained.", "他来了"]
    assert split_sentences(text) == expected
    assert split_sentences("") == split_sentences(" \n\u3000\n") == []


def test_nothing_but_spaces_is_lost():
    text = "".join(ENGLISH + CHINESE) + "...?!。。」」”.'\". A.b.C. . ! ？ \n." * 3
    squeezed = "".join(text.split())
    assert "".join("".join(split_sentences(text)).split()) == squeezed


def test_time_grows_with_the_text():
    # A line of stops, of closing quotes, of words without a stop: seconds if it were quadratic.
    for unit in (". ", "A. ", "” ", "... ", "a b ", "。」", "1.", "Mr."):
        assert split_sentences(unit * 100_000)
