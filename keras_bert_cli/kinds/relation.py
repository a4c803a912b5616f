"""The relation of two marked entities: a `RelationClassifier`, and files of SemEval 2010 task 8."""

from keras_bert_suite.data.readers.text_files import read_lines
from keras_bert_suite.heads.relations.reader import SENTENCE, read_semeval

from ..command_flags import UsageError
from ..table_flags import TABLES, is_table, report_left_out
from .classify import ClassifyKind
from .kind import Kind


class RelationKind(ClassifyKind):
    """Texts with markers around two entities, with a relation each."""

    name = "relation"
    about = "the relation of two marked entities"
    input_names = ("text",)
    own_flags = ("entity_states", "other_label", "left_out_labels", "png")
    idle_table_flags = ("text_pair_column",)
    task = Kind.task
    cuts_texts = False  # They are cut around their entities.

    @staticmethod
    def define_flags(flags):
        explanation = (
            "Label of texts without a relation, with --task relation. It is no relation in the "
            "scores."
        )
        flags.text("other_label", "Other", explanation)

    @staticmethod
    def define_training_flags(flags):
        explanation = (
            "What --task relation classifies: markers, the states of the markers before the "
            "entities; averages, the means of the entities and the first token, as in R-BERT."
        )
        flags.choice("entity_states", "markers", ("markers", "averages"), explanation)

    @classmethod
    def recognizes(cls, model):
        return super(ClassifyKind, cls).recognizes(model)

    def read(self, path):
        self.check_table_flags()
        if self.values.delimiter is not None or path.lower().endswith(TABLES):
            return super().read(path)
        for name in ("text_column", "label_column", "left_out_labels", "header", "quoting"):
            if name in self.values.given:
                raise UsageError(
                    f"--{name} is for tables, whose names end in {', '.join(TABLES)}, got {path}, "
                    "which is read as a file of SemEval 2010 task 8"
                )
        examples = read_semeval(path, encoding=self.values.encoding, errors=self.values.row_errors)
        report_left_out(examples)
        return examples

    def find_arguments(self, train):
        return {"label_names": train.label_names, "entity_states": self.values.entity_states}

    def score_outputs(self, task, outputs, rows, labels):
        other = self.values.other_label
        return super().score_outputs(task, outputs, rows, labels, other=other)

    def read_texts(self):
        """As in `Kind`. A file that is not a table may have the sentences of SemEval."""
        path = self.values.input
        if path != "-" and not is_table(self.values, "input"):
            first = next(filter(str.strip, read_lines(path, self.values.encoding)), "")
            if SENTENCE.fullmatch(first.strip()):
                # The sentences may stand alone, as in TEST_FILE.TXT, or with their relations.
                return {"text": read_semeval(path, False, self.values.encoding).x}
        return super().read_texts()
