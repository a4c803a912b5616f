"""Every flag of every command changes the real calls of the library, with its value."""

import functools
import json
import re
import shlex

import numpy as np
import pytest
from cli.flag_table import TABLES
from cli.kind_case import LABELS
from cli.kind_cases import CASES
from cli.noted_calls import Calls, Seen, to_plain
from small_sentence_pieces import make_xlm_roberta
from small_texts import ONE_LAYER, VOCABULARY

import keras_bert_cli
import keras_bert_suite as kbs
from keras_bert_cli import COMMANDS, main
from keras_bert_cli.command_flags import Flags
from keras_bert_suite.checkpoints import save_hugging_face

# New heads are not trained.
pytestmark = pytest.mark.filterwarnings("ignore:.*Train them before you use")

#: The models of the folder: the class of each, and its arguments.
MODELS = {
    **{name: case.model for name, case in CASES.items()},
    "pairs": ("TextClassifier", {**LABELS, "input_names": ("text", "sentence")}),
    "nli": ("TextClassifier", {"label_names": ["entailment", "contradiction"]}),
    "columns": (
        "TextClassifier",
        {**LABELS, "features": {"half": {"kind": "number", "mean": 1.0, "std": 0.5}}},
    ),
    "masked_lm": ("MaskedLM", {}),
    "pretrained": ("Pretrainer", {}),
}
#: Other names of models and files.
SAME = {"other_bert": "bert", "other_embed": "embed", "other_masked_lm": "masked_lm"}
SAME |= {"there": "classify", "books": "shards", "other.txt": "vocab.txt"}

TABLE = """\
text sentence second label kind opposite number half labels target
text0 sentence0 second0 no a yes 1 .5 a;b target0
text1 sentence1 second1 no a yes 2 1 b target1
text2 sentence2 second2 yes b no 3 1.5 a target2
"""
QUESTIONS = [
    {"id": "1", "question": "?", "answers": [{"text": "a", "answer_start": 0}]},
    {"id": "2", "question": "!", "answers": [], "is_impossible": True},
]
FILES = {
    "texts.txt": "a good film\na dull plot\n" * 60,
    "more.txt": "more\n",
    "vocab.txt": "\n".join(VOCABULARY) + "\n",
    "phrases.txt": "good film\n",
    "parts.txt": "good\tgo od\n",
    "similar.txt": "good\tgreat\n",
    "there.txt": "",
    "there.keras": "",
    "train.tsv": TABLE.replace(" ", "\t"),
    "semicolons.txt": TABLE.replace("a;b", "a").replace(" ", ";"),
    "no_header.tsv": "".join(TABLE.replace(" ", "\t").splitlines(keepends=True)[1:]),
    **{
        f"{name}.tsv": f"text\tlabel\n{name}0\tno\n{name}1\tyes\n"
        for name in ("other", "dev", "test")
    },
    "bits.tsv": "text\tno\tyes\tlabel\ntext0\t0\t1\t1\ntext1\t1\t1\t2\n",
    "sets.tsv": "text\tlabel\ntext0\tno;yes\ntext1\tyes\n",
    "more.jsonl": '{"text": "line0"}\n{"text": "line1"}\n',
    "words.txt": "film B-Y O\nParis O B-X\n",
    "spans.json": '{"text": "Paris", "label": [[0, 5, "X"]]}',
    "semeval.txt": "".join(
        f'{i}\t"a <e1>b</e1> <e2>c</e2>"\n{label}\n\n' for i, label in enumerate(["no", "yes"])
    ),
    "swag.csv": "sent1,sent2,ending0,ending1,ending2,ending3,label\na,b,c,d,e,f,1\n",
    "squad.json": json.dumps({"data": [{"paragraphs": [{"context": "a b", "qas": QUESTIONS}]}]}),
}


@pytest.fixture(scope="module")
def shelf(corpus, xlnet_corpus, tmp_path_factory):
    """Folder of the files and models that the command lines name. Not to be written to."""
    folder = tmp_path_factory.mktemp("shelf")
    for name, content in FILES.items():
        (folder / name).write_text(content)
    np.save(folder / "vectors.npy", np.tile([[1.0, 2.0], [3.0, 4.0]], (60, 1)))
    (folder / "shards").symlink_to(corpus)
    (folder / "pieces").symlink_to(xlnet_corpus)
    backbone = kbs.BertBackbone(**{**ONE_LAYER, "max_sequence_length": 512})
    save_hugging_face(backbone, folder / "bert", tokenizer=kbs.WordPieceTokenizer(VOCABULARY))
    mbart = kbs.MBartTokenizer(make_xlm_roberta())
    backbone = kbs.BartBackbone(
        mbart.vocabulary_size(), *(1, 2, 8, 8), pre_norm=True, scale_embeddings=True
    )
    save_hugging_face(backbone, folder / "mbart", tokenizer=mbart)
    for name, (cls, arguments) in MODELS.items():
        model = getattr(kbs, cls).from_preset(folder / "bert", **arguments)
        model.save_to_preset(folder / name)
        if name in ("classify", "embed"):
            model.adapt(kbs.LoRA(2), verbose=False)
            model.save_adapter(folder / ("lora" if name == "classify" else "lora_embed"))
    (folder / "served").mkdir()
    (folder / "served/saved_model.pb").touch()
    for name, other in SAME.items():
        (folder / name).symlink_to(folder / other)
    return folder


@pytest.fixture
def call(shelf, monkeypatch, tmp_path):
    """Function: command, arguments, names of functions -> `Calls`, until these are called."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # --devices sets it if it is not there.
    monkeypatch.chdir(tmp_path)
    for path in shelf.iterdir():
        (tmp_path / path.name).symlink_to(path)
    calls = Calls(monkeypatch)

    def run_command(command, arguments, wanted):
        calls.wanted = set(wanted)
        try:
            status = main([command, *arguments])
        except Seen:
            return calls
        assert status == 0 and not calls.wanted, f"{calls.wanted} were not called"
        return calls

    return run_command


@pytest.mark.parametrize(
    ("command", "line", "flags", "seen"),
    [
        pytest.param(command, line, flags, seen, id=f"{command} {flags}")
        for command, line, rows in TABLES
        for flags, seen in rows.items()
    ],
)
def test_a_flag_reaches_the_library(call, capsys, command, line, flags, seen):
    arguments = [*line.split(), *shlex.split(flags)]
    if isinstance(seen, str):
        parser, name = make_parser(command), find_flag(command, flags)
        value = getattr(parser.parse(arguments), name)
        assert value != parser.defaults[name], "the value is the default"
        seen = dict.fromkeys(seen.split(), to_plain(value))
    printed = dict(seen).pop("printed", None)
    keys = seen.keys() - {"printed"}
    calls = call(command, arguments, {key.partition(".")[0] for key in keys})
    for key in keys:
        assert seen[key] in calls.find(key), key
    if printed is not None:
        assert capsys.readouterr().out.startswith(printed)


@functools.cache
def make_parser(command):
    return Flags(command, COMMANDS[command])


def find_flag(command, flags):
    """The name of the first flag of a row: --nolowercase is the flag "lowercase"."""
    name = flags.split()[0][2:].partition("=")[0]
    return name if name in make_parser(command).defaults else name.removeprefix("no")


#: Flags that `main` reads itself, for every command. `test_command_line.py` has those of help.
OF_EVERY_COMMAND = {"backend", "traceback"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_has_a_row(command):
    rows = [flags for name, _, rows in TABLES if name == command for flags in rows]
    defined = set(make_parser(command).defaults) - OF_EVERY_COMMAND
    assert {find_flag(command, flags) for flags in rows} == defined


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


#: The flags of each task and head of `finetune`.
TRAINED = [flags for case in CASES.values() for flags in case.trained]


@pytest.mark.parametrize("flags", TRAINED)
def test_python_trains_with_the_same_values(call, flags):
    """What no flag says is as `compile()` and `fit(x, y)` have it."""
    line = "--checkpoint=bert --train=train.tsv --output=a.keras --checkpoint_every=0"
    calls = call("finetune", [*line.split(), *flags.split()], ["fit"])
    (given,), (opened,) = calls.noted["fit"], calls.noted["from_preset"][:1]
    task = given["self"]
    assert task.preprocessor.sequence_length == task.HEAD.sequence_length
    opened = {name: value for name, value in opened.items() if name not in ("cls", "preset")}
    twin = type(task).from_preset("bert", **opened)
    twin.compile()
    ours, theirs = (model.optimizer.get_config() for model in (task, twin))
    # Layers without a name are numbered.
    assert re.sub(r"lstm_\d+", "lstm", str(ours)) == re.sub(r"lstm_\d+", "lstm", str(theirs))
    assert type(task.loss) is type(twin.loss)
    calls.wanted = {"training_batches"}
    with pytest.raises(Seen):
        twin.fit(given["x"], given["y"], verbose=0)
    assert calls.find("training_batches.batch_size") == [given["batch_size"]]
