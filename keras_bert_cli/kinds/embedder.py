"""A vector for each text: a `TextEmbedder`, and tables of pairs of texts."""

from ..command_flags import UsageError
from ..saved_tasks import open_embedder
from ..table_flags import choose_text_columns, read_examples
from .kind import Kind, format_json

#: The most places of a search that are scored.
MOST_RANKS = 10

POOLINGS = ("mean", "cls", "max", "first_last_average")


class EmbedKind(Kind):
    """Pairs of texts that match, or pairs with a score each."""

    name = "embed"
    about = "a vector for each text, from pairs"
    input_names = ("text",)
    own_flags = ("negative_column",)

    @staticmethod
    def define_flags(flags):
        explanation = (
            "Column of texts that do not match, with --task embed. `evaluate` searches among them, "
            "too. Default: only the other pairs of a batch are negatives."
        )
        flags.text("negative_column", None, explanation)

    @classmethod
    def serves(cls, output_names):
        return "embedding" in output_names

    @property
    def has_scores(self):
        """bool, whether --label_column was given. It names the scores."""
        return "label_column" in self.values.given

    def read(self, path):
        """Reads `Examples` of pairs, with scores as floats if there is a --label_column."""
        values = self.values
        columns = choose_text_columns(values)
        if "text_pair_column" not in columns:
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
            columns["negative_column"] = values.negative_column
        label_flag = "label_column" if self.has_scores else None
        return read_examples(values, path, columns, label_flag, problem_type="regression")

    def find_compile_arguments(self):
        if not self.has_scores:
            return {}
        import keras_bert_suite as kbs

        return {"loss": kbs.CoSENT()}

    def introduce(self, train, arguments):
        kind = "with scores" if self.has_scores else "that match"
        return f"{len(train)} training pairs {kind}"

    def describe(self, task, examples):
        return _format_scores(self._score(task, examples))

    def score(self):
        examples = self.read(self.values.input)
        scores = self._score(open_embedder(self.values.model), examples)
        print(f"{_format_scores(scores)}, {len(examples)} pairs")
        return {"pairs": len(examples), **scores}, None

    def _score(self, task, examples):
        """Scores correlations with scores, or how early second texts are found."""
        first, second, *negatives = examples.x
        if examples.y is None:
            return self._score_search(task, first, second, *negatives)
        batch_size = self.values.batch_size
        vectors = tuple(task.predict(texts, batch_size, verbose=0) for texts in (first, second))
        return task.score(vectors, examples.y)

    def _score_search(self, task, first, second, negatives=()):
        """As `_score`, for pairs without scores. The search is among both other columns."""
        from keras_bert_suite.data.retrieval_scores import score_rankings

        # A text of several pairs is one document, and one query with several answers.
        relevant = {}
        for query, document in zip(first, second, strict=True):
            relevant.setdefault(query, set()).add(document)
        documents = list(dict.fromkeys([*second, *negatives]))
        found = task.search(list(relevant), documents, MOST_RANKS, self.values.batch_size)
        rankings = [[documents[hit.id] for hit in hits] for hits in found]
        return score_rankings(rankings, list(relevant.values()))

    def predict(self, columns):
        if self.values.format == "tsv":
            raise UsageError("--format tsv has labels. Choose --format jsonl for vectors")
        texts = next(iter(columns.values()))
        answers = ({"embedding": [round(float(x), 6) for x in v]} for v in self._encode(columns))
        return format_json({"text": texts}, answers)

    def _encode(self, columns):
        """Yields the vectors of texts."""
        batch_size = self.values.batch_size
        if self.saved_model is not None:
            for outputs in self.saved_model.answer(columns, batch_size):
                yield from outputs["embedding"]
            return
        texts = self.order_texts(self.input_names, columns)
        yield from open_embedder(self.values.model).predict(texts, batch_size, verbose=0)


def _format_scores(scores):
    return ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
