"""The Python of the README and the guides runs, on models of one layer and few rows.

A block that cannot run here begins with "```python no-run", and one for a backend with its name, as
"```python jax". The blocks of a page run one after
the other, with the names that earlier blocks made. The test writes the files that a page reads, and
gives the page the rows that it speaks of.

Blocks of shell do not run: they install, download and serve. tests/cli/test_command_line.py reads
their `keras-bert` lines.
"""

import json
import random
import re
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
from small_sentence_pieces import PIECES, make_albert
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import save_google_tf1, save_hugging_face, save_keras_hub

REPOSITORY = Path(__file__).resolve().parents[2]
BACKENDS = ("tensorflow", "jax", "torch")
PAGES = [
    REPOSITORY / "README.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
    *sorted((REPOSITORY / "docs/tasks").glob("*.md")),
    *sorted((REPOSITORY / "docs/coming_from").glob("*.md")),
    REPOSITORY / "README.zh.md",
    *sorted((REPOSITORY / "docs/zh").glob("*.md")),
]
#: Numbers that only make a program take longer.
SMALLER = [
    (r"\bbatch_size=\d+", "batch_size=2"),
    (r"\bepochs=\d+", "epochs=1"),
    (r"\bfolds=\d+", "folds=2"),
    (r"\bsteps_per_epoch=\d+", "steps_per_epoch=2"),
    (r"\bworkers=\d+", "workers=1"),
    (r"\bsequence_length=\d+", "sequence_length=24"),
    (r'from_size\(\s*"\w+", (vocabulary_size=)?30522', 'from_size("tiny", 64'),
    (r'from_size\(\s*"\w+"', 'from_size("tiny"'),
    (r"\bmax_(target_)?length=\d+", r"max_\1length=8"),
    (r"\bstride=\d+", "stride=4"),
    (r"\bnum_codes=\d+", "num_codes=4"),
    (r"\breuse_length=\d+", "reuse_length=8"),
    (r"\bmemory_length=\d+", "memory_length=8"),
    (r"\bnum_layers=6", "num_layers=1"),
    (r"keep_layers\(\[[\d, ]+\]\)", "keep_layers([0])"),
    (r"factorize_embeddings\(\d+\)", "factorize_embeddings(4)"),
    (r"share_rows\(\d+", "share_rows(6"),
    (r"\[text\] \* 20", "[text] * 2"),
]
TEXTS = ["the good film", "the bad plot", "not very good", "an awful film"]
ROWS = {
    "texts": TEXTS[:3],
    "labels": [1, 0, 1],
    "dev_texts": TEXTS[:3],
    "dev_labels": [1, 0, 1],
    "test_texts": TEXTS[:3],
    "test_labels": [1, 0, 1],
    "first_texts": TEXTS[:3],
    "second_texts": TEXTS[1:],
    "scores": [0.5, 0.0, 1.0],
    "questions": TEXTS,
    "answers": [*TEXTS[1:], "the film was dull"],
    "question": TEXTS[0],
    "documents": [" ".join(TEXTS * 5), " ".join(TEXTS * 3)],
    "document": " ".join(TEXTS * 6),
    "articles": TEXTS,
    "titles": ["film", "plot", "good", "awful"],
}
#: Rows of a page, or of a section of it, where they are others than elsewhere.
OTHER_ROWS = {
    "text_classifier": {
        "texts": TEXTS,
        "labels": ["positive", "negative"] * 2,
        "dev_labels": ["positive"] * 3,
    },
    "text_classifier: Sets of labels, and numbers": {
        "texts": TEXTS[:3],
        "dev_labels": [["joy"], ["surprise"], ["anger"]],
        "test_labels": [["joy"], ["surprise"], ["anger"]],
    },
    "text_classifier: Losses and metrics": {"labels": [["joy"], [], ["joy", "surprise"]]},
    "attribute_classifier": {
        "texts": TEXTS,
        "sizes": ["small", None, "large", "small"],
        "seasons": ["summer", "winter", "winter", ""],
        "dev_labels": {"size": ["small", "large", None], "season": ["summer", "winter", "winter"]},
    },
    "document_classifier": {"labels": ["negative", "positive"]},
    "serving": {"texts": TEXTS},
    # Each fold has a row of each class.
    "ensembles": {"texts": TEXTS, "labels": [1, 0, 1, 0]},
    "your_rows: Labels that look wrong": {"texts": TEXTS, "labels": [1, 0, 1, 0]},
}


def list_blocks(page):
    """(title of the section, line, code) of each block of Python that is to run."""
    text = page.read_text("utf-8")
    info = f"python(?: {keras.config.backend()})?"
    for match in re.finditer(rf"^```{info}\n(.*?)^```$", text, re.M | re.S):
        titles = re.findall(r"^#+ (.*)$", text[: match.start()], re.M)
        yield titles[-1], text[: match.start()].count("\n") + 1, match[1]


def mark(page):
    """A page with blocks for each backend runs on each."""
    marks = [pytest.mark.every_backend] if "```python jax" in page.read_text("utf-8") else []
    return pytest.param(page, marks=marks)


CASES = [mark(page) for page in PAGES if any(True for _ in list_blocks(page))]


def test_blocks_are_python_and_marks_are_spelled_right():
    for page in PAGES:
        for title, line, code in list_blocks(page):
            compile(code, f"{page.name}:{line}, {title}", "exec")
        infos = re.findall(r"^```(\S.*)$", page.read_text("utf-8"), re.M)
        python = {"python", *(f"python {mark}" for mark in ("no-run", *BACKENDS))}
        assert set(infos) <= {*python, "shell", "sh", "yaml", "text"}, page.name


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the pages read."""
    folder = tmp_path_factory.mktemp("pages")
    write_checkpoints(folder)
    write_tables(folder)
    (folder / "corpus").mkdir()
    rng = random.Random(0)
    for name in ("a", "b"):
        documents = ["\n".join(make_reviews(6, rng.random())[0]) for _ in range(4)]
        lines = [json.dumps({"text": document}) for document in documents]
        (folder / f"corpus/{name}.jsonl").write_text("\n".join(lines), "utf-8")
    return folder


def write_checkpoints(folder):
    keras.utils.set_random_seed(0)
    backbone = kbs.BertBackbone(**{**ONE_LAYER, "max_sequence_length": 512})
    tokenizer = kbs.WordPieceTokenizer(VOCABULARY)
    packer = kbs.SegmentPacker(tokenizer, 32)
    pretrainer = kbs.Pretrainer(backbone, preprocessor=packer)
    (folder / "path/to").mkdir(parents=True)
    for name in ("path/to/checkpoint", "path/to/bert", "bert"):
        save_hugging_face(pretrainer, folder / name, tokenizer)
    names = {"label_names": ["contradiction", "neutral", "entailment"]}
    nli = kbs.TextClassifier(backbone, **names, preprocessor=packer)
    nli.save_to_preset(folder / "path/to/nli_checkpoint")
    kbs.MaskedLM(backbone, preprocessor=packer).save_to_preset(folder / "path/to/preset")
    save_google_tf1(pretrainer, folder / "path/to/google_checkpoint", tokenizer)
    save_keras_hub(backbone, folder / "path/to/keras_hub_preset", tokenizer)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", "utf-8")
    special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>"]
    (folder / "spiece.model").write_bytes(make_albert(special, PIECES))


def write_tables(folder):
    spans = [{"text": "bad plot", "answer_start": 6}]
    entries = [{"id": str(i), "question": "what", "answers": spans} for i in range(4)]
    entries.append({"id": "4", "question": "who", "answers": [], "is_impossible": True})
    squad = json.dumps({"data": [{"paragraphs": [{"context": "a the bad plot", "qas": entries}]}]})
    tags = "the O\ngood B-PER\nfilm I-PER\n\nbad O\nplot B-LOC\n"
    characters = "高 B-NAME\n勇 E-NAME\n， O\n男 S-GENDER\n\n北 B-ORG\n京 M-ORG\n大 E-ORG\n"
    reviews = "the good film\t1\nthe bad plot\t0\nnot good\t0\nvery good\t1\n"
    pairs = "the film\tthe plot\t0\ngood film\tgood film\t1\n"
    sentences = [
        json.dumps({"sentence": text, "label": str(i % 2)}) for i, text in enumerate(TEXTS)
    ]
    table = "sentence\tlabel\nthe good film\tpositive\nthe bad plot\tnegative\n"
    relations = (
        '1\t"The <e1>film</e1> has a <e2>plot</e2>."\nHas(e1,e2)\nComment:\n\n'
        '2\t"The <e1>film</e1> was <e2>bad</e2>."\nOther\nComment:\n\n'
    )
    clicks = (
        "query\ttitle\tclicked\nfilm\ta good film\t1\nfilm\tbad\t0\nplot\tfilm\t0\nplot\tplot\t1\n"
    )
    columns = (
        "text,label,price,shop,returned\nthe good film,good,5,east,False\n"
        "the bad plot,bad,,west,True\nnot good,bad,7.5,east,True\n"
    )
    files = {
        **dict.fromkeys(["reviews.csv", "dev.csv"], columns),
        **dict.fromkeys(["train.tsv", "dev.tsv"], table),
        **dict.fromkeys(["train.txt", "dev.txt", "example.train", "example.dev"], tags),
        **dict.fromkeys(["train-v2.0.json", "dev-v2.0.json"], squad),
        **dict.fromkeys(["train.char.bmes", "dev.char.bmes"], characters),
        **dict.fromkeys(["sentiment.train.data", "sentiment.test.data"], reviews),
        **dict.fromkeys(["lcqmc.train.data", "lcqmc.test.data"], pairs),
        **dict.fromkeys(["clicks.tsv", "dev_clicks.tsv"], clicks),
        **dict.fromkeys(["TRAIN_FILE.TXT", "TEST_FILE_FULL.TXT"], relations),
        "annotations.jsonl": '{"text": "the good film", "label": [[4, 13, "FILM"]]}\n',
        "csl.tsv": "film\tthe good film\nplot\tthe bad plot\n",
        "iflytek.jsonl": "\n".join(sentences),
        "pku_training.utf8": "the good film\nthe bad plot\n",
    }
    for name, content in files.items():
        (folder / name).write_text(content, "utf-8")


@pytest.mark.long("examples")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("page", CASES, ids=lambda page: page.stem)
def test_blocks_run(page, folder, monkeypatch):
    monkeypatch.chdir(folder)
    keras.config.disable_interactive_logging()
    names = {"__name__": page.stem, "kbs": kbs, "keras": keras, **ROWS}
    names.update(OTHER_ROWS.get(page.stem, {}))
    prepare(page.stem, names)
    before = None
    for title, line, code in list_blocks(page):
        if title != before:
            names.update(OTHER_ROWS.get(f"{page.stem}: {title}", {}))
        before = title
        for pattern, replacement in SMALLER:
            code = re.sub(pattern, replacement, code)
        for path in re.findall(r'(?:export_saved_model\(\w+, |index\.save\()"(.*?)"', code):
            shutil.rmtree(path, ignore_errors=True)  # Of an earlier block or page.
        try:
            exec(compile(code, f"{page.name}:{line}", "exec"), names)
        except Exception as error:
            error.add_note(f"in the block of line {line} of {page.name}, {title}")
            raise


def prepare(page, names):
    """Makes what a page takes from another page."""
    if page == "sentence_transformers":
        pytest.importorskip("sentence_transformers")
        pytest.importorskip("datasets")
    if page == "extending":
        names["checkpoint"] = "path/to/preset"
    if page in ("frames", "frame_pretrainer"):
        draw = np.random.default_rng(0).standard_normal
        names["rows"] = [draw((n, 40)).astype("float32") for n in (24, 12, 20)]
    if page in ("techniques", "serving"):
        names["classifier"] = kbs.TextClassifier.from_preset("path/to/checkpoint", num_classes=2)
    if page == "early_exit_classifier":
        backbone = kbs.BertBackbone(**{**ONE_LAYER, "num_layers": 3})
        packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 24)
        names["classifier"] = kbs.TextClassifier(backbone, num_classes=2, preprocessor=packer)
    pretrainers = ("electra_pretrainer", "elmo_pretrainer", "seq2seq_pretrainer")
    if page in ("pretraining", "google_bert", *pretrainers):
        from keras_bert_suite.corpus import open_corpus, prepare_corpus
        from keras_bert_suite.pretraining import PretrainingBatches

        tokenizer = kbs.WordPieceTokenizer("vocab.txt")
        for name in ("shards", "wikipedia", "books"):
            if not Path(name).exists():
                prepare_corpus(["corpus/*.jsonl"], tokenizer, name, workers=1)
        backbone = kbs.BertBackbone(**ONE_LAYER)
        packer = kbs.SegmentPacker(tokenizer, 24)
        names.update(tokenizer=tokenizer, backbone=backbone, packer=packer)
        names.update(corpus=open_corpus("shards"), open_corpus=open_corpus)
        names.update(PretrainingBatches=PretrainingBatches)
