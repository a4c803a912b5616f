"""Writes the fixtures of this folder: tasks as the version before saved them.

    KERAS_BACKEND=torch python make.py FOLDER

was run once, with that version. Do not run it again with a newer one: the fixtures tell whether
newer versions open what older ones wrote. Each zip holds, for one task:

- `task.keras`, compiled where the task has a loss that a file can hold;
- `preset/`, if the task can be saved as a preset;
- `arrays.npz`: the columns of rows that the task takes, its answers, and the answers after one more
  step of training, if it is compiled.
"""

import sys
import tempfile
import zipfile
from pathlib import Path

import keras
import keras_hub
import numpy as np

from keras_bert_suite import (
    AdamW,
    BertBackbone,
    BytePairTokenizer,
    CrfTokenClassifier,
    LinearWarmupDecay,
    LongformerBackbone,
    MaskedLM,
    ModernBertBackbone,
    ModernBertTokenizer,
    Pretrainer,
    QuestionAnswerer,
    RobertaBackbone,
    SegmentPacker,
    Seq2Seq,
    TextClassifier,
    TextEmbedder,
    TokenClassifier,
    WordPieceTokenizer,
)

WORDS = "the film was good bad very not a of it Good The".split()
PIECES = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "<hole>", *WORDS, "##s", "##ly", "un", ".", "!"]
TEXTS = ["The film was very good!", "it was not good", "bad films, badly", "", "a a a of the of it"]
OTHERS = ["Good.", "the film was bad", "un", "it was very very good", "Not a film"]
ROWS = [text.split() or ["a"] for text in TEXTS]

SIZES = {
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
    "max_sequence_length": 24,
    "layer_norm_epsilon": 1e-2,
    "activation": "relu",
    "dropout": 0.25,
    "attention_dropout": 0.125,
}


def word_pieces():
    """Cased, with its special tokens elsewhere, and a mask token of another name."""
    return WordPieceTokenizer(PIECES, lowercase=False, mask_token="<hole>")


def make_bert(**arguments):
    sizes = {**SIZES, "vocabulary_size": len(PIECES), "num_segments": 3, **arguments}
    return BertBackbone(**sizes)


def byte_pairs(special):
    """(vocabulary, merges)."""
    merges = ["Ġ t", "h e", "Ġt he", "Ġ g", "o o", "Ġg oo", "Ġgoo d", "Ã ©", "Ġ f", "i l"]
    letters = [chr(code) for code in range(33, 127)]
    pieces = [*special, *letters, "Ġ", "Ã", "©", *("".join(m.split()) for m in merges)]
    return {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}, merges


def compile_for_one_step(task):
    """No dropout acts, so that a step can be repeated."""
    optimizer = AdamW(
        LinearWarmupDecay(0.05, total_steps=9, warmup_steps=2),
        weight_decay=0.1,
        beta_1=0.7,
        epsilon=1e-3,
        global_clipnorm=0.5,
        bias_correction=True,
        rate_multipliers=[("classifier", 3.0)],
    )
    task.compile(optimizer)


def make_text_classifier():
    packer = SegmentPacker(
        word_pieces(), 12, truncation="head_tail", head_length=7, padding_lengths=(8, 12)
    )
    task = TextClassifier(
        make_bert(dropout=0.0, attention_dropout=0.0),
        label_names=["loud", "sad", "long"],
        problem_type="multi_label_classification",
        pooling="mean",
        preprocessor=packer,
        dropout=0.0,
        thresholds=[0.2, 0.5, 0.9],
        input_names=["review"],
    )
    task.backbone.get_layer("embeddings").trainable = False
    compile_for_one_step(task)
    return task, (TEXTS,), np.eye(3, dtype="float32")[[0, 1, 2, 1, 0]]


def make_crf():
    packer = SegmentPacker(word_pieces(), 10)
    task = CrfTokenClassifier(
        make_bert(dropout=0.0, attention_dropout=0.0, embedding_dim=4),
        label_names=["O", "B-X", "I-X", "B-Y", "I-Y"],
        preprocessor=packer,
        dropout=0.0,
        scheme="BIO",
        constrained_training=True,
    )
    compile_for_one_step(task)
    return task, (ROWS,), [["O"] * (len(row) - 1) + ["B-Y"] for row in ROWS]


def make_question_answerer():
    task = QuestionAnswerer(
        make_bert(),
        preprocessor=SegmentPacker(word_pieces(), 14),
        stride=3,
        query_length=3,
        max_answer_length=4,
        no_answer_threshold=0.5,
        input_names=("ask", "text"),
    )
    return task, (OTHERS, [" ".join([text, "the film was a", *TEXTS]) for text in TEXTS]), None


def make_pretrainer():
    backbone = make_bert(dropout=0.0, attention_dropout=0.0, output_hidden_states=False)
    task = Pretrainer(backbone, sentence_relations=3, span_boundary=True)
    rng = np.random.default_rng(0)
    columns = {
        "token_ids": rng.integers(0, len(PIECES), (4, 9)).astype("int32"),
        "segment_ids": rng.integers(0, 3, (4, 9)).astype("int32"),
        "padding_mask": (np.arange(9) < [[9], [7], [9], [8]]).astype("int32"),
        "mask_positions": np.array([[1, 3], [2, 4], [4, 5], [3, 6]], "int32"),
    }
    columns["span_borders"] = np.stack(
        [columns["mask_positions"] - 1, columns["mask_positions"] + 1], axis=-1
    )
    return task, columns, None


def make_seq2seq():
    task = Seq2Seq(
        make_bert(attention_pattern="seq2seq"),
        preprocessor=SegmentPacker(word_pieces(), 16),
        max_target_length=5,
        sampler=keras_hub.samplers.BeamSampler(num_beams=3),
    )
    return task, (TEXTS,), None


def make_text_embedder():
    task = TextEmbedder(
        make_bert(),
        pooling="max",
        normalize=False,
        preprocessor=SegmentPacker(word_pieces(), 12),
        input_names="title",
        column_names=("question", "answer"),
    )
    return task, (TEXTS, OTHERS), None


def make_modern_masked_lm():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary, merges = byte_pairs(special)
    backbone = ModernBertBackbone(
        vocabulary_size=len(vocabulary),
        num_layers=3,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=12,
        activation="gelu_tanh",
        head_activation="relu",
        pooling="mean",
        layer_types=["full_attention", "sliding_attention", "sliding_attention"],
        local_attention=6,
        global_rotary_base=5000.0,
        local_rotary_base=100.0,
        max_sequence_length=32,
        embedding_dropout=0.1,
        attention_bias=True,
        mlp_bias=True,
        norm_bias=True,
        head_bias=True,
        layer_norm_epsilon=1e-2,
    )
    packer = SegmentPacker(ModernBertTokenizer(vocabulary, merges), 32)
    masking = {"unit": "word", "mask_token_rate": 0.7}
    task = MaskedLM(backbone, preprocessor=packer, masking=masking, top_k=3)
    return task, ([f"a [MASK] {text} [MASK]" for text in TEXTS],), None


def make_longformer():
    vocabulary, merges = byte_pairs(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    backbone = LongformerBackbone(
        vocabulary_size=len(vocabulary),
        **{**SIZES, "max_sequence_length": 64, "dropout": 0.1},
        attention_window=[4, 6],
        global_tokens="first_text",
        max_global_tokens=7,
        separator_id=2,
    )
    packer = SegmentPacker(BytePairTokenizer(vocabulary, merges, add_prefix_space=True), 48)
    task = TextClassifier(
        backbone, num_classes=1, problem_type="regression", preprocessor=packer, dropout=0.3
    )
    return task, (TEXTS, OTHERS), None


def make_roberta():
    vocabulary, merges = byte_pairs(["<unk>", "<s>", "<pad>", "</s>", "<mask>"])
    tokenizer = BytePairTokenizer(vocabulary, merges, add_prefix_space=True, normalization="NFC")
    backbone = RobertaBackbone(vocabulary_size=len(vocabulary), **SIZES)
    task = TokenClassifier(
        backbone, label_names=["O", "B-X", "I-X"], preprocessor=SegmentPacker(tokenizer, 24)
    )
    return task, ([[*row, "cafe\u0301"] for row in ROWS],), None


CASES = {
    "text_classifier": make_text_classifier,
    "crf_token_classifier": make_crf,
    "question_answerer": make_question_answerer,
    "pretrainer": make_pretrainer,
    "seq2seq": make_seq2seq,
    "text_embedder": make_text_embedder,
    "modern_masked_lm": make_modern_masked_lm,
    "longformer_regression": make_longformer,
    "roberta_token_classifier": make_roberta,
}


def answer(task, columns):
    """The answers of a task, as dict of arrays."""
    if isinstance(task, Pretrainer):
        return dict(task.predict(columns, verbose=0))
    x = columns if len(columns) > 1 else columns[0]
    if isinstance(task, TokenClassifier):
        tags = task.predict_tags(x, verbose=0)
        shares = task.predict_probabilities(x, verbose=0)
        return {
            "tags": np.array([tag for row in tags for tag in row]),
            "shares": np.concatenate(shares),
        }
    if isinstance(task, TextEmbedder):
        return {
            "vectors": np.stack([task.predict(column, verbose=0) for column in columns]),
            "similarities": task.similarity_pairwise(*columns),
        }
    outputs = task.predict(x, verbose=0)
    if isinstance(task, QuestionAnswerer):
        rows = [(a.start, a.end, a.score) for a in outputs]
        return {"spans": np.array(rows), "texts": np.array([a.text for a in outputs])}
    if isinstance(task, MaskedLM):
        return {
            "words": np.array([[[word for word, _ in mask] for mask in row] for row in outputs]),
            "shares": np.array([[[share for _, share in mask] for mask in row] for row in outputs]),
        }
    if isinstance(task, TextClassifier) and hasattr(task, "thresholds") and task.thresholds:
        sets = task.predict_labels(x, verbose=0)
        return {"shares": outputs, "labels": np.array([" ".join(labels) for labels in sets])}
    return {"outputs": np.array(outputs)}


def train_one_step(task, columns, labels):
    x = columns if len(columns) > 1 else columns[0]
    task.fit(x, labels, batch_size=len(x), shuffle=False, verbose=0)


def pack_ragged(columns):
    """Rows of words as strings, which a file of arrays can hold."""
    return ["\t".join(row) if isinstance(row, list) else row for row in columns]


def write_case(name, directory):
    keras.utils.set_random_seed(1)
    task, columns, labels = CASES[name]()
    rng = np.random.default_rng(len(name))
    for variable in task.weights:
        center = 1.0 if variable.path.endswith("gamma") else 0.0
        variable.assign(center + rng.normal(scale=0.5, size=variable.shape))
    arrays = {}
    if isinstance(columns, dict):
        arrays.update({f"x/{key}": array for key, array in columns.items()})
    else:
        arrays.update({f"x/{i}": np.array(pack_ragged(c)) for i, c in enumerate(columns)})
    if labels is not None:
        train_one_step(task, columns, labels)  # so that the optimizer has moments
        arrays["y"] = labels if isinstance(labels, np.ndarray) else np.array(pack_ragged(labels))
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        task.save(scratch / "task.keras")
        task.save_to_preset(str(scratch / "preset"))
        arrays.update({f"before/{key}": value for key, value in answer(task, columns).items()})
        if labels is not None:
            train_one_step(task, columns, labels)
            arrays.update({f"after/{key}": value for key, value in answer(task, columns).items()})
        np.savez(scratch / "arrays.npz", **arrays)
        with zipfile.ZipFile(directory / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, 9) as archive:
            for path in sorted(scratch.rglob("*")):
                if path.is_file():
                    archive.write(path, path.relative_to(scratch))


if __name__ == "__main__":
    for case in CASES:
        write_case(case, Path(sys.argv[1]))
        print(case)
