"""`finetune`, `evaluate`, `predict`, `export` and `convert` of a model that writes texts."""

import json

import keras
import pytest
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_cli import main


def write_rows(path, num_rows, seed):
    """Reviews, and their first words as titles."""
    texts = make_reviews(num_rows, seed)[0]
    rows = [("review", "title"), *((text, text.split()[0]) for text in texts)]
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="module")
def writing(workshop, tmp_path_factory):
    """Folder of a model and its data. Not to be written to."""
    folder = tmp_path_factory.mktemp("writing")
    write_rows(folder / "train.tsv", 32, seed=1)
    write_rows(folder / "dev.tsv", 6, seed=2)
    arguments = [
        *("finetune", "--task=seq2seq", f"--checkpoint={workshop / 'checkpoint'}"),
        *(f"--train={folder / 'train.tsv'}", f"--dev={folder / 'dev.tsv'}", "--epochs=2"),
        *(f"--test={folder / 'dev.tsv'}", "--text_column=review", "--target_column=title"),
        *("--max_target_length=3", "--num_beams=2", "--sequence_length=32"),
        f"--output={folder / 'writer.keras'}",
    ]
    assert main(arguments) == 0
    return folder


def test_a_writer_is_trained_evaluated_and_asked(writing, run, tmp_path):
    writer = keras.saving.load_model(writing / "writer.keras", compile=False)
    assert (writer.input_names, writer.max_target_length) == (("review",), 3)
    assert writer.sampler.num_beams == 2
    files = ("--json", tmp_path / "scores.json")
    data = ("--model", writing / "writer.keras", "--input", writing / "dev.tsv")
    status, out, err = run("evaluate", *data, "--target_column=title", *files)
    assert (status, err) == (0, "") and out.startswith("rows 6, rouge_1 ")
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["rows"] == 6 and 0 <= scores["rouge_l"] <= 100
    status, out, err = run("predict", *data, "--format=jsonl")
    assert (status, err) == (0, "")
    answers = [json.loads(line) for line in out.splitlines()]
    texts = make_reviews(6, seed=2)[0]
    assert [answer["review"] for answer in answers] == texts
    assert [answer["target"] for answer in answers] == writer.predict(texts)
    status, out, _ = run("predict", *data)
    lines = [" ".join(answer["target"].split()) for answer in answers]
    assert status == 0 and out.splitlines() == ["target", *lines]


def test_wrong_flags_and_files(writing, workshop, run, tmp_path):
    train = ("finetune", "--task=seq2seq", "--checkpoint", workshop / "checkpoint")
    data = ("--train", writing / "train.tsv", "--text_column=review")
    output = ("--output", tmp_path / "never.keras")
    (tmp_path / "empty.tsv").write_text("review\ttarget\nfine\t\n", "utf-8")
    for arguments, message in (
        ((*train, *data, *output), "has no column 'target'"),
        (
            (*train, *data, *output, "--label_column=title"),
            "is for other tables, not",
        ),
        (
            (*train, "--train", tmp_path / "empty.tsv", "--text_column=review", *output),
            "empty.tsv, line 2: the text in the column 'target' is missing",
        ),
        (
            (*train[:1], *train[2:], *data, *output, "--num_beams=3"),
            "--num_beams is for --task seq2seq, not for --task classify",
        ),
    ):
        status, _, err = run(*arguments)
        assert status in (1, 2) and message in err


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_a_server_writes_the_same(run, tmp_path):
    backbone = kbs.BertBackbone(**ONE_LAYER, attention_pattern="seq2seq", initializer_range=0.5)
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 32)
    writer = kbs.Seq2Seq(backbone, preprocessor=packer, max_target_length=3)
    writer.save(tmp_path / "writer.keras")
    saved = tmp_path / "saved" / "1"
    status, out, _ = run("export", "--model", tmp_path / "writer.keras", "--output", saved)
    assert status == 0 and "with the inputs text" in out
    (tmp_path / "texts.txt").write_text("\n".join(make_reviews(4)[0]) + "\n", "utf-8")
    answers = []
    for model in (tmp_path / "writer.keras", saved):
        status, out, err = run("predict", "--model", model, "--input", tmp_path / "texts.txt")
        assert (status, err) == (0, "")
        answers.append(out)
    assert answers[0] == answers[1] and answers[0].startswith("target\n")
