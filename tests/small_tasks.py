"""Every task, small enough to train in a test, with rows for it."""

import keras
import numpy as np
from kerashub_models import MODELS
from small_byte_pairs import MERGES, make_vocabulary
from small_questions import make_questions
from small_sentence_pieces import make_xlm_roberta
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    AdamW,
    AttributeClassifier,
    BertBackbone,
    BytePairTokenizer,
    CosineRegression,
    CrfTokenClassifier,
    DocumentClassifier,
    EntitySpanClassifier,
    LongformerBackbone,
    MaskedLM,
    ModernBertBackbone,
    ModernBertTokenizer,
    MultipleChoice,
    Pretrainer,
    QuestionAnswerer,
    RelationClassifier,
    RobertaBackbone,
    SegmentPacker,
    Seq2Seq,
    TextClassifier,
    TextEmbedder,
    TextRanker,
    TokenClassifier,
    TokenMasker,
    WordPieceTokenizer,
    XLMRobertaTokenizer,
)
from keras_bert_suite.heads.relations.relation_classifier import MARKERS

NUM_ROWS, BATCH_SIZE, LENGTH = 12, 4, 16
STEPS = NUM_ROWS // BATCH_SIZE
FIRST, LABELS = make_reviews(NUM_ROWS)
PAIRS = (FIRST, make_reviews(NUM_ROWS, seed=1)[0])

#: As many words in each row, so that the loss does not depend on which rows share a batch.
WORDS = [text.split()[:3] for text in FIRST]
TAGS = [[int(word == "good") for word in row] for row in WORDS]

#: (`problem_type`, labels) of the tasks whose answers are no classes.
PROBLEMS = {
    "label sets": (
        "multi_label_classification",
        np.array([[word in text for word in ("good", "bad", "plot")] for text in FIRST], "float32"),
    ),
    "numbers": ("regression", np.array([len(text.split()) / 4 for text in FIRST], "float32")),
}

#: Some labels are missing.
ATTRIBUTE_LABELS = {
    "tone": [None if row == 1 else label for row, label in enumerate(LABELS)],
    "length": [min(len(text) // 20, 2) if row else "" for row, text in enumerate(FIRST)],
}

SPANS = [[(i, i + 1, 0) for i, tag in enumerate(row) if tag] for row in TAGS]

#: The first two words of each text are entities.
RELATED = ["<e1>{}</e1> <e2>{}</e2> {}".format(*f"{t} a a".split(maxsplit=2)) for t in FIRST]

#: Contexts of one window, so that the loss does not depend on which rows share a batch.
QUESTIONS = make_questions(NUM_ROWS, longest=4)
ENDINGS = [[first, second] for first, second in zip(*PAIRS, strict=True)]
CHOICES = np.array([int("good" in second.split()) for _, second in ENDINGS])

#: Lists of as many candidates, since datasets of TensorFlow have arrays of texts.
RELEVANCE = [[float(choice == i) for i in range(2)] for choice in CHOICES]

TASKS = (
    *("texts", "pairs", *PROBLEMS, "attributes", "words", "chains", "spans", "relations"),
    *(
        "questions",
        "choices",
        "rankings",
        "documents",
        "vectors",
        "masks",
        "pretraining",
        "targets",
    ),
)
BYTE_PAIRS = "SegmentPacker of byte pairs"
SENTENCE_PIECES = "SegmentPacker of sentence pieces"
MODERN_BERT = "SegmentPacker of ModernBERT"
LONGFORMER = "SegmentPacker of Longformer"

#: A global layer and a local one.
MODERN_LAYERS = {
    "num_layers": 2,
    "layer_types": ["full_attention", "sliding_attention"],
    "local_attention": 4,
}


def make_task(task, preprocessor, **backbone_arguments):
    """Makes a task on one layer.

    Args:
        task: one of `TASKS`.
        preprocessor: "SegmentPacker", "none", `BYTE_PAIRS`, `SENTENCE_PIECES`, `MODERN_BERT`,
            `LONGFORMER`, or the name of one of KerasHub's.
        **backbone_arguments: of `BertBackbone`, such as a dtype.

    Returns:
        (an untrained task, columns (x, y) or (x, y, sample_weight)).
    """
    backbone, packer = make_parts(preprocessor, backbone_arguments)
    texts = FIRST if task == "texts" else PAIRS
    if task == "pretraining":
        x, y, weights = to_pretraining_batch(TokenMasker(packer.tokenizer), packer.pack(*PAIRS))
        return Pretrainer(backbone), (x, y, weights)
    if task == "masks":
        masking = {"unit": "word"}
        if preprocessor == "none":
            masker = TokenMasker(packer.tokenizer, **masking)
            x = masker(packer.pack(FIRST), row_ids=np.arange(NUM_ROWS))
            y, weights = x.pop("mask_ids"), x.pop("mask_weights")
            return MaskedLM(backbone, masking=masking), (x, y, weights)
        return MaskedLM(backbone, preprocessor=packer, masking=masking), (FIRST, None)
    if task == "targets":
        config = {**backbone.get_config(), "attention_pattern": "seq2seq"}
        targets = [" ".join(text.split()[:2]) for text in FIRST]
        writer = Seq2Seq(BertBackbone.from_config(config), preprocessor=packer, max_target_length=3)
        if preprocessor == "none":
            packed, y, weights = writer.data.pack(writer.data.read(FIRST, targets), labelled=True)
            writer.preprocessor = None
            return writer, (packed, y, weights)
        return writer, (FIRST, targets)
    if task == "chains":
        tagger = CrfTokenClassifier(backbone, num_classes=2, preprocessor=packer, dropout=0.0)
        return tagger, (WORDS, TAGS)
    if task == "spans":
        finder = EntitySpanClassifier(backbone, num_classes=1, preprocessor=packer, dropout=0.0)
        return finder, (WORDS, SPANS)
    if task == "relations":
        packer.tokenizer.add_tokens(MARKERS, special=True)
        related = RelationClassifier(
            backbone.resize_vocabulary(packer.tokenizer.vocabulary_size(), seed=0),
            label_names=["no", "yes"],
            entity_states="averages",
            preprocessor=packer,
            dropout=0.0,
        )
        if preprocessor == "none":
            packed = related.data.pack(related.data.window(related.data.read(RELATED)))[0]
            related.preprocessor = None
            return related, (packed, LABELS)
        return related, (RELATED, LABELS)
    if task == "vectors":
        scores = np.linspace(-1, 1, NUM_ROWS, dtype="float32")
        if preprocessor == "none":
            columns = [packer.pack(column) for column in PAIRS]
            packed = {name: np.stack([c[name] for c in columns], axis=1) for name in columns[0]}
            return TextEmbedder(backbone), (packed, scores)
        return TextEmbedder(backbone, preprocessor=packer), (PAIRS, scores)
    if task == "words":
        if preprocessor == "none":
            packed = packer.pack([" ".join(row) for row in WORDS])
            labels = np.full((NUM_ROWS, LENGTH), -100, "int32")
            labels[:, 1:4] = TAGS
            return TokenClassifier(backbone, num_classes=2, dropout=0.0), (packed, labels)
        tagger = TokenClassifier(backbone, num_classes=2, preprocessor=packer, dropout=0.0)
        return tagger, (WORDS, TAGS)
    if task == "documents":
        documents = [" ".join(text.split() * 5) for text in FIRST]
        # Each document has more than two windows, so that all batches have one shape.
        classifier = DocumentClassifier(
            backbone, label_names=["no", "yes"], preprocessor=packer, max_windows=2, dropout=0.0
        )
        return classifier, (documents, LABELS)
    if task in PROBLEMS:
        problem_type, labels = PROBLEMS[task]
        classifier = TextClassifier(
            backbone,
            num_classes=1 if labels.ndim == 1 else labels.shape[1],
            problem_type=problem_type,
            preprocessor=packer,
            dropout=0.0,
        )
        return classifier, (FIRST, labels)
    if task == "attributes":
        classifier = AttributeClassifier(
            backbone,
            {"tone": ["no", "yes"], "length": ["short", "long", "endless"]},
            preprocessor=packer,
            dropout=0.0,
        )
        return classifier, (FIRST, ATTRIBUTE_LABELS)
    if task == "questions":
        *rows, spans = QUESTIONS
        answerer = QuestionAnswerer(
            backbone, preprocessor=packer, query_length=4, no_answer_threshold=0.0
        )
        if preprocessor == "none":
            answerer.preprocessor = None
            return answerer, (packer.pack(*rows), np.tile([1, 2], (NUM_ROWS, 1)))
        return answerer, (tuple(rows), np.array(spans))
    if task == "choices":
        chooser = MultipleChoice(backbone, preprocessor=packer, dropout=0.0)
        rows = (FIRST, ENDINGS)
        if preprocessor == "none":
            packed = chooser.data.pack(chooser.data.read(rows))[0]
            chooser.preprocessor = None
            return chooser, (packed, CHOICES)
        return chooser, (rows, CHOICES)
    if task == "rankings":
        ranker = TextRanker(backbone, preprocessor=packer, dropout=0.0)
        return ranker, ((FIRST, ENDINGS), RELEVANCE)
    if preprocessor == "none":
        segments = texts if isinstance(texts, tuple) else (texts,)
        packed = packer.pack(*segments)
        return TextClassifier(backbone, label_names=["no", "yes"], dropout=0.0), (packed, LABELS)
    classifier = TextClassifier(
        backbone, label_names=["no", "yes"], preprocessor=packer, dropout=0.0
    )
    return classifier, (texts, LABELS)


def make_parts(preprocessor, backbone_arguments):
    """(backbone, packer); for one of KerasHub's preprocessors its own backbone."""
    if preprocessor.startswith("KerasHub's "):
        return MODELS[preprocessor.removeprefix("KerasHub's ")]()
    cls, tokenizer, length = BertBackbone, WordPieceTokenizer(VOCABULARY), LENGTH
    sizes = {**ONE_LAYER, "dropout": 0.0}
    if preprocessor == BYTE_PAIRS:
        cls, tokenizer = RobertaBackbone, BytePairTokenizer(make_vocabulary(), MERGES)
    elif preprocessor == LONGFORMER:
        cls, tokenizer = LongformerBackbone, BytePairTokenizer(make_vocabulary(), MERGES)
        sizes["attention_window"] = 4
    elif preprocessor == SENTENCE_PIECES:
        cls, tokenizer = RobertaBackbone, XLMRobertaTokenizer(make_xlm_roberta())
    elif preprocessor == MODERN_BERT:
        vocabulary = make_vocabulary(special=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
        cls, tokenizer, length = ModernBertBackbone, ModernBertTokenizer(vocabulary, MERGES), 32
        sizes = {**ONE_LAYER, **MODERN_LAYERS}
    sizes["vocabulary_size"] = tokenizer.vocabulary_size()
    packer = SegmentPacker(tokenizer, length, padding_lengths=(length,))
    return cls(**{**sizes, **backbone_arguments}), packer


def to_pretraining_batch(masker, packed):
    """A batch as `PretrainingBatches` makes it."""
    masked = masker(packed, row_ids=np.arange(NUM_ROWS))
    labels = {"mlm": masked.pop("mask_ids"), "nsp": np.arange(NUM_ROWS, dtype="int32") % 2}
    weights = {"mlm": masked.pop("mask_weights"), "nsp": np.ones(NUM_ROWS, "float32")}
    return masked, labels, weights


def compile_model(model, technique=None):
    # A schedule of open length would have each `fit` compiled again.
    losses = {"loss": CosineRegression()} if isinstance(model, TextEmbedder) else {}
    rates = {"crf/": 1.0} if isinstance(model, CrfTokenClassifier) else {}
    model.compile(AdamW(1e-3, rate_multipliers=rates), technique=technique, **losses)


def predicted_columns(model, x):
    """The columns that `predict` takes.

    A `TextEmbedder` trains on pairs and answers texts, and a `TextRanker` on lists and answers
    pairs. The texts of a `MaskedLM` get masks.
    """
    if isinstance(model, TextRanker):
        return x[0], [texts[0] for texts in x[1]]
    if isinstance(model, MaskedLM) and isinstance(x, list):
        return [f"{model.preprocessor.tokenizer.mask_token} {text}" for text in x]
    if not isinstance(model, TextEmbedder):
        return x
    if isinstance(x, dict):
        return {name: array[:, 0] for name, array in x.items()}
    return x[0]


def predict(model, **arguments):
    """Arrays, also of a task that answers with entities."""
    if isinstance(model, TokenClassifier):
        return model.predict_probabilities(**arguments, verbose=0)
    if isinstance(model, EntitySpanClassifier):
        answers = model.predict(**arguments, verbose=0)
        return [[(e.start, e.end, e.score) for e in entities] for entities in answers]
    outputs = model.predict(**arguments, verbose=0)
    if isinstance(outputs, list) and isinstance(model, Seq2Seq):
        return [list(map(ord, text)) for text in outputs]
    if isinstance(outputs, list) and isinstance(model, MaskedLM):
        return np.array([[[share for _, share in guesses] for guesses in row] for row in outputs])
    if isinstance(outputs, list):
        return [(answer.start, answer.end, answer.score) for answer in outputs]
    return outputs


def assert_close(got, wanted):
    keras.tree.map_structure(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-5), got, wanted
    )
