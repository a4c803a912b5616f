"""Texts are cut into words as the rows are from which the cutting was learned."""

import random
import unicodedata

import pytest
from small_texts import VOCABULARY

from keras_bert_suite import WordCutting, WordPieceTokenizer, read_conll
from keras_bert_suite.heads.tags.windows import tokenize_rows
from keras_bert_suite.heads.tags.word_cutting_rules import describe_cutting
from keras_bert_suite.heads.tags.word_parts import (
    ATTACHED,
    BLANK,
    IDEOGRAPH,
    LETTER,
    MARK,
    NUMBER,
    character_kinds,
)
from keras_bert_suite.tokenizers.joining import join_words

#: Rows of English words, as CoNLL-2003 and OntoNotes have them.
ENGLISH = [
    "Coca-Cola and AT&T moved to St. Louis .".split(),
    "He did n't pay $ 3.5 or 1,000 to John 's O'Neill at 12:30 ...".split(),
    "The U.S. likes well-known e-mail , a.b@example.com or http://example.com/a .".split(),
    "It rose 5 % , he says -- and she does n't .".split(),
]
CHINESE = [list("我在IBM工作，1998年增长3.5%。")]

TABLE = [
    # The rows, a text, and its words.
    (ENGLISH, "Pepsi-Cola left St. Louis.", "Pepsi-Cola left St. Louis ."),
    (ENGLISH, "P&G, AT&T.", "P&G , AT&T ."),
    (ENGLISH, "The U.S., the U.S.", "The U.S. , the U.S."),
    (ENGLISH, "I don't, he won't.", "I do n't , he wo n't ."),
    (ENGLISH, "Ann's O'Brien", "Ann 's O'Brien"),
    (ENGLISH, "at 7:45 for 2.75, 3,000", "at 7:45 for 2.75 , 3,000"),
    (ENGLISH, "x.y@mail.org, http://mail.org/x", "x.y@mail.org , http://mail.org/x"),
    (ENGLISH, "iPhone15 in 1998 (new)", "iPhone15 in 1998 ( new )"),
    (ENGLISH, "5% ... 7%... -- no", "5 % ... 7 % ... -- no"),
    (CHINESE, "iPhone15于1998年，跌2.5%", " ".join("iPhone15于1998年，跌2.5%")),
    # Only the numbers were cut into characters.
    ([["1", "9", "9", "8", "年", "GDP", "增", "长"]], "2003年GDP", "2 0 0 3 年 GDP"),
    # Corpora that cut more than others.
    (["don ' t".split(), "Coca - Cola".split()], "don't e-mail", "don ' t e - mail"),
    (["I don't know .".split(), "You can't .".split()], "He won't.", "He won't ."),
    (
        ["l' homme d' Oslo".split(), "aujourd'hui".split()],
        "l'ami aujourd'hui",
        "l' ami aujourd'hui",
    ),
    (["@ann likes #nlp".split(), "see @bob".split()], "@eve #ml", "@eve #ml"),
    (["€ 100 and 5 °".split()], "€20 at 7°", "€ 20 at 7 °"),
    ([["5€"], ["7€"]], "9€ or €9", "9€ or €9"),
    # The more frequent way counts.
    (["No . No . No. 5".split()], "No.", "No ."),
    (["No. 1 No. 5 No .".split()], "No.", "No."),
    # Nothing is known of punctuation: as BERT's tokenizer.
    (["a plain row".split()], "Coca-Cola, don't", "Coca - Cola , don ' t"),
]


@pytest.mark.parametrize(("rows", "text", "words"), TABLE)
def test_words_of_texts(rows, text, words):
    assert WordCutting.learn(rows).split(text) == words.split()


@pytest.mark.parametrize("rows", [ENGLISH, CHINESE])
def test_the_words_of_the_rows_are_found(rows):
    cutting = WordCutting.learn(rows)
    for row in rows:
        assert cutting.split(" ".join(row)) == row


def draw_text(random, alphabet):
    return "".join(random.choice(alphabet) for _ in range(random.randrange(20)))


#: The beginning of the category of a character in Unicode -> the kinds that it may have.
KINDS = {
    "L": {LETTER, IDEOGRAPH},
    "N": {NUMBER},
    "Mn": {ATTACHED},
    "P": {MARK},
    "Z": {BLANK},
}


def test_kinds_of_characters_are_those_of_unicode():
    """Also of the letters and numbers in blocks of symbols, such as ℂ, ª and ②."""
    kinds, former = character_kinds(), unicodedata.ucd_3_2_0
    for code in range(0x20000):
        character = chr(code)
        # Newer characters are unknown to older tables.
        if former.category(character) == "Cn":
            continue
        category = unicodedata.category(character)
        wanted = KINDS.get(category) or KINDS.get(category[0])
        assert wanted is None or kinds[code] in wanted, (character, category, kinds[code])


HOSTILE = "ab1T n't.,-'&€ 😀中京\u200b\u0301\u3000\ufeff\ud800é"


def test_without_rules_words_are_those_of_wordpiece():
    generator = random.Random(0)
    texts = [draw_text(generator, HOSTILE) for _ in range(2000)]
    tokenizer = WordPieceTokenizer(VOCABULARY)
    ours, theirs = (tokenize_rows(tokenizer, texts, cutting) for cutting in (WordCutting(), None))
    assert ours.characters == theirs.characters
    assert ours.ids.tolist() == theirs.ids.tolist()
    assert ours.first_tokens.tolist() == theirs.first_tokens.tolist()


def test_words_are_parts_of_the_text():
    """In order, without white space, and no visible character is lost."""
    generator = random.Random(1)
    cuttings = [WordCutting.learn(ENGLISH), WordCutting.learn(CHINESE)]
    for text in (draw_text(generator, HOSTILE) for _ in range(2000)):
        for cutting in cuttings:
            spans = cutting.cut(text)
            edges = [edge for span in spans for edge in span]
            assert edges == sorted(edges) and all(start < end for start, end in spans)
            kept = "".join(cutting.split(text))
            assert set(text) - set(kept) <= set(" \u3000\u200b\u0301\ufeff\ud800")


def test_characters_are_words_whatever_they_are():
    cutting = WordCutting(["letters", "numbers"])
    generator = random.Random(2)
    for text in (draw_text(generator, "aZ19é中．,.-%€ ３あ한") for _ in range(500)):
        assert cutting.split(text) == [c for c in text if c != " "]


def test_a_configuration_is_json_and_makes_an_equal_cutting():
    cutting = WordCutting.learn(ENGLISH)
    assert WordCutting.read(cutting.get_config()) == cutting
    assert WordCutting.read(None) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"characters": ["digits"]}, "must be of .*got .*digits"),
        ({"rules": {"St.": "+|"}}, "three parts .*'St.'"),
        ({"rules": {"St . ": "+"}}, "has 1 marks, so it needs 2 of"),
        ({"rules": {"St . ": "ab"}}, "'\\|' or '\\+' for each boundary"),
    ],
)
def test_wrong_settings_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        WordCutting(**arguments)
    with pytest.raises(ValueError, match="must be a WordCutting"):
        WordCutting.read("letters")
    with pytest.raises(ValueError, match="must be a WordCutting"):
        WordCutting.read({"letters": True})
    with pytest.raises(ValueError, match="Wanted rows of words, .* got .*St. Louis"):
        WordCutting.learn(["St. Louis"])


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["a plain row .".split()], None),
        (ENGLISH[:1], "as these rows are: words such as Coca-Cola, AT&T, St. stay whole."),
        (CHINESE, "each of the letters and numbers is a word."),
        ([["北京", "大学"], ["我"]], "67% of the words of these rows are cut otherwise in a text"),
    ],
)
def test_a_line_says_how_texts_are_cut(rows, said):
    line = describe_cutting(WordCutting.learn(rows), rows, True)
    assert line is None if said is None else said in line


@pytest.mark.parametrize(
    ("learned", "rows", "is_better"),
    [
        (CHINESE, [["one/two", "a"]], True),
        # What a text cannot say is not learned anew either.
        (CHINESE, [["北京", "大学"], ["我"]], False),
    ],
)
def test_a_later_line_names_a_remedy_that_helps(learned, rows, is_better):
    line = describe_cutting(WordCutting.learn(learned), rows, False)
    assert "pass `predict` lists of words" in line
    assert ("word_cutting = None" in line) == is_better


@pytest.mark.parametrize(
    ("train", "dev", "wanted"),
    [
        ("conll2003_en/eng.train", "conll2003_en/eng.testa", 0.985),
        ("resume_zh/train.char.bmes", "resume_zh/dev.char.bmes", 1.0),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_real_rows(train, dev, wanted, shared_data):
    """The share of the words of other rows that are found in their text.

    What is missed in English is mostly a hyphen that `join_words` has put between two words.
    """
    cutting = WordCutting.learn(read_conll(shared_data / "ner" / train).x[:2000])
    found = total = 0
    for row in read_conll(shared_data / "ner" / dev).x:
        text, place, spans = join_words(row), 0, set()
        for word in row:
            start = text.index(word, place)
            place = start + len(word)
            spans.add((start, place))
        found += len(spans & set(cutting.cut(text)))
        total += len(spans)
    assert found / total >= wanted
