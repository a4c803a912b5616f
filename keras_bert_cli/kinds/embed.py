"""A vector for each text: a `TextEmbedder`, and tables of pairs of texts."""

from ..command_flags import UsageError
from ..table_flags import choose_text_columns, read_examples
from .kind import Kind


class EmbedKind(Kind):
    """Pairs of texts that match, or pairs with a score each."""

    name = "embed"
    about = "a vector for each text, from pairs"
    input_names = ("text",)
    own_flags = ("negative_column", "left_out_labels")
    answer_format = "jsonl"
    no_table = "--format tsv has labels. Choose --format jsonl for vectors"

    @staticmethod
    def define_flags(flags):
        explanation = (
            "Column of texts that do not match, with --task embed. `evaluate` searches among them, "
            "too. Default: only the other pairs of a batch are negatives."
        )
        flags.text("negative_column", None, explanation)

    @property
    def rows(self):
        return "pairs" if self.has_scores else "pairs, read as matches, since no --label_column"

    @property
    def has_scores(self):
        """bool, whether --label_column was given. It names the scores."""
        return "label_column" in self.values.given

    def read(self, path):
        """Reads `Examples` of pairs, with scores as floats if there is a --label_column."""
        values = self.values
        columns = choose_text_columns(values)
        if not values.text_pair_column:
            raise UsageError(
                "--task embed learns from pairs of texts. Name the second texts with "
                "--text_pair_column, and scores, if there are any, with --label_column"
            )
        if values.negative_column:
            if self.has_scores:
                raise UsageError(
                    "--negative_column is for pairs without scores; leave out one of "
                    "--negative_column and --label_column"
                )
            columns.append(values.negative_column)
        label_column = values.label_column if self.has_scores else None
        if values.left_out_labels and not self.has_scores:
            raise UsageError("--left_out_labels needs a --label_column, which must be given")
        left_out = {"left_out_labels": values.left_out_labels}
        return read_examples(
            values, path, columns, label_column, problem_type="regression", **left_out
        )

    def check(self, task, examples):
        """The loss of the task may not fit these pairs."""

    def find_compile_arguments(self):
        if not self.has_scores:
            return {}
        import keras_bert_suite as kbs

        return {"loss": kbs.CoSENT()}

    def score(self, task, examples):
        """Scores correlations with scores, or how early second texts are found."""
        first, second, *negatives = examples.x
        if examples.y is not None:
            size = self.values.batch_size
            vectors = tuple(task.predict(texts, size, verbose=0) for texts in (first, second))
            return task.score(vectors, examples.y)
        # A text of several pairs is one document, and one query with several answers.
        relevant = {}
        for query, document in zip(first, second, strict=True):
            relevant.setdefault(query, set()).add(document)
        queries = {text: text for text in first}
        documents = {text: text for text in [*second, *(negatives[0] if negatives else ())]}
        return task.score_retrieval(queries, documents, relevant, batch_size=self.values.batch_size)

    def show_texts(self, columns):
        return {"text": next(iter(columns.values()))}
