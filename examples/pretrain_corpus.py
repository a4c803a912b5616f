# %% [markdown]
"""
# Pretrain a BERT on your own corpus

    python examples/pretrain_corpus.py

The script makes a BERT from plain text: it learns a vocabulary, prepares the corpus, trains, and
fills in masked words. The text is 59 addresses of presidents. From so small a text the model learns
little more than which words are frequent. If you stop the script and run it again, it resumes. A
run takes 11 minutes of CPU time. `benchmarks/results/pretraining_run.md` is a longer run.
"""

# %%
import gzip
import json
from pathlib import Path

import keras

import keras_bert_suite as kbs
from keras_bert_suite.corpus import hold_out, open_corpus, prepare_corpus
from keras_bert_suite.pretraining import PretrainingBatches

keras.utils.set_random_seed(0)
corpus = Path(globals().get("__file__", "")).parent / "data" / "inaugural.jsonl.gz"
output = Path("pretrained_inaugural")

# %%
with gzip.open(corpus, "rt", encoding="utf-8") as file:
    vocabulary = kbs.train_vocabulary([json.loads(line)["text"] for line in file], size=5000)
tokenizer = kbs.WordPieceTokenizer(vocabulary)
manifest = prepare_corpus(corpus, tokenizer, output / "shards")
print(f"{manifest['documents']} documents, {manifest['tokens']} tokens")

# %%
masker = kbs.TokenMasker(tokenizer, max_predictions=20)
training, held_out = (
    PretrainingBatches(part, masker, sequence_length=128, batch_size=32)
    for part in hold_out(open_corpus(output / "shards"), 0.1)
)
backbone = kbs.BertBackbone.from_size("tiny", vocabulary_size=len(vocabulary))
pretrainer = kbs.Pretrainer(backbone, preprocessor=kbs.SegmentPacker(tokenizer, 128))
pretrainer.compile(kbs.AdamW(kbs.LinearWarmupDecay(1e-3, warmup_ratio=0.1)))
checkpoints = kbs.TrainingCheckpoint(output / "checkpoints", every=100)
pretrainer.fit(training, validation_data=held_out, epochs=40, callbacks=[checkpoints], verbose=2)

texts = ["We the [MASK] of the United States.", "God bless you, and God bless [MASK]."]
for text, masks in zip(texts, pretrainer.fill_mask(texts), strict=True):
    print(text, ", ".join(f"{token} {probability:.2f}" for token, probability in masks[0]))
pretrainer.save_to_preset(output / "model")  # TextClassifier.from_preset goes on from here
