"""Convert a checkpoint to the format of Hugging Face, of Google, or of Keras.

Reads what --checkpoint of finetune reads: a folder of Hugging Face, of Google's TF1
code or of a preset, a .keras file, or hf://owner/name. Heads are kept, those of
pretraining and a classification layer with its label names, for which Google's format
has no place.

Example:
  keras-bert convert --input uncased_L-12_H-768_A-12 --to huggingface --output bert-base
"""

from absl import flags

from .outputs import check_output, write_output
from .saved_tasks import find_task, open_classifier, open_pretrainer

REQUIRED = ("input", "output", "to")


def define_flags(values):
    """Defines the flags of this command."""
    flags.DEFINE_string("input", None, "What to convert.", flag_values=values)
    flags.DEFINE_string("output", None, "Folder to write.", flag_values=values)
    formats = ("huggingface", "google_tf1", "preset")
    flags.DEFINE_enum("to", None, formats, "Format to write.", flag_values=values)
    flags.DEFINE_boolean("overwrite", False, "Replace the folder.", flag_values=values)


def run(values):
    """Loads and writes."""
    check_output(values.output, values.overwrite, values.to)
    model, preprocessor = open_model(values.input)

    def write(path):
        from keras_bert_suite.checkpoints import save_google_tf1, save_hugging_face

        if values.to == "huggingface":
            save_hugging_face(model, path, tokenizer=preprocessor.tokenizer)
        elif values.to == "google_tf1":
            save_google_tf1(model, path, tokenizer=preprocessor.tokenizer)
        else:
            model.save_to_preset(path)
            if not hasattr(model, "preprocessor"):
                preprocessor.save_to_preset(path)

    print(f"wrote {write_output(values.output, write, values.overwrite, values.to)}")


def open_model(path):
    """(the task, or the backbone if there is no head; its preprocessor)."""
    open_task = {"TextClassifier": open_classifier, "Pretrainer": open_pretrainer}
    task = find_task(path)
    if task is not None:
        model = open_task[task](path)
        return model, model.preprocessor

    import keras_bert_suite as kbs

    return kbs.BertBackbone.from_preset(path), kbs.SegmentPacker.from_preset(path)
