"""Small files as the tools write them, each by the documents of its tool."""

import json

import pytest

from keras_bert_suite import read_annotations

ROCKET = "\U0001f680"
FIREMEN = "\U0001f468\U0001f3fb\u200d\U0001f692 firemen drive firetrucks"


def lines(*rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def task(id, text, *regions, **more):
    """A task of Label Studio with an annotation of (start, end, text, label)."""
    results = [
        {
            "value": {"start": start, "end": end, "text": part, "labels": [label]},
            "id": "x",
            "from_name": "label",
            "to_name": "text",
            "type": "labels",
            "origin": "manual",
        }
        for start, end, part, label in regions
    ]
    annotation = {"id": 9, "completed_by": 1, "was_cancelled": False, "ground_truth": False}
    return {"id": id, "data": {"text": text}, "annotations": [{**annotation, "result": results}]}


#: name -> (file, content, texts, (text, type) of the spans of each text).
FILES = {
    "doccano": (
        "all.jsonl",
        lines(
            {"id": 4, "text": "EU rejects a call", "label": [[0, 2, "ORG"]], "Comments": []},
            {"id": 5, "text": "Peter Blackburn", "label": []},
        ),
        ["EU rejects a call", "Peter Blackburn"],
        [[("EU", "ORG")], []],
    ),
    "doccano before 1.6": (
        "project.json1",
        lines({"id": 1, "text": "EU rejects", "meta": {}, "annotation_approver": None,
               "labels": [[0, 2, "ORG"]]}),
        ["EU rejects"],
        [[("EU", "ORG")]],
    ),
    "doccano, numbers of labels": (
        "project.json",
        lines({"id": 1, "text": "EU rejects", "annotations": [
            {"label": 2, "start_offset": 0, "end_offset": 2, "user": 1}]}),
        ["EU rejects"],
        [[("EU", "2")]],
    ),
    "doccano, relations": (
        "admin.jsonl",
        lines({"id": 1, "text": "Google was founded on September 4", "entities": [
            {"id": 0, "start_offset": 0, "end_offset": 6, "label": "ORG"},
            {"id": 1, "start_offset": 22, "end_offset": 33, "label": "DATE"}],
            "relations": [{"from_id": 0, "to_id": 1, "type": "foundedAt"}]}),
        ["Google was founded on September 4"],
        [[("Google", "ORG"), ("September 4", "DATE")]],
    ),
    "doccano, intents": (
        "slots.jsonl",
        lines({"text": "Find a flight to Oslo", "cats": ["a"], "entities": [[17, 21, "city"]]}),
        ["Find a flight to Oslo"],
        [[("Oslo", "city")]],
    ),
    "Label Studio": (
        "project-1.json",
        json.dumps([task(7, "Ada in Rome", (0, 3, "Ada", "PER"), (7, 11, "Rome", "LOC"))]),
        ["Ada in Rome"],
        [[("Ada", "PER"), ("Rome", "LOC")]],
    ),
    "Label Studio, code units": (
        "project-1.json",
        json.dumps([task(7, FIREMEN, (22, 32, "firetrucks", "CAR")), task(8, "Ada")]),
        [FIREMEN, "Ada"],
        [[("firetrucks", "CAR")], []],
    ),
    "Label Studio, characters": (
        "project-1.json",
        json.dumps([task(7, FIREMEN, (19, 29, "firetrucks", "CAR"))]),
        [FIREMEN],
        [[("firetrucks", "CAR")]],
    ),
    "Label Studio 0.9": (
        "result.json",
        json.dumps([{"id": 0, "data": {"review": "Ada in Rome", "url": "https://a.b"},
                     "completions": [{"result": task(0, "", (7, 11, "Rome", "LOC"))
                                      ["annotations"][0]["result"]}]}]),
        ["Ada in Rome"],
        [[("Rome", "LOC")]],
    ),
    "Label Studio, line ends": (
        "project-1.json",
        json.dumps([task(7, "Ada\nLovelace", (0, 12, "Ada\\nLovelace", "PER"))]),
        ["Ada\nLovelace"],
        [[("Ada\nLovelace", "PER")]],
    ),
    "Label Studio, several labels": (
        "project-1.json",
        json.dumps([{"id": 1, "data": {"text": "Rome"}, "annotations": [{"result": [
            {"type": "labels", "value": {"start": 0, "end": 4, "labels": ["LOC", "ORG"]}}]}]}]),
        ["Rome"],
        [[("Rome", "LOC"), ("Rome", "ORG")]],
    ),
    "Label Studio, JSON-MIN": (
        "project-1-min.json",
        json.dumps([
            {"review": "Ada in Rome", "id": 3, "label": [
                {"start": 7, "end": 11, "text": "Rome", "labels": ["LOC"]}],
             "annotator": 1, "annotation_id": 2, "created_at": "2026-01-01", "lead_time": 3.5},
            {"review": "no one", "id": 4, "annotator": 1, "annotation_id": 3},
        ]),
        ["Ada in Rome", "no one"],
        [[("Rome", "LOC")], []],
    ),
    "spaCy": (
        "train.json",
        json.dumps([["I like London", {"entities": [[7, 13, "LOC"]]}], ["Hi", {"entities": []}]]),
        ["I like London", "Hi"],
        [[("London", "LOC")], []],
    ),
    "spaCy, Doc.to_json": (
        "docs.jsonl",
        lines({"text": "I like London", "ents": [{"start": 7, "end": 13, "label": "LOC"}],
               "tokens": [{"id": 0, "start": 0, "end": 1}]}),
        ["I like London"],
        [[("London", "LOC")]],
    ),
    "spaCy 2": (
        "train.json",
        json.dumps([{"id": 0, "paragraphs": [{"raw": "In New  York.", "sentences": [{"tokens": [
            {"id": 0, "orth": "In", "ner": "O"}, {"id": 1, "orth": "New", "ner": "B-GPE"},
            {"id": 2, "orth": "York", "ner": "L-GPE"}, {"id": 3, "orth": ".", "ner": "O"}]}]}]}]),
        ["In New  York."],
        [[("New  York", "GPE")]],
    ),
    "spaCy, NER Annotator": (
        "annotations.json",
        json.dumps({"classes": ["LOC"], "annotations": [["I like London", {"entities": [
            [7, 13, "LOC"]]}], None]}),
        ["I like London"],
        [[("London", "LOC")]],
    ),
    "Prodigy": (
        "db-out.jsonl",
        lines({"text": "Apple grows", "_input_hash": 1, "_task_hash": 2, "tokens": [], "spans": [
            {"start": 0, "end": 5, "token_start": 0, "token_end": 0, "label": "ORG"}],
            "_view_id": "ner_manual", "answer": "accept"}),
        ["Apple grows"],
        [[("Apple", "ORG")]],
    ),
    "CLUENER": (
        "train.json",
        lines({"text": "浙商银行企业信贷部叶老桂博士", "label": {
            "name": {"叶老桂": [[9, 11]]}, "company": {"浙商银行": [[0, 3]]}}},
            {"text": "看", "label": {}}),
        ["浙商银行企业信贷部叶老桂博士", "看"],
        [[("浙商银行", "company"), ("叶老桂", "name")], []],
    ),
    "CMeEE": (
        "CMeEE_train.json",
        json.dumps([{"text": "（5）房室结消融", "entities": [
            {"start_idx": 3, "end_idx": 7, "type": "pro", "entity": "房室结消融"},
            {"start_idx": 3, "end_idx": 5, "type": "bod", "entity": "房室结"}]}]),
        ["（5）房室结消融"],
        [[("房室结", "bod"), ("房室结消融", "pro")]],
    ),
}  # fmt: skip


def list_entities(read):
    """(text, type) of the spans of each text, by slices of Python."""
    return [
        [(text[start:end], kind) for start, end, kind in spans]
        for text, spans in zip(read.x, read.y, strict=True)
    ]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_files_of_the_tools(name, mark, tmp_path, recwarn):
    file, content, texts, entities = FILES[name]
    (tmp_path / file).write_text(mark + content, "utf-8")
    read = read_annotations(tmp_path / file)
    assert (read.x, list_entities(read)) == (texts, entities)
    assert read.label_names == sorted({kind for row in entities for _, kind in row})
    assert not recwarn.list


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "gb18030"])
def test_line_ends_and_encodings(end, encoding, tmp_path):
    file, content, texts, entities = FILES["CLUENER"]
    (tmp_path / file).write_bytes(content.replace("\n", end).encode(encoding))
    read = read_annotations(tmp_path / file, encoding=encoding)
    assert (read.x, list_entities(read)) == (texts, entities)
    assert read.lines == [1, 3 if end == "\n\n" else 2]
    if encoding == "utf-16":
        with pytest.raises(ValueError, match="name the encoding"):
            read_annotations(tmp_path / file)


def test_where_a_text_is(tmp_path):
    path = tmp_path / "all.jsonl"
    path.write_text(FILES["doccano"][1])
    read = read_annotations(path)
    assert (read.ids, read.lines) == (["4", "5"], [1, 2])
    assert read.locate(1) == f"{path}, line 2"
    path = tmp_path / "project.json"
    path.write_text(FILES["Label Studio"][1])
    assert read_annotations(path).locate(0) == f"{path}, id 7"


BRAT = {
    "a.txt": "Ada Lovelace, and Grace\nHopper.\n",
    "a.ann": "T1\tPER 0 12\tAda Lovelace\n"
    "T2\tPER 18 23;24 30\tGrace Hopper\n"
    "T3\tPER 0 3;18 23\tAda Grace\n"
    "E1\tMeet:T1\n"
    "R1\tknows Arg1:T1 Arg2:T2\n"
    "*\tEquiv T1 T3\n"
    "A1\tFamous T1\n"
    "N1\tReference T1 Wikipedia:1\tAda\n"
    "#1\tAnnotatorNotes T1\tborn 1815\n",
    "b/b.txt": "no one",
    "b/b.ann": "",
    "c.txt": "not yet",
}


def write_brat(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode())
    return folder


def test_a_folder_of_brat(tmp_path):
    folder = write_brat(tmp_path, BRAT)
    with pytest.warns(UserWarning, match="of 2 texts 1 with a span of several pieces, not read"):
        read = read_annotations(folder)
    assert read.x == [BRAT["a.txt"], "no one"] and read.ids == ["a", "b/b"]
    assert list_entities(read) == [[("Ada Lovelace", "PER"), ("Grace\nHopper", "PER")], []]
    assert read.left_out == {
        "a text without annotations": ["c.txt"],
        "a span of several pieces": ["a"],
        "an event": ["a.ann, line 4"],
        "a relation": ["a.ann, line 5"],
        "an equivalence": ["a.ann, line 6"],
        "an attribute": ["a.ann, line 7"],
        "a normalization": ["a.ann, line 8"],
        "a note": ["a.ann, line 9"],
    }
    for name in ("b/b.ann", "b/b.txt"):
        one = read_annotations(folder / name)
        assert (one.x, one.y, one.ids) == (["no one"], [[]], ["b"])


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({"a.ann": "T1\tPER 0 3\tAda"}, "a.ann has no text beside it. Wanted the file a.txt"),
        (
            {"a.txt": "Ada", "a.ann": "T1 PER 0 3 Ada"},
            "a.ann, line 1: got 'T1 PER 0 3 Ada', wanted",
        ),
        ({"a.txt": "Ada", "a.ann": "\nT1\tPER x 3\tAda"}, "a.ann, line 2: got"),
        ({"a.txt": "Ada"}, "has no files that end in .ann"),
    ],
)
def test_wrong_files_of_brat(files, error, tmp_path):
    with pytest.raises(ValueError, match=error):
        read_annotations(write_brat(tmp_path, files))


def test_what_is_no_annotation_is_counted(tmp_path):
    """Cancelled annotations, predictions, results without a place, texts without annotations."""
    full = task(1, "Ada in Rome", (0, 3, "Ada", "PER"))
    full["annotations"][0]["result"] += [
        {"type": "choices", "value": {"choices": ["good"]}},
        {"type": "relation", "from_id": "x", "to_id": "y"},
        {"type": "hypertextlabels", "value": {"start": "/p[1]/text()[1]", "startOffset": 3}},
    ]
    full["annotations"].append({"was_cancelled": True, "result": []})
    full["predictions"] = [{"result": []}]
    path = tmp_path / "project.json"
    path.write_text(json.dumps([full, {"id": 2, "data": {"text": "x"}, "annotations": []}]))
    read = read_annotations(path)
    assert list_entities(read) == [[("Ada", "PER")]]
    assert read.left_out == {
        "a prediction of a model": ["1"],
        "an annotation that was cancelled": ["1"],
        "a result of the type choices": ["1"],
        "a result of the type relation": ["1"],
        "a result of the type hypertextlabels": ["1"],
        "a text without annotations": ["2"],
    }
    html = task(3, "<p>Ada</p>")
    html["annotations"][0]["result"] = full["annotations"][0]["result"][-1:]
    path.write_text(json.dumps([full, html]))  # The text of HTML is not one without entities.
    read = read_annotations(path)
    assert len(read) == 1
    assert read.left_out["a text all of whose spans are places in HTML or in a dialogue"] == ["3"]
    path.write_text(
        lines({"text": "a", "spans": [], "answer": "accept"}, {"text": "b", "answer": "reject"},
              {"text": "c", "spans": [], "answer": "ignore"}, {"text": "d"})
    )  # fmt: skip
    read = read_annotations(path)
    assert (read.x, read.y) == (["a"], [[]])
    assert read.left_out == {
        "a text with the answer reject": [2],
        "a text with the answer ignore": [3],
        "a text without annotations": [4],
    }
    ada = {"text": "Ada", "label": {"PER": {"Ada": [[0, 2]]}}}
    path.write_text(lines(ada, {"text": "a", "label": None}, {"text": "b"}))  # CLUENER
    read = read_annotations(path)
    assert (read.x, read.left_out) == (["Ada"], {"a text without annotations": [2, 3]})
    words = [{"orth": "Ada", "ner": "U-PER"}, {"orth": "in", "ner": "O"}]
    missing = [*words, {"orth": "Rome", "ner": "-"}]
    path.write_text(
        lines(*({"paragraphs": [{"sentences": [{"tokens": w}]}]} for w in (words, missing)))
    )
    read = read_annotations(path)  # spaCy 2 writes - for a tag that is not known.
    assert (read.x, list_entities(read)) == (["Ada in"], [[("Ada", "PER")]])
    assert read.left_out == {"a text with tags that are missing, -": [2]}
    path.write_text(lines(["Ada", [[0, 3, "PER"]]], ["Rome", [[0, 4, "LOC"]]]))  # spaCy, bare
    assert list_entities(read_annotations(path)) == [[("Ada", "PER")], [("Rome", "LOC")]]
    path.write_text(lines({"text": "a", "label": []}, {"text": "b", "label": None}, {"text": ""},
                          {"text": " ", "label": []}))  # fmt: skip
    with pytest.warns(UserWarning, match="of 2 texts 1 left out"):
        read = read_annotations(path)
    assert read.x == ["a"]
    assert read.left_out == {"a text without annotations": [2, 3], "no words": [4]}


SAME = (0, 3, "Ada", "PER")
OTHER = (7, 11, "Rome", "LOC")


def test_several_annotators(tmp_path):
    """Those who agree are one; a ground truth is taken; the others are an error."""
    path = tmp_path / "project.json"

    def write(*groups, **marks):
        annotations = [task(1, "", *group)["annotations"][0] for group in groups]
        for annotation, truth in zip(annotations, marks.get("truth", ()), strict=False):
            annotation["ground_truth"] = truth
        data = {"text": "Ada in Rome"}
        path.write_text(json.dumps([{"id": 1, "data": data, "annotations": annotations},
                                    task(2, "Ada", SAME)]))  # fmt: skip

    write([SAME, OTHER], [OTHER, SAME])
    assert [len(spans) for spans in read_annotations(path).y] == [2, 1]
    write([SAME], [OTHER], truth=(True, False))
    assert list_entities(read_annotations(path))[0] == [("Ada", "PER")]
    write([SAME], [OTHER])
    with pytest.raises(
        ValueError, match="id 1: 2 annotations have not the same spans.*1 of 2 texts"
    ):
        read_annotations(path)
    with pytest.warns(UserWarning, match="1 with annotators who disagree, the last one read"):
        read = read_annotations(path, errors="fix")
    assert list_entities(read)[0] == [("Rome", "LOC")]
    assert read.corrected == {"annotators who disagree": ["1"]}
    with pytest.warns(UserWarning, match="1 with annotators who disagree, left out"):
        read = read_annotations(path, errors="skip")
    assert read.ids == ["2"] and read.left_out == {"annotators who disagree": ["1"]}
    path.write_text(json.dumps([task(1, "Ada", SAME), task(1, "Ada came")]))  # Of two projects.
    assert [len(spans) for spans in read_annotations(path).y] == [1, 0]


WANTED = "Wanted JSON of doccano, Label Studio"


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("a.jsonl", '{"words": ["a"], "tags": ["O"]}', f"line 1: got the keys 'words'.*{WANTED}"),
        ("a.jsonl", lines({"text": "a", "label": "good"}), "Labels of whole texts are read by"),
        ("a.jsonl", lines({"text": "a", "label": ["good"]}), "Labels of whole texts are read by"),
        ("a.jsonl", lines({"tokens": ["a"], "ner_tags": ["O"]}), "It has words and tags already"),
        ("a.jsonl", lines({"text": "a"}, {"text": "b"}), "has no annotations: got the keys"),
        ("a.jsonl", lines({"text": "a", "label": None}), "has no annotations"),
        ("a.jsonl", lines({"text": "a", "label": [[0, 1, "X"]]}, ["a", {"entities": []}]),
         "line 2: got .*Wanted doccano's .*, as in line 1"),
        ("a.jsonl", lines({"text": "a", "label": [[0, 1, "X"]]}) + "{", "line 2: Expecting"),
        ("a.jsonl", lines({"text": "a", "label": [[0, 1]]}), "line 1: wanted doccano.*ValueError"),
        ("a.jsonl", lines({"text": "a", "label": [[0.5, 1, "X"]]}), "whole number, got 0.5"),
        ("a.jsonl", lines({"text": "a", "label": [[True, 1, "X"]]}), "whole number, got True"),
        ("a.jsonl", '{"text": "a", "label": [[0, Infinity, "X"]]}', "whole number, got inf"),
        ("a.jsonl", lines({"text": "a", "label": [[0, 1, {"a": 1}]]}), "a label is .*'a': 1"),
        ("a.jsonl", lines({"text": "a", "id": [3], "label": [[0, 1, "X"]]}),
         r"line 1: .*TypeError: the id is '\[3\]'"),
        ("a.jsonl", lines({"text": "a", "spans": [{"start": 0, "end": 1, "label": "", "text": 5}]}),
         "line 1: .*TypeError: the text of a span is '5'"),
        ("a.jsonl", lines({"text": "a", "label": [[0, 1, "X"]], "entities": [[0, 1, "Y"]]}),
         "spans in label and in entities; remove one of them"),
        ("a.json", "[]", "a.json has no texts"),
        ("a.json", "7", "a.json has no texts"),
        ("a.json", "", "a.json is not JSON"),
        ("a.json", "[" * 100_000, "a.json is not JSON"),
        ("a.txt", "Ada B-PER\nin O\n", "not JSON.*in each line are read by read_conll"),
        ("a.json", '{"%TYPES": {}, "%FEATURE_STRUCTURES": []}', "It is of INCEpTION or UIMA"),
        ("a.json", '{"data": {"a": "x", "b": "y"}, "annotations": [{"result": []}]}',
         "wanted one text in the data of each task, and got the texts 'a', 'b'. Call the texts"),
        ("a.json", json.dumps([{"id": 1, "data": {"text": "https://a.b/c.txt"}, "annotations": [
            {"result": [{"value": {"start": 3, "end": 90, "labels": ["X"]}}]}]}]),
         "the file has the address of a text, https://a.b/c.txt, and not it"),
        ("a.json", json.dumps([task(1, "a"), task(2, None)]), "row 1: .*KeyError: 'text'"),
        ("a.spacy", "x", "is a DocBin of spaCy, which is binary. Write its documents as JSON"),
        ("a.xmi", "x", "is of INCEpTION or UIMA. Export it as CoNLL 2002"),
        ("a.zip", "x", "is an archive. Unpack it"),
        ("a.csv", "x", "is a table. Export the annotations as JSON"),
    ],
)  # fmt: skip
def test_other_files(name, content, error, tmp_path):
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(ValueError, match=error):
        read_annotations(tmp_path / name)


@pytest.mark.parametrize("argument", ["scheme", "errors", "offsets"])
def test_wrong_arguments(argument, tmp_path):
    with pytest.raises(ValueError, match=f"{argument} must be one of .*, got 'bio'"):
        read_annotations(tmp_path / "a.jsonl", **{argument: "bio"})
