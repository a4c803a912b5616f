"""A fine-tuned classifier and a corpus, made once by the command line itself."""

import random

import keras
import pytest
from cli.small_files import MODEL, SETTINGS, STEPS, save_tiny_checkpoint, write_reviews
from peer_weights import randomize
from small_sentence_pieces import make_xlnet
from small_texts import VOCABULARY, WORDS

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
    """Folder of `model.keras`, written by `finetune`. Not to be written to."""
    folder = tmp_path_factory.mktemp("finetuned")
    arguments = [
        "finetune",
        f"--checkpoint={workshop / 'checkpoint'}",
        f"--train={workshop / 'train.tsv'}",
        f"--dev={workshop / 'dev.tsv'}",
        "--text_column=sentence",
        "--epochs=1",
        "--learning_rate=1e-3",
        f"--output={folder / 'model.keras'}",
    ]
    assert main(arguments) == 0
    return folder


@pytest.fixture(scope="session")
def saved(finetuned, tmp_path_factory):
    """Path of the SavedModel of `finetuned`'s model, for TensorFlow. Not to be written to."""
    path = tmp_path_factory.mktemp("saved") / "reviews" / "1"
    assert main(["export", f"--model={finetuned / 'model.keras'}", f"--output={path}"]) == 0
    return path


@pytest.fixture(scope="session")
def pairs(finetuned, tmp_path_factory):
    """Path of `finetuned`'s model as if it had been trained on pairs. Not to be written to."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.keras"
    classifier = keras.saving.load_model(finetuned / "model.keras")
    randomize(classifier)  # So that the order of the texts matters.
    classifier.input_names = ("premise", "hypothesis")
    classifier.save(path)
    return path


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Folder that `keras-bert prepare` wrote. Not to be written to."""
    folder = tmp_path_factory.mktemp("corpus")
    rng = random.Random(0)
    documents = [
        "\n".join(" ".join(rng.choices(WORDS, k=rng.randint(3, 8))) for _ in range(6))
        for _ in range(60)
    ]
    (folder / "corpus.txt").write_text("\n\n".join(documents) + "\n")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    arguments = ["--input", str(folder / "corpus.txt"), "--vocab", str(folder / "vocab.txt")]
    assert main(["prepare", *arguments, "--output", str(folder / "shards"), "--workers=1"]) == 0
    return folder / "shards"


@pytest.fixture(scope="session")
def xlnet_corpus(corpus, tmp_path_factory):
    """The texts of `corpus` in the pieces of an XLNet. Not to be written to."""
    folder = tmp_path_factory.mktemp("xlnet_corpus")
    (folder / "spiece.model").write_bytes(make_xlnet())
    texts = corpus.parent / "corpus.txt"
    arguments = ["--input", str(texts), "--vocab", str(folder / "spiece.model")]
    assert main(["prepare", *arguments, "--output", str(folder / "shards"), "--workers=1"]) == 0
    return folder / "shards"


@pytest.fixture(scope="session")
def pretrained(corpus, tmp_path_factory):
    """Folder of a finished run. Not to be written to."""
    output = tmp_path_factory.mktemp("runs") / "run"
    arguments = ["--corpus", str(corpus), "--output", str(output), "--held_out=0.3"]
    assert main(["pretrain", *arguments, *SETTINGS, *MODEL, *STEPS]) == 0
    return output


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
