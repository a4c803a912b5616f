"""Convert a checkpoint to Hugging Face's format, to Google's, or to a preset of Keras.

Reads what --checkpoint of finetune reads: a folder of Hugging Face, of Google's TF1
code or of a preset, a .keras file, or hf://owner/name. A classification layer and its
label names are kept; Google's format has no place for the names.

Example:
  keras-bert convert --input uncased_L-12_H-768_A-12 --to huggingface --output bert-base
"""

from absl import flags

from .outputs import check_output, write_output
from .saved_tasks import has_classifier, open_classifier

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
    check_output(values.output, values.overwrite)
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

    print(f"wrote {write_output(values.output, write, values.overwrite)}")


def open_model(path):
    """(classifier, or backbone if there is no classification layer; its preprocessor)."""
    if has_classifier(path):
        classifier = open_classifier(path)
        return classifier, classifier.preprocessor

    import keras_bert_suite as kbs

    return kbs.BertBackbone.from_preset(path), kbs.SegmentPacker.from_preset(path)
