"""The answer to a question in a context: a `QuestionAnswerer`, and files of SQuAD's form."""

from keras_bert_suite.data.readers.text_files import read_lines
from keras_bert_suite.data.readers.text_places import ERRORS
from keras_bert_suite.heads.questions.reader import read_squad

from ..command_flags import UsageError
from ..head_layers import read_head_layers
from ..table_flags import TABLE_FLAGS, is_table
from .kind import Kind


class QuestionKind(Kind):
    """Questions and contexts, with the answers in the contexts."""

    name = "qa"
    about = "the part of a context that answers a question"
    rows = "questions"
    input_names = ("question", "context")
    own_flags = ("question", "answer_errors", "characters", "head_layers")
    idle_table_flags = (*TABLE_FLAGS, "encoding")  # JSON is UTF-8.
    answer_format = "jsonl"

    @staticmethod
    def define_flags(flags):
        explanation = (
            "What becomes of answers that are not at their answer_start with --task qa: raise; fix "
            "moves them to the nearest place; skip uses them for scores only."
        )
        flags.choice("answer_errors", "raise", ERRORS, explanation)
        explanation = (
            "Compare answers by characters with --task qa, as the script of CMRC 2018 (Chinese) or "
            "of KorQuAD does. Default: by words, as SQuAD."
        )
        rules = ("cmrc2018", "korquad")
        flags.choice("characters", None, rules, explanation)

    def read(self, path):
        self.check_table_flags()
        return read_squad(path, errors=self.values.answer_errors)

    @property
    def _scoring(self):
        """The batch size, and how answers are compared."""
        return self.values.batch_size, self.values.characters or False

    def find_arguments(self, train):
        return {
            "no_answer_threshold": 0.0 if has_unanswerable(train) else None,
            "head_layers": read_head_layers(self.values.head_layers),
        }

    def callbacks(self, dev):
        import keras_bert_suite as kbs

        return [] if dev is None else [kbs.AnswerF1(dev.x, dev.y, *self._scoring)]

    def complete(self, task, dev):
        if has_unanswerable(dev):
            task.tune_threshold(dev.x, dev.y, *self._scoring)
        return has_unanswerable(dev)

    def score(self, task, examples):
        return task.score(examples.x, examples.y, *self._scoring)

    def read_texts(self):
        values = self.values
        if values.question is not None:
            if is_table(values, "input"):
                raise UsageError("--question is about one text, and the --input is a table")
            text = "\n".join(read_lines(values.input, values.encoding))
            return {"question": [values.question], "context": [text]}
        if values.input.lower().endswith(".json"):
            self.check_table_flags()
            read = read_squad(values.input, labelled=False)
            return {"id": read.ids, **dict(zip(self.input_names, read.x, strict=True))}
        return super().read_texts()

    def order_texts(self, columns):
        names = self._find_columns(columns)
        asked = dict(zip(self.input_names, (columns[name] for name in names), strict=True))
        return super().order_texts(asked)

    def show_texts(self, columns):
        named = {name: columns[name] for name in ("id",) if name in columns}
        return {**named, "question": columns[self._find_columns(columns)[0]]}

    def format_table(self, found):
        # Without the tabs and line ends of an answer.
        rows = zip(found["answer"], found["score"], strict=True)
        lines = (f"{' '.join(text.split())}\t{score:.6f}\n" for text, score in rows)
        return ["answer\tscore\n", *lines]

    def _find_columns(self, columns):
        """The names of the columns of the questions and of the contexts."""
        names = [name for name in columns if name != "id"]
        if set(self.input_names) <= set(names):
            return self.input_names
        if len(names) != 2:
            raise UsageError(
                "a question needs its context. Ask one question about the text of --input with "
                "--question, or pass a table with the columns question and context, or a .json "
                "file of SQuAD's form"
            )
        return names


def has_unanswerable(questions):
    """Whether `Examples` have a question without an answer."""
    return any(not answers["text"] for answers in questions.y)
