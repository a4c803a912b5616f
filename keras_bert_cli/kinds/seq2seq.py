"""A text from a text, such as a title from an article: a `Seq2Seq`, and tables of both."""

from keras_bert_suite.argument_checks import with_article

from ..table_flags import choose_text_columns, read_examples
from .writing import RULES, SAMPLING, SEARCH, WritingKind, define_rule_flags

#: The flags of an mBART, arguments of its tokenizer.
LANGUAGES = ("source_language", "target_language")


class Seq2SeqKind(WritingKind):
    """Sources, and the targets that are to be written from them."""

    name = "seq2seq"
    about = "a text written from a text"
    rows = "rows of a text and its target"
    own_flags = ("target_column", *LANGUAGES, *RULES, *SEARCH)
    asking_flags = (*RULES, *SEARCH, *SAMPLING)
    idle_table_flags = ("text_pair_column", "label_column")

    @staticmethod
    def define_flags(flags):
        flags.text("target_column", "target", "Column of the texts to write, with --task seq2seq.")

    @staticmethod
    def define_training_flags(flags):
        define_rule_flags(flags, max_target_length=32, num_beams=1)
        for name, what in zip(LANGUAGES, ("texts", "texts to write"), strict=True):
            explanation = f"Code of the language of the {what}, such as en_XX, for an mBART."
            flags.text(name, None, f"{explanation} Default: that of the checkpoint.")

    @property
    def input_names(self):
        return (self.values.text_column if self.values.header else "text",)

    def read(self, path):
        values = self.values
        self.check_table_flags()
        columns = choose_text_columns(values, self.model and self.model.input_names)
        return read_examples(values, path, columns, values.target_column, problem_type=None)

    def find_arguments(self, train):
        given = self.values.given
        rules = {name: getattr(self.values, name) for name in RULES if name in given}
        return {"max_target_length": self.values.max_target_length, **rules}

    def find_preprocessor(self):
        values = self.values
        languages = {name: getattr(values, name) for name in LANGUAGES if name in values.given}
        if not languages:
            return {}
        import keras_bert_suite as kbs

        packer = kbs.SegmentPacker.from_preset(values.checkpoint)
        if not isinstance(packer.tokenizer, kbs.MBartTokenizer):
            raise ValueError(
                f"--{next(iter(languages))} is for an mBART, and {values.checkpoint} has "
                f"{with_article(packer.tokenizer)}. Leave it out."
            )
        tokenizer = kbs.MBartTokenizer.from_preset(values.checkpoint, **languages)
        return {"preprocessor": kbs.SegmentPacker(tokenizer, packer.sequence_length)}

    def score(self, task, examples):
        from keras_bert_suite.heads.targets.scores import score_targets

        return score_targets(examples.y, task.predict(examples.x, self.values.batch_size))
