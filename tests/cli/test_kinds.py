"""`finetune`, `evaluate` and `predict` of the kinds of tasks: one training each, and refusals."""

import functools
import json

import keras
import pytest
from cli.kind_cases import CASES as KIND_CASES
from cli.small_kinds import RELATIONS, write_squad
from small_texts import ONE_LAYER, VOCABULARY, make_reviews
from tables import short_for

import keras_bert_suite as kbs
from keras_bert_cli import main

CASES = {name: case.learning for name, case in KIND_CASES.items() if case.learning}


#: The kinds that learn their rows in `make test`: columns, a form of their own, and texts to write.
SHORT = ("attributes", "qa", "seq2seq")


@pytest.fixture(scope="module")
def trained(workshop, tmp_path_factory):
    """Function: kind -> its model, training file and held-out file. Not to be written to.

    The kinds that are not in `SHORT` are trained for one epoch, unless they shall have learned.
    """

    @functools.cache
    def train(kind, epochs):
        case, folder = CASES[kind], tmp_path_factory.mktemp(kind)
        files = [folder / f"{name}{case.ending}" for name in ("train", "dev")]
        for seed, (path, rows) in enumerate(zip(files, case.rows, strict=True), start=1):
            case.write(path, rows, seed)
        arguments = [f"--task={kind}", f"--checkpoint={workshop / 'checkpoint'}"]
        arguments += [f"--train={files[0]}", f"--dev={files[1]}", *case.flags.split(), *epochs]
        model = folder / "model.keras"
        assert main(["finetune", *arguments, f"--output={model}"]) == 0
        return model, *files

    def find_trained(kind, learned=False):
        return train(kind, () if learned or kind in SHORT else ("--epochs=1",))

    return find_trained


@pytest.mark.parametrize("kind", short_for(CASES, *SHORT, part="combinations"))
def test_a_model_is_trained_evaluated_and_asked(trained, run, tmp_path, kind):
    case, (model, _, dev) = CASES[kind], trained(kind, learned=True)
    files = ("--model", model, "--input", dev)
    flags = (*case.evaluate.split(), "--json", tmp_path / "scores.json")
    status, printed, err = run("evaluate", *files, *flags)
    assert (status, err) == (0, "")
    asked = []
    for form in ("tsv", "jsonl"):
        status, out, err = run("predict", *files, f"--format={form}")
        assert (status, err) == (0, "")
        asked.append(out.splitlines())
    scores = json.loads((tmp_path / "scores.json").read_text())
    case.check(scores, printed, asked[0], list(map(json.loads, asked[1])), dev)


def break_answer(text):
    content = json.loads(text)
    content["data"][1]["paragraphs"][0]["qas"][0]["answers"] = [{"text": "x", "answer_start": 0}]
    return json.dumps(content)


#: Files that are refused: their content, or what changes the held-out file.
WRONG = {
    "gap.tsv": "text\ttone\twhat\n\tgood\tfilm\n",
    "spaces.tsv": "text\ttone\nx\tgood\ny\tgood \n",
    "lists.jsonl": '{"text": "x", "tone": ["good"], "what": "film"}\n',
    "reviews.tsv": "sentence\tlabel\nfine\tyes\n",
    "four.csv": lambda text: text.replace(",3\n", ",4\n", 1),
    "train.txt": "",
    "wrong.json": break_answer,
    "alone.tsv": "query\ttext\tlabel\na\tb\t1\nc\td\t0\nc\te\t1\n",
    "unmarked.txt": lambda text: text.replace("</e2>", ""),
    "empty.tsv": "review\ttarget\nfine\t\n",
}
OTHER_TABLES = "is for other tables"
#: Kind, command, file, flags, and a part of the message.
REFUSED = [
    ("attributes", "finetune", "train", "", "--task attributes needs --attribute_columns"),
    (
        *("attributes", "finetune", "train", "--attribute_columns=tone --label_column=tone"),
        OTHER_TABLES,
    ),
    (
        *("attributes", "finetune", "train", "--attribute_columns=tone --attribute_weights=what=2"),
        "--attribute_weights has 'what=2', wanted NAME=NUMBER with one of tone",
    ),
    (
        *("attributes", "finetune", "spaces.tsv", "--attribute_columns=tone"),
        "the column 'tone' has the labels ['good']",
    ),
    (
        *("attributes", "evaluate", "dev", "--attribute_columns=tone"),
        "has 1 columns, wanted one for each attribute of the model, in this order: tone, what",
    ),
    ("attributes", "evaluate", "reviews.tsv", "", "no column"),
    (
        *("attributes", "evaluate", "gap.tsv", ""),
        "line 2: the text in the column 'text' is missing",
    ),
    (
        *("attributes", "evaluate", "lists.jsonl", ""),
        "line 1: the label in the column 'tone' is a list",
    ),
    ("choice", "evaluate", "four.csv", "", "the label is '4', wanted 0, 1, 2 or 3"),
    ("choice", "evaluate", "reviews.tsv", "", "has no column 'sent1'"),
    ("choice", "evaluate", "dev", "--text_column=sent1", f"--text_column {OTHER_TABLES}"),
    ("choice", "evaluate", "train.txt", "", "neither a .tsv nor a .csv"),
    ("qa", "finetune", "wrong.json", "", "question 2-1 has 1 answers"),
    (
        *("qa", "finetune", "all.json", "--dev={dev}"),
        "has no answer, and this task answers every question",
    ),
    ("qa", "finetune", "all.json", "--text_column=x", f"--text_column {OTHER_TABLES}"),
    ("qa", "finetune", "all.json", "--class_weight=balanced", "Leave it out with --task"),
    ("qa", "evaluate", "absent.json", "", "absent.json"),
    ("ranking", "finetune", "alone.tsv", "", "Row 0, 'a', has one candidate, as have 1 of 2 rows"),
    (
        *("ranking", "finetune", "alone.tsv", "--text_column=query"),
        "--task ranking needs --text_column",
    ),
    (
        *("ranking", "finetune", "alone.tsv", "--class_weight=balanced"),
        "--class_weight is for labels",
    ),
    ("relation", "evaluate", "unmarked.txt", "", "has the marker </e2> 0 times, wanted once"),
    ("relation", "evaluate", "dev", "--text_column=text", "--text_column is for tables"),
    ("seq2seq", "finetune", "train", "--text_column=review", "has no column 'target'"),
    (
        *("seq2seq", "finetune", "train", "--text_column=review --label_column=title"),
        OTHER_TABLES,
    ),
    (
        *("seq2seq", "finetune", "empty.tsv", "--text_column=review"),
        "empty.tsv, line 2: the text in the column 'target' is missing",
    ),
    (
        *("seq2seq", "finetune", "train", "--task=classify --text_column=review --num_beams=3"),
        "--num_beams is for --task seq2seq, causal_lm, not for --task classify",
    ),
    ("causal_lm", "finetune", "train", "--text_column=a", "has a text in each line"),
    ("causal_lm", "finetune", "train", "--label_column=text", f"--label_column {OTHER_TABLES}"),
]


@pytest.mark.parametrize(("kind", "command", "file", "flags", "message"), REFUSED)
def test_what_is_refused(trained, workshop, run, tmp_path, kind, command, file, flags, message):
    model, train, dev = trained(kind)
    path = {"train": train, "dev": dev}.get(file, tmp_path / file)
    if file == "all.json":
        write_squad(path, 8, seed=3, answerable=1)
    elif file in WRONG:
        content = WRONG[file]
        path.write_text(content if isinstance(content, str) else content(dev.read_text("utf-8")))
    flags = flags.format(dev=dev).split()
    if command == "evaluate":
        status, _, err = run("evaluate", "--model", model, "--input", path, *flags)
    else:
        made = ("--checkpoint", workshop / "checkpoint", "--output", tmp_path / "never.keras")
        status, _, err = run("finetune", f"--task={kind}", *made, "--train", path, *flags)
    assert status in (1, 2) and message in err


def test_flags_of_models_that_write(trained, run):
    """A continuation is cut before a string, and tokens are drawn."""
    model, _, dev = trained("causal_lm")
    files = ("predict", "--model", model, "--input", dev, "--format=jsonl")
    flags = ("--stop=a", "--stop=o", "--max_length=2")
    written = [json.loads(line)["continuation"] for line in run(*files, *flags)[1].splitlines()]
    task = keras.saving.load_model(model, compile=False)
    assert written == task.predict(dev.read_text().splitlines(), stop=["a", "o"], max_length=2)
    status, _, err = run(*files, "--top_k=3")
    assert status == 1 and "A beam search finds the most probable text" in err
    titles, _, dev = trained("seq2seq")
    status, _, err = run("predict", "--model", titles, "--input", dev, "--max_length=2")
    assert status == 2 and "--max_length is for --task causal_lm, not for --task seq" in err
    status, _, err = run("predict", "--model", titles, "--input", dev, "--stop=a")
    assert status == 2 and "--stop is for models that continue texts, not for --task seq2seq" in err
    status, _, err = run("predict", "--model", titles, "--input", dev, "--length_penalty=0.5")
    assert status == 2 and "--length_penalty is for a beam search" in err


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("kind", ["choice", "qa"])
def test_a_saved_model_answers_as_the_model(trained, run, kind):
    model, _, dev = trained(kind, learned=True)
    saved = dev.parent / "saved/1"
    assert run("export", "--model", model, "--output", saved)[0] == 0
    answers = []
    for path in (model, saved):
        status, out, err = run("predict", "--model", path, "--input", dev, "--format=jsonl")
        assert (status, err) == (0, "")
        answers.append(list(map(json.loads, out.splitlines())))
    for line, served in zip(*answers, strict=True):
        if kind == "choice":
            assert line["choice"] == served["choice"]
        else:
            assert line["answer"] == served["answer"]
            assert line["score"] == pytest.approx(served["score"], abs=1e-4)
    if kind == "qa":
        check_half_characters(run, saved, dev.parent)


def check_half_characters(run, model, folder):
    """JSON may hold them, and UTF-8 may not."""
    path, output = folder / "halves.json", folder / "halves.jsonl"
    write_squad(path, 2, seed=4)
    path.write_text(path.read_text().replace('"question": "', '"question": "\\ud83d '))
    arguments = ("--model", model, "--input", path)
    assert run("predict", *arguments, "--output", output, "--overwrite") == (0, "", "")
    status, out, err = run("predict", *arguments)
    assert (status, err) == (0, "") and output.read_text() == out
    assert json.loads(out.splitlines()[0])["question"].startswith("\ud83d ")


def test_half_characters(trained, run):
    model, _, dev = trained("qa")
    check_half_characters(run, model, dev.parent)
    arguments = ("--model", model, "--input", dev.parent / "halves.json")
    assert run("evaluate", *arguments)[0] == 0


def test_one_question(trained, run, tmp_path):
    (tmp_path / "article.txt").write_text("the film was\nvery good . it was fine\n")
    arguments = ("--model", trained("qa")[0], "--input", tmp_path / "article.txt")
    status, out, err = run("predict", *arguments, "--question", "what was it")
    assert (status, err) == (0, "")
    assert json.loads(out)["answer"] == "very good" and json.loads(out)["start"] == 13
    table = tmp_path / "questions.tsv"
    table.write_text("context\tquestion\nit was very good\twas it\n")
    status, out, _ = run("predict", *arguments[:2], "--input", table)
    assert status == 0 and json.loads(out)["answer"] == "very good"
    status, _, err = run("predict", *arguments)
    assert status == 2 and "a question needs its context" in err
    status, _, err = run("predict", *arguments[:2], "--input", table, "--question=who")
    assert status == 2 and "--question is about one text" in err


def test_heads_of_checkpoints(trained, run, tmp_path):
    """A head for answers is kept by `convert`, and found by `predict`."""
    model, _, dev = trained("qa")
    arguments = ("--input", model, "--to=huggingface", "--output", tmp_path / "hf")
    assert run("convert", *arguments)[::2] == (0, "")
    assert kbs.QuestionAnswerer.from_preset(tmp_path / "hf").no_answer_threshold is None
    arguments = ("--model", tmp_path / "hf", "--input", dev)
    status, out, err = run("predict", *arguments)
    assert (status, err) == (0, "") and len(out.splitlines()) == 24
    # Some questions have no answer, and the checkpoint answers all. Its scores say so.
    status, out, err = run("evaluate", *arguments)
    assert status == 0 and "questions 24" in out, err


def test_relations_in_files_of_all_forms(trained, run, tmp_path):
    model, _, dev = trained("relation")
    lines = dev.read_text().splitlines()
    texts = [line.split('"')[1] for line in lines[::4]]
    table = zip(texts, lines[1::4], strict=True)
    contents = {
        "alone.txt": "\n".join(lines[::4]),
        "texts.txt": "\n".join(texts),
        "dev.tsv": "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in table),
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    predict, evaluate = ((command, "--model", model) for command in ("predict", "evaluate"))
    wanted = run(*predict, "--input", dev)
    assert wanted[0] == 0
    assert run(*predict, "--input", tmp_path / "alone.txt") == wanted
    assert run(*predict, "--input", tmp_path / "texts.txt") == wanted
    scores = [run(*evaluate, "--input", path) for path in (tmp_path / "dev.tsv", dev)]
    assert scores[0] == scores[1] and scores[0][0] == 0


def test_a_long_text_is_cut_around_its_entities(workshop, run, tmp_path):
    """So there is no advice to keep the end, which this task cannot do."""
    lines = [f'{i}\t"{"film " * 40}<e1>a</e1> <e2>b</e2>"\n{RELATIONS[i]}\n' for i in range(2)]
    (tmp_path / "long.txt").write_text("".join(lines))
    status, out, _ = run(
        *("finetune", "--task=relation", f"--checkpoint={workshop / 'checkpoint'}", "--epochs=1"),
        *(f"--train={tmp_path / 'long.txt'}", "--sequence_length=16"),
        f"--output={tmp_path / 'model.keras'}",
    )
    assert status == 0 and "--truncation" not in out


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
