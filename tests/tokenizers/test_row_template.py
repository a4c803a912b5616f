"""Rows whose summary token is last and whose padding is on the left, as XLNet's."""

import numpy as np
import pytest
from small_texts import VOCABULARY, make_reviews

from keras_bert_suite import SegmentPacker, WordPieceTokenizer
from keras_bert_suite.heads.documents.windows import pack_documents
from keras_bert_suite.tokenizers.row_template import RowTemplate

CLS, SEP, PAD = 2, 3, 0


class LastSummary(WordPieceTokenizer):
    """The template of XLNet."""

    summary_place = "last"
    summary_segment = 2
    padding_side = "left"


def lay_out_xlnet(segments, length):
    """`build_inputs_with_special_tokens`, `create_token_type_ids_from_sequences` and the padding of
    transformers' XLNetTokenizer (4.57), for a row of one or two texts."""
    ids = [token for segment in segments for token in [*segment, SEP]] + [CLS]
    types = [s for s, segment in enumerate(segments) for _ in [*segment, SEP]] + [2]
    padding = length - len(ids)
    return [PAD] * padding + ids, [0] * padding + types, [0] * padding + [1] * len(ids)


@pytest.fixture
def packer():
    return SegmentPacker(LastSummary(VOCABULARY), sequence_length=16, padding_lengths=None)


@pytest.mark.parametrize("num_segments", [1, 2])
def test_rows_are_those_of_xlnet(packer, num_segments):
    segments = [make_reviews(9, seed=seed)[0] for seed in range(num_segments)]
    segments[0][0], segments[-1][1] = "", "good"
    tokens = [[packer.tokenizer(text) for text in texts] for texts in segments]
    whole = [row for row in zip(*tokens, strict=True) if sum(map(len, row)) <= 15 - num_segments]
    assert len(whole) > 2
    length = max(sum(map(len, row)) for row in whole) + num_segments + 1
    wanted = [lay_out_xlnet(row, length) for row in whole]
    texts = [packer.tokenizer.detokenize(list(column)) for column in zip(*whole, strict=True)]
    packed = packer.pack(*texts)
    for name, rows in zip(
        ("token_ids", "segment_ids", "padding_mask"), zip(*wanted, strict=True), strict=True
    ):
        np.testing.assert_array_equal(packed[name], rows, err_msg=name)


def test_graphs_pack_the_same_rows(packer):
    tf = pytest.importorskip("tensorflow")
    texts, others = make_reviews(6)[0], make_reviews(6, seed=1)[0]
    wanted = packer.pack(texts, others)
    got = packer.pack(tf.constant(texts), tf.constant(others))
    for name, array in wanted.items():
        np.testing.assert_array_equal(got[name], array)


def test_windows_name_their_tokens(packer):
    """Each token is where its index says, also in windows that are shorter than others."""
    documents, queries = [" ".join(VOCABULARY[5:19]), "good film"], ["the plot", "acting"]
    windows = packer.pack_windows(queries, documents, stride=4, query_length=3)
    ids = packer.tokenizer(documents)
    is_token = (windows["token_indices"] >= 0) & (windows["segment_ids"] == 1)
    row, place = np.nonzero(is_token)
    found = [
        ids[windows["row_ids"][r]][windows["token_indices"][r, p]]
        for r, p in zip(row, place, strict=True)
    ]
    np.testing.assert_array_equal(windows["token_ids"][is_token], found)
    assert (windows["token_ids"][:, -1] == CLS).all() and (
        windows["padding_mask"][:, -1] == 1
    ).all()
    packed = pack_documents(packer, (documents,), max_windows=4)
    assert packed["token_ids"].shape[:2] == packed["padding_mask"].shape[:2]


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("num_separators", [1, 2])
def test_positions_are_those_of_the_packed_row(place, side, num_separators):
    """The template places texts where they are packed."""

    class Tokenizer(WordPieceTokenizer):
        pass

    Tokenizer.summary_place, Tokenizer.padding_side = place, side
    Tokenizer.num_separators = num_separators
    packer = SegmentPacker(Tokenizer(VOCABULARY), 20, padding_lengths=(20,))
    template = packer.tokenizer.row_template
    for query in ("", "the film was"):
        for text in ("good", "good acting great plot"):
            (row,) = packer.pack([query], [text])["token_ids"].tolist()
            lengths = [len(packer.tokenizer(part)) for part in (query, text)]
            origin = template.find_origin(20)
            assert row[origin + template.find_text(lengths)] == VOCABULARY.index("good")
            assert row.index(CLS) == origin + template.find_summary(lengths)
            assert 20 - row.count(PAD) == template.count_tokens(lengths)


@pytest.mark.parametrize("side", ["right", "left"])
def test_positions_without_special_tokens(side):
    template = RowTemplate(2, 3, 0, padding_side=side, has_special_tokens=False)
    origin = template.find_origin(20)
    assert template.count_tokens([3, 4]) == 7
    assert origin + template.find_text([3, 4]) == (3 if side == "right" else 16)
    with pytest.raises(ValueError, match="no token that stands for a row. Use a SegmentPacker"):
        template.find_summary([3, 4])


def test_other_places_are_refused():
    with pytest.raises(ValueError, match="summary_place must be one of first, last, got 'middle'"):
        RowTemplate(2, 3, 0, summary_place="middle")
    with pytest.raises(ValueError, match="padding_side must be one of right, left, got 'both'"):
        RowTemplate(2, 3, 0, padding_side="both")
