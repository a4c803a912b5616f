"""Scores of tasks over noise: the report, its files, and the tasks that are refused."""

import json

import numpy as np
import pytest
from heads.cases import SPANS, TAGS, WORDS
from matplotlib.image import imread
from peer_weights import randomize
from small_tasks import make_task
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

import keras_bert_suite as kbs

TEXTS, LABELS = make_reviews(40, seed=1)
LETTERS = [f"{mark}{letter}" for letter in "bcdefghijklmnopqrstuvwxyz" for mark in ("", "##")]


@pytest.fixture(scope="module")
def classifier():
    """A classifier with an answer of its own for each text, half of them right."""
    tokenizer = kbs.WordPieceTokenizer([*dict.fromkeys([*VOCABULARY, *LETTERS])])
    packer = kbs.SegmentPacker(tokenizer, 24)
    sizes = {**ONE_LAYER, "vocabulary_size": tokenizer.vocabulary_size()}
    backbone = kbs.BertBackbone(**sizes)
    task = kbs.TextClassifier(backbone, label_names=["no", "yes"], preprocessor=packer)
    randomize(task)
    task.classifier.bias.assign_sub([0, np.median(np.diff(task.predict(TEXTS, verbose=0)))])
    return task


@pytest.fixture(scope="module")
def report(classifier):
    return kbs.robustness(
        classifier,
        TEXTS,
        LABELS,
        kinds=["swap", "lost_space"],
        rates=[0.1, 0.5],
        seeds=[3, 4],
        attacks=[kbs.MisspellingAttack(kinds="swap"), kbs.DeepWordBug()],
        attacked_rows=12,
    )


def test_scores_are_those_of_noisy_texts(classifier, report):
    assert report.clean == classifier.score(TEXTS, LABELS)["accuracy"]
    assert [*report.scores] == [
        *("swap 0.1", "swap 0.5", "lost_space 0.1", "lost_space 0.5"),
        *("misspellings: 1 (swap)", "DeepWordBug"),
    ]
    for found in report.noises:
        texts = [kbs.TextNoise(found.kind, found.rate)(TEXTS, [seed, 0]) for seed in (3, 4)]
        assert found.scores == tuple(classifier.score(t, LABELS)["accuracy"] for t in texts)
        shares = [np.mean([a != b for a, b in zip(t, TEXTS, strict=True)]) for t in texts]
        assert found.changed == pytest.approx(np.mean(shares)) and found.changed > 0.2


def test_attacks_are_held_against_the_classifier(classifier, report):
    for attack in report.attacks:
        assert len(attack.attempts) == 12 and attack.flipped
        for attempt in attack.attempts:
            label = LABELS[TEXTS.index(attempt.text)]
            assert classifier.label_names[attempt.label] == label
            (answer,) = classifier.predict_labels([attempt.changed_text], verbose=0)
            assert answer == classifier.label_names[attempt.predicted]
        right = classifier.predict_labels([a.text for a in attack.attempts], verbose=0)
        names = [classifier.label_names[a.label] for a in attack.attempts]
        assert attack.clean == np.mean([a == b for a, b in zip(right, names, strict=True)])
        assert attack.score == pytest.approx(attack.clean - len(attack.flipped) / 12)


def test_the_table_the_file_and_the_picture(report, tmp_path):
    lines = str(report).splitlines()
    assert lines[0].startswith("| noise          | accuracy |")
    assert lines[2].split()[1:4] == ["none", "|", f"{report.clean:.4f}"]
    swap = report.noises[0]
    cells = [cell.strip() for cell in lines[3].strip("|").split("|")]
    change, share = swap.score - report.clean, f"{swap.changed:.0%}"
    lowest = f"{min(swap.scores):.4f}"
    assert cells == ["swap 0.1", f"{swap.score:.4f}", f"{change:+.4f}", lowest, share]
    assert lines[-1].startswith("| DeepWordBug            |   12 |")
    # Without a blank line between them, Markdown reads one table.
    tables = [table.splitlines() for table in str(report).split("\n\n")]
    assert [len(table) - 2 for table in tables] == [1 + len(report.noises), len(report.attacks)]

    report.save(tmp_path / "report.json")
    saved = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert saved["clean"] == report.clean and saved["metric"] == "accuracy"
    assert saved["noises"][1]["scores"] == list(report.noises[1].scores)
    attack = report.attacks[0]
    assert saved["attacks"][0]["queries"] == sum(a.queries for a in attack.attempts)
    texts = [row["changed_text"] for row in saved["attacks"][0]["flipped"]]
    assert texts == [a.changed_text for a in attack.flipped]

    report.plot(tmp_path / "report.png")
    assert imread(tmp_path / "report.png").std() > 0.05
    axes = kbs.plot_robustness({"before": report, "after": report}).axes[0]
    assert [bar.get_width() for bar in axes.patches] == [*report.scores.values()] * 2
    assert [label.get_text() for label in axes.get_yticklabels()] == [*report.scores]


def test_reports_of_other_noises_are_not_drawn_together(classifier, report):
    other = kbs.robustness(classifier, TEXTS, LABELS, kinds="swap", seeds=[0])
    with pytest.raises(ValueError, match="same noises, attacks and metric, got accuracy over swap"):
        kbs.plot_robustness({"before": report, "after": other})
    with pytest.raises(ValueError, match="got none"):
        kbs.plot_robustness({})


def test_documents_are_attacked_by_all_of_their_windows():
    task, (texts, labels) = make_task("documents")
    attack = kbs.DeepWordBug(max_words=2)
    report = kbs.robustness(task, texts, labels, kinds=[], attacks=[attack], seeds=[0])
    answers = task.predict_labels([a.changed_text for a in report.attacks[0].attempts], verbose=0)
    wanted = [task.label_names[a.predicted] for a in report.attacks[0].attempts]
    assert answers == wanted and report.attacks[0].queries > 1


def test_kinds_that_find_a_place_are_taken(classifier):
    report = kbs.robustness(classifier, ["good"], ["yes"], seeds=[0])
    assert [noise.kind for noise in report.noises] == [
        *("keyboard", "swap", "delete", "insert", "ocr", "added_space", "homoglyph")
    ]
    report = kbs.robustness(classifier, ["电"], ["yes"], seeds=[0])
    assert [noise.kind for noise in report.noises] == ["keyboard", "insert", "homophone"]


def test_pairs_and_some_of_their_columns(classifier):
    seen = []

    def score(x):
        seen.append(x)
        return {"f1": 0.5, "rows": 2}

    pair = (["good film", "dull plot"], ["a bad plot", "great acting"])
    arguments = {"kinds": "delete", "rates": 0.5, "seeds": [1], "score": score}
    report = kbs.robustness(classifier, pair, [0, 1], columns=[1], **arguments)
    noise = kbs.TextNoise("delete", 0.5)
    assert seen == [pair, (pair[0], noise(pair[1], [1, 0]))] and report.metric == "f1"
    named = dict(zip(["a", "b"], pair, strict=True))
    kbs.robustness(classifier, named, [0, 1], **arguments)
    assert seen[-1] == {"a": noise(pair[0], [1, 0]), "b": noise(pair[1], [1, 1])}


def test_columns_that_are_no_texts_stay():
    """The condition of a row, and columns that are not chosen."""
    backbone = kbs.BertBackbone(**ONE_LAYER, norm_condition=kbs.NormCondition(2))
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 16)
    task = kbs.TextClassifier(backbone, num_classes=2, preprocessor=packer)
    rows = {"text": ["good film", "bad plot"], "condition": [[1, 0], [0, 1]]}
    for columns in (None, ["text"]):
        report = kbs.robustness(task, rows, [0, 1], kinds="swap", seeds=[0], columns=columns)
        assert len(report.noises) == 1
    seen = []
    rows = {"text": rows["text"], "year": [1999, 2000]}
    arguments = {"kinds": "swap", "seeds": [0], "score": lambda x: seen.append(x) or {"f1": 0.5}}
    kbs.robustness(task, rows, [0, 1], columns=["text"], **arguments)
    assert [x["year"] for x in seen] == [[1999, 2000]] * 2
    with pytest.raises(ValueError, match="in column 'year'. .* name the columns of texts"):
        kbs.robustness(task, rows, [0, 1], **arguments)


def test_labels_of_words_and_spans_stay_at_their_words():
    for name, labels in (("words", TAGS), ("spans", SPANS)):
        task, _ = make_task(name)
        report = kbs.robustness(task, WORDS, labels, seeds=[0])
        assert report.metric == "f1" and report.noises
        assert not {noise.kind for noise in report.noises} & {"lost_space", "added_space"}
        with pytest.raises(ValueError, match="Pass rows as lists of words"):
            kbs.robustness(task, [" ".join(row) for row in WORDS], labels, kinds="swap")


def test_labels_that_point_into_texts_are_refused():
    answerer, (x, y) = make_task("questions")
    with pytest.raises(ValueError, match="leave the context as it is"):
        kbs.robustness(answerer, x, y)
    report = kbs.robustness(answerer, x, y, kinds="insert", columns=[0], seeds=[0])
    assert report.metric == "f1"
    related, (texts, labels) = make_task("relations")
    with pytest.raises(ValueError, match="have the markers <e1> </e1> <e2> </e2>"):
        kbs.robustness(related, texts, labels)

    # The same in a training.
    noise = kbs.TextNoise("swap")
    contexts = dict(zip(["question", "context"], x, strict=True))
    answerer.compile()
    answerer.data.input_names = ("question", "context")
    with pytest.raises(ValueError, match="leave the context as it is"):
        answerer.fit(kbs.AugmentedRows(contexts, y, kbs.edit_words), verbose=0)
    kept = kbs.AugmentedRows(contexts, y, noise, features=["context"])
    answerer.fit(kept, verbose=0)
    related.compile()
    with pytest.raises(ValueError, match="have the markers"):
        related.fit(kbs.AugmentedRows(texts, labels, noise), verbose=0)


def test_a_tagger_learns_from_noisy_words():
    task, _ = make_task("words")
    task.compile()
    task.fit(kbs.AugmentedRows(WORDS, TAGS, kbs.TextNoise("swap", 0.5)), verbose=0)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"kinds": "typos"}, "kinds must be one of keyboard, .*, got 'typos'"),
        ({"kinds": ["swap", "homophone"]}, "The kind homophone finds no place in any .* keyboard"),
        ({"rates": [0.1, 0]}, "rates must be over 0 and at most 1, got 0"),
        ({"kinds": 3}, "kinds must be a list of some of keyboard, .*, got 3"),
        ({"rates": None}, "rates must be a list of numbers .*, got None"),
        ({"seeds": 3}, r"seeds must be a list of integers such as \[0, 1, 2\], got 3"),
        ({"attacks": kbs.DeepWordBug()}, "attacks must be a list of attacks .* Put a single"),
        ({"attacks": ["swap"]}, r"must be attacks such as DeepWordBug\(\), got 'swap' in them"),
        ({"seeds": []}, "seeds must have at least one"),
        ({"metric": "loss"}, "one of the numbers .*, accuracy, macro_f1, matthews, got 'loss'"),
        ({"columns": [1]}, "columns must be some of 0, got 1"),
        ({"columns": "text"}, "must be a list of names or places, got the string 'text'"),
        ({"attacks": [kbs.DeepWordBug()], "attacked_rows": 0}, "attacked_rows must be an integer"),
        ({"attacks": [kbs.DeepWordBug()] * 2}, "Two attacks have the name 'DeepWordBug'"),
    ],
)
def test_bad_arguments(classifier, arguments, error):
    with pytest.raises(ValueError, match=error):
        kbs.robustness(classifier, TEXTS[:4], LABELS[:4], **{"kinds": "swap", **arguments})


def test_tasks_and_rows_without_noise(classifier):
    packed = classifier.preprocessor(TEXTS)
    with pytest.raises(ValueError, match="Noise is for texts and lists of words"):
        kbs.robustness(classifier, packed, LABELS)
    with pytest.raises(ValueError, match="lists of words, got None .NoneType. at row 1"):
        kbs.robustness(classifier, ["a film", None], ["no", "yes"])
    with pytest.raises(ValueError, match="task must be a task of .*, got None"):
        kbs.robustness(None, TEXTS, LABELS)
    for name, cls in (("masks", "MaskedLM"), ("continuations", "CausalLM")):
        task, columns = make_task(name)
        with pytest.raises(ValueError, match=f"A {cls} has no score of texts and labels"):
            kbs.robustness(task, columns[0], None)
    regression = kbs.TextClassifier(
        classifier.backbone,
        num_classes=1,
        problem_type="regression",
        preprocessor=classifier.preprocessor,
    )
    with pytest.raises(ValueError, match="Attacks are for a TextClassifier or Doc"):
        kbs.robustness(regression, TEXTS, [1.0] * 40, kinds="swap", attacks=[kbs.DeepWordBug()])


@pytest.mark.parametrize(
    "arguments", [{"kinds": []}, {"rates": []}, {"columns": []}], ids=lambda a: next(iter(a))
)
def test_nothing_to_measure_is_an_error(arguments):
    task, _ = make_task("texts")
    with pytest.raises(ValueError, match="There is nothing to measure, with kinds="):
        kbs.robustness(task, ["the film"] * 2, [0, 1], **arguments)
