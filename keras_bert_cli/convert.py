"""Convert a checkpoint to the format of another library, or to a preset.

Reads a checkpoint of Hugging Face or of Google's TF1 code, a preset, a .keras file, or
hf://owner/name.

The heads of pretraining are kept, and so is a head that labels texts or words, answers questions or
chooses endings. A head that the format or this package does not have is refused. --encoder_only
leaves all heads out. --part masked_lm keeps only the head for masked tokens; of an ELECTRA it keeps
the generator. The label names are kept too, except in the formats of Google and KerasHub, which
cannot hold them.

--to keras_hub writes a preset that KerasHub opens without this package. --to preset writes a preset
with all settings of this package. An embedder becomes a folder of sentence-transformers.

Example:
  keras-bert convert --input uncased_L-12_H-768_A-12 --to huggingface --output bert-base
  keras-bert convert --input electra/model --part discriminator --to huggingface --output electra-hf
"""

from keras_bert_suite.checkpoints.head_types.records import heads_of_task

from .command_flags import REQUIRED, UsageError
from .model_paths import check_model
from .outputs import check_output, write_output
from .saved_tasks import PRETRAINERS, find_task, open_task


def define_flags(flags):
    """Defines the flags of this command."""
    flags.path("input", REQUIRED, "Model or checkpoint to convert.")
    flags.path("output", REQUIRED, "Folder to write.")
    formats = ("huggingface", "google_tf1", "keras_hub", "preset")
    flags.choice("to", REQUIRED, formats, "Format to write.")
    flags.switch("encoder_only", False, "Leave out all heads.")
    parts = ("masked_lm", "discriminator")
    explanation = (
        "Part of a pretraining to write: the encoder with its head for masked tokens, or the "
        "discriminator of an ELECTRA. Default: all of it."
    )
    flags.choice("part", None, parts, explanation)
    flags.switch("overwrite", False, "Replace the folder.")


def run(values):
    """Loads and writes."""
    if values.part and values.encoder_only:
        raise UsageError(f"--encoder_only leaves out the head of --part {values.part}; choose one")
    check_output(values.output, values.overwrite, folder=True)
    check_model(values.input)
    if values.encoder_only:
        model, preprocessor = open_encoder(values.input)
    elif values.part:
        model = open_part(values.input, values.part, values.to)
        preprocessor = model.preprocessor
    else:
        model, preprocessor = open_model(values.input, values.to)

    def write(path):
        from keras_bert_suite import checkpoints

        is_embedder = hasattr(model, "pooling_name")
        tokenizer, length = preprocessor.tokenizer, preprocessor.sequence_length
        if values.to == "preset":
            model.save_to_preset(path)
            if not hasattr(model, "preprocessor"):
                preprocessor.save_to_preset(path)
        elif is_embedder and values.to == "huggingface":
            checkpoints.save_sentence_transformers(model, path)
        elif is_embedder:
            raise ValueError(
                f"{values.input} is an embedder, and {values.to} has no place for its pooling. "
                "Pass --encoder_only, or --to huggingface."
            )
        elif values.to == "google_tf1":
            checkpoints.save_google_tf1(model, path, tokenizer=tokenizer)
        elif values.to == "keras_hub":
            checkpoints.save_keras_hub(model, path, tokenizer=tokenizer, sequence_length=length)
        else:
            checkpoints.save_hugging_face(model, path, tokenizer=tokenizer, sequence_length=length)

    print(f"wrote {write_output(values.output, write, values.overwrite, folder=True)}")


def open_part(path, part, to):
    """A part of a pretraining: the value of --part of a folder, or of `hf://owner/name`.

    If there is no such part, or the format `to` does not hold it, that is a ValueError.
    """
    import keras_bert_suite as kbs

    task = None if path.endswith(".keras") else find_task(path)
    if part == "masked_lm" and task == "Pretrainer":
        return kbs.Pretrainer.from_preset(path, next_sentence=False, span_boundary=False)
    if task != "ElectraPretrainer":
        raise ValueError(
            f"{path} is no folder of a pretraining that has a part {part}. Leave --part out."
        )
    electra = kbs.ElectraPretrainer.from_preset(path)
    if part == "masked_lm":
        return electra.make_masked_lm()
    if to != "huggingface":
        raise ValueError(
            f"The discriminator is written with --to huggingface, got {to}. Without --part, "
            "--to preset keeps both models of an ELECTRA."
        )
    return electra.discriminator


def open_model(path, to):
    """(the task with all its heads, or the backbone if there is no head; its preprocessor).

    A head that would be lost in the format `to` is a ValueError.
    """
    import keras_bert_suite as kbs
    from keras_bert_suite.checkpoints import find_other_heads, open_checkpoint

    if path.endswith(".keras"):
        model = open_task(path)
        return model, model.preprocessor
    task, checkpoint = find_task(path), open_checkpoint(path)
    if task == "ElectraPretrainer" and to != "preset":
        raise ValueError(
            f"{path} holds the generator and the discriminator of an ELECTRA, and a checkpoint "
            "of another library holds one model. Pass --part discriminator or --part masked_lm."
        )
    kept = [head.layer for head in heads_of_task(task)]
    others = find_other_heads(checkpoint, kept) if checkpoint is not None else []
    if others:
        raise ValueError(
            f"{path} has heads that cannot be converted: {', '.join(others[:20])}. Pass "
            "--encoder_only to leave out all heads."
        )
    if task is None:
        return open_encoder(path)
    model = getattr(kbs, task).from_preset(path) if task in PRETRAINERS else open_task(path)
    return model, model.preprocessor


def open_encoder(path):
    """(the backbone, its preprocessor), whatever heads there are."""
    import keras_bert_suite as kbs
    from keras_bert_suite.models import open_backbone

    if path.endswith(".keras"):
        task = open_task(path)
        return task.backbone, task.preprocessor
    return open_backbone(path), kbs.SegmentPacker.from_preset(path)
