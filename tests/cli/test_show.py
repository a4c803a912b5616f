"""`keras-bert show`."""

from keras_bert_suite.files.model_card import format_table, write_card


def test_the_folder_stands_with_or_without_its_flag(run, tmp_path, monkeypatch):
    (tmp_path / "preset").mkdir()
    (tmp_path / "preset" / "config.json").touch()
    facts = {"task": "TextClassifier", "labels": "no, yes"}
    write_card(tmp_path / "preset", facts)
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in (tmp_path / "preset", "~/preset"):
        for arguments in ([folder], ["--model", folder], [f"--model={folder}"]):
            status, out, err = run("show", *arguments)
            assert (status, err) == (0, "")
            assert format_table(facts) in out
