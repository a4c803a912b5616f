"""`predict` and `embed` with --engine answer many files into a folder."""

import json

import pandas as pd
import pytest
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_cli import main

TEXTS = make_reviews(20)[0]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A folder of a classifier, of an embedder and of two files. Not to be written to."""
    folder = tmp_path_factory.mktemp("shelf")
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), sequence_length=16)
    backbone = kbs.BertBackbone(**ONE_LAYER)
    names = {"label_names": ["no", "yes"]}
    kbs.TextClassifier(backbone, preprocessor=packer, **names).save_to_preset(folder / "classify")
    kbs.TextEmbedder(backbone, preprocessor=packer).save_to_preset(folder / "embed")
    for number in range(2):
        rows = range(10 * number, 10 * number + 10)
        lines = (json.dumps({"id": row, "body": TEXTS[row]}) + "\n" for row in rows)
        (folder / f"{number}.jsonl").write_text("".join(lines))
    (folder / "all.txt").write_text("\n".join(TEXTS))
    return folder


def test_the_lines_of_predict(shelf, tmp_path, capsys):
    arguments = ["predict", f"--model={shelf / 'classify'}", "--text_column=body"]
    job = ["--engine=local", f"--input={shelf}/*.jsonl", "--columns=id", f"--output={tmp_path}/out"]
    assert main([*arguments, *job]) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path}/out, 2 parts; answered 20 rows\n"
    found = pd.read_parquet(tmp_path / "out")
    assert found["id"].tolist() == list(range(20))
    lines = ["predict", f"--model={shelf / 'classify'}", f"--input={shelf}/all.txt"]
    assert main([*lines, "--format=jsonl"]) == 0
    wanted = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found["label"].tolist() == [row["label"] for row in wanted]
    for name in ("no", "yes"):
        shares = [row[name] for row in found["probabilities"]]
        assert shares == pytest.approx([row["probabilities"][name] for row in wanted], abs=1e-6)
    assert main([*arguments, *job]) == 0
    assert "2 parts, 2 of them before; answered 0 rows" in capsys.readouterr().out


def test_pairs_of_texts(shelf, tmp_path, capsys):
    rows = [{"first": TEXTS[row], "second": TEXTS[-row]} for row in range(4)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pair = ["--text_column=first", "--text_pair_column=second"]
    arguments = ["predict", f"--model={shelf / 'classify'}", *pair, "--engine=local"]
    arguments += [f"--input={tmp_path}/pairs.jsonl", f"--output={tmp_path / 'out'}"]
    assert main(arguments) == 0
    classifier = kbs.TextClassifier.from_preset(shelf / "classify")
    columns = [row["first"] for row in rows], [row["second"] for row in rows]
    wanted = classifier.predict_probabilities(columns, verbose=0)
    found = pd.read_parquet(tmp_path / "out")["probabilities"]
    for row, shares in zip(found, wanted, strict=True):
        assert [row["no"], row["yes"]] == pytest.approx(shares.tolist(), abs=1e-6)


def test_the_vectors_of_embed(shelf, tmp_path, capsys):
    arguments = ["embed", f"--model={shelf / 'embed'}", "--text_column=body", "--engine=local"]
    arguments += [f"--input={shelf}/*.jsonl", "--columns=id", f"--output={tmp_path / 'out'}"]
    assert main(arguments) == 0
    index = kbs.VectorIndex.load(tmp_path / "out")
    embedder = kbs.TextEmbedder.from_preset(shelf / "embed")
    assert index.ids == list(range(20))
    assert index.vectors == pytest.approx(embedder.index(TEXTS).vectors, abs=1e-6)


@pytest.mark.parametrize(
    "flags, message",
    [
        ("--columns=id", "--columns needs --engine"),
        ("--skip_invalid", "--skip_invalid needs --engine"),
        ("--format=parquet", "--format parquet is for --engine"),
        ("--engine=local", "--engine needs files of --input, and a folder of --output"),
        ("--engine=local --output=a --workers=2", "--workers is for --engine ray"),
        ("--engine=local --output=a --top_k=2", "--top_k is for one file. Leave it out"),
        ("--engine=local --output=a --format=tsv", "--engine writes --format parquet or jsonl"),
        ("--engine=local --output=a --model a b", "--engine answers by one --model"),
    ],
)
def test_flags_that_do_not_go_together(shelf, capsys, flags, message):
    model = f"--model={shelf / 'classify'}"
    assert main(["predict", model, f"--input={shelf}/*.jsonl", *flags.split()]) == 2
    assert message in capsys.readouterr().err
