"""Collects the rows of a file that cannot be read: for one message, or to leave them out."""

import dataclasses

#: What becomes of rows that cannot be read: the values of `errors` of readers of tables.
ROW_ERRORS = ("raise", "skip")

#: How many faults a message has, and how many places of each.
FAULTS_NAMED, PLACES_NAMED = 5, 4


@dataclasses.dataclass
class RowFaults:
    """The rows of a file that cannot be read. Of the faults of a row the first of a check counts.

    Attributes:
        path: str, the file.
        errors: "raise" or "skip".
        rows: set of int, the rows of the table that have faults.
        places: dict of a place, such as "line 3" -> its number, the reason for which it is left
            out. It has also lines that are no rows of the table.
    """

    path: str
    errors: str = "raise"
    rows: set = dataclasses.field(default_factory=set)
    places: dict = dataclasses.field(default_factory=dict)
    _faults: dict = dataclasses.field(default_factory=dict)
    _remedies: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        if self.errors not in ROW_ERRORS:
            raise ValueError(f"errors must be 'raise' or 'skip', got {self.errors!r}.")

    def add(self, table, row, reason, got, remedy):
        """Adds a fault of a row of `Examples`; see `add_line`."""
        self.rows.add(row)
        if table.lines is None:
            self._add(f"row {row}", row, reason, got, remedy)
        else:
            self.add_line(table.lines[row], reason, got, remedy)

    def add_line(self, line, reason, got, remedy):
        """Adds a fault of a line.

        Args:
            line: int.
            reason: str, for `left_out`: rows "with" it are left out.
            got: str, what is wrong, as the end of "line 3: ...".
            remedy: str, sentences. Each stands once in the message.
        """
        self._add(f"line {line}", line, reason, got, remedy)

    def _add(self, place, number, reason, got, remedy):
        self.places.setdefault(place, (number, reason))
        self._faults.setdefault(got, []).append(place)
        if remedy not in self._remedies:
            self._remedies.append(remedy)

    @property
    def left_out(self):
        """dict of a reason -> list of the lines or rows, as in `Examples`."""
        left_out = {}
        for number, reason in self.places.values():
            left_out.setdefault(reason, []).append(number)
        return left_out

    def keep(self, rows):
        """The rows without a fault, list of int.

        Raises:
            ValueError: if there are faults, and `errors` is "raise" or no row is left.
        """
        kept = [row for row in rows if row not in self.rows]
        if self.places and (self.errors == "raise" or not kept):
            raise ValueError(self._describe(len(kept) + len(self.places)))
        return kept

    def leave_out(self, examples):
        """`Examples` without the rows that have a fault. Raises: see `keep`."""
        kept = self.keep(range(len(examples)))
        if not self.places:
            return examples
        left_out = {**examples.left_out, **self.left_out}
        return dataclasses.replace(examples.take(kept), left_out=left_out)

    def _describe(self, num_rows):
        parts = []
        for got, (first, *others) in list(self._faults.items())[:FAULTS_NAMED]:
            kind = first.split()[0]
            numbers = [place.split()[1] for place in others[: PLACES_NAMED - 1]]
            also = f", also in {kind} {', '.join(numbers)}" if numbers else ""
            parts.append(f"{first}: {got}{also}{', ...' if len(others) > len(numbers) else ''}")
        message = f"{self.path}, {'; '.join(parts)}."
        if len(self.places) > 1:
            message += f" {len(self.places)} of {num_rows} rows have such faults."
        remedies = " ".join(self._remedies[:FAULTS_NAMED])
        if self.errors == "skip":
            return f"{message} {remedies} No other row is left."
        skip = 'errors="skip", on the command line --row_errors skip, leaves such rows out.'
        return f"{message} {remedies} {skip}"
