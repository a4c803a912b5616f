"""A checkpoint and files on which a command takes seconds."""

import keras
from small_texts import TINY, VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import save_hugging_face

#: Flags of a `pretrain` of seconds.
SETTINGS = ("--size=tiny", "--batch_size=4", "--sequence_length=16", "--max_predictions=3")
MODEL = ("--dropout=0", "--initializer_range=0.05")
STEPS = ("--steps=6", "--report_every=2", "--checkpoint_every=2", "--evaluation_batches=2")


def save_tiny_checkpoint(path):
    """Writes a Hugging Face directory of a random BERT of one layer, without a head."""
    keras.utils.set_random_seed(0)
    backbone = kbs.BertBackbone(**{**TINY, "num_layers": 1, "max_sequence_length": 128})
    save_hugging_face(backbone, path, tokenizer=kbs.WordPieceTokenizer(VOCABULARY))


def write_reviews(path, num_rows, seed, header=("sentence", "label"), names=("no", "yes")):
    """Writes a TSV file of short reviews and their labels."""
    names = dict(zip(("no", "yes"), names, strict=True))
    texts, labels = make_reviews(num_rows, seed)
    rows = [header, *((text, names[label]) for text, label in zip(texts, labels, strict=True))]
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def list_files(folder):
    """The relative paths of all there is in a folder, hidden files included."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))
