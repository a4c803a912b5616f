"""Each reader of the table of docs/files_we_read.md reads a file for the tasks beside it."""

import json
import re
from pathlib import Path

import keras
import numpy as np
import pytest
from small_texts import ONE_LAYER, VOCABULARY

import keras_bert_suite as kbs

PAGE = Path(__file__).resolve().parents[3] / "docs/files_we_read.md"

#: (a call of a reader, the name of a task) of each row of the table.
CASES = [
    (call, task)
    for call, tasks in re.findall(
        r"^\| .* \| `(kbs\.read_.*)` \| (.*) \|$", PAGE.read_text("utf-8"), re.M
    )
    for task in re.findall(r"\w+", tasks)
]


ROWS = [{"text": "the good film", "label": 1}, {"text": "the bad plot", "label": 0}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files of the table."""
    folder = tmp_path_factory.mktemp("files")
    answers = [{"text": "bad plot", "answer_start": 6}]
    entries = [{"id": str(i), "question": "what", "answers": answers} for i in range(4)]
    entries.append({"id": "4", "question": "who", "answers": [], "is_impossible": True})
    paragraphs = [{"context": "a the bad plot", "qas": entries}]
    endings = ",".join(f"ending{i}" for i in range(4))
    files = {
        "train.tsv": "sentence\tlabel\nthe good film\tpositive\nthe bad plot\tnegative\n",
        "pairs.csv": 'first,second,score\nthe film,the plot,0.5\n"good, film",film,1\n',
        "emotions.tsv": "text\tlabels\nthe good film\tjoy,love\nthe plot\t\n",
        "titles.tsv": "film\tthe good film\nplot\tthe bad plot\n",
        "train.txt": "the O\ngood B-FILM\nfilm I-FILM\n\nbad O\nplot B-PLOT\n",
        "annotations.jsonl": '{"text": "the good film", "label": [[4, 13, "FILM"]]}\n'
        '{"text": "the bad plot.", "label": [[8, 12, "PLOT"]]}\n',
        "train-v2.0.json": json.dumps({"data": [{"paragraphs": paragraphs}]}),
        "TRAIN_FILE.TXT": '1\t"the <e1>film</e1> <e2>plot</e2>"\nA(e1,e2)\n\n'
        '2\t"a <e1>plot</e1> <e2>film</e2>"\nOther\n',
        "swag.csv": f"sent1,sent2,{endings},label\nthe film,the,a,good,bad,plot,1\n",
        "clicks.tsv": "query\ttitle\tclicked\nfilm\ta good film\t1\nfilm\tthe plot\t0\n",
        "glue_data/SST-2/train.tsv": "sentence\tlabel\nthe good film \t1\nthe bad plot \t0\n",
    }
    (folder / "glue_data" / "SST-2").mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text(content, "utf-8")
    return folder


def test_every_reader_is_in_the_table():
    readers = {name for name in kbs.__all__ if name.startswith("read_")}
    readers.remove("read_token_parts")  # It reads a table of tokens, not rows.
    assert {call.partition("(")[0].removeprefix("kbs.") for call, _ in CASES} == readers


@pytest.mark.parametrize(("call", "task"), CASES)
def test_the_task_takes_what_the_reader_returns(call, task, folder, monkeypatch):
    monkeypatch.chdir(folder)
    examples = eval(call, {"kbs": kbs, "rows": ROWS})
    assert isinstance(examples, kbs.Examples)
    model = make_task(task, examples, call)
    model.fit(examples.x, examples.y, epochs=1, verbose=0)
    scores = model.evaluate(examples.x, examples.y, return_dict=True, verbose=0)
    assert np.isfinite(scores["loss"])


def make_task(name, examples, call):
    """A task on one layer, with the label names of examples."""
    keras.utils.set_random_seed(0)
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 16)
    if name == "RelationClassifier":
        packer.tokenizer.add_tokens(["<e1>", "</e1>", "<e2>", "</e2>"], special=True)
    sizes = {**ONE_LAYER, "vocabulary_size": packer.tokenizer.vocabulary_size()}
    pattern = {"attention_pattern": "seq2seq"} if name == "Seq2Seq" else {}
    backbone = kbs.BertBackbone(**sizes, **pattern)
    arguments = {
        "Seq2Seq": {"max_target_length": 4},
        "QuestionAnswerer": {"no_answer_threshold": 0.0},
    }.get(name, {})
    if name.endswith("Classifier"):
        arguments = {"label_names": examples.label_names}
        if problem_type := re.search(r'problem_type="(\w+)"', call):
            arguments["problem_type"] = problem_type[1]
    loss = {"loss": kbs.CoSENT()} if name == "TextEmbedder" and examples.y else {}
    model = getattr(kbs, name)(backbone, preprocessor=packer, **arguments)
    model.compile(kbs.AdamW(1e-3), **loss)
    return model
