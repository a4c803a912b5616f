"""The heads of heads/cases.py as tasks that train in a moment."""

import keras
import numpy as np
from heads.case import pack_rows
from heads.cases import CASES, LENGTH, find_case
from kerashub_models import MODELS
from small_byte_pairs import MERGES, make_vocabulary
from small_sentence_pieces import make_xlm_roberta
from small_texts import ONE_LAYER, VOCABULARY

from keras_bert_suite import (
    AdamW,
    BertBackbone,
    BytePairTokenizer,
    CrfTokenClassifier,
    LongformerBackbone,
    ModernBertBackbone,
    ModernBertTokenizer,
    RobertaBackbone,
    SegmentPacker,
    TokenClassifier,
    WordPieceTokenizer,
    XLMRobertaTokenizer,
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


def make_task(name, preprocessor="SegmentPacker", **backbone_arguments):
    """Makes a task on one layer.

    Args:
        name: one of `CASES`.
        preprocessor: "SegmentPacker", "none", `BYTE_PAIRS`, `SENTENCE_PIECES`, `MODERN_BERT`,
            `LONGFORMER`, or the name of one of KerasHub's.
        **backbone_arguments: of `BertBackbone`, such as a dtype.

    Returns:
        (an untrained task, columns (x, y) or (x, y, sample_weight)).
    """
    case = CASES[name]
    backbone, packer = make_parts(preprocessor, backbone_arguments)
    backbone = case.encoder(backbone, packer)
    task = case.cls(backbone, preprocessor=case.prepare(packer), **case.arguments)
    if preprocessor != "none" and case.pack is None:
        return task, (case.rows, case.labels)
    if case.compiled:
        task.compile(**case.compiled)  # The loss of an embedder says which labels rows have.
    columns = (case.pack or pack_rows)(task, case.rows, case.labels)
    task.preprocessor = None
    return task, columns


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


def compile_model(model, technique=None):
    # A schedule of open length would have each `fit` compiled again.
    rates = {"crf/": 1.0} if isinstance(model, CrfTokenClassifier) else {}
    optimizer = AdamW(1e-3, rate_multipliers=rates)
    model.compile(optimizer, technique=technique, **find_case(model).compiled)


def predicted_columns(model, x):
    """The columns that `predict` takes of those that `fit` takes."""
    return find_case(model).asked(model, x)


def predict(model, **arguments):
    """Arrays, also of a task that answers with entities."""
    if isinstance(model, TokenClassifier):
        return model.predict_probabilities(**arguments, verbose=0)
    return find_case(model).decode(model.predict(**arguments, verbose=0))


def assert_close(got, wanted):
    keras.tree.map_structure(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-5), got, wanted
    )
