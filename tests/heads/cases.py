"""Every head with rows for it. A new head has a case here."""

import keras
import keras_hub
import numpy as np
from heads import observed
from heads.case import Case, Changed
from small_questions import make_questions
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.heads.relations.relation_classifier import MARKERS
from keras_bert_suite.masking import RaggedRows
from keras_bert_suite.pretraining.pretraining_batches import name_arrays
from keras_bert_suite.training import NDCG

NUM_ROWS, BATCH_SIZE, LENGTH = 12, 4, 16
STEPS = NUM_ROWS // BATCH_SIZE
FIRST, LABELS = make_reviews(NUM_ROWS)
PAIRS = (FIRST, make_reviews(NUM_ROWS, seed=1)[0])

#: As many words in each row, so that the loss does not depend on which rows share a batch.
WORDS = [text.split()[:3] for text in FIRST]
TAGS = [[int(word == "good") for word in row] for row in WORDS]
SPANS = [[(i, i + 1, 0) for i, tag in enumerate(row) if tag] for row in TAGS]

#: The first two words of each text are entities.
RELATED = ["<e1>{}</e1> <e2>{}</e2> {}".format(*f"{t} a a".split(maxsplit=2)) for t in FIRST]

#: Contexts of one window, so that the loss does not depend on which rows share a batch.
QUESTIONS = make_questions(NUM_ROWS, longest=4)
ENDINGS = [[first, second] for first, second in zip(*PAIRS, strict=True)]
CHOICES = np.array([int("good" in second.split()) for _, second in ENDINGS])

#: Lists of as many candidates, since datasets of TensorFlow have arrays of texts.
RELEVANCE = [[float(choice == i) for i in range(2)] for choice in CHOICES]

#: Some labels are missing.
ATTRIBUTES = {
    "tone": [None if row == 1 else label for row, label in enumerate(LABELS)],
    "length": [min(len(text) // 20, 2) if row else "" for row, text in enumerate(FIRST)],
}
LABEL_SETS = np.array(
    [[word in text for word in ("good", "bad", "plot")] for text in FIRST], "float32"
)
NUMBERS = np.array([len(text.split()) / 4 for text in FIRST], "float32")

#: Texts that users send to a server.
HOSTILE = [
    "",
    "a good film",
    "good bad plot " * 1000,
    "good \U0001f600 film \U0001f469\u200d\U0001f680 bad",
    "\x00\x07good\u200b\u202e film\r\n\tplot\ufffd\x7f",
    " \u00e9\u4e2d good" * 7,
]
HOSTILE_OTHERS = HOSTILE[::-1]
HOSTILE_WORDS = [*HOSTILE, "good-film, don't! 1998", ["good", "", "film"], []]
HOSTILE_RELATED = [
    f"{text}<e1>{text[:8]}</e1>bad <e2>{text[5:9]}</e2>{other}"
    for text, other in zip(HOSTILE, HOSTILE_OTHERS, strict=True)
]
#: Labels are never cut.
HOSTILE_NAMES = [["good", "bad \u00e9"], ["\U0001f600 film", "plot", "\u4e2d"]] * 3
HOSTILE_ENDINGS = [[a, "bad", b] for a, b in zip(HOSTILE, HOSTILE_OTHERS, strict=True)]


def make_convolution():
    return keras.layers.Conv1D(ONE_LAYER["hidden_dim"], 3, padding="same")


def add_layers(backbone, packer):
    return type(backbone).from_config({**backbone.get_config(), "num_layers": 3})


def add_markers(backbone, packer):
    packer.tokenizer.add_tokens(MARKERS, special=True)
    return backbone.resize_vocabulary(packer.tokenizer.vocabulary_size(), seed=0)


def see_the_source(backbone, packer):
    config = {**backbone.get_config(), "attention_pattern": "seq2seq"}
    return kbs.BertBackbone.from_config(config)


def see_what_is_before(backbone, packer):
    return kbs.change_pattern(backbone, "left_to_right")


def factorize(backbone, packer):
    config = {**backbone.get_config(), "embedding_dim": 4, "activation": "gelu_erf"}
    return kbs.ElectraBackbone.from_config(config)


def read_both_ways(backbone, packer):
    sizes = {"units": 6, "projection_dim": 4, "dropout": 0.0}
    return kbs.ElmoBackbone(backbone.vocabulary_size, **sizes, dtype=backbone.dtype_policy)


def pack_pretraining(task, rows, labels):
    """A batch as `PretrainingBatches` makes it."""
    packer = task.preprocessor
    masked = kbs.TokenMasker(packer.tokenizer)(packer.pack(*rows), row_ids=np.arange(NUM_ROWS))
    labels = {"mlm": masked.pop("mask_ids"), "nsp": np.arange(NUM_ROWS, dtype="int32") % 2}
    weights = {"mlm": masked.pop("mask_weights"), "nsp": np.ones(NUM_ROWS, "float32")}
    return masked, labels, weights


def pack_replaced(task, rows, labels):
    x, y, weights = pack_pretraining(task, rows, labels)
    return x, {"mlm": y["mlm"]}, {"mlm": weights["mlm"]}


def pack_neighbors(task, rows, labels):
    targets = kbs.BidirectionalTargets(task.preprocessor.tokenizer)
    return name_arrays(targets(task.preprocessor.pack(rows)), targets.labels)


def read_frames(backbone, packer):
    return backbone.for_frames(3)


def pad_frames(packer):
    return kbs.FramePacker(3, packer.sequence_length, padding_lengths=(packer.sequence_length,))


def pack_frames(task, rows, labels):
    """Frames that are as many as the words of each text."""
    draw = np.random.default_rng(0).standard_normal
    frames = [draw((len(text.split()), 3)) for text in rows]
    masker = kbs.FrameMasker(span_length=2)
    arrays = masker(task.preprocessor.pack(frames), np.arange(NUM_ROWS))
    return name_arrays(arrays, masker.labels)


def join_berts(backbone, packer):
    return kbs.BertEncoderDecoder.from_backbones(backbone, backbone)


def pack_corrupted(task, rows, labels):
    packer = task.preprocessor
    ids, lengths = packer.tokenizer.tokenize_flat(list(rows))
    texts = RaggedRows({"token_ids": ids, "sentences": np.zeros_like(ids)}, lengths)
    corruption = kbs.DenoisingCorruption(packer.tokenizer)
    numbers = np.arange(NUM_ROWS)
    arrays = corruption.make_arrays([texts], packer.sequence_length, numbers, epoch=0)
    return name_arrays(arrays, corruption.labels)


def ask_texts(task, rows):
    """An embedder trains on pairs and answers texts."""
    if isinstance(rows, dict):
        return {name: array[:, 0] for name, array in rows.items()}
    return rows[0]


def ask_pairs(task, rows):
    """A ranker trains on lists and answers pairs."""
    return rows[0], [texts[0] for texts in rows[1]]


def ask_towers(task, rows):
    """Packed rows have the query as the first of their texts."""
    if isinstance(rows, dict):
        return {name: array[:, :2] for name, array in rows.items()}
    return ask_pairs(task, rows)


def ask_masks(task, rows):
    if isinstance(rows, dict):
        return rows
    return [f"{task.preprocessor.tokenizer.mask_token} {text}" for text in rows]


def read_spans(answers):
    return [(answer.start, answer.end, answer.score) for answer in answers]


def read_guesses(answers):
    if not isinstance(answers, list):
        return answers
    return np.array([[[share for _, share in guesses] for guesses in row] for row in answers])


def read_characters(answers):
    return [list(map(ord, text)) for text in answers] if isinstance(answers, list) else answers


def predict(task, x):
    return task.predict(x, verbose=0)


def predict_probabilities(task, x):
    return task.predict_probabilities(x, verbose=0)


def find_shares(task, x):
    logits = np.array(predict(task, x), "float64")
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def find_shares_of_labels(task, x):
    return 1 / (1 + np.exp(-np.array(predict(task, x), "float64")))


def one_wrong_class(wrong):
    return [0, 1] * 5 + [0, wrong]


def one_wrong_tag(wrong):
    return [[0, 1, 0]] * 11 + [[0, wrong, 0]]


#: Heads of pretraining begin as the encoder. ELECTRA's generator is an encoder.
AS_THE_ENCODER = frozenset({"TruncatedNormal 0.5"})
OFF = {"dropout": 0.0}
YES_NO = {"label_names": ["no", "yes"], **OFF}
F1 = (
    lambda: {"metrics": [kbs.MacroF1(), "accuracy"]},
    {"macro_f1": "macro_f1", "accuracy": "accuracy"},
)
BIO = ["O", "B-X", "I-X"]
CHANGED_SETS = {
    "label_names": ["plot", "film", "acting"],
    "problem_type": "multi_label_classification",
    "activation": "sigmoid",
    "thresholds": [0.1, 0.5, 0.9],
    "pooling": "max",
    **OFF,
}
PRICE = {"kind": "number", "mean": 2.0, "std": 0.5}
CHANGED_FEATURES = {"label_names": BIO, "features": {"price": PRICE, "shop": ["a", "b"]}}
CHANGED_MARKERS = ("good", "the", "plot", "and")

CASES = {
    "texts": Case(
        *(kbs.TextClassifier, FIRST, LABELS, YES_NO),
        wrong_labels=one_wrong_class,
        answering=("predict_labels", "predict_probabilities"),
        scoring=("score", "inspect"),
        metrics=F1,
        served=(HOSTILE, find_shares),
        column="label",
        row="classes",
    ),
    "pairs": Case(
        *(kbs.TextClassifier, PAIRS, LABELS, YES_NO),
        names=("text_a", "text_b"),
        wrong_labels=one_wrong_class,
        served=((HOSTILE, HOSTILE_OTHERS), find_shares),
        column="label",
    ),
    "label sets": Case(
        kbs.TextClassifier,
        FIRST,
        LABEL_SETS,
        {"num_classes": 3, "problem_type": "multi_label_classification", **OFF},
        changed=(
            Changed({**CHANGED_SETS, "input_names": ("premise", "hypothesis")}, observed.labels),
            Changed(CHANGED_FEATURES, observed.features),
        ),
        wrong_labels=lambda wrong: [[0], []] * 5 + [[0], [1, wrong]],
        scoring=("score", "tune_thresholds"),
        metrics=(
            lambda: {
                "metrics": [
                    *(kbs.MacroF1(), "accuracy", "Precision"),
                    keras.metrics.Recall(name="recall"),
                ]
            },
            {
                "macro_f1": "macro_f1",
                "exact_match": "accuracy",
                "micro_precision": "Precision",
                "micro_recall": "recall",
            },
        ),
        served=(HOSTILE, find_shares_of_labels),
        column="labels",
        row="sets of labels",
    ),
    "numbers": Case(
        kbs.TextClassifier,
        FIRST,
        NUMBERS,
        {"num_classes": 1, "problem_type": "regression", **OFF},
        metrics=(
            lambda: {"metrics": ["mse", keras.metrics.MeanAbsoluteError(name="mae")]},
            {"mean_squared_error": "mse", "mean_absolute_error": "mae"},
        ),
        refused_metric=("accuracy", "accuracy is not for a regression .*'mean_absolute_error'"),
        served=(HOSTILE, predict),
        column="scores",
    ),
    "exits": Case(
        *(kbs.EarlyExitClassifier, FIRST, LABELS, {**YES_NO, "threshold": 1}),
        encoder=add_layers,
        changed=(
            Changed(
                {
                    "label_names": ["plot", "film", "acting"],
                    "method": "fastbert",
                    "exit_layers": (2,),
                    "threshold": 0.9,
                    "input_names": ("premise", "hypothesis"),
                    **OFF,
                },
                observed.exits,
                {"num_layers": 3},
            ),
            Changed(
                {
                    "label_names": ["length"],
                    "problem_type": "regression",
                    "tolerance": 0.5,
                    "threshold": 1,
                    **OFF,
                },
                observed.exits_of_numbers,
                {"num_layers": 3},
            ),
        ),
        wrong_labels=one_wrong_class,
        answering=("predict_labels", "predict_probabilities"),
        scoring=("score", "inspect", "measure_exits"),
        refused_metric=("accuracy", "EarlyExitClassifier. It has the outputs of several exits"),
        served=(HOSTILE, find_shares),
        column="label",
        row="classes with early exits",
    ),
    "attributes": Case(
        kbs.AttributeClassifier,
        FIRST,
        ATTRIBUTES,
        {"attributes": {"tone": ["no", "yes"], "length": ["short", "long", "endless"]}, **OFF},
        changed=(
            Changed(
                {
                    "attributes": {"tone": ["good", "bad"], "what": ["plot", "film", "acting"]},
                    "attribute_weights": {"what": 3.0},
                    "input_names": ("premise", "hypothesis"),
                    **OFF,
                },
                observed.attributes,
            ),
        ),
        wrong_labels=lambda wrong: {
            "tone": [None, 1] * 6,
            "length": [0, 1, 2] * 3 + [None, 1, wrong],
        },
        answering=("predict_labels", "predict_probabilities"),
        scoring=("score", "inspect"),
        metrics=(lambda: {"metrics": ["acc"]}, {"accuracy": "acc"}),
        refused_metric=("Precision", "AttributeClassifier. It does not tell .* Pass 'accuracy'"),
        served=(HOSTILE, predict_probabilities),
        column="attributes",
        row="several attributes",
    ),
    "words": Case(
        *(kbs.TokenClassifier, WORDS, TAGS, {"num_classes": 2, **OFF}),
        changed=(
            Changed(
                {
                    "label_names": BIO,
                    "head_layers": [make_convolution()],
                    "input_names": ("sentence",),
                    "word_cutting": kbs.WordCutting(rules={"<letter> - <letter>": "++"}),
                    **OFF,
                },
                observed.words,
            ),
        ),
        wrong_labels=one_wrong_tag,
        answering=("predict_tags", "predict_probabilities"),
        scoring=("score", "inspect"),
        served=(HOSTILE_WORDS, predict),
        column="entities",
    ),
    "chains": Case(
        *(kbs.CrfTokenClassifier, WORDS, TAGS, {"num_classes": 2, **OFF}),
        changed=(
            Changed(
                {
                    "label_names": BIO,
                    "input_names": ("sentence",),
                    "scheme": None,
                    "word_cutting": kbs.WordCutting(["letters"]),
                    **OFF,
                },
                observed.tags,
            ),
            Changed(
                {
                    "label_names": BIO,
                    "head_layers": make_convolution(),
                    "constrained_training": True,
                    **OFF,
                },
                observed.chain_loss,
            ),
        ),
        wrong_labels=one_wrong_tag,
        refused_metric=("accuracy", "CrfTokenClassifier. It would judge the emissions.*EntityF1"),
        served=(HOSTILE_WORDS, predict),
        column="entities",
        row="words with a CRF",
    ),
    "spans": Case(
        *(kbs.EntitySpanClassifier, WORDS, SPANS, {"num_classes": 1, **OFF}),
        decode=lambda answers: [read_spans(entities) for entities in answers],
        changed=(
            Changed(
                {
                    "label_names": ["X"],
                    "head": kbs.GlobalPointer(1, head_dim=4, rotary=False),
                    "head_layers": [kbs.LastLayers(1, pooling=None), make_convolution()],
                    "input_names": ("sentence",),
                    "word_cutting": kbs.WordCutting(["letters"]),
                    **OFF,
                },
                observed.words,
            ),
        ),
        wrong_labels=lambda wrong: [[(0, 1, 0)]] * 11 + [[(0, 1, wrong)]],
        scoring=("score",),
        refused_metric=("AUC", "EntitySpanClassifier. The labels are spans.*EntityF1"),
        served=(HOSTILE_WORDS, predict),
        column="entities",
        initializers=frozenset({"LecunNormal"}),  # bert4keras' GlobalPointer.
    ),
    "relations": Case(
        *(kbs.RelationClassifier, RELATED, LABELS, {**YES_NO, "entity_states": "averages"}),
        encoder=add_markers,
        changed=(
            Changed(
                {
                    "label_names": BIO,
                    "entity_states": "averages",
                    "markers": list(CHANGED_MARKERS),
                    "marker_ids": [VOCABULARY.index(word) for word in CHANGED_MARKERS],
                    "input_names": ("sentence",),
                    **OFF,
                },
                observed.markers,
            ),
        ),
        wrong_labels=one_wrong_class,
        answering=("predict_labels",),
        scoring=("score", "inspect"),
        served=(HOSTILE_RELATED, find_shares),
        column="label",
    ),
    "questions": Case(
        kbs.QuestionAnswerer,
        QUESTIONS[:2],
        np.array(QUESTIONS[2]),
        {"query_length": 4, "no_answer_threshold": 0.0},
        decode=lambda answers: read_spans(answers) if isinstance(answers, list) else answers,
        changed=(
            Changed(
                {
                    "stride": 2,
                    "query_length": 2,
                    "max_answer_length": 1,
                    "no_answer_threshold": -100.0,
                    "head_layers": make_convolution(),
                    "input_names": ("query", "passage"),
                },
                observed.answers,
            ),
        ),
        names=("question", "context"),
        answering=("predict_n_best",),
        scoring=("score", "tune_threshold"),
        served=((["good?", "", *HOSTILE[2:]], HOSTILE), predict),
        column="answer",
    ),
    "choices": Case(
        *(kbs.MultipleChoice, (FIRST, ENDINGS), CHOICES, OFF),
        changed=(Changed({**OFF, "input_names": ("start", "ends")}, observed.choices),),
        names=("prompt", "endings"),
        num_axes=(3,),
        wrong_labels=one_wrong_class,
        served=((HOSTILE, HOSTILE_ENDINGS), find_shares),
        column="choice",
    ),
    "rankings": Case(
        *(kbs.TextRanker, (FIRST, ENDINGS), RELEVANCE, OFF),
        asked=ask_pairs,
        changed=(Changed({**OFF, "input_names": ("question", "title")}, observed.ranking),),
        names=("query", "text"),
        num_axes=(2, 3),
        scoring=("score",),
        metrics=(lambda: {"metrics": [NDCG(5)]}, {"ndcg@5": "ndcg"}),
        refused_metric=("mse", "TextRanker. It would count the places after .*NDCG"),
        served=((HOSTILE, HOSTILE_OTHERS), predict),
        column="relevance",
    ),
    "towers": Case(
        *(kbs.TwoTowerRanker, (FIRST, ENDINGS), RELEVANCE, OFF),
        asked=ask_towers,
        changed=(
            Changed(
                {**OFF, "input_names": ("question", "title"), "hidden_dim": 3, "pooling": "max"},
                observed.ranking,
            ),
        ),
        names=("query", "text"),
        num_axes=(3,),
        scoring=("score",),
        metrics=(lambda: {"metrics": [NDCG(5)]}, {"ndcg@5": "ndcg"}),
        refused_metric=("mse", "TwoTowerRanker. It would count the places after .*NDCG"),
        served=((HOSTILE, HOSTILE_OTHERS), predict),
        column="relevance",
        initializers=frozenset({"GlorotUniform"}),  # Its vectors are not those of a BERT's pooler.
        row="two towers",
    ),
    "entailments": Case(
        *(kbs.ZeroShotClassifier, FIRST, [int(label == "yes") for label in LABELS]),
        {"label_names": ["bad", "good"], **OFF},
        changed=(
            Changed(
                {
                    "label_names": ["plot", "film", "acting"],
                    "template": "the {} is good",
                    "multi_label": True,
                    "nli_labels": ["not_entailment", "entailment"],
                    "input_names": ("body", "topics"),
                    **OFF,
                },
                observed.entailed,
            ),
        ),
        names=("text", "labels"),
        num_axes=(3,),
        wrong_labels=one_wrong_class,
        answering=("predict_labels", "predict_probabilities"),
        scoring=("score",),
        metrics=(lambda: {"metrics": ["accuracy"]}, {"accuracy": "accuracy"}),
        served=((HOSTILE, HOSTILE_NAMES), predict),
        row="labels without training",
    ),
    "documents": Case(
        kbs.DocumentClassifier,
        # Each document has more than two windows, so that all batches have one shape.
        [" ".join(text.split() * 5) for text in FIRST],
        LABELS,
        {**YES_NO, "max_windows": 2},
        changed=(
            Changed(
                {
                    **CHANGED_SETS,
                    "window_pooling": "max",
                    "input_names": ("question", "document"),
                    "max_windows": 3,
                    "stride": 3,
                    "query_length": 1,
                },
                observed.documents,
            ),
            Changed(
                {"label_names": ["no", "yes"], "training_windows": 1}, observed.sampled_windows
            ),
            Changed(CHANGED_FEATURES, observed.features),
        ),
        num_axes=(3,),
        wrong_labels=one_wrong_class,
        metrics=F1,
        served=(HOSTILE, find_shares),
        column="label",
        row="long documents",
    ),
    "vectors": Case(
        kbs.TextEmbedder,
        PAIRS,
        np.linspace(-1, 1, NUM_ROWS, dtype="float32"),
        asked=ask_texts,
        compiled={"loss": kbs.CosineRegression()},
        changed=(
            Changed(
                {
                    "pooling": "max",
                    "dense_layers": [keras.layers.Dense(3, "tanh")],
                    "dimensions": 2,
                    "normalize": False,
                    "input_names": ("body",),
                    "column_names": ("query", "answer"),
                    "prompts": {"query": "the film "},
                },
                observed.vectors,
            ),
        ),
        names=("text_a", "text_b"),
        num_axes=(2, 3),
        scoring=("score",),
        refused_metric=("cosine_similarity", "TextEmbedder. It does not compare .*score_retrieval"),
        served=(HOSTILE, predict),
        column="embedding",
        initializers=frozenset(),  # Its pooling has no weights.
    ),
    "masks": Case(
        *(kbs.MaskedLM, FIRST, None, {"masking": {"unit": "word"}}),
        asked=ask_masks,
        decode=read_guesses,
        changed=(
            Changed(
                {"masking": {"unit": "word", "rate": 0.5}, "input_names": ("body",), "top_k": 2},
                observed.guesses,
            ),
        ),
        served=([f"[MASK] {text[:50]} [MASK]" for text in HOSTILE], predict),
        initializers=AS_THE_ENCODER,
        row="masked words",
    ),
    "patterns": Case(
        kbs.PatternClassifier,
        FIRST,
        LABELS,
        {"pattern": "{text} the film was {mask}", "verbalizers": {"no": "bad", "yes": "very good"}},
        changed=(
            Changed(
                {
                    "pattern": "{mask} : {body} , {title}",
                    "verbalizers": {"plot": "dull", "acting": "fine", "film": "great plot"},
                },
                observed.clozes,
            ),
        ),
        wrong_labels=one_wrong_class,
        answering=("predict_labels", "predict_probabilities"),
        scoring=("score", "inspect"),
        metrics=F1,
        served=(HOSTILE, find_shares),
        column="label",
        initializers=AS_THE_ENCODER,
        row="words in a pattern",
    ),
    "pretraining": Case(
        *(kbs.Pretrainer, PAIRS, None),
        pack=pack_pretraining,
        changed=(
            Changed({"sentence_relations": 3, "span_boundary": True}, observed.outputs),
            Changed({"next_sentence": False}, observed.outputs),
        ),
        initializers=AS_THE_ENCODER,
    ),
    "replaced tokens": Case(
        *(kbs.ElectraPretrainer, PAIRS, None, {"generator_width": 0.5}),
        encoder=factorize,
        pack=pack_replaced,
        changed=(
            Changed({"generator_width": 1.0, "seed": 7}, observed.outputs, {"embedding_dim": 4}),
        ),
        initializers=AS_THE_ENCODER,
        row="pretraining of ELECTRA",
    ),
    "neighbors": Case(
        *(kbs.ElmoPretrainer, FIRST, None),
        encoder=read_both_ways,
        pack=pack_neighbors,
        changed=(
            Changed({"vocabulary_size": 9}, observed.outputs),
            Changed({"vocabulary_sha256": "0f"}, lambda task: task.vocabulary_sha256),
        ),
        initializers=frozenset({"RandomNormal 0.5"}),  # The softmax of bilm-tf.
        row="pretraining of ELMo",
    ),
    "hidden frames": Case(
        *(kbs.FramePretrainer, FIRST, None),
        encoder=read_frames,
        prepare=pad_frames,
        pack=pack_frames,
        changed=(Changed({"num_codes": 5}, observed.outputs),),
        initializers=AS_THE_ENCODER,
        row="pretraining on frames",
    ),
    "corrupted texts": Case(
        *(kbs.Seq2SeqPretrainer, FIRST, None),
        encoder=join_berts,
        pack=pack_corrupted,
        changed=(Changed({"decoder_positions": True}, observed.outputs),),
        initializers=AS_THE_ENCODER,
        row="pretraining of encoder-decoders",
    ),
    "targets": Case(
        kbs.Seq2Seq,
        FIRST,
        [" ".join(text.split()[:2]) for text in FIRST],
        {"max_target_length": 3},
        encoder=see_the_source,
        decode=read_characters,
        changed=(
            Changed(
                {
                    "max_target_length": 4,
                    "sampler": keras_hub.samplers.BeamSampler(num_beams=4),
                    "input_names": ("article",),
                    "plain_marks": True,
                    "min_target_length": 3,
                    "no_repeat_ngram_size": 1,
                    "first_token": "good",
                    "last_token": "bad",
                },
                observed.targets,
                {"attention_pattern": "seq2seq"},
            ),
        ),
        column="target",
        initializers=AS_THE_ENCODER,
        row="texts to write",
    ),
    "continuations": Case(
        *(kbs.CausalLM, FIRST, None, {"max_length": 3}),
        encoder=see_what_is_before,
        decode=read_characters,
        changed=(
            Changed(
                {
                    "max_length": 4,
                    "sampler": keras_hub.samplers.BeamSampler(num_beams=4),
                    "input_names": ("beginning",),
                },
                observed.continuations,
                {"attention_pattern": "left_to_right"},
            ),
        ),
        column="continuation",
        initializers=AS_THE_ENCODER,
        row="texts to go on with",
    ),
}

#: The heads of the tables that combine them with preprocessors and inputs. The other pretrainings
#: share these with that of masked tokens.
_OTHER_PRETRAININGS = ("replaced tokens", "neighbors", "hidden frames", "corrupted texts")
TASKS = tuple(name for name in CASES if name not in _OTHER_PRETRAININGS)


def find_case(task):
    """The first case of the class of a task."""
    return next(case for case in CASES.values() if type(task) is case.cls)
