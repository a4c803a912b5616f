"""Every flag of every command reaches the library with its value."""

import json
import shlex

import numpy as np
import pytest
from cli.flag_table import TABLES
from cli.noted_calls import LABEL_NAMES, Calls, replace_library
from small_texts import VOCABULARY

import keras_bert_cli
from keras_bert_cli import COMMANDS, main
from keras_bert_cli.command_flags import Flags

pytestmark = pytest.mark.backend("torch")  # Nothing is computed.

#: The models of the folder: the class of each, and what its configuration says.
MODELS = {
    "classify": ("TextClassifier", {"problem_type": "single_label_classification"}),
    "multilabel": ("TextClassifier", {"problem_type": "multi_label_classification"}),
    "regress": ("TextClassifier", {"problem_type": "regression"}),
    "pairs": (
        "TextClassifier",
        {"problem_type": "single_label_classification", "input_names": ["text", "sentence"]},
    ),
    "ner": ("TokenClassifier", {"label_names": ["O", "B-X", "I-X"]}),
    "attributes": ("AttributeClassifier", {"attributes": {"label": ["no", "yes"]}}),
    "relation": ("RelationClassifier", {"input_names": ["text"]}),
    "qa": ("QuestionAnswerer", {"input_names": ["question", "context"]}),
    "choice": ("MultipleChoice", {"input_names": ["prompt", "endings"]}),
    "ranking": ("TextRanker", {"input_names": ["text", "second"]}),
    "embed": ("TextEmbedder", {}),
    "other_embed": ("TextEmbedder", {}),
    "seq2seq": ("Seq2Seq", {}),
    "masked_lm": ("MaskedLM", {}),
    "other_masked_lm": ("MaskedLM", {}),
    "pretrained": ("Pretrainer", {}),
    "electra": ("ElectraPretrainer", {}),
}
MODELS["multilabel"][1]["label_names"] = ["no", "yes", "no;yes"]

TABLE = """\
text sentence second label kind opposite number half labels target
text0 sentence0 second0 no a yes 1 .5 a;b target0
text1 sentence1 second1 no a yes 2 1 b target1
text2 sentence2 second2 yes b no 3 1.5 a target2
"""

FILES = {
    "texts.txt": "a good film\na dull plot\n",
    "more.txt": "more\n",
    "vocab.txt": "\n".join(VOCABULARY) + "\n",
    "other.txt": "\n".join(VOCABULARY) + "\n",
    "phrases.txt": "good film\n",
    "similar.txt": "good\tgreat\n",
    "train.tsv": TABLE.replace(" ", "\t"),
    "semicolons.txt": TABLE.replace("a;b", "a").replace(" ", ";"),
    "tabs.txt": TABLE.replace(" ", "\t"),
    "no_header.tsv": "".join(TABLE.replace(" ", "\t").splitlines(keepends=True)[1:]),
    **{
        f"{name}.tsv": f"text\tsecond\ttarget\tlabel\tnumber\n{name}0\tx\tx\tno\t1\n"
        f"{name}1\ty\ty\tyes\t2\n"
        for name in ("other", "dev", "test")
    },
    "bits.tsv": "text\tno\tyes\tlabel\ntext0\t0\t1\t1\ntext1\t1\t1\t2\n",
    "sets.tsv": "text\tlabel\ntext0\tno;yes\ntext1\tyes\n",
    "more.jsonl": '{"text": "line0"}\n{"text": "line1"}\n',
    "words.txt": "film B-Y O\nParis O B-X\n",
    "spans.json": '{"text": "Paris", "label": [[0, 5, "X"]]}',
    "nested.txt": "film B-X O\nParis O B-X\n",
    "semeval.txt": '1\t"a <e1>b</e1> <e2>c</e2>"\nno\n',
    "types.txt": "film no\nParis yes\n",
    "inside.txt": "film I-X\nParis O\n",
    "swag.csv": "sent1,sent2,ending0,ending1,ending2,ending3,label\na,b,c,d,e,f,1\n",
    "squad.json": json.dumps(
        {
            "data": [
                {
                    "paragraphs": [
                        {
                            "context": "a b",
                            "qas": [
                                {
                                    "id": "1",
                                    "question": "?",
                                    "answers": [{"text": "a", "answer_start": 0}],
                                },
                                {"id": "2", "question": "!", "answers": [], "is_impossible": True},
                            ],
                        }
                    ]
                }
            ]
        }
    ),
    "shards/manifest.json": "{}",
    "books/manifest.json": "{}",
}


def write_files(folder):
    """The files and models that the command lines name."""
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    for name, (cls, config) in MODELS.items():
        write_preset(folder / name)
        (folder / name / "task.json").write_text(json.dumps({"class_name": cls, "config": config}))
        (folder / f"served_{name}").mkdir()
        (folder / f"served_{name}" / "saved_model.pb").touch()
        labels = folder / f"served_{name}" / "assets.extra" / "label_names.txt"
        labels.parent.mkdir()
        labels.write_text("\n".join(LABEL_NAMES[: 1 if name == "regress" else 2]))
    for name in ("bert", "other_bert"):
        write_preset(folder / name)
    np.save(folder / "vectors.npy", [[1.0, 2.0], [3.0, 4.0]])


def write_preset(path):
    path.mkdir()
    path.joinpath("config.json").write_text('{"registered_name": "keras_bert_suite>BertBackbone"}')


#: The calls of the command lines without the flag of a row. Many rows have the same.
BEFORE = {}


@pytest.fixture
def call(monkeypatch, tmp_path, capsys):
    """Function: command, arguments -> the `Calls` of the library."""
    calls = Calls()
    replace_library(monkeypatch, calls)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # --devices sets it if it is not there.

    def run_command(command, arguments, folder):
        if not folder.exists():
            folder.mkdir()
            write_files(folder)
        monkeypatch.chdir(folder)
        calls.clear()
        capsys.readouterr()
        status = main([command, *arguments])
        captured = capsys.readouterr()
        calls["printed"] = [{"status": status, "begins": captured.out[:9], "error": captured.err}]
        return Calls(calls)

    return run_command


def list_rows():
    """(command, its other flags, the flag of the row and its company, what must be seen)."""
    return [
        pytest.param(
            command,
            [*line.split(), *shlex.split(" ".join(needed))],
            shlex.split(flags),
            seen,
            id=" ".join([command, flags, *needed]),
        )
        for command, line, rows in TABLES
        for flags, seen, *needed in rows
    ]


@pytest.mark.parametrize(("command", "others", "flags", "seen"), list_rows())
def test_a_flag_reaches_the_library(call, tmp_path, command, others, flags, seen):
    line, folder = " ".join([command, *others]), tmp_path / "with"
    if line not in BEFORE or flags == ["--overwrite"]:
        BEFORE[line] = call(command, others, tmp_path / "without")
    if flags == ["--overwrite"]:  # There must be something to replace.
        folder = tmp_path / "without"
    before, after = BEFORE[line], call(command, [*others, *flags], folder)
    if isinstance(seen, str):
        assert seen in after.find("printed.error")
        return
    assert after.find("printed.status") == before.find("printed.status") == 0, (
        before.find("printed.error"),
        after.find("printed.error"),
    )
    assert {key: after.find(key) for key in seen} == seen
    assert {key: before.find(key) for key in seen} != seen, "the value is the default"


#: Flags that `main` reads itself, for every command. `test_command_line.py` has those of help.
OF_EVERY_COMMAND = {"backend", "traceback"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_has_a_row(command):
    rows = [row for name, _, rows in TABLES if name == command for row in rows]
    spelled = {flags.split()[0][2:].partition("=")[0] for flags, *_ in rows}
    defined = set(Flags(command, COMMANDS[command]).defaults) - OF_EVERY_COMMAND
    tested = {name if name in defined else name.removeprefix("no") for name in spelled}
    assert tested == defined


@pytest.mark.parametrize(("command", "line"), [(command, line) for command, line, _ in TABLES])
def test_flags_of_every_command(command, line, monkeypatch):
    given = {}

    def fail(values):
        raise ValueError("a fault")

    monkeypatch.setattr(COMMANDS[command], "run", fail)
    monkeypatch.setattr(keras_bert_cli, "choose_backend", lambda name: given.update(backend=name))
    arguments = [command, *line.split()]
    assert main(arguments) == 1 and given == {"backend": None}
    with pytest.raises(ValueError, match="a fault"):
        main([*arguments, "--traceback", "--backend=jax"])
    assert given == {"backend": "jax"}
