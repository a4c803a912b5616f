import types

import pytest

from keras_bert_cli.command_flags import UsageError
from keras_bert_cli.cut_texts import check_length_flag, report_cut_texts, set_sequence_length
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


def make_packer_task(most=None):
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])
    backbone = types.SimpleNamespace(max_sequence_length=most)
    return types.SimpleNamespace(preprocessor=SegmentPacker(tokenizer, 5), backbone=backbone)


@pytest.mark.parametrize(("most", "length"), [(None, 16), (12, 12)])
def test_auto_leaves_99_of_100_texts_whole(most, length):
    train = Examples("train.tsv", ["a " * 12] * 99 + ["a " * 90])  # 14 tokens, and one text of 92.
    task = make_packer_task(most)
    set_sequence_length(task, "auto", train, KINDS["classify"])
    assert task.preprocessor.sequence_length == length


def test_auto_is_for_tasks_that_cut_texts():
    with pytest.raises(UsageError, match="auto is not for --task ner"):
        check_length_flag("auto", KINDS["ner"])
    check_length_flag(None, KINDS["ner"])


def test_auto_reads_all_parts_of_a_sorted_file(monkeypatch):
    monkeypatch.setattr("keras_bert_cli.cut_texts.SAMPLE", 10)
    task = make_packer_task()
    train = Examples("train.tsv", ["a"] * 20 + ["a " * 30] * 20)
    set_sequence_length(task, "auto", train, KINDS["classify"])
    assert task.preprocessor.sequence_length == 32
