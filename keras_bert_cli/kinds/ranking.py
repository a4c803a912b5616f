"""The relevance of texts for a query: a `TextRanker`, and tables with a candidate in each row."""

from keras_bert_suite.heads.rankings.reader import read_rankings

from ..command_flags import UsageError
from ..table_flags import report_left_out, table_arguments
from .kind import Kind


class RankingKind(Kind):
    """Queries with their candidates, and the relevance of each candidate."""

    name = "ranking"
    about = "the relevance of texts for a query"
    rows = "queries"
    own_flags = ("ranking_loss", "left_out_labels")

    @staticmethod
    def define_training_flags(flags):
        explanation = (
            "What --task ranking compares: listwise, all candidates of a query; pairwise, two of "
            "them; pointwise, one with its relevance."
        )
        kinds = ("listwise", "pairwise", "pointwise")
        flags.choice("ranking_loss", "listwise", kinds, explanation)

    @property
    def input_names(self):
        return self.columns if self.values.header else ("query", "text")

    @property
    def columns(self):
        """The columns of the queries and of the texts."""
        flags = ("text_column", "text_pair_column")
        given = [flag for flag in flags if flag in self.values.given]
        if len(given) == 1:
            raise UsageError(
                "--task ranking needs --text_column, the column of the queries, and "
                "--text_pair_column, that of the texts. Default of both: query and text"
            )
        own = self.model.input_names if self.model else ("query", "text")
        return tuple(getattr(self.values, flag) for flag in given) or tuple(own)

    def read(self, path):
        columns = (*self.columns, self.values.label_column)
        arguments = table_arguments(self.values)
        arguments["left_out_labels"] = self.values.left_out_labels
        examples = read_rankings(path, *columns, errors=self.values.row_errors, **arguments)
        report_left_out(examples)
        return examples

    def find_compile_arguments(self):
        import keras_bert_suite as kbs

        return {"loss": kbs.RankingLoss(self.values.ranking_loss)}

    def score(self, task, examples):
        return task.score(examples.x, examples.y, self.values.batch_size)

    def format_table(self, found):
        return ["relevance\n", *(f"{score:.6f}\n" for score in found["relevance"])]
