"""Pretrain a BERT on a corpus that keras-bert prepare has tokenized.

The model learns what --objective says:

  masked_lm        guess masked tokens (BERT)
  span_boundary    guess masked spans, also from the tokens beside them (SpanBERT)
  word_order       guess masked tokens and the order of shuffled tokens (StructBERT)
  replaced_tokens  find the tokens that a second model has replaced (ELECTRA)
  unilm            guess masked tokens from all tokens, from one side, or from a source and the
                   target so far (UniLM)
  left_to_right    guess each next token (GPT)
  permutation      guess tokens in a random order, each from those before it (XLNet)
  bidirectional_language_model
                   guess the next and the previous token, by LSTMs (ELMo)
  denoising        write a text that noises have changed, by an encoder and a decoder (BART)
  mass             write a masked segment of a text, by an encoder and a decoder (MASS)

With --mode pairs, sop or relations the model also learns how two texts are related.

Everything goes to one folder: the checkpoints, a log in CSV, a plot of the log, and at the end the
model as a preset. A part of the corpus is held out to evaluate on.

If a run was stopped, the same command resumes it. If SIGTERM stops the run, the exit status is 143
and no model is written. With more --steps, a finished run resumes too. The schedule is then
recomputed for the new total, so the learning rate rises again.

Example:
  keras-bert pretrain --corpus shards --size tiny --steps 20000 --output run
  keras-bert fill-mask --model run/model --text 'Paris is the [MASK] of France.'

  # The second phase of the paper: long sequences, from the weights of the first.
  keras-bert pretrain --corpus shards --checkpoint run/model --sequence_length 512 \\
      --batch_size 8 --steps 2000 --output run512

  # 70% of each batch comes from the first corpus.
  keras-bert pretrain --corpus wikipedia=0.7,books=0.3 --batch_size 40 --steps 20000 --output mixed

  # Mask 40% of the tokens, all with the mask token (Wettig et al., 2022).
  keras-bert pretrain --corpus shards --masking_rate 0.4 --mask_token_rate 1 \\
      --random_token_rate 0 --steps 20000 --output run40

  # All GPUs of this machine share each batch of 256 sequences.
  keras-bert pretrain --corpus shards --batch_size 256 --steps 20000 --devices all --output run

  # A small ELECTRA. Its discriminator is fine-tuned, and its generator fills masks.
  keras-bert pretrain --corpus shards --objective replaced_tokens --size small --steps 20000 \\
      --output electra
  keras-bert finetune --checkpoint electra/model --train train.tsv --output classifier

  # A small ELMo that reads characters, and a tagger on it.
  keras-bert pretrain --corpus shards --objective bidirectional_language_model --size small \\
      --max_characters 50 --steps 20000 --output elmo
  keras-bert finetune --task ner --checkpoint elmo/model --train train.txt --output tagger

  # An XLNet as its authors trained it: in both directions, with a memory. The corpus was prepared
  # with --vocab spiece.model.
  keras-bert pretrain --corpus pieces --objective permutation --both_directions \\
      --memory_length 384 --sequence_length 512 --batch_size 16 --steps 20000 --output xlnet

  # A Transformer-XL on the same pieces.
  keras-bert pretrain --corpus pieces --objective left_to_right --model xlnet --memory_length 128 \\
      --steps 20000 --output transformer_xl

  # An encoder and a decoder, which then learn to write titles.
  keras-bert pretrain --corpus shards --checkpoint run/model --objective denoising --steps 20000 \\
      --output bart
  keras-bert finetune --task seq2seq --checkpoint bart/model --train titles.tsv --output writer

  # A BART goes on with its pretraining, on a corpus of its tokens, and is written for transformers.
  keras-bert prepare --input texts.txt --vocab path/to/bart --output bart_shards
  keras-bert pretrain --corpus bart_shards --checkpoint path/to/bart --objective denoising \\
      --steps 20000 --output more
  keras-bert convert --input more/model --to huggingface --output bart_hf
"""

from pathlib import Path

from keras_bert_suite.heads.pretraining import HEAD
from keras_bert_suite.pretraining.objectives import CONTEXT_MODE, MODES, OBJECTIVES

from .command_flags import REQUIRED
from .corpus_shares import CORPUS_EXPLANATION, read_shares
from .devices import define_devices_flag, is_leader, use_devices
from .masker_flags import (
    define_character_flags,
    define_masker_flags,
    define_noise_flags,
    name_flag,
    read_masker,
)
from .memory_flags import define_memory_flags
from .new_models import define_model_flags
from .objectives import build_pretrainer, choose_objective, list_defaults
from .outputs import write_output
from .pretrain_folder import begin_run
from .run_settings import report_stop, write_settings


def define_flags(flags):
    """Defines the flags of this command."""
    flags.path("corpus", REQUIRED, CORPUS_EXPLANATION)
    flags.path("output", REQUIRED, "Folder of the run. An unfinished run in it is resumed.")
    flags.integer("steps", REQUIRED, "Training steps of the whole run. A step takes one batch.")
    explanation = f"What the model learns. Other defaults: {list_defaults()}."
    flags.choice("objective", "masked_lm", tuple(OBJECTIVES), explanation)
    define_model_flags(flags)
    flags.path("checkpoint", None, "Checkpoint to start from, instead of a new model of --size.")
    flags.integer("batch_size", HEAD.batch_size, "Batch size, in sequences.")
    explanation = "Gradient accumulation: steps for one update. All flags count steps."
    flags.integer("accumulate", 1, explanation)
    flags.integer("sequence_length", HEAD.sequence_length, "Tokens in a sequence.", at_least=16)
    define_masker_flags(flags)
    define_noise_flags(flags)
    define_character_flags(flags)
    define_memory_flags(flags)
    explanation = (
        "The texts of a sequence. sop: pairs, in order or swapped. relations: pairs, in order, "
        "swapped or random. context_pairs: a context and a pair (XLNet)."
    )
    flags.choice("mode", "pairs", (*MODES, CONTEXT_MODE), explanation)
    explanation = "Width of an ELECTRA's generator, as a share of the discriminator's."
    flags.number("generator_width", 0.25, explanation, at_most=1)
    flags.number("short_seq_prob", 0.1, "Probability of a shorter target length.", at_most=1)
    explanation = (
        "Number of blocks of a million sentences that are shuffled together. More blocks mix "
        "better and take more memory."
    )
    flags.integer("shuffle_blocks", 8, explanation)
    flags.choice("optimizer", "adamw", ("adamw", "lamb"), "AdamW, or LAMB for large batches.")
    explanation = "Peak learning rate. Default: that of the task."
    flags.number("learning_rate", None, explanation)
    explanation = f"Warm-up steps. Default: {HEAD.warmup_ratio:.0%} of all steps."
    flags.integer("warmup_steps", None, explanation, at_least=0)
    flags.number("weight_decay", 0.01, "Weight decay. Biases and norms are not decayed.")
    dtypes = ("float32", "mixed_bfloat16", "mixed_float16")
    flags.choice("dtype", "float32", dtypes, "Precision.")
    explanation = "Pack several sequences in a row of the encoder, so that it skips padding."
    flags.switch("sequence_packing", False, explanation)
    flags.number("held_out", 0.02, "Share of the documents to evaluate on.", at_most=0.5)
    flags.integer("evaluation_batches", 50, "Maximum number of batches in an evaluation.")
    explanation = "Steps from one line of the log to the next. Default: 50 lines."
    flags.integer("report_every", None, explanation)
    flags.integer("checkpoint_every", 1000, "Steps from one checkpoint to the next.")
    flags.integer("keep", 3, "Checkpoints to keep.")
    flags.integer("seed", 0, "Seed of weights, dropout, instances and masks.", at_least=0)
    define_devices_flag(flags)
    explanation = "Also log for TensorBoard; needs the packages tensorflow and tensorboard."
    flags.switch("tensorboard", False, explanation)


def run(values):
    """Resumes the run in the folder, or begins it, unless it is finished.

    Returns:
        int, the exit status, if SIGTERM has stopped the training; otherwise None.
    """
    output = Path(values.output)
    objective = choose_objective(values)
    with begin_run(values, output) as settings:
        if settings["finished"] == values.steps:
            if is_leader(values):
                text = f"{values.steps} steps, the model is {output / 'model'}"
                print(f"{output} is finished: {text}")
            return None
        with use_devices(values):
            return pretrain(values, objective, settings, output)


def pretrain(values, objective, settings, output):
    """Opens the corpus, builds the model, trains or continues, writes.

    Args:
        values: the flags.
        objective: `keras_bert_suite.pretraining.objectives.Objective`.
        settings: dict, which `claim_folder` has yielded.
        output: `pathlib.Path` of the run.

    Returns:
        as of `run`.
    """
    import keras

    from keras_bert_suite.corpus import open_corpus, read_tokenizer

    from .plots import plot_pretraining
    from .pretraining_report import PretrainingReport

    folders = read_shares(values.corpus)
    corpora, tokenizer = [open_corpus(folder) for folder in folders], read_tokenizer(*folders)
    keras.utils.set_random_seed(values.seed)
    pretrainer = build_pretrainer(values, objective, tokenizer)
    training, held_out = make_batches(values, objective, corpora, tokenizer, pretrainer)
    pretrainer.compile(make_optimizer(values, pretrainer), technique=make_technique(values))
    num_documents = sum(corpus.num_documents for corpus in corpora)
    print(
        f"{pretrainer.count_params():,} parameters, {num_documents:,} documents, "
        f"{len(training):,} batches an epoch, {keras.config.backend()}"
    )
    report = PretrainingReport(
        output,
        tokens_per_step=values.batch_size * values.sequence_length,
        steps_per_epoch=settings["report_every"],
        total_steps=values.steps,
    )
    if not train(values, pretrainer, training, held_out, report):
        return report_stop()
    if not is_leader(values):
        return None
    plot_pretraining(report.read_log(), output / "curves.png")
    digests = zip(folders, settings["corpus (SHA-256)"], strict=True)
    pretrainer.card["data"] = ", ".join(
        f"{Path(folder).name} (SHA-256 of its manifest {digest})" for folder, (digest, _) in digests
    )
    # The model of a shorter run is replaced.
    write_output(output / "model", pretrainer.save_to_preset, overwrite=True, folder=True)
    write_settings(output, {**settings, "finished": values.steps})
    print(f"wrote {output / 'model'}, {report.log_file} and {output / 'curves.png'}")


def train(values, pretrainer, training, held_out, report):
    """Trains the steps that the run still lacks.

    Returns:
        bool, whether the run is complete; False if SIGTERM has stopped it.
    """
    import keras

    import keras_bert_suite as kbs

    output = Path(values.output)
    checkpoints = kbs.TrainingCheckpoint(
        output / "checkpoints", every=values.checkpoint_every, keep=values.keep
    )
    callbacks = [report, checkpoints] if is_leader(values) else [checkpoints]
    if values.tensorboard and is_leader(values):
        callbacks.append(keras.callbacks.TensorBoard(output / "tensorboard"))
    pretrainer.fit(
        training,
        steps_per_epoch=report.steps_per_epoch,
        epochs=values.steps // report.steps_per_epoch,
        validation_data=held_out,
        sequence_packing=values.sequence_packing,
        callbacks=callbacks,
        verbose=0,
    )
    return not checkpoints.terminated


def make_batches(values, objective, corpora, tokenizer, task):
    """(batches to train on, batches to evaluate on or None) for the task that is trained."""
    from keras_bert_suite.corpus import hold_out
    from keras_bert_suite.pretraining import MixedBatches, share_rows

    sizes = share_rows(values.batch_size, list(read_shares(values.corpus).values()))
    maskers = [make_maskers(values, objective, corpus, tokenizer, task) for corpus in corpora]

    def make(parts):
        datasets = []
        for part, masker, size in zip(parts, maskers, sizes, strict=True):
            datasets += read_directions(values, objective, part, masker, size)
        return MixedBatches(datasets)

    if not values.held_out:
        return make(corpora), None
    divided = [hold_out(corpus, values.held_out, values.seed) for corpus in corpora]
    training, held_out = map(make, zip(*divided, strict=True))
    return training, held_out[: values.evaluation_batches]


def read_directions(values, objective, corpus, maskers, batch_size):
    """list of the batches of a corpus: forward, and with two maskers also backward."""
    from keras_bert_suite.corpus import ReversedCorpus

    if len(maskers) == 1:
        return [read_rows(values, objective, corpus, maskers[0], batch_size)]
    corpora = corpus, ReversedCorpus(corpus)
    if batch_size < 2:
        raise ValueError(
            f"--both_directions needs two sequences of each corpus in a batch, got {batch_size}. "
            "Use a larger --batch_size."
        )
    sizes = batch_size - batch_size // 2, batch_size // 2
    parts = zip(corpora, maskers, sizes, strict=True)
    return [read_rows(values, objective, *part) for part in parts]


def read_rows(values, objective, corpus, masker, batch_size):
    """The batches of a corpus in one direction: of rows that stand alone, or of lanes."""
    from keras_bert_suite.pretraining import PretrainingBatches

    common = {"sequence_length": values.sequence_length, "batch_size": batch_size}
    common["seed"] = values.seed
    if values.memory_length:
        return objective.make_lanes(corpus, masker, **common)
    return PretrainingBatches(
        corpus,
        masker,
        **common,
        mode=values.mode,
        short_seq_prob=values.short_seq_prob,
        shuffle_blocks=values.shuffle_blocks,
    )


def make_maskers(values, objective, corpus, tokenizer, task=None):
    """list of the masker of the batches of a corpus, and with --both_directions a backward one."""
    masking = read_masker(values, objective, corpus, tokenizer, task)
    directions = [{}, {"backward": True}] if values.both_directions else [{}]
    try:
        return [objective.make_masker(tokenizer, **masking, **each) for each in directions]
    except ValueError as error:
        raise ValueError(name_flag(error)) from error


def make_technique(values):
    """The technique that carries the memory, or None."""
    import keras_bert_suite as kbs

    return kbs.CarriedMemory(lanes=values.batch_size) if values.memory_length else None


def make_optimizer(values, pretrainer):
    """The optimizer with its schedule."""
    import keras_bert_suite as kbs

    # The schedule counts updates, the flags count batches.
    warmup = values.warmup_steps
    schedule = kbs.LinearWarmupDecay(
        pretrainer.HEAD.learning_rate if values.learning_rate is None else values.learning_rate,
        total_steps=values.steps // values.accumulate,
        warmup_steps=None if warmup is None else warmup // values.accumulate,
        warmup_ratio=pretrainer.HEAD.warmup_ratio,
    )
    optimizer = {"adamw": kbs.AdamW, "lamb": kbs.Lamb}[values.optimizer]
    return optimizer(
        schedule,
        values.weight_decay,
        gradient_accumulation_steps=values.accumulate if values.accumulate > 1 else None,
    )
