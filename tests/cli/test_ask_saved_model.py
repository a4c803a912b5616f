"""The table of answers. tests/serving asks SavedModels."""

from keras_bert_cli.ask_saved_model import print_answers


def test_a_text_is_no_markup(capsys):
    print_answers(["a [b]film[/b]"], ["yes"], [0.75])
    out = capsys.readouterr().out
    assert "a [b]film[/b]" in out and "yes" in out and " 75.0%" in out
