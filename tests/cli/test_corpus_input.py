"""How the progress of reading a corpus is shown."""

from keras_bert_cli import corpus_input


def test_lines_of_progress(monkeypatch, capsys):
    clock = [100.0]
    monkeypatch.setattr(corpus_input.time, "monotonic", lambda: clock[0])
    show = corpus_input.make_progress()
    for seconds, *figures in (
        (0, 0, 0, 9_000_000),
        (5, 3_000_000, 3_000_000, 9_000_000),
        (10, 5_000_000, 3_000_000, 9_000_000),
        (15, 6_000_000, 3_000_000, 9_000_000),
        (20, 9_000_000, 3_000_000, 9_000_000),
    ):
        clock[0] = 100.0 + seconds
        show(*figures)
    assert capsys.readouterr().out.splitlines() == [
        "5.0 of 9.0 MB, 0.2 MB/s, 20 s left",
        "9.0 of 9.0 MB, 0.3 MB/s, 0 s left",
    ]
