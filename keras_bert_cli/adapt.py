"""Adapt a checkpoint to the texts of a domain, and measure whether it helped.

The checkpoint goes on with its pretraining: it learns to guess masked words of your texts, which
need no labels. A text is a line of a file, or a row of a table (TSV, CSV, JSON lines, Parquet).
Whole words are masked, Chinese words as jieba finds them, and other words in each epoch.

The rates suit fine-tuning, and not pretraining from new weights.

With --finetune, the checkpoint and the adapted model are then fine-tuned in the same way, with
several seeds, and the scores on the test file are compared.

Everything goes to one folder:

  run/model    the adapted model, for finetune, fill-mask and all other commands
  run/         the log and the plot of the pretraining, as of keras-bert pretrain
  scores.json, scores.png   the scores of both models with each seed

If a run was stopped, the same command resumes it. For texts of many gigabytes, a Wikipedia dump or
several devices, use keras-bert prepare and keras-bert pretrain --checkpoint.

Example:
  keras-bert adapt --checkpoint hf://google-bert/bert-base-uncased --texts reviews.txt \\
      --text 'The plot is [MASK].' --output adapted

  keras-bert adapt --checkpoint bert-base-chinese --texts reviews.csv,train.tsv \\
      --text_column review --output adapted --seeds 5 \\
      --finetune '--train train.tsv --test test.tsv --text_column review --epochs 3'

  keras-bert finetune --checkpoint adapted/run/model --train train.tsv --output model.keras
"""

import argparse
import json
import math
from pathlib import Path

from keras_bert_suite.heads.masks import HEAD

from . import pretrain
from .adapted_scores import compare, read_recipe
from .command_flags import REQUIRED, Flags, UsageError
from .fill_mask import has_masked_lm, print_guesses
from .masker_flags import define_masker_flags, holds_characters
from .model_paths import check_model
from .objectives import build_pretrainer, choose_objective
from .table_flags import define_table_flags, read_text_columns

#: Evaluations on the held-out texts.
REPORTS = 10


def define_flags(flags):
    """Defines the flags of this command."""
    explanation = "Folder of a Hugging Face, Google TF1 or own checkpoint, or hf://..."
    flags.path("checkpoint", REQUIRED, explanation)
    explanation = (
        "Files of the domain's texts, separated by commas: tables, or files with a text in each "
        "line."
    )
    flags.list("texts", REQUIRED, explanation)
    define_table_flags(flags, "text", pairs=False)
    flags.path("output", REQUIRED, "Folder of the run. An unfinished run in it is resumed.")
    explanation = "About how many times the model sees all texts."
    flags.number("epochs", 3.0, explanation, at_least=0.001)
    flags.integer("batch_size", HEAD.batch_size, "Batch size, in sequences.")
    explanation = "Tokens in a sequence. It has several short texts, or a part of a long text."
    flags.integer("sequence_length", HEAD.sequence_length, explanation, at_least=16)
    define_masker_flags(flags, unit="word")
    flags.number("learning_rate", HEAD.learning_rate, "Peak learning rate.")
    flags.number("held_out", 0.05, "Share of the texts to evaluate on.", at_most=0.5, at_least=1e-6)
    flags.integer("checkpoint_every", 1000, "Steps from one checkpoint to the next.")
    flags.integer("seed", 0, "Seed of dropout, instances and masks.", at_least=0)
    dtypes = ("float32", "mixed_bfloat16", "mixed_float16")
    flags.choice("dtype", "float32", dtypes, "Precision of the adaptation.")
    explanation = (
        "Text with [MASK] or, for RoBERTa, <mask>, to show guesses before and after. The flag may "
        "be given more than once."
    )
    flags.text("text", None, explanation, action="append")
    explanation = (
        "The flags of keras-bert finetune, in quotes, with --train and --test, but without "
        "--checkpoint, --output and --seed. Default: nothing is compared."
    )
    flags.text("finetune", None, explanation)
    flags.integer("seeds", 3, "How often each model is fine-tuned, with --finetune.")


def run(values):
    """Prepares the texts, pretrains, fine-tunes, compares.

    Returns:
        int, the exit status, if SIGTERM has stopped the pretraining; otherwise None.
    """
    recipe = read_recipe(values)
    check_model(values.checkpoint)
    output = Path(values.output)
    stage = prepare(values, output)
    model = Path(stage.output) / "model"
    if not model.exists():
        show_checkpoint(values, stage)
    if status := pretrain.run(stage):
        return status
    if values.text:
        print(f"guesses of {model}")
        print_guesses(str(model), values.text)
    if recipe:
        compare(values, recipe, model.parent)


def prepare(values, output):
    """Tokenizes the texts into `output`/corpus.

    Returns:
        `argparse.Namespace`, the flags of keras-bert pretrain.

    Raises:
        UsageError: if a --text has no mask.
    """
    import keras_bert_suite as kbs
    from keras_bert_suite.corpus import open_corpus
    from keras_bert_suite.corpus.preparation import prepare_corpus

    tokenizer = kbs.SegmentPacker.from_preset(values.checkpoint).tokenizer
    for text in values.text or ():
        if tokenizer.mask_token not in text:
            raise UsageError(f"--text {text!r} has no {tokenizer.mask_token} to guess")
    texts = read_texts(values)
    output.mkdir(parents=True, exist_ok=True)
    lines = output / "texts.jsonl"
    with open(lines, "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    tokens = prepare_corpus(lines, tokenizer, output / "corpus")["tokens"]
    print(f"{len(texts):,} texts, {tokens:,} tokens")
    stage = make_stage(values, output, tokens)
    named = stage.word_segmenter or stage.lexicon
    if stage.unit != "token" and not named:
        if holds_characters(open_corpus(stage.corpus), tokenizer):
            stage.word_segmenter = "jieba"
    return stage


def read_texts(values):
    """The texts of --texts, list of str."""
    texts = []
    for path in values.texts:
        # A file of lines has no columns, and a table beside it may have.
        of_file = argparse.Namespace(**{**vars(values), "texts": path, "given": frozenset()})
        (column,) = read_text_columns(of_file, "texts").values()
        texts += column
    return texts


def make_stage(values, output, tokens):
    """The flags of keras-bert pretrain, for as many steps as --epochs takes.

    Args:
        values: the flags.
        output: `pathlib.Path`.
        tokens: int, the tokens of all texts.
    """
    defaults = Flags("pretrain", pretrain).defaults
    shared = {name: value for name, value in vars(values).items() if name in defaults}
    tokens_per_step = values.batch_size * (values.sequence_length - 2)  # [CLS] and [SEP]
    wanted = values.epochs * tokens * (1 - values.held_out) / tokens_per_step
    report_every = math.ceil(wanted / REPORTS)
    steps = report_every * math.ceil(wanted / report_every)
    stage = {
        "corpus": str(output / "corpus"),
        "output": str(output / "run"),
        "mode": "full_sentences",
        "steps": steps,
        "report_every": report_every,
        "warmup_steps": int(steps * HEAD.warmup_ratio),
        "evaluation_batches": 20,
        "given": frozenset(),
    }
    return argparse.Namespace(**{**defaults, **shared, **stage})


def show_checkpoint(values, stage):
    """Prints the guesses of the checkpoint before it is adapted."""
    import keras

    from keras_bert_suite.corpus import open_corpus, read_tokenizer

    if not has_masked_lm(values.checkpoint):
        print(f"{values.checkpoint} has no head that guesses masked tokens: a new one is learned")
        return
    if values.text:
        print(f"guesses of {values.checkpoint}")
        print_guesses(values.checkpoint, values.text)
    objective = choose_objective(stage)
    corpus, tokenizer = open_corpus(stage.corpus), read_tokenizer(stage.corpus)
    keras.utils.set_random_seed(values.seed)
    pretrainer = build_pretrainer(stage, objective, tokenizer)
    pretrainer.compile()
    _, held_out = pretrain.make_batches(stage, objective, [corpus], tokenizer, pretrainer)
    scores = pretrainer.evaluate(held_out, return_dict=True, verbose=0)
    figures = (f"val_{name} {scores[name]:.4f}" for name in ("mlm_accuracy", "mlm_loss"))
    print(f"step 0/{stage.steps}  {'  '.join(figures)}")
