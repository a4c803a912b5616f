"""Writes `files.tar.xz`: files of every format of this package, as the version before wrote them.

    export PYTHONPATH=.
    KERAS_BACKEND=torch python tests/written_before/make.py write FOLDER
    KERAS_BACKEND=tensorflow python tests/written_before/make.py export FOLDER
    KERAS_BACKEND=torch python tests/written_before/make.py pack FOLDER

were run once, with that version. Do not run it again with a newer one: the files tell whether newer
versions open what older ones wrote. The archive holds

- `tasks/NAME`: `task.keras`, compiled for a step of training, `preset/`, and for a task that
  `open_runtime` opens `onnx/`;
- `run/`: the checkpoint of a training after its first epoch of two;
- `corpus/`: shards of documents;
- `indexes/PRECISION`: a `VectorIndex`;
- `objects.json`: configurations of layers, losses, metrics and optimizers;
- `wanted.json`: rows, and what was answered to them.
"""

import contextlib
import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import keras
import keras_hub
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import small_sentence_pieces
from keras_bert_suite.serving.runtime_parts import KINDS
from small_byte_pairs import MERGES, make_vocabulary
from written_before.test_written_before import FILES, join, read_documents, to_plain, train

import keras_bert_suite as kbs
from keras_bert_suite import layers
from keras_bert_suite.corpus.preparation import prepare_corpus
from keras_bert_suite.heads.relations.relation_classifier import MARKERS
from keras_bert_suite.layers.attention.read_tokens import ReadFirst, ReadPackedTokens, ReadTokens
from keras_bert_suite.layers.attention.sequence_layout import (
    SequenceNumbers,
    TokenPositions,
    UnpackSequences,
)
from keras_bert_suite.layers.dense import Dense
from keras_bert_suite.layers.dropout import Dropout
from keras_bert_suite.layers.poolings.pooling import FirstLastPooling, WeightedMeanPooling
from keras_bert_suite.training import NDCG

WORDS = "the film was good bad very not a of it Good The".split()
PIECES = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "<hole>", *WORDS, "##s", "##ly", "un", ".", "!"]
TEXTS = ["The film was very good!", "it was not good", "bad films, badly", "a a a of the of it"]
OTHERS = ["Good.", "the film was bad", "it was very very good", "Not a film"]
ROWS = [text.split() for text in TEXTS]
ENDINGS = [[first, second] for first, second in zip(TEXTS, OTHERS, strict=True)]
CONTEXTS = [" ".join([text, "the film was a", *TEXTS]) for text in TEXTS]
RELEVANCE = [[1.0, 0.0], [0.0, 2.0], [1.0, 0.0], [0.0, 1.0]]
CLASSES = ["sad", "glad", "sad", "glad"]

SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 12}
#: Dropout would make of a step another one.
OTHERWISE = {
    "max_sequence_length": 24,
    "layer_norm_epsilon": 1e-2,
    "activation": "relu",
    "dropout": 0.0,
    "attention_dropout": 0.0,
}


def pack(tokenizer, length=24, **arguments):
    return kbs.SegmentPacker(tokenizer, length, **arguments)


def word_pieces(length=24, **arguments):
    """Cased, with its special tokens elsewhere, and a mask token of another name."""
    return pack(kbs.WordPieceTokenizer(PIECES, lowercase=False, mask_token="<hole>"), length)


def byte_pairs(cls=kbs.BytePairTokenizer, length=24, **arguments):
    bert = cls is kbs.ModernBertTokenizer
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"] if bert else None
    vocabulary = make_vocabulary(**({"special": special} if special else {}))
    return pack(cls(vocabulary, MERGES, **arguments), length)


def sentence_pieces(cls, special, **arguments):
    rule = "nmt_nfkc" if cls is kbs.AlbertTokenizer else "identity"  # The former is long.
    model = small_sentence_pieces.make_albert(special, rule=rule, defined=())
    return pack(cls(model, **arguments))


def encode(packer, cls=kbs.BertBackbone, **arguments):
    size = packer.tokenizer.vocabulary_size()
    return cls(vocabulary_size=size, **{**SIZES, **OTHERWISE, **arguments})


def make_text_classifier():
    packer = pack(
        word_pieces().tokenizer, 12, truncation="head_tail", head_length=7, padding_lengths=(8, 12)
    )
    task = kbs.TextClassifier(
        encode(packer, num_segments=3),
        label_names=["loud", "sad", "long"],
        problem_type="multi_label_classification",
        pooling="mean",
        preprocessor=packer,
        dropout=0.0,
        thresholds=[0.2, 0.5, 0.9],
        input_names=["review"],
    )
    task.backbone.get_layer("embeddings").trainable = False
    optimizer = kbs.AdamW(
        kbs.LinearWarmupDecay(0.05, total_steps=9, warmup_steps=2),
        weight_decay=0.1,
        beta_1=0.7,
        epsilon=1e-3,
        global_clipnorm=0.5,
        bias_correction=True,
        rate_multipliers=[("classifier", 3.0)],
    )
    task.compile(optimizer, metrics=["accuracy", kbs.MacroF1(0.6)], technique=kbs.FGM(0.3))
    return task, TEXTS, (TEXTS, np.eye(3, dtype="float32")[[0, 1, 2, 1]])


def make_regression():
    packer = byte_pairs(length=48, add_prefix_space=True)
    backbone = encode(
        packer,
        kbs.LongformerBackbone,
        max_sequence_length=64,
        attention_window=4,
        global_tokens="first_text",
        max_global_tokens=7,
    )
    task = kbs.TextClassifier(
        backbone, num_classes=1, problem_type="regression", preprocessor=packer, dropout=0.0
    )
    task.compile(kbs.Lamb(0.02, weight_decay=0.2), loss=keras.losses.Huber())
    return task, (TEXTS, OTHERS), ((TEXTS, OTHERS), np.array([1.0, 0.5, 0.0, -1.0], "float32"))


def make_attributes():
    packer = word_pieces()
    attributes = {"tone": ["sad", "glad"], "length": ["short", "long", "endless"]}
    task = kbs.AttributeClassifier(
        encode(packer, kbs.ElectraBackbone, embedding_dim=4),
        attributes,
        attribute_weights={"tone": 2.0, "length": 1.0},
        preprocessor=packer,
        dropout=0.0,
    )
    task.compile("adam")
    return task, TEXTS, (TEXTS, {"tone": CLASSES, "length": ["short", None, "long", "long"]})


def make_tagger():
    packer = byte_pairs(add_prefix_space=True)
    task = kbs.TokenClassifier(
        encode(packer, kbs.RobertaBackbone),
        label_names=["O", "B-X", "I-X"],
        preprocessor=packer,
        dropout=0.0,
        head_layers=[keras.layers.Dense(5, activation="tanh")],
        word_cutting=kbs.WordCutting(),
    )
    task.compile(kbs.AdamW(0.01))
    return task, [[*row, "cafe\u0301"] for row in ROWS], (ROWS, tag_last("B-X"))


def tag_last(tag):
    return [["O"] * (len(row) - 1) + [tag] for row in ROWS]


def make_chains():
    packer = word_pieces(10)
    task = kbs.CrfTokenClassifier(
        encode(packer, kbs.ErnieBackbone, num_task_types=3, task_id=2),
        label_names=["O", "B-X", "I-X", "B-Y", "I-Y"],
        preprocessor=packer,
        dropout=0.0,
        scheme="BIO",
        constrained_training=True,
    )
    task.compile(kbs.AdamW(0.01, rate_multipliers=[("crf/", 30.0)]))
    return task, ROWS, (ROWS, tag_last("B-Y"))


def make_spans():
    packer = word_pieces()
    task = kbs.EntitySpanClassifier(
        encode(packer, kbs.NezhaBackbone, max_relative_position=3),
        label_names=["X", "Y"],
        preprocessor=packer,
        dropout=0.0,
        head=kbs.EfficientGlobalPointer(2, head_dim=4),
    )
    task.compile(kbs.AdamW(0.01))
    return task, ROWS, (ROWS, [[(0, 1, 0)], [(1, 2, 1)], [], [(0, 2, 0), (1, 2, 1)]])


def make_relations():
    packer = word_pieces()
    packer.tokenizer.add_tokens(MARKERS, special=True)
    task = kbs.RelationClassifier(
        encode(packer),
        label_names=["none", "X(e1,e2)", "X(e2,e1)"],
        entity_states="averages",
        preprocessor=packer,
        dropout=0.0,
    )
    task.compile(kbs.AdamW(0.01), metrics=["accuracy"])
    rows = ["<e1>{}</e1> <e2>{}</e2> {}".format(*text.split(maxsplit=2)) for text in TEXTS]
    return task, rows, (rows, ["none", "X(e1,e2)", "X(e2,e1)", "none"])


def make_questions():
    special = small_sentence_pieces.ALBERT_TOKENS
    packer = sentence_pieces(kbs.AlbertTokenizer, special, strip_accents=False)
    task = kbs.QuestionAnswerer(
        encode(packer, kbs.AlbertBackbone, embedding_dim=4, num_inner_repetitions=2),
        preprocessor=packer,
        stride=3,
        query_length=3,
        max_answer_length=4,
        no_answer_threshold=0.5,
        input_names=("ask", "text"),
    )
    task.compile(kbs.AdamW(0.01))
    return task, (OTHERS, CONTEXTS), ((OTHERS, CONTEXTS), [(0, 3), (-1, -1), (4, 9), (0, 1)])


def make_choices():
    packer = word_pieces()
    backbone = encode(packer, kbs.RoFormerBackbone, rotary_value=True)
    task = kbs.MultipleChoice(backbone, preprocessor=packer, dropout=0.0)
    task.compile(kbs.AdamW(0.01))
    return task, (OTHERS, ENDINGS), ((OTHERS, ENDINGS), np.array([0, 1, 1, 0]))


def make_rankings():
    special = small_sentence_pieces.ALBERT_TOKENS
    packer = sentence_pieces(
        kbs.SentencePieceTokenizer,
        special,
        start_token="[CLS]",
        end_token="[SEP]",
        pad_token="<pad>",
        mask_token="[MASK]",
        unknown_token="<unk>",
    )
    backbone = encode(packer, kbs.DistilBertBackbone)
    task = kbs.TextRanker(backbone, preprocessor=packer, dropout=0.0)
    task.compile(kbs.AdamW(0.01), loss=kbs.RankingLoss("pairwise"), metrics=[NDCG(top_k=1)])
    return task, (OTHERS, TEXTS), ((OTHERS, ENDINGS), RELEVANCE)


def make_documents():
    packer = word_pieces(10)
    task = kbs.DocumentClassifier(
        encode(packer),
        label_names=["sad", "glad"],
        window_pooling=kbs.WindowTransformer(1, num_heads=2, dropout=0.0),
        max_windows=3,
        stride=2,
        preprocessor=packer,
        dropout=0.0,
    )
    task.compile(kbs.AdamW(0.01))
    return task, CONTEXTS, (CONTEXTS, CLASSES)


def make_vectors():
    packer = sentence_pieces(kbs.XLMRobertaTokenizer, small_sentence_pieces.XLM_ROBERTA_TOKENS)
    task = kbs.TextEmbedder(
        encode(packer, kbs.RobertaBackbone),
        pooling=["mean", "max"],
        normalize=False,
        dense_layers=[keras.layers.Dense(6, activation="tanh")],
        preprocessor=packer,
        input_names="title",
        column_names=("question", "answer"),
        prompts={"passage": "the film : "},
    )
    task.compile(kbs.AdamW(0.01), loss=kbs.CoSENT(3.0), cache_batch_size=2)
    return task, TEXTS, ((TEXTS, OTHERS), np.linspace(-1, 1, 4, dtype="float32"))


def make_masks():
    packer = byte_pairs(kbs.ModernBertTokenizer, 32)
    backbone = kbs.ModernBertBackbone(
        vocabulary_size=packer.tokenizer.vocabulary_size(),
        **{**SIZES, "num_layers": 2},
        activation="gelu_tanh",
        head_activation="relu",
        pooling="mean",
        layer_types=["full_attention", "sliding_attention"],
        local_attention=6,
        global_rotary_base=5000.0,
        local_rotary_base=100.0,
        max_sequence_length=32,
        attention_bias=True,
        mlp_bias=True,
        norm_bias=True,
        head_bias=True,
        layer_norm_epsilon=1e-2,
    )
    masking = {"unit": "word", "mask_token_rate": 0.7}
    task = kbs.MaskedLM(backbone, preprocessor=packer, masking=masking, top_k=3)
    task.compile(kbs.AdamW(0.01))
    return task, [f"a [MASK] {text} [MASK]" for text in TEXTS], (TEXTS, None)


def make_pretraining():
    packer = word_pieces()
    backbone = encode(packer, num_segments=3)
    task = kbs.Pretrainer(backbone, preprocessor=packer, sentence_relations=3, span_boundary=True)
    task.compile(kbs.AdamW(0.01))
    x, y, weights = make_batch(segment_ids=3)
    places = x["mask_positions"]
    x["span_borders"] = np.stack([places - 1, places + 1], axis=-1)
    labels = {"mlm": y, "nsp": np.array([0, 1, 2, 1], "int32"), "sbo": y}
    return task, x, (x, labels, {"mlm": weights, "nsp": np.ones(4, "float32"), "sbo": weights})


def make_replaced_tokens():
    packer = word_pieces()
    backbone = encode(packer, kbs.ElectraBackbone)
    task = kbs.ElectraPretrainer(backbone, 0.5, packer, seed=3)
    task.compile(kbs.AdamW(0.01))
    x, y, weights = make_batch(segment_ids=2)
    return task, x, (x, {"mlm": y}, {"mlm": weights})


def make_batch(segment_ids):
    rng = np.random.default_rng(0)
    x = {
        "token_ids": rng.integers(0, len(PIECES), (4, 9)).astype("int32"),
        "segment_ids": rng.integers(0, segment_ids, (4, 9)).astype("int32"),
        "padding_mask": (np.arange(9) < [[9], [7], [9], [8]]).astype("int32"),
        "mask_positions": np.array([[1, 3], [2, 4], [4, 5], [3, 6]], "int32"),
    }
    y = np.take_along_axis(x["token_ids"], x["mask_positions"], axis=1)
    return x, y, np.array([[1, 1], [1, 0], [1, 1], [1, 1]], "float32")


def make_targets():
    packer = word_pieces(16)
    task = kbs.Seq2Seq(
        encode(packer, attention_pattern="seq2seq"),
        preprocessor=packer,
        max_target_length=5,
        sampler=keras_hub.samplers.BeamSampler(num_beams=3),
    )
    task.compile(kbs.AdamW(0.01))
    return task, TEXTS, (TEXTS, OTHERS)


def make_cross_attention():
    packer = word_pieces(16)
    size = {"vocabulary_size": packer.tokenizer.vocabulary_size()}
    encoder = {**size, **SIZES, **OTHERWISE}
    backbone = kbs.BertEncoderDecoder(encoder, {**encoder, "hidden_dim": 4})
    task = kbs.Seq2Seq(backbone, preprocessor=packer, max_target_length=5)
    task.compile(kbs.AdamW(0.01))
    return task, TEXTS, (TEXTS, OTHERS)


MAKERS = {
    name.removeprefix("make_"): function
    for name, function in list(globals().items())
    if name.startswith("make_") and name not in ("make_vocabulary", "make_batch")
}


def randomize(task):
    rng = np.random.default_rng(1)
    for variable in task.weights:
        center = 1.0 if variable.path.endswith("gamma") else 0.0
        scale = 1.0 if len(variable.shape) > 1 else 0.1
        variable.assign(center + rng.normal(scale=scale, size=variable.shape))


def write_task(name, folder):
    keras.utils.set_random_seed(1)
    task, x, rows = MAKERS[name]()
    randomize(task)
    train(task, split(rows[0]), *rows[1:])  # So that the optimizer has moments.
    folder.mkdir(parents=True)
    task.save(folder / "task.keras")
    task.save_to_preset(str(folder / "preset"))
    x, rows = split(x), [split(rows[0]), *rows[1:]]
    wanted = {"class": type(task).__name__, "x": x, "rows": rows, "before": ask(task, x, verbose=0)}
    # Not the task that was saved: the number of its draws is in no file.
    task = keras.saving.load_model(folder / "task.keras")
    train(task, *rows)
    return {**wanted, "after": ask(task, x, verbose=0)}


def ask(task, x, **arguments):
    """dict, method -> its answers."""
    answers = {"predict": to_plain(task.predict(join(x), **arguments))}
    for method in ("predict_labels", "predict_tags", "predict_probabilities"):
        with contextlib.suppress(
            AttributeError, TypeError, ValueError
        ):  # Where the task has no labels.
            answers[method] = to_plain(getattr(task, method)(join(x), **arguments))
    return answers


def split(x):
    """A list of columns, or a dict of arrays."""
    return x if isinstance(x, dict) else list(x) if isinstance(x, tuple) else [x]


def stop(epoch, logs):
    if epoch == 1:
        raise KeyboardInterrupt


def write_run(file, folder, wanted):
    """The checkpoint of a training that stops after the first epoch of two, and its end."""
    x, y = wanted["x"][0], np.array(wanted["rows"][1])
    task = keras.saving.load_model(file)
    stopping = keras.callbacks.LambdaCallback(on_epoch_begin=stop)
    checkpoint = kbs.TrainingCheckpoint(folder, every=1, keep=1)
    try:
        task.fit(x, y, batch_size=2, epochs=2, verbose=0, callbacks=[checkpoint, stopping])
    except KeyboardInterrupt:
        pass
    twin = keras.saving.load_model(file)
    with tempfile.TemporaryDirectory() as scratch:  # The order of rows is in the checkpoint.
        checkpoint = kbs.TrainingCheckpoint(shutil.copytree(folder, f"{scratch}/run"), every=1)
        twin.fit(x, y, batch_size=2, epochs=2, verbose=0, callbacks=[checkpoint])
    return ask(twin, [x], verbose=0)


def write_corpus(folder):
    folder.with_name("documents.txt").write_text(
        "\n\n".join("\n".join(TEXTS[:n]) for n in (1, 4, 2))
    )
    source = folder.with_name("documents.txt")
    prepare_corpus(source, word_pieces().tokenizer, folder, slice_bytes=60)
    source.unlink()
    return read_documents(folder)


def write_indexes(file, folder):
    """Indexes in each precision of vectors of some texts."""
    folder.mkdir()
    embedder = keras.saving.load_model(file)
    for precision in ("float32", "int8", "binary"):
        embedder.index(TEXTS, precision=precision).save(folder / precision)
    return {
        path.name: {
            "queries": OTHERS,
            "hits": to_plain(embedder.search(OTHERS, kbs.VectorIndex.load(path))),
        }
        for path in sorted(folder.iterdir())
    }


PLAIN_LAYERS = (
    *(FirstLastPooling, layers.FirstTokenPooling, layers.LastTokenPooling, WeightedMeanPooling),
    *(ReadFirst, ReadTokens, ReadPackedTokens, SequenceNumbers, TokenPositions, UnpackSequences),
)


def write_objects(file):
    """Every class that a file may name beside tasks, with other arguments than the defaults."""
    from layers.test_saved_arguments import CASES
    from training.test_saved_settings import TABLE

    changed = {cls: {**case.arguments, **open_dicts(case.changed)} for cls, case in CASES.items()}
    changed[kbs.ConditionalRandomField]["num_classes"] = 2  # That `allowed` is for.
    for cls, (_, arguments, values) in TABLE.items():
        values = {key: value for key, value in values.items() if value != "refused"}
        changed[cls] = {**arguments, **values}
    objects = [cls(**arguments) for cls, arguments in changed.items()]
    tokenizer = word_pieces().tokenizer
    masker = kbs.TokenMasker(tokenizer, 0.3, "span", span_probability=0.4, dynamic=False, seed=3)
    objects += [
        masker,
        kbs.TokenMasker(tokenizer, unit="ngram", ngram_shares=(0.2, 0.8), unit_weights={"good": 3}),
        kbs.NextTokenTargets(tokenizer, dynamic=False),
        kbs.LanguageModelMixture(masker, {"seq2seq": 0.9, "bidirectional": 0.1}),
        kbs.TokenShuffler(kbs.TokenMasker(tokenizer), rate=0.5, group_length=2),
    ]
    objects += [Dense(3, activation=layers.gelu_erf), Dropout(0.3)]
    objects += [cls(name="x") for cls in PLAIN_LAYERS]
    write_json(file, [keras.saving.serialize_keras_object(found) for found in objects])


def open_dicts(changed):
    """The table has a dict of an argument and of what it needs where it needs something."""
    dicts = {k: v for k, v in changed.items() if isinstance(v, dict) and k in v}
    opened = {k: v for k, v in changed.items() if k not in dicts}
    for value in dicts.values():
        opened |= value
    return opened


def write_json(file, value):
    text = json.dumps(value, default=lambda array: np.asarray(array).tolist(), indent=1)
    file.write_text(text, "utf-8")


def write(folder):
    tasks = folder / "tasks"
    wanted = {name: write_task(name, tasks / name) for name in MAKERS}
    file = tasks / "text_classifier" / "task.keras"
    wanted = {
        "tasks": wanted,
        "run": write_run(file, folder / "run", wanted["text_classifier"]),
        "corpus": write_corpus(folder / "corpus"),
        "indexes": write_indexes(tasks / "vectors" / "task.keras", folder / "indexes"),
    }
    write_json(folder / "wanted.json", wanted)
    write_objects(folder / "objects.json")


def export(folder):
    for file in sorted(folder.glob("tasks/*/task.keras")):
        task = keras.saving.load_model(file, compile=False)
        # `open_runtime` finds no other class of SentencePiece than those of models.
        if type(task).__name__ in KINDS and "rankings" not in file.parts:
            kbs.export_onnx(task, file.with_name("onnx"))


def pack_files(folder):
    wanted = json.loads((folder / "wanted.json").read_text("utf-8"))
    for name, case in wanted["tasks"].items():
        if (exported := folder / "tasks" / name / "onnx").exists():
            case["runtime"] = ask(kbs.open_runtime(exported), case["x"])
    write_json(folder / "wanted.json", wanted)
    with tarfile.open(FILES, "w:xz", preset=9) as archive:
        archive.add(folder, ".")


if __name__ == "__main__":
    {"write": write, "export": export, "pack": pack_files}[sys.argv[1]](Path(sys.argv[2]))
