"""Pretrain a BERT on a corpus that keras-bert prepare has tokenized.

The model learns what --objective says:

  masked_lm        guess masked tokens (BERT)
  span_boundary    guess masked spans, also from the tokens beside them (SpanBERT)
  word_order       guess masked tokens and the order of shuffled tokens (StructBERT)
  replaced_tokens  find the tokens that a second model has replaced (ELECTRA)
  unilm            guess masked tokens from all tokens, from one side, or from a source and the
                   target so far (UniLM)
  left_to_right    guess each next token (GPT)

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
"""

import contextlib
from pathlib import Path

from absl import flags

from .command_flags import UsageError, define_path
from .corpus_shares import CORPUS_EXPLANATION, read_shares
from .devices import define_devices_flag, is_leader, use_devices
from .masker_flags import define_masker_flags
from .model_paths import check_model, digest_corpus
from .new_models import MODEL_FLAGS, check_model_flags, define_model_flags, make_backbone
from .objectives import MODES, OBJECTIVES, choose_objective, list_defaults, make_task_arguments
from .outputs import write_output
from .pretrain_folder import CORPUS_DIGESTS, check_run, find_report_every, read_run
from .run_settings import claim_folder, find_digest, report_stop, write_settings

REQUIRED = ("corpus", "output", "steps")

#: Flags that may change from one start of a run to the next.
MAY_CHANGE = (
    *("keep", "checkpoint_every", "tensorboard", "sequence_packing", "devices"),
    *("backend", "traceback", "help"),
)


def define_flags(values):
    """Defines the flags of this command."""

    def path(name, default, explanation):
        define_path(values, name, default, explanation)

    def choice(name, default, choices, explanation):
        flags.DEFINE_enum(name, default, choices, explanation, flag_values=values)

    def integer(name, default, explanation, lower_bound=1):
        flags.DEFINE_integer(name, default, explanation, lower_bound, flag_values=values)

    def number(name, default, explanation, upper_bound=None):
        flags.DEFINE_float(name, default, explanation, 0, upper_bound, flag_values=values)

    path("corpus", None, CORPUS_EXPLANATION)
    path("output", None, "Folder of the run. An unfinished run in it is resumed.")
    integer("steps", None, "Training steps of the whole run. A step takes one batch.")
    explanation = "What the model learns."
    choice("objective", "masked_lm", tuple(OBJECTIVES), explanation)
    define_model_flags(values)
    path("checkpoint", None, "Checkpoint to start from, instead of a new model of --size.")
    integer("batch_size", 32, "Batch size, in sequences.")
    explanation = "Gradient accumulation: steps for one update. All flags count steps."
    integer("accumulate", 1, explanation)
    integer("sequence_length", 128, "Tokens in a sequence.", 16)
    define_masker_flags(values)
    explanation = (
        "The texts of a sequence. sop: pairs, in order or swapped. relations: pairs, in order, "
        "swapped or random."
    )
    choice("mode", "pairs", MODES, explanation)
    explanation = "Width of an ELECTRA's generator, as a share of the discriminator's."
    number("generator_width", 0.25, explanation, 1)
    explanation = "Probability of a shorter target length."
    number("short_seq_prob", 0.1, explanation, 1)
    explanation = (
        "Number of blocks of a million sentences that are shuffled together. More blocks mix "
        "better and take more memory."
    )
    integer("shuffle_blocks", 8, explanation)
    choice("optimizer", "adamw", ("adamw", "lamb"), "AdamW, or LAMB for large batches.")
    explanation = "Peak learning rate."
    number("learning_rate", 1e-4, explanation)
    explanation = "Warm-up steps. Default: a hundredth of all steps."
    integer("warmup_steps", None, explanation, 0)
    number("weight_decay", 0.01, "Weight decay. Biases and norms are not decayed.")
    dtypes = ("float32", "mixed_bfloat16", "mixed_float16")
    choice("dtype", "float32", dtypes, "Precision.")
    explanation = "Pack several sequences in a row of the encoder, so that it skips padding."
    flags.DEFINE_boolean("sequence_packing", False, explanation, flag_values=values)
    number("held_out", 0.02, "Share of the documents to evaluate on.", 0.5)
    integer("evaluation_batches", 50, "Maximum number of batches in an evaluation.")
    integer("report_every", None, "Steps from one line of the log to the next. Default: 50 lines.")
    integer("checkpoint_every", 1000, "Steps from one checkpoint to the next.")
    integer("keep", 3, "Checkpoints to keep.")
    integer("seed", 0, "Seed of weights, dropout, instances and masks.", 0)
    define_devices_flag(values)
    explanation = "Also log for TensorBoard; needs the packages tensorflow and tensorboard."
    flags.DEFINE_boolean("tensorboard", False, explanation, flag_values=values)
    for name in values:
        values[name].help += list_defaults(name)


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
        objective: `Objective`.
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
    training, held_out = make_batches(values, objective, corpora, tokenizer)
    pretrainer.compile(make_optimizer(values))
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
    # The model of a shorter run is replaced.
    write_output(output / "model", pretrainer.save_to_preset, overwrite=True, folder=True)
    write_settings(output, {**settings, "finished": values.steps})
    print(f"wrote {output / 'model'}, {report.log_file} and {output / 'curves.png'}")


def begin_run(values, output):
    """Checks the flags before Keras is imported, and claims the folder of the run.

    Returns:
        a context manager, as of `claim_folder`, with the settings of the run.
    """
    before = read_run(output)
    # A checkpoint is made for one distance between lines of the log. So a run that is prolonged
    # keeps its distance.
    wanted = values.report_every or before.get("report_every")
    report_every = find_report_every(values.steps, wanted)
    check_accumulate(values.steps, values.accumulate)
    check_model_flags(values)
    if values.checkpoint:
        check_model(values.checkpoint)
    settings = {
        **settings_of(values),
        "report_every": report_every,
        "finished": before.get("finished", 0),  # The steps of the model, 0 if there is none.
    }
    if not is_leader(values):
        return contextlib.nullcontext(settings)
    check_run(output, before, settings)
    return claim_folder(output, before, settings)


def build_pretrainer(values, objective, tokenizer):
    """Loads the task of the objective from --checkpoint, or makes a new one of --size."""
    import keras_bert_suite as kbs

    cls = getattr(kbs, objective.task)
    arguments = make_task_arguments(objective, values)
    if values.checkpoint:
        pretrainer = cls.from_preset(
            values.checkpoint,
            sequence_length=values.sequence_length,
            dtype=values.dtype,
            **arguments,
        )
        check_tokenizer(values, tokenizer, pretrainer.preprocessor.tokenizer)
        return set_pattern(values, objective, pretrainer)
    backbone = make_backbone(values, objective, tokenizer)
    packer = kbs.SegmentPacker(tokenizer, values.sequence_length)
    return cls(backbone, preprocessor=packer, **arguments)


def check_tokenizer(values, tokenizer, other):
    """Raises a `ValueError` unless the tokenizers of the corpus and of --checkpoint are equal."""
    is_same = tokenizer.get_vocabulary() == other.get_vocabulary()
    # A vocab.txt does not say from which length on a word is unknown, and files of Hugging Face do.
    # Words of 100 characters are no reason to prepare a corpus again.
    own, wanted = (
        {name: value for name, value in each.settings.items() if name != "max_word_length"}
        for each in (tokenizer, other)
    )
    if not is_same or own != wanted:
        raise ValueError(
            f"The corpus and {values.checkpoint} have tokenizers of different "
            f"{'settings' if is_same else 'vocabulary'}. Prepare the corpus with the tokenizer of "
            "the checkpoint."
        )


def set_pattern(values, objective, pretrainer):
    """The task of --checkpoint, with the attention pattern of the objective.

    Raises:
        ValueError: if the backbone is none that the objective trains.
    """
    plain = {"attention_pattern": "bidirectional"}
    wanted = {**plain, **objective.backbone_arguments}
    pattern = wanted["attention_pattern"]
    # The backbone of another library may have no pattern. Such a backbone looks to both sides.
    if getattr(pretrainer.backbone, "attention_pattern", "bidirectional") != pattern:
        if hasattr(pretrainer, "change_pattern"):
            pretrainer = pretrainer.change_pattern(pattern)
    config = {**plain, **pretrainer.backbone.get_config()}
    for name, value in wanted.items():
        if config.get(name) != value:
            raise ValueError(
                f"--objective {values.objective} trains a backbone with {name}={value!r}, and "
                f"{values.checkpoint} has {name}={config.get(name)!r}. Leave out --checkpoint, or "
                "choose another objective."
            )
    return pretrainer


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


def check_accumulate(steps, accumulate):
    """Raises a `UsageError` if the last steps would make no update."""
    if steps % accumulate:
        raise UsageError(
            f"--accumulate={accumulate} does not divide --steps={steps}, and the last "
            f"{steps % accumulate} steps would make no update; choose "
            f"--steps={steps + accumulate - steps % accumulate}"
        )


def settings_of(values):
    """dict of the settings that a run must keep: flags, and the hashes of small files."""
    left_out = (*MAY_CHANGE, *(MODEL_FLAGS if values.checkpoint else ()))
    settings = {name: values[name].value for name in values if name not in left_out}
    corpora = read_shares(values.corpus).items()
    settings[CORPUS_DIGESTS] = [[digest_corpus(folder), share] for folder, share in corpora]
    for name in ("lexicon", "similar_words"):
        if values[name].value:
            settings[f"{name} (SHA-256)"] = find_digest(values[name].value)
    return settings


def make_batches(values, objective, corpora, tokenizer):
    """(batches to train on, batches to evaluate on or None)."""
    from keras_bert_suite.corpus import hold_out
    from keras_bert_suite.pretraining import MixedBatches, PretrainingBatches, share_rows

    sizes = share_rows(values.batch_size, list(read_shares(values.corpus).values()))
    maskers = [objective.make_masker(values, corpus, tokenizer) for corpus in corpora]

    def make(parts):
        return MixedBatches(
            [
                PretrainingBatches(
                    part,
                    masker,
                    sequence_length=values.sequence_length,
                    batch_size=size,
                    mode=values.mode,
                    short_seq_prob=values.short_seq_prob,
                    seed=values.seed,
                    shuffle_blocks=values.shuffle_blocks,
                )
                for part, masker, size in zip(parts, maskers, sizes, strict=True)
            ]
        )

    if not values.held_out:
        return make(corpora), None
    divided = [hold_out(corpus, values.held_out, values.seed) for corpus in corpora]
    training, held_out = map(make, zip(*divided, strict=True))
    return training, held_out[: values.evaluation_batches]


def make_optimizer(values):
    """The optimizer with its schedule."""
    import keras_bert_suite as kbs

    # The schedule counts updates, the flags count batches.
    warmup = values.warmup_steps
    schedule = kbs.LinearWarmupDecay(
        values.learning_rate,
        total_steps=values.steps // values.accumulate,
        warmup_steps=None if warmup is None else warmup // values.accumulate,
        warmup_ratio=0.01,
    )
    optimizer = {"adamw": kbs.AdamW, "lamb": kbs.Lamb}[values.optimizer]
    return optimizer(
        schedule,
        values.weight_decay,
        gradient_accumulation_steps=values.accumulate if values.accumulate > 1 else None,
    )
