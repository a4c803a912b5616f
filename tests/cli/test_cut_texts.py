import types

import pytest

from keras_bert_cli.cut_texts import report_cut_texts
from keras_bert_cli.kinds import KINDS
from keras_bert_suite import Examples, SegmentPacker
from keras_bert_suite.tokenizers import WordPieceTokenizer


@pytest.mark.parametrize(
    ("kind", "truncation", "remedies"),
    [
        ("classify", "head", ["sequence_length", "truncation head_tail", "window_pooling"]),
        ("classify", "head_tail", ["sequence_length", "window_pooling"]),
        ("attributes", "head", ["sequence_length", "truncation head_tail"]),
        ("relation", "head", ["sequence_length"]),
    ],
)
def test_the_report_names_flags_of_the_task(capsys, kind, truncation, remedies):
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])
    packer = SegmentPacker(tokenizer, 5, truncation=truncation)
    task = types.SimpleNamespace(preprocessor=packer, backbone=None)
    report_cut_texts(task, Examples("train.tsv", ["a a a a a a a", "a"]), KINDS[kind])
    line = capsys.readouterr().out
    assert line.startswith("50.0% of the training texts have more than 5 tokens")
    flags = [part.split("--")[1] for part in line.split(": ")[1].split(", ")]
    assert all(flag.startswith(wanted) for flag, wanted in zip(flags, remedies, strict=True))
