"""Preprocessing speed on one core: ours and its peers', in turn in one run.

    python benchmarks/preprocessing.py > benchmarks/results/preprocessing.md
    python benchmarks/preprocessing.py --rounds 3 --megabytes 0.5 --parts byte_pairs,packing

Tokenizing real English and Chinese text in batches of 256 lines, inside a compiled
`tf.function` and from Python strings, into WordPieces, into byte pairs and into the pieces of a
SentencePiece model, both of 8,000 pieces that are learned from the text; words into rows of
characters, as ELMo reads them; packing and masking 256 x 512 tokens.
Every library has one thread. All sides of a table do the same work in turn, as many times
as there are rounds, after a first time that does not count.

Our eager tokenizer keeps the words it has seen: "warm" has seen all of the text before,
"cold" is new in every round.
"""

import csv
import itertools
import json
import os
import time
from pathlib import Path

# Read by the libraries when they are imported.
os.environ.update(OMP_NUM_THREADS="1", RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras_hub
import numpy as np
import tensorflow as tf
import tensorflow_text
from absl import app, flags
from harness.result_tables import describe_run, format_figures, format_ratios, format_table
from peer_tokenizers import (
    make_encoders,
    make_fast_tokenizer,
    make_keras_hub_tokenizer,
    make_rust_tokenizer,
    train_byte_pairs,
    train_sentence_pieces,
)

import keras_bert_suite as kbs
from keras_bert_suite.preprocessing.packing import NUMPY, pack_segments

ROOT = Path(__file__).resolve().parents[1]
BATCH_SIZE, SEQUENCE_LENGTH, MAX_PREDICTIONS = 256, 512, 77

flags.DEFINE_string(
    "data",
    os.environ.get("KBS_SHARED_DATA") or str(ROOT.parent / "shared" / "data"),
    "Folder of the texts and vocabularies that no other flag names.",
)
flags.DEFINE_string("english", None, "Texts: a line each, .jsonl with `text`, or .tsv.")
flags.DEFINE_string("chinese", None, "Texts, like --english.")
flags.DEFINE_string("english_vocabulary", None, "vocab.txt of an uncased BERT.")
flags.DEFINE_string("chinese_vocabulary", None, "vocab.txt of a Chinese BERT.")
flags.DEFINE_float("megabytes", 2.0, "How much of each language to tokenize.", 0)
flags.DEFINE_integer("rounds", 7, "How many times to measure each side.", 1)
PARTS = ("word_pieces", "byte_pairs", "sentence_pieces", "characters", "packing")
flags.DEFINE_list("parts", ",".join(PARTS), f"What to measure: some of {', '.join(PARTS)}.")
FLAGS = flags.FLAGS

#: language -> (texts, vocabulary), in the folder --data.
DEFAULTS = {
    "english": ("corpus/enwiki_small/enwiki.jsonl", "vocab/bert-base-uncased/vocab.txt"),
    "chinese": ("zh/ChnSentiCorp/train.tsv", "vocab/bert-base-chinese/vocab.txt"),
}


def main(_):
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    names = ("keras-hub", "tensorflow", "tensorflow-text", "tokenizers", "sentencepiece")
    names += ("transformers", "numpy")
    print("# Preprocessing speed on one core: ours and its peers'\n")
    print(describe_run({}, FLAGS.rounds, names))
    if unknown := set(FLAGS.parts) - set(PARTS):
        raise app.UsageError(f"--parts are some of {', '.join(PARTS)}, got {', '.join(unknown)}")
    for language in DEFAULTS if set(FLAGS.parts) - {"packing"} else ():
        texts, vocabulary = load(language)
        batches = [texts[i : i + BATCH_SIZE] for i in range(0, len(texts), BATCH_SIZE)]
        megabytes = sum(len(text.encode()) for text in texts) / 1e6
        print(f"\n## {language.capitalize()} text to ids\n")
        print(f"{megabytes:.1f} MB, {len(texts):,} texts in batches of {BATCH_SIZE}.")
        if "word_pieces" in FLAGS.parts:
            compare_graphs(batches, vocabulary, megabytes)
            compare_eager(batches, vocabulary, megabytes)
            print(
                "\nWanted: in a graph 6 times KerasHub and 0.9 times FastBertTokenizer; from Python"
            )
            print("once `tokenizers` and 5 times KerasHub.")
        if "byte_pairs" in FLAGS.parts:
            compare_byte_pairs(batches, megabytes)
        if "sentence_pieces" in FLAGS.parts:
            compare_sentence_pieces(batches, megabytes)
        if "characters" in FLAGS.parts:
            compare_characters(batches, megabytes)
    if "packing" in FLAGS.parts:
        compare_packing(*load("english"))


def load(language):
    """(list of texts, list of pieces) of a language."""
    texts, vocabulary = (Path(FLAGS.data) / name for name in DEFAULTS[language])
    texts = Path(FLAGS[language].value or texts)
    vocabulary = Path(FLAGS[f"{language}_vocabulary"].value or vocabulary)
    if missing := [str(path) for path in (texts, vocabulary) if not path.is_file()]:
        raise app.UsageError(f"no {' and no '.join(missing)}: set --data, or name the {language}")
    kept, room = [], FLAGS.megabytes * 1e6
    for text in read_texts(texts):
        if room > 0 and text.strip():
            kept.append(text)
            room -= len(text.encode())
    return kept, kbs.WordPieceTokenizer(vocabulary).get_vocabulary()


def read_texts(path):
    with open(path, encoding="utf-8", newline="") as file:
        if path.suffix == ".tsv":
            yield from (row[0] for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        else:
            for line in file:
                yield from (json.loads(line)["text"] if path.suffix == ".jsonl" else line).split(
                    "\n"
                )


def compare_graphs(batches, vocabulary, megabytes):
    ours = kbs.WordPieceTokenizer(vocabulary)
    hub = make_keras_hub_tokenizer(vocabulary)
    raw = tensorflow_text.FastBertTokenizer(
        vocab=vocabulary, lower_case_nfd_strip_accents=True, token_out_type=tf.int32
    )
    signature = [tf.TensorSpec([None], tf.string)]
    sides = {
        "ours": ours.tokenize,
        "KerasHub": hub.tokenize,
        "tensorflow_text FastBertTokenizer": raw.tokenize,
    }
    sides = {name: tf.function(side, signature) for name, side in sides.items()}
    tensors = [tf.constant(batch) for batch in batches]

    def prepare(side):
        return lambda: [side(tensor) for tensor in tensors]

    ids = {
        name: [row for tensor in tensors for row in side(tensor).to_list()]
        for name, side in sides.items()
    }
    seconds = take_turns({name: lambda s=side: prepare(s) for name, side in sides.items()})
    print_rates("In a graph", "MB/s", megabytes, seconds, 1, ids)


def compare_eager(batches, vocabulary, megabytes):
    ours = kbs.WordPieceTokenizer(vocabulary)
    hub = make_keras_hub_tokenizer(vocabulary)
    rust = make_rust_tokenizer(vocabulary)

    def encode(batch):
        return [row.ids for row in rust.encode_batch(batch, add_special_tokens=False)]

    def encode_fast(batch):
        return [row.ids for row in rust.encode_batch_fast(batch, add_special_tokens=False)]

    def repeat(side):
        return lambda: lambda: [side(batch) for batch in batches]

    def renew(method):
        def prepare():
            tokenizer = kbs.WordPieceTokenizer(vocabulary)
            tokenizer.tokenize("")  # builds its tables
            side = getattr(tokenizer, method)
            return lambda: [side(batch) for batch in batches]

        return prepare

    compared = {
        "ours, tokenize, warm": ours.tokenize,
        "tokenizers encode_batch": encode,
        "tokenizers encode_batch_fast": encode_fast,
        "KerasHub": hub.tokenize,
    }
    ids = {
        name: [row for batch in batches for row in side(batch)] for name, side in compared.items()
    }
    seconds = take_turns(
        {
            "ours, tokenize, warm": repeat(ours.tokenize),
            "ours, tokenize, cold": renew("tokenize"),
            "ours, tokenize_flat, warm": repeat(ours.tokenize_flat),
            "ours, tokenize_flat, cold": renew("tokenize_flat"),
            "tokenizers encode_batch": repeat(encode),
            "tokenizers encode_batch_fast": repeat(encode_fast),
            "KerasHub": repeat(hub.tokenize),
        }
    )
    print_rates("From Python", "MB/s", megabytes, seconds, 4, ids)


def compare_sentence_pieces(batches, megabytes):
    """XLM-RoBERTa's tokenizers of one model, in a graph and from Python."""
    texts = list(itertools.chain.from_iterable(batches))
    model = train_sentence_pieces(texts)
    ours = kbs.XLMRobertaTokenizer(model)
    hub = keras_hub.models.XLMRobertaTokenizer(model)
    fast = make_fast_tokenizer(ours)
    albert = kbs.AlbertTokenizer(train_sentence_pieces(texts, albert=True))
    signature = [tf.TensorSpec([None], tf.string)]
    encode, encode_fast = make_encoders(fast)
    graphs = {
        "ours": ours.tokenize,
        "ours, with offsets": ours.tokenize_with_offsets,
        "ours, ALBERT's rules": albert.tokenize,
        "KerasHub": hub.tokenize,
    }
    graphs = {name: tf.function(side, signature) for name, side in graphs.items()}
    eager = {
        "ours, tokenize": ours.tokenize,
        "ours, tokenize_flat": ours.tokenize_flat,
        "ours, ALBERT's rules": albert.tokenize,
        "transformers encode_batch": encode,
        "transformers encode_batch_fast": encode_fast,
        "KerasHub": hub.tokenize,
    }
    compare_sides("SentencePiece", graphs, eager, batches, megabytes)
    xlnet = kbs.XLNetTokenizer(train_sentence_pieces(texts, xlnet=True))
    encode, encode_fast = make_encoders(make_fast_tokenizer(xlnet))
    graphs = {"ours": xlnet.tokenize, "ours, with offsets": xlnet.tokenize_with_offsets}
    eager = {
        "ours, tokenize": xlnet.tokenize,
        "ours, tokenize_flat": xlnet.tokenize_flat,
        "transformers encode_batch": encode,
        "transformers encode_batch_fast": encode_fast,
    }
    graphs = {name: tf.function(side, signature) for name, side in graphs.items()}
    compare_sides("XLNet's rules", graphs, eager, batches, megabytes)


def compare_characters(batches, megabytes):
    """Words between white space as rows of 50 characters, beside the rule of bilm-tf in Python."""
    ours = kbs.CharacterTokenizer(split_punctuation=False)

    def make_row(word):
        encoded = word.encode("utf-8", "ignore")[:48]
        row = np.full(50, 260 + 1, "int32")
        row[0] = 258 + 1
        for place, byte in enumerate(encoded, start=1):
            row[place] = byte + 1
        row[len(encoded) + 1] = 259 + 1
        return row

    def tokenize(batch):
        return [[make_row(word).tolist() for word in text.split()] for text in batch]

    graphs = {"ours": tf.function(ours.tokenize, [tf.TensorSpec([None], tf.string)])}
    eager = {
        "ours, tokenize": ours.tokenize,
        "ours, tokenize_flat": ours.tokenize_flat,
        "bilm-tf's rule": tokenize,
    }
    compare_sides("Characters", graphs, eager, batches, megabytes)


def compare_byte_pairs(batches, megabytes):
    """RoBERTa's and ModernBERT's tokenizers of the same merges, in a graph and from Python."""
    texts = list(itertools.chain.from_iterable(batches))
    roberta_tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bert_tokens = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    vocabulary, merges = train_byte_pairs(texts, roberta_tokens)
    ours = kbs.BytePairTokenizer(vocabulary, merges)
    modern = kbs.ModernBertTokenizer(*train_byte_pairs(texts, bert_tokens))
    hub = keras_hub.models.RobertaTokenizer(vocabulary, merges)
    signature = [tf.TensorSpec([None], tf.string)]
    for name, tokenizer, peers in (
        ("RoBERTa's byte pairs", ours, {"KerasHub": hub.tokenize}),
        ("ModernBERT's byte pairs", modern, {}),
    ):
        encode, encode_fast = make_encoders(make_fast_tokenizer(tokenizer))
        graphs = {
            "ours": tokenizer.tokenize,
            "ours, with offsets": tokenizer.tokenize_with_offsets,
            **peers,
        }
        graphs = {name: tf.function(side, signature) for name, side in graphs.items()}
        eager = {
            "ours, tokenize": tokenizer.tokenize,
            "ours, tokenize_flat": tokenizer.tokenize_flat,
            "transformers encode_batch": encode,
            "transformers encode_batch_fast": encode_fast,
            **peers,
        }
        compare_sides(name, graphs, eager, batches, megabytes)


def compare_sides(title, graphs, eager, batches, megabytes):
    """Two tables: sides that take tensors, and sides that take lists of str.

    Args:
        graphs, eager: dict, name -> function from a batch to its ids. The names of our sides begin
            with "ours", and the first one has the ids that the peers are compared with.
    """
    tensors = [tf.constant(batch) for batch in batches]
    for place, sides, inputs in (("in a graph", graphs, tensors), ("from Python", eager, batches)):
        peers = [name for name in sides if not name.startswith("ours")]
        ids = {}
        for name in (next(iter(sides)), *peers):
            rows = (sides[name](each) for each in inputs)
            rows = (row.to_list() if hasattr(row, "to_list") else row for row in rows)
            ids[name] = list(itertools.chain.from_iterable(rows))
        turns = {
            name: lambda s=side, i=inputs: lambda: [s(each) for each in i]
            for name, side in sides.items()
        }
        seconds = take_turns(turns)
        num_ours = len(sides) - len(peers)
        print_rates(f"{title} {place}", "MB/s", megabytes, seconds, num_ours, ids)


def compare_packing(texts, vocabulary):
    """Pairs of segments that fill their rows, as in pretraining."""
    tokenizer = kbs.WordPieceTokenizer(vocabulary)
    ids, _ = tokenizer.tokenize_flat(texts)
    shape = 2, BATCH_SIZE, SEQUENCE_LENGTH // 2
    pair = np.resize(ids, shape)  # repeats a text that is too short
    lengths = np.full(BATCH_SIZE, shape[-1], "int32")
    starts = np.cumsum(lengths, dtype="int32") - lengths

    def pack():
        return pack_segments(
            NUMPY,
            [(segment.ravel(), starts, lengths) for segment in pair],
            sequence_length=SEQUENCE_LENGTH,
            template=tokenizer.row_template,
            allowed_lengths=(SEQUENCE_LENGTH,),
        )

    hub_packing, hub_masking = make_keras_hub_packers(pair, vocabulary)
    packing = {"ours": pack, **hub_packing}
    masking = {**make_maskers(tokenizer, pack), **hub_masking}
    print("\n## Ids to packed and masked batches\n")
    print(f"Batches of {BATCH_SIZE} x {SEQUENCE_LENGTH}, pairs of segments, no padding.")
    for title, sides in (("Packing", packing), ("Packing and masking", masking)):
        seconds = take_turns({name: lambda side=side: side for name, side in sides.items()})
        num_ours = sum(name[:4] == "ours" for name in sides)
        print_rates(title, "sequences/s", BATCH_SIZE, seconds, num_ours)
    print("\nWanted: 20,000 sequences/s packed and masked.")


def make_maskers(tokenizer, pack):
    """dict, name -> function that packs and masks a batch."""
    row_ids, epochs = np.arange(BATCH_SIZE), itertools.count()

    def make(unit):
        masker = kbs.TokenMasker(tokenizer, unit=unit, max_predictions=MAX_PREDICTIONS)
        return lambda: masker(pack(), row_ids, epoch=next(epochs))

    return {f"ours, {unit}": make(unit) for unit in ("token", "word", "span", "ngram")}


def make_keras_hub_packers(pair, vocabulary):
    """Two dicts, name -> function that packs a batch, or packs and masks it.

    KerasHub masks single tokens only.
    """
    tokenizer = make_keras_hub_tokenizer(vocabulary)
    pad, start, end = map(tokenizer.token_to_id, ("[PAD]", "[CLS]", "[SEP]"))
    packer = keras_hub.layers.MultiSegmentPacker(
        SEQUENCE_LENGTH, start_value=start, end_value=end, pad_value=pad, truncate="round_robin"
    )
    masker = keras_hub.layers.MaskedLMMaskGenerator(
        vocabulary_size=len(vocabulary),
        mask_selection_rate=0.15,
        mask_token_id=tokenizer.token_to_id("[MASK]"),
        mask_selection_length=MAX_PREDICTIONS,
        unselectable_token_ids=[pad, start, end],
    )

    def pack(first, second):
        return packer((first, second))

    def mask(first, second):
        token_ids, segment_ids = packer((first, second))
        return masker(token_ids), segment_ids

    tensors = [tf.RaggedTensor.from_tensor(segment) for segment in pair]
    sides = []
    for side in (pack, mask):
        compiled = tf.function(side)
        sides.append(
            {
                "KerasHub in a graph": lambda compiled=compiled: compiled(*tensors),
                "KerasHub from Python": lambda side=side: side(*pair),
            }
        )
    return sides


def take_turns(sides):
    """The seconds of each side in each round, dict of lists.

    Args:
        sides: dict, name -> function that prepares, untimed, and returns the function to
            time.
    """
    seconds = {name: [] for name in sides}
    for round_number in range(FLAGS.rounds + 1):
        for name, prepare in sides.items():
            run = prepare()
            begin = time.perf_counter()
            run()
            taken = time.perf_counter() - begin
            if round_number:
                seconds[name].append(taken)
    return seconds


def print_rates(title, unit, amount, seconds, num_ours, ids=None):
    """Prints a table: a row a side, and how many times as fast each of the first `num_ours` is.

    Args:
        amount: float, what a round works through, in the units a second of `unit`.
        seconds: dict, name -> list of floats, one for each round.
        ids: dict, name -> list of the ids of each text, the first of them ours; or None.
    """
    ours, peers = list(seconds)[:num_ours], list(seconds)[num_ours:]
    headings = [title, unit, *(["texts with other ids"] if ids else []), *(f"/ {p}" for p in peers)]
    rows = []
    for name, taken in seconds.items():
        cells = [name, format_figures([amount / each for each in taken], "{:,.1f}")]
        if ids:
            expected = ids[ours[0]]
            pairs = zip(ids.get(name, expected), expected, strict=True)
            others = sum(list(row) != wanted for row, wanted in pairs)
            cells.append("" if name in ours else f"{others / len(expected):.1%}")
        cells += [format_ratios(seconds[peer], taken) if name in ours else "" for peer in peers]
        rows.append(cells)
    print(f"\n{format_table(headings, rows)}")


if __name__ == "__main__":
    app.run(main)
