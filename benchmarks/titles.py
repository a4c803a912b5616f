"""Titles that several kinds of writers learn in equal minutes, from the weights of one BERT.

    python benchmarks/titles.py --minutes 10                   # MiniLM, titles of examples/data
    python benchmarks/titles.py --minutes 10 --corpus shards   # a corpus of its vocabulary

- UniLM mask: one BERT, in whose rows the target follows the source.
- encoder-decoder: two BERTs, with new attention from one to the other.
- encoder-decoder, shared: the same with one set of weights.
- denoised: as encoder-decoder, but it first learns for a share of its minutes to write texts from
  the noises of BART. Without --corpus the texts are the articles that the titles are for.
- MASS: the same with masked segments.

Each side trains for the same minutes, from the end of its first batch on, at a constant rate. So
the compilation of a step is not counted. Tokens are those of sources and targets without padding.
"""

import argparse
import sys
import time
from pathlib import Path

import keras
from harness.result_tables import describe_run, format_table
from peer_recipes import find_minilm

import keras_bert_suite as kbs
from keras_bert_suite.corpus import open_corpus
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.heads.targets.scores import score_targets
from keras_bert_suite.pretraining import PretrainingBatches, objectives

DATA = Path(__file__).resolve().parents[1] / "examples" / "data"
#: Side -> the decoder of `from_preset`, and the objective that comes first.
SIDES = {
    "UniLM mask": (None, None),
    "encoder-decoder": ("same", None),
    "encoder-decoder, shared": ("shared", None),
    "denoised": ("same", "denoising"),
    "MASS": ("same", "mass"),
}
HEADINGS = ["side", "ROUGE-1", "ROUGE-2", "ROUGE-L", "exact"]
HEADINGS += ["rows learned", "tokens/s learned", "tokens/s written"]


class StopAfter(keras.callbacks.Callback):
    """Stops a training some seconds after the end of its first batch, and counts its batches."""

    def __init__(self, seconds):
        super().__init__()
        self._seconds, self.begin, self.batches = seconds, None, 0

    def on_train_batch_end(self, batch, logs=None):
        self.end = time.perf_counter()
        if self.begin is None:
            self.begin = self.end
            return
        self.batches += 1
        self.model.stop_training = self.end - self.begin >= self._seconds


def train(task, seconds, options, *data, **arguments):
    """Trains a task, and returns (batches, seconds) without the first batch."""
    clock = StopAfter(seconds)
    task.compile(kbs.AdamW(options.learning_rate, bias_correction=True))
    task.fit(*data, epochs=10**6, callbacks=[clock], verbose=0, **arguments)
    return clock.batches, clock.end - clock.begin


def make_corpus(options, texts, tokenizer):
    """The corpus of --corpus, or one of texts, each a document of its sentences."""
    if options.corpus:
        return open_corpus(options.corpus)
    documents = [text.replace(". ", ".\n").split("\n") for text in texts]
    return TokenCorpus.from_documents([tokenizer.tokenize(sentences) for sentences in documents])


def pretrain(options, objective, texts, seconds):
    """A `Seq2Seq` that begins with what an objective has taught an encoder-decoder."""
    row = objectives.get(objective)
    pretrainer = kbs.Seq2SeqPretrainer.from_preset(
        options.checkpoint, sequence_length=options.length, **row.choose_arguments()
    )
    tokenizer = pretrainer.preprocessor.tokenizer
    corruption = row.make_masker(tokenizer, seed=options.seed)
    corpus = make_corpus(options, texts, tokenizer)
    batches = PretrainingBatches(
        corpus, corruption, options.length, options.batch_size, **row.instances
    )
    batches_learned, _ = train(pretrainer, seconds, options, batches)
    print(f"{objective}: {batches_learned} batches", file=sys.stderr)
    writer = kbs.Seq2Seq(
        pretrainer.backbone, preprocessor=pretrainer.preprocessor, max_target_length=16
    )
    writer.masked_lm.set_weights(pretrainer.masked_lm.get_weights())
    return writer


def make_writer(options, decoder):
    decoder = {"same": options.checkpoint}.get(decoder, decoder)
    return kbs.Seq2Seq.from_preset(
        options.checkpoint, decoder=decoder, sequence_length=options.length, max_target_length=16
    )


def count_tokens(tokenizer, *columns):
    return sum(int(tokenizer.tokenize_flat(list(texts))[1].sum()) for texts in columns)


def measure(side, options, rows, test):
    """The cells of a side."""
    keras.utils.set_random_seed(options.seed)
    decoder, objective = SIDES[side]
    seconds = 60 * options.minutes
    if objective is None:
        writer = make_writer(options, decoder)
    else:
        writer = pretrain(options, objective, rows.x, options.share * seconds)
        seconds *= 1 - options.share
    batches, spent = train(writer, seconds, options, rows.x, rows.y, batch_size=options.batch_size)
    tokenizer = writer.preprocessor.tokenizer
    learned = batches * options.batch_size
    each = count_tokens(tokenizer, rows.x, rows.y) / len(rows.y)
    writer.predict(test.x[:8])  # The step of a token is compiled.
    begin = time.perf_counter()
    written = writer.predict(test.x)
    writing = time.perf_counter() - begin
    scores = score_targets([title.lower() for title in test.y], written)
    names = ("rouge_1", "rouge_2", "rouge_l", "exact_match")
    speeds = learned * each / spent, count_tokens(tokenizer, written) / writing
    return [
        side,
        *(f"{scores[name]:.1f}" for name in names),
        str(learned),
        *(f"{speed:.0f}" for speed in speeds),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="of the training of each side")
    parser.add_argument("--share", type=float, default=0.5, help="of the minutes, for an objective")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--checkpoint", default="", help="a BERT. Default: MiniLM.")
    parser.add_argument("--corpus", default="", help="a folder of keras-bert prepare")
    parser.add_argument("--length", type=int, default=80)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--learning_rate", type=float, default=3e-4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.checkpoint = options.checkpoint or find_minilm()
    rows, test = (
        kbs.read_table(DATA / f"titles_{part}.tsv", "2", "1", problem_type=None, header=False)
        for part in ("train", "test")
    )
    table = [measure(side, options, rows, test) for side in options.sides]
    print(describe_run({}, 1, [keras.config.backend()]), format_table(HEADINGS, table), sep="\n\n")


if __name__ == "__main__":
    main()
