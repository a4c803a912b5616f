"""The answer to a question in a context: a `QuestionAnswerer`, and files of SQuAD's form."""

import dataclasses
import math

from keras_bert_suite.data.readers import read_squad
from keras_bert_suite.data.readers.squad_answers import ERRORS

from ..command_flags import UsageError
from ..saved_tasks import open_task
from ..scores import print_table
from ..table_flags import TABLE_FLAGS
from .kind import Kind, format_json


class QuestionKind(Kind):
    """QuestionKind and contexts, with the answers in the contexts."""

    name = "qa"
    about = "the part of a context that answers a question"
    input_names = ("question", "context")
    sequence_length = 384
    own_flags = ("question", "answer_errors", "characters")
    idle_table_flags = (*TABLE_FLAGS, "encoding")  # JSON is UTF-8.

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

    @classmethod
    def serves(cls, output_names):
        return "null_odds" in output_names

    def read(self, path):
        self.check_table_flags()
        return read_squad(path, errors=self.values.answer_errors)

    @property
    def _scoring(self):
        """The batch size, and how answers are compared."""
        return self.values.batch_size, self.values.characters or False

    def find_arguments(self, train):
        return {"no_answer_threshold": 0.0 if count_unanswerable(train) else None}

    def check(self, examples, arguments, source):
        if arguments["no_answer_threshold"] is not None:
            return
        for row, answers in enumerate(examples.y):
            if not answers["text"]:
                raise ValueError(
                    f"{examples.locate(row)}: the question has no answer, but every question of "
                    f"{source} has one. Leave it out, or train with such questions."
                )

    def introduce(self, train, arguments):
        without = count_unanswerable(train)
        return f"{len(train)} training questions, {without} of them without an answer"

    def callbacks(self, dev):
        import keras_bert_suite as kbs

        return [] if dev is None else [kbs.AnswerF1(dev.x, dev.y, *self._scoring)]

    def complete(self, task, dev):
        if dev is None or not count_unanswerable(dev):
            return None
        threshold = task.tune_threshold(dev.x, dev.y, *self._scoring)
        return f"no-answer threshold {threshold:.4f}; dev {self.describe(task, dev)}"

    def describe(self, task, examples):
        scores = task.score(examples.x, examples.y, *self._scoring)
        return f"exact match {scores['exact_match']:.2f}, F1 {scores['f1']:.2f}"

    def score(self):
        from keras_bert_suite.data.squad_scores import score_answers

        questions = self.read(self.values.input)
        answers = self._find_answers(dict(zip(self.input_names, questions.x, strict=True)))
        references = [row["text"] for row in questions.y]
        predictions = [answer["text"] for answer in answers]
        scores = score_answers(references, predictions, self.values.characters or False)
        print_answer_scores(scores)
        return scores, None

    def predict(self, columns):
        names = self._find_columns(columns)
        asked = dict(zip(self.input_names, (columns[name] for name in names), strict=True))
        answers = self._find_answers(asked)
        if self.values.format == "tsv":
            # Without the tabs and line ends of an answer.
            rows = ((" ".join(answer["text"].split()), answer["score"]) for answer in answers)
            return ["answer\tscore\n", *(f"{text}\t{score:.6f}\n" for text, score in rows)]
        named = {name: columns[name] for name in ("id",) if name in columns}
        return format_json({**named, "question": asked["question"]}, map(_round, answers))

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

    def _find_answers(self, columns):
        """For each question a dict of `text`, `start`, `end`, `score` and `null_odds`."""
        values = self.values
        if self.saved_model is not None:
            return self._ask_saved_model(columns)
        answerer = open_task(values.model, self.task)
        answers = answerer.predict(tuple(columns.values()), batch_size=values.batch_size, verbose=0)
        return [dataclasses.asdict(answer) for answer in answers]

    def _ask_saved_model(self, columns):
        outputs = ("answers", "starts", "ends", "scores", "null_odds")
        rows = []
        for batch in self.saved_model.answer(columns, self.values.batch_size):
            rows += zip(*(batch[name].tolist() for name in outputs), strict=True)
        names = ("start", "end", "score", "null_odds")
        return [
            {"text": text.decode(), **dict(zip(names, figures, strict=True))}
            for text, *figures in rows
        ]


def count_unanswerable(questions):
    """The number of questions in `Examples` without an answer."""
    return sum(not answers["text"] for answers in questions.y)


def print_answer_scores(scores):
    """Prints the scores of `score_answers`."""
    titles = {"has_answer": "with an answer", "no_answer": "without an answer"}
    rows = [*((title, scores[name]) for name, title in titles.items() if name in scores)]
    print_table(
        ["questions", "exact match", "F1", "number"],
        (
            [title, f"{row['exact_match']:.2f}", f"{row['f1']:.2f}", row["questions"]]
            for title, row in [*rows, ("all", scores)]
        ),
    )


def _round(answer):
    """The dict of an answer as JSON has it. JSON has no infinity, the odds without any text."""
    figures = {name: answer[name] for name in ("score", "null_odds")}
    return {
        "answer": answer["text"],
        "start": answer["start"],
        "end": answer["end"],
        **{name: round(x, 6) if math.isfinite(x) else None for name, x in figures.items()},
    }
