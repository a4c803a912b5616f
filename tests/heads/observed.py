"""What a user sees of a small task, which depends on each of its arguments."""

import dataclasses

import numpy as np
from small_texts import VOCABULARY

from keras_bert_suite import (
    CausalLM,
    DocumentClassifier,
    ElectraPretrainer,
    ElmoPretrainer,
    FrameMasker,
    FramePretrainer,
    MaskedLM,
    MultipleChoice,
    PatternClassifier,
    Pretrainer,
    SegmentPacker,
    Seq2Seq,
    Seq2SeqPretrainer,
    TokenMasker,
    TwoTowerRanker,
    WordPieceTokenizer,
    ZeroShotClassifier,
)
from keras_bert_suite.heads.targets.writing_rules import find_rules
from keras_bert_suite.runs.batches import read

TEXTS = ["the film was very good", "a dull plot", "great acting and a fine plot"]
OTHERS = ["not bad", "the acting was awful , and the plot was dull", "good"]
LONG_TEXTS = [
    " ".join([*text.split(), *other.split()] * 4) for text, other in zip(TEXTS, OTHERS, strict=True)
]
ENDINGS = [[a, b] for a, b in zip(TEXTS, OTHERS, strict=True)]
# A statement is never cut, and leaves a place for its text.
SHORT_LABELS = [["plot", "the film"]] * len(TEXTS)


def make_packer(length=12):
    return SegmentPacker(WordPieceTokenizer(VOCABULARY), length, padding_lengths=(length,))


def make_inputs(task):
    """dict of arrays for the model of a task."""
    if isinstance(task, PatternClassifier):
        return task.data.pack(task.data.read((TEXTS, OTHERS)))[0]
    if isinstance(task, ElmoPretrainer):
        packed = make_packer().pack(TEXTS)
        return {name: packed[name] for name in task.input}
    if isinstance(task, FramePretrainer):
        draw = np.random.default_rng(0).standard_normal
        packed = task.preprocessor.pack([draw((n, 3)) for n in (5, 12)])
        masked = FrameMasker(span_length=2)(packed, np.arange(2))
        return {name: masked[name] for name in task.input}
    if isinstance(task, (Pretrainer, ElectraPretrainer, MaskedLM, CausalLM, Seq2Seq)):
        masker = TokenMasker(make_packer().tokenizer, rate=0.4)
        masked = masker(make_packer().pack(TEXTS, OTHERS), row_ids=np.arange(len(TEXTS)))
        del masked["mask_ids"], masked["mask_weights"]
        return masked
    if isinstance(task, Seq2SeqPretrainer):
        source, target = make_packer().pack(TEXTS), make_packer().pack(OTHERS)
        ids, mask = target["token_ids"], target["padding_mask"]
        inputs = {**source, "decoder_token_ids": ids, "decoder_padding_mask": mask}
        later = {"decoder_positions": np.cumsum(mask, axis=1).astype("int32")}
        return {**inputs, **(later if task.decoder_positions else {})}
    if isinstance(task, DocumentClassifier):
        return task.data.pack_texts((OTHERS, LONG_TEXTS))
    if isinstance(task, (MultipleChoice, ZeroShotClassifier)):
        columns = ENDINGS if isinstance(task, MultipleChoice) else SHORT_LABELS
        return task.data.pack(task.data.read((OTHERS, columns)))[0]
    if isinstance(task, TwoTowerRanker):
        return task.data.pack_texts((TEXTS, OTHERS))
    return task.preprocessor.pack(TEXTS, OTHERS)


def outputs(task):
    """The outputs with and without `training`, which draws nothing where no rate is above 0."""
    inputs = make_inputs(task)
    return [task(inputs, training=False), task(inputs, training=True)]


def name(task, *columns):
    """Columns by the names of the task, the last one first."""
    return dict(zip(reversed(task.input_names), reversed(columns), strict=True))


def labels(task):
    return [*outputs(task), task.predict_labels(name(task, TEXTS, OTHERS), verbose=0)]


def exits(task):
    rows = name(task, TEXTS, OTHERS)
    return [*outputs(task), *task.predict(rows, return_layers=True), *task.predict_labels(rows)]


def exits_of_numbers(task):
    return [*outputs(task), *task.predict(TEXTS, return_layers=True)]


def features(task):
    """The columns beside the texts, as the model reads them."""
    beside = {"price": [1.0, None, 4.0], "shop": ["b", "c", None]}
    texts = LONG_TEXTS if isinstance(task, DocumentClassifier) else TEXTS
    rows = {"text": texts, **beside} if task.features else texts
    packed = task.data.pack(task.data.read(rows))[0]
    return [task(packed, training=False), packed.get("features", np.zeros(0))]


def documents(task):
    answers = task.predict_labels(name(task, OTHERS, LONG_TEXTS), verbose=0)
    return [make_inputs(task), *outputs(task), answers]


def sampled_windows(task):
    packed = task.data.pack_texts((LONG_TEXTS,))
    return np.shape(task.window_sampler(packed, training=True)["token_ids"])


def tags(task):
    # Without its scheme the chain would stay in I-X.
    task.token_classifier.bias.assign([0.0, 0.0, 20.0])
    return [*outputs(task), task.predict_tags(TEXTS, verbose=0)]


def words(task):
    """The outputs, and the words of a text."""
    found = task.data.window(task.data.read(["the good-film"])).tokenized.words
    return [*outputs(task), *found[0]]


def chain_loss(task):
    return task.evaluate([["the", "film"]], [["B-X", "I-X"]], verbose=0)


def answers(task):
    rows = name(task, TEXTS, LONG_TEXTS)
    found = [*task.predict(rows, verbose=0)]
    for row in task.predict_n_best(rows, n_best=50, verbose=0):
        found += row
    return [dataclasses.astuple(answer) for answer in found]


def choices(task):
    return [*outputs(task), task.predict(name(task, OTHERS, ENDINGS), verbose=0)]


def entailed(task):
    rows = name(task, TEXTS, SHORT_LABELS)
    answers = [task.predict(TEXTS, verbose=0), task.predict(rows, verbose=0)]
    return [*outputs(task), *answers, task.predict_labels(rows, verbose=0)]


def ranking(task):
    return [*outputs(task), task.predict(name(task, OTHERS, TEXTS), verbose=0)]


def markers(task):
    return [*outputs(task), list(task.markers), list(task.marker_ids)]


def attributes(task):
    task.compile()
    classes = {"tone": ["good", "bad", None], "what": ["film", "plot", "plot"]}
    loss = task.evaluate((TEXTS, OTHERS), classes, verbose=0)
    return [*outputs(task), loss, list(task.attributes)]


def vectors(task):
    rows = dict(zip(reversed(task.column_names), (OTHERS, TEXTS), strict=True))
    columns = read(task, rows, labelled=True).inputs
    prompted = task.predict(TEXTS, prompt="query", verbose=0)
    return [*outputs(task), [list(column) for column in columns], prompted]


def guesses(task):
    masked = task.data.pack(task.data.read(TEXTS).take(slice(3), 0), labelled=True)
    return [task.predict(["the [MASK] was good"], verbose=0), *masked]


def clozes(task):
    return [make_inputs(task), *labels(task)]


def continuations(task):
    return task.predict(TEXTS)


def targets(task):
    # "…" is unknown, and "..." is not. A rule may leave texts as they are.
    rules = map(str, find_rules(task))
    return [*task.predict([*TEXTS, "… the plot … was … good …"]), *rules]
