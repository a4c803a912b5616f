"""A fine-tuned classifier, made once by the command line itself."""

import keras
import pytest
from cli.small_files import save_tiny_checkpoint, write_reviews

from keras_bert_cli import main


@pytest.fixture(scope="session")
def workshop(tmp_path_factory):
    """Folder of `checkpoint`, `train.tsv` and `dev.tsv`. Not to be written to."""
    folder = tmp_path_factory.mktemp("workshop")
    save_tiny_checkpoint(folder / "checkpoint")
    write_reviews(folder / "train.tsv", 32, seed=1)
    write_reviews(folder / "dev.tsv", 32, seed=2)
    return folder


@pytest.fixture(scope="session")
def finetuned(workshop, tmp_path_factory):
    """Folder of `model.keras` and `saved/1`, written by `finetune`. Not to be written to."""
    folder = tmp_path_factory.mktemp("finetuned")
    arguments = [
        "finetune",
        f"--checkpoint={workshop / 'checkpoint'}",
        f"--train={workshop / 'train.tsv'}",
        f"--dev={workshop / 'dev.tsv'}",
        "--text_column=sentence",
        "--epochs=2",
        "--learning_rate=1e-3",
        f"--output={folder / 'model.keras'}",
        f"--export={folder / 'saved' / '1'}",
    ]
    assert main(arguments) == 0
    return folder


@pytest.fixture(scope="session")
def pairs(finetuned, tmp_path_factory):
    """Path of `finetuned`'s model as if it had been trained on pairs. Not to be written to."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.keras"
    classifier = keras.saving.load_model(finetuned / "model.keras")
    classifier.input_names = ("premise", "hypothesis")
    classifier.save(path)
    return path


@pytest.fixture
def run(capsys):
    """Function: arguments -> (exit status, standard output, standard error)."""

    def run_command(*arguments):
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return status, captured.out, captured.err

    return run_command
