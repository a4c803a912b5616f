"""Pretrain a small BART by denoising, and fine-tune it to write titles.

    python examples/denoise_titles.py
    python examples/denoise_titles.py --checkpoint BART --length 128    # go on with a BART

The BART learns to write articles from which spans are missing and whose sentences are in another
order, and then to write the title of each. It learns from the 700 articles of examples/data, of
which a new BART sees the byte pairs, too. So few texts make no writer: for a model of use, pass a
folder of transformers as --checkpoint, or a larger file of titles and texts as --train.

Most articles have few sentences. A row has as many as fit into it, also of several articles, so
that there are sentences to put in order.
"""

import argparse
from pathlib import Path

import keras

import keras_bert_suite as kbs
from keras_bert_suite.corpus import TokenCorpus
from keras_bert_suite.pretraining import PretrainingBatches
from keras_bert_suite.tokenizers import train_byte_pairs

DATA = Path(__file__).parent / "data"
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
for part in ("train", "test"):
    parser.add_argument(f"--{part}", default=DATA / f"titles_{part}.tsv", help="titles and texts")
parser.add_argument("--checkpoint", help="a BART. Default: a new one of --size.")
parser.add_argument("--size", default="mini", choices=kbs.BertBackbone.sizes)
parser.add_argument("--length", type=int, default=80, help="tokens of a text")
parser.add_argument("--batch_size", type=int, default=16)
parser.add_argument("--denoising_epochs", type=int, default=20)
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--output", default="denoised", help="folder of the pretrained BART")
settings = parser.parse_args()
keras.utils.set_random_seed(0)
train, test = (
    kbs.read_table(path, "2", "1", problem_type=None, header=False)
    for path in (settings.train, settings.test)
)

# 1. Denoise.
if settings.checkpoint:
    pretrainer = kbs.Seq2SeqPretrainer.from_preset(
        settings.checkpoint, sequence_length=settings.length
    )
else:
    tokenizer = kbs.BytePairTokenizer(*train_byte_pairs([*train.x, *train.y], size=4000))
    backbone = kbs.BartBackbone(
        tokenizer.vocabulary_size(),
        **kbs.BertBackbone.sizes[settings.size],
        max_sequence_length=settings.length,
    )
    packer = kbs.SegmentPacker(tokenizer, settings.length)
    pretrainer = kbs.Seq2SeqPretrainer(backbone, preprocessor=packer)
tokenizer = pretrainer.preprocessor.tokenizer
sentences = [text.replace(". ", ".\n").split("\n") for text in train.x]
corpus = TokenCorpus.from_documents([tokenizer.tokenize(document) for document in sentences])
corruption = kbs.DenoisingCorruption(tokenizer, starts_with_end=pretrainer.decoder.starts_with_end)
batches = PretrainingBatches(
    corpus, corruption, settings.length, settings.batch_size, mode="full_sentences"
)
pretrainer.compile(kbs.AdamW(kbs.LinearWarmupDecay(5e-4), bias_correction=True))
pretrainer.fit(batches, epochs=settings.denoising_epochs, verbose=2)
pretrainer.save_to_preset(settings.output)

# 2. Write titles.
writer = kbs.Seq2Seq.from_preset(settings.output, max_target_length=16)
writer.compile(kbs.AdamW(kbs.LinearWarmupDecay(3e-4), bias_correction=True))
writer.fit(train.x, train.y, batch_size=settings.batch_size, epochs=settings.epochs, verbose=2)
writer.compile(sampler=kbs.BeamSearch(num_beams=3))
written = writer.predict(test.x, no_repeat_ngram_size=3)
scores = writer.score(test.x, test.y)
print(f"ROUGE-L {scores['rouge_l']:.1f}, exact match {scores['exact_match']:.1f}")
for text, title, ours in list(zip(test.x, test.y, written, strict=True))[:8]:
    print(f"{title}  <-  {ours}\n    {text[:90]}")
