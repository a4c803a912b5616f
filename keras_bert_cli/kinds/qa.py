"""The answer to a question in a context: a `QuestionAnswerer`, and files of SQuAD's form."""

import dataclasses
import json
import math
import statistics

from absl import flags

from keras_bert_suite.data import squad

from ..command_flags import UsageError
from ..example_groups import group_by_first_word, group_by_number
from ..marked_texts import is_for_reader, show_answers
from ..outputs import write_json, write_picture
from ..predictor import open_saved_model
from ..saved_tasks import open_task
from .kind import Kind

#: Flags of tables, which do not go with a file of SQuAD's form.
_TABLE_FLAGS = (
    *("text_column", "text_pair_column", "label_column", "header", "delimiter"),
    "encoding",  # JSON is UTF-8.
)


class Questions(Kind):
    """Questions and contexts, with the answers in the contexts."""

    name = "qa"
    about = "the part of a context that answers a question"
    task = "QuestionAnswerer"
    unit = "questions"
    input_names = ("question", "context")
    sequence_length = 384
    own_flags = ("max_answer_length",)

    @staticmethod
    def define_flags(values):
        explanation = (
            "Maximum number of tokens in an answer, with --task qa. `evaluate` takes that of the "
            "model if the flag is not given."
        )
        flags.DEFINE_integer("max_answer_length", 30, explanation, 1, flag_values=values)

    @classmethod
    def serves(cls, output_names):
        return "null_odds" in output_names

    def read(self, path):
        """Reads `SquadQuestions`."""
        for name in _TABLE_FLAGS:
            if self.values[name].present:
                raise UsageError(f"--{name} is for tables of texts, not for --task qa")
        return squad.read_squad(path)

    def find_arguments(self, train):
        has_null = squad.has_unanswerable(train.answers)
        return {
            "max_answer_length": self.values.max_answer_length,
            "no_answer_threshold": 0.0 if has_null else None,
        }

    def check(self, examples, arguments, source):
        if arguments["no_answer_threshold"] is not None:
            return
        for id, answers in zip(examples.ids, examples.answers, strict=True):
            if not answers["text"]:
                raise ValueError(
                    f"{examples.path}, question {id}: it has no answer, but every question of "
                    f"{source} has one. Leave it out, or train with such questions."
                )

    def introduce(self, train, arguments):
        without = sum(not answers["text"] for answers in train.answers)
        return f"{len(train)} training questions, {without} of them without an answer"

    def columns_of(self, examples):
        return (examples.questions, examples.contexts), examples.answers

    def balance(self, train):
        raise UsageError("--class_weight is for labels. Leave it out with --task qa")

    def callbacks(self, dev):
        import keras_bert_suite as kbs

        return [] if dev is None else [kbs.AnswerF1(*self.columns_of(dev))]

    def complete(self, task, dev):
        if dev is None or not squad.has_unanswerable(dev.answers):
            return None
        threshold = task.tune_threshold(*self.columns_of(dev))
        return f"no-answer threshold {threshold:.4f}; dev {self.describe(task, dev)}"

    def describe(self, task, examples):
        scores = task.score(*self.columns_of(examples))
        return f"exact match {scores['exact_match']:.2f}, F1 {scores['f1']:.2f}"

    def evaluate(self):
        values = self.values
        if values.png:
            from ..text_plots import plot_groups
        questions = self.read(values.input)
        answers = self._find_answers(
            dict(zip(self.input_names, (questions.questions, questions.contexts), strict=True))
        )

        from keras_bert_suite.data.squad_scores import score_answers

        references = [row["text"] for row in questions.answers]
        predictions = [answer["text"] for answer in answers]
        scores = score_answers(references, predictions)
        print_answer_scores(scores)
        if values.json:
            write_json(values.json, scores, values.overwrite)
        if values.png:
            panels = score_groups(questions, references, predictions)
            write_picture(values.png, lambda path: plot_groups(panels, path), values.overwrite)

    def predict(self, columns, saved_model=None):
        names = self._find_columns(columns)
        asked = dict(zip(self.input_names, (columns[name] for name in names), strict=True))
        answers = self._find_answers(asked, saved_model)
        if self.values.format == "tsv":
            return _format_tsv(answers)
        if is_for_reader(self.values):
            return show_answers(asked["question"], asked["context"], answers)
        if "id" in columns:
            asked = {"id": columns["id"], **asked}
        return _format_json(asked, answers)

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

    def _find_answers(self, columns, saved_model=None):
        """For each question a dict of `text`, `start`, `end`, `score` and `null_odds`."""
        values = self.values
        longest = None
        if "max_answer_length" in values and values["max_answer_length"].present:
            longest = values.max_answer_length
        saved_model = open_saved_model(values.model, saved_model)
        if saved_model is not None:
            if longest is not None:
                raise UsageError(
                    f"--max_answer_length is a part of the graph of {values.model}. Evaluate the "
                    "model that it was exported from"
                )
            return saved_model.find_answers(columns, values.batch_size)
        answerer = open_task(values.model, self.task)
        answerer.max_answer_length = longest or answerer.max_answer_length
        answers = answerer.predict(tuple(columns.values()), batch_size=values.batch_size, verbose=0)
        return [dataclasses.asdict(answer) for answer in answers]


def score_groups(questions, references, predictions):
    """The scores of groups of questions, as `plot_groups` takes them.

    Args:
        questions: `SquadQuestions`.
        references, predictions: as for `score_answers`.
    """
    from keras_bert_suite.data.squad_scores import score_answers

    lengths = [len(context) for context in questions.contexts]
    quarters = statistics.quantiles(lengths, n=4) if len(lengths) > 1 else []
    ends = sorted({*map(int, quarters), max(lengths)})
    panels = {
        "By the first word of the question": group_by_first_word(questions.questions),
        "By the characters of the context": group_by_number(lengths, ends),
    }

    def score_rows(rows):
        columns = ([column[row] for row in rows] for column in (references, predictions))
        scores = score_answers(*columns)
        return {"exact match": scores["exact_match"], "F1": scores["f1"]}

    return {
        title: {f"{name} ({len(rows)})": score_rows(rows) for name, rows in groups.items()}
        for title, groups in panels.items()
    }


def print_answer_scores(scores):
    """Prints the scores of `score_answers`."""
    from rich.console import Console
    from rich.table import Table

    table = Table("questions", "exact match", "F1", "number")
    for column in table.columns[1:]:
        column.justify = "right"
    titles = {"has_answer": "with an answer", "no_answer": "without an answer"}
    for title, row in (
        *((title, scores[name]) for name, title in titles.items() if name in scores),
        ("all", scores),
    ):
        figures = (f"{row[name]:.2f}" for name in ("exact_match", "f1"))
        table.add_row(title, *figures, str(row["questions"]))
    Console(highlight=False, markup=False).print(table)


def _format_tsv(answers):
    """Yields a line for each answer, without its tabs and line ends."""
    yield "answer\tscore\n"
    for answer in answers:
        yield f"{' '.join(answer['text'].split())}\t{answer['score']:.6f}\n"


def _format_json(columns, answers):
    """Yields a line of JSON for each question."""
    names = [name for name in columns if name != "context"]
    for row, answer in enumerate(answers):
        line = {name: columns[name][row] for name in names}
        line["answer"] = answer["text"]
        line.update({name: answer[name] for name in ("start", "end")})
        for name in ("score", "null_odds"):  # JSON has no infinity, the odds without any text.
            line[name] = round(answer[name], 6) if math.isfinite(answer[name]) else None
        yield json.dumps(line, ensure_ascii=False) + "\n"
