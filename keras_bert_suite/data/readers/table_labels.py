"""Reads the labels of a table: classes, sets of labels, numbers, texts, or tags of words."""

import contextlib
import dataclasses
import itertools
import math
import unicodedata
import warnings

from keras_bert_suite.data.readers.field_checks import (
    CLASSES,
    NUMBERS,
    SETS,
    TAGS,
    check_filled,
    check_no_lists,
    parse_lists,
)
from keras_bert_suite.data.readers.list_prints import parse_list
from keras_bert_suite.data.readers.records import make_field
from keras_bert_suite.data.readers.set_fields import read_bit_columns, read_sets, split_labels

#: Labels that data sets give to rows without a label: SNLI, Hugging Face, pandas.
_NO_LABELS = ("-", "-1", "nan")


@dataclasses.dataclass(frozen=True)
class TableLabels:
    """How the labels of a table are read.

    Attributes:
        label_column, problem_type, label_separator, label_columns, left_out_labels, label_names:
            the arguments of `read_table`. Columns are str.
        class_names: list of str, the names of a `ClassLabel`, which stand in the table in place of
            its ids; or None.
    """

    label_column: object = None
    problem_type: object = CLASSES
    label_separator: str = ","
    label_columns: object = None
    left_out_labels: object = None
    label_names: object = None
    class_names: object = None

    def __post_init__(self):
        kinds = (CLASSES, SETS, NUMBERS, TAGS, None)
        if self.problem_type not in kinds:
            raise ValueError(
                f"problem_type must be {', '.join(map(repr, kinds[:-1]))} or None, got "
                f"{self.problem_type!r}."
            )
        if self.label_column is not None and not isinstance(self.label_column, str):
            raise ValueError(
                f"label_column must be the name of one column, got {self.label_column!r}. For a "
                f"column of 0 and 1 for each label, pass label_columns=[...]."
            )
        if self.label_columns is not None:
            self._check_label_columns()
        if self.left_out_labels is not None and not self.columns:
            raise ValueError("left_out_labels needs a label_column, or label_columns.")
        if self.label_names is not None:
            self._check_label_names()
        if not self.label_separator:
            raise ValueError('label_separator must not be empty. The default is a comma, ",".')
        if isinstance(self.left_out_labels, str):
            raise ValueError(
                f"left_out_labels must be a list of labels, got {self.left_out_labels!r}. One "
                f"label is a list of one: [{self.left_out_labels!r}]."
            )

    def _check_label_columns(self):
        is_list = self.label_columns and not isinstance(self.label_columns, str)
        if not is_list or self.label_column is not None:
            raise ValueError(
                "label_columns must be a list of columns, at least one, and label_column None, got "
                f"{self.label_columns!r} and {self.label_column!r}."
            )
        if self.problem_type not in (CLASSES, SETS, NUMBERS):
            raise ValueError(
                f"label_columns have 0 and 1 with problem_type={CLASSES!r} or {SETS!r}, or numbers "
                f"with {NUMBERS!r}, got problem_type={self.problem_type!r}."
            )

    def _check_label_names(self):
        if self.label_column is None or self.problem_type in (NUMBERS, None):
            raise ValueError(
                "label_names are for a label_column of classes, sets of labels or tags. Leave them "
                "out."
            )
        if isinstance(self.label_names, str) or not all(
            isinstance(name, str) for name in self.label_names
        ):
            raise ValueError(
                f"label_names must be a list of str, got {self.label_names!r:.80}. For a dev file "
                "pass train.label_names."
            )

    @property
    def names(self):
        """list of str, the only labels that there may be; None for all labels of the table."""
        names = self.class_names if self.label_names is None else self.label_names
        return names if names is None else list(names)

    @property
    def columns(self):
        """list of str, the columns that have labels."""
        if self.label_columns is not None:
            return list(self.label_columns)
        return [] if self.label_column is None else [self.label_column]

    def keep_rows(self, table):
        """The rows that are kept, a sequence of int, and dict of a reason -> the others.

        Args:
            table: `Examples`, whose last columns are `columns`.
        """
        if not self.left_out_labels:
            return range(len(table)), {}
        left_out_labels = {self._normalize(make_field(label)) for label in self.left_out_labels}
        fields = table.columns[len(table.columns) - len(self.columns) :]
        kept, left_out = [], {}
        for row in range(len(table)):
            labels = (label for field in fields for label in self._split(field[row]))
            if found := [label for label in labels if label in left_out_labels]:
                left_out.setdefault(f"the label {found[0]!r}", []).append(row)
            else:
                kept.append(row)
        if not kept:
            raise ValueError(
                f"{table.path}: no row is left, because the labels of all {len(table)} rows are "
                f"among left_out_labels={self.left_out_labels!r}. Read the texts alone, without a "
                "column of labels."
            )
        return kept, left_out

    def _split(self, field):
        """The labels in a field, list of str."""
        field = field if self.problem_type is None else parse_list(field)
        if self.problem_type == SETS and self.label_columns is None:
            return split_labels(field, self.label_separator) or [""]
        return [*map(self._normalize, [field] if isinstance(field, str) else field)]

    def _normalize(self, label):
        """A label in a form for comparisons: for numbers -1 for -1.0."""
        with contextlib.suppress(ValueError):
            if self.problem_type == NUMBERS and math.isfinite(float(label)):
                return make_field(float(label))
        return label.strip()

    def read(self, table, rows, faults):
        """Reads the labels of some rows of a table.

        Args:
            table: `Examples`, whose last columns are `columns`.
            rows: list of int.
            faults: `RowFaults`, for rows whose labels cannot be read.

        Returns:
            dict of a row -> its label; and list of the names, if they are known without `name`, or
            None.
        """
        if self.problem_type == NUMBERS:
            return self._read_numbers(table, rows, faults), self.columns
        if self.label_columns is not None:
            is_class = self.problem_type == CLASSES
            sets = read_bit_columns(table, rows, self.columns, is_class, faults)
            labels = {row: own[0] if is_class and own else own for row, own in sets.items()}
            return labels, self.columns
        names, column = None, self.label_column
        if self.problem_type is None:
            check_filled(table, -1, "text", column, rows, faults)
            return {row: table.columns[-1][row] for row in rows}, None
        if self.problem_type == TAGS:
            labels = parse_lists(table, -1, "tag", column, rows, faults)
        elif self.problem_type == SETS:
            are_named = self.names is not None and not self._may_be_bits
            separator = self.label_separator
            labels, names = read_sets(table, rows, column, separator, are_named, faults)
        else:
            labels = self._read_classes(table, rows, faults)
        self._find_strangers(table, labels, faults)
        return labels, self.names or names

    @property
    def _may_be_bits(self):
        """Whether the names are 0, 1, 2 and so on, as lists of 0 and 1 get them."""
        names = self.names
        return self.class_names is None and names == list(map(str, range(len(names))))

    def _read_classes(self, table, rows, faults):
        fields = [parse_list(field) for field in table.columns[-1]]
        table = dataclasses.replace(table, x=(fields,))
        check = check_no_lists if self.class_names is not None else check_filled
        check(table, -1, "label", self.label_column, rows, faults)
        labels = {row: fields[row].strip() for row in rows if isinstance(fields[row], str)}
        is_named = self.class_names is not None  # Then a missing label is one without a name.
        return {row: label for row, label in labels.items() if label or is_named}

    def _find_strangers(self, table, labels, faults):
        """Adds the rows with labels that are none of `names`."""
        if self.names is None:
            return
        known = {*self.names}
        for row, own in labels.items():
            own = [own] if isinstance(own, str) else own
            label = next((label for label in own if label not in known), None)
            if label is None:
                continue
            got = f"is {label}, which is none of {', '.join(self.names[:20])}"
            remedy = "Correct it, or"
            if self.class_names is not None and label in ("", "-1"):
                got = f"is missing{label and f', {label}'}"
                remedy = f"Leave such rows out by left_out_labels={[label]!r}, or"
            faults.add(
                *(table, row, f"the label {label!r}, which has no name"),
                f"the label in the column {self.label_column!r} {got}",
                f"{remedy} read the texts alone, without a label_column.",
            )

    def name(self, table, rows, labels):
        """list of the names of the labels of `rows`. Suspicious labels are a warning."""
        sets = [(own,) if isinstance(own, str) else own for own in labels]
        names = list_label_names(itertools.chain.from_iterable(sets))
        _warn_of_alike_labels(table, rows, sets, names)
        if self.left_out_labels is None and self.problem_type != TAGS:
            _warn_of_no_labels(table, rows, sets, names)
        return names

    def _read_numbers(self, table, rows, faults):
        labels = {row: [] for row in rows}
        for fields, name in zip(table.columns[-len(self.columns) :], self.columns, strict=True):
            for row in rows:
                labels[row].append(_read_number(table, row, fields[row], name, faults))
        return (
            {row: own[0] for row, own in labels.items()} if self.label_columns is None else labels
        )


def list_label_names(labels):
    """The different labels, sorted. They are sorted by value if all are integers.

    >>> list_label_names(["10", "9", "10"])
    ['9', '10']
    """
    names = set(labels)
    try:
        return sorted(names, key=lambda name: (int(name), name))
    except ValueError:
        return sorted(names)


def _warn_of_alike_labels(table, rows, labels, names):
    """Warns of labels that differ in width or in capitals only, such as a 1 of full width."""
    seen = {}
    for name in names:
        seen.setdefault(unicodedata.normalize("NFKC", name).casefold(), []).append(name)
    alike = [group for group in seen.values() if len(group) > 1]
    if not alike:
        return
    first, second = alike[0][:2]
    found = next(row for row, own in zip(rows, labels, strict=True) if second in own)
    warnings.warn(
        f"{table.locate(found)}: the labels {first!r} and {second!r} are read as two classes, as "
        f"are {len(alike)} of {len(seen)} labels, which differ in the width or case of letters "
        "only. If they are one class, write them alike.",
        stacklevel=5,
    )


def _warn_of_no_labels(table, rows, labels, names):
    """Warns of a label that data sets give to rows without a label."""
    for label in _NO_LABELS:
        others = {*names} - {label}
        # Minus has a plus beside it, and -1 is an id beside 1 alone.
        is_name = (label == "-" and "+" in others) or (
            label == "-1" and others != set(map(str, range(len(others))))
        )
        if label not in names or is_name:
            continue
        found = [row for row, own in zip(rows, labels, strict=True) if label in own]
        warnings.warn(
            f"{table.locate(found[0])}: the label {label!r} is read as a class, in {len(found)} "
            f"of {len(rows)} rows. If these rows have no label, leave them out by left_out_labels="
            f"[{label!r}], --left_out_labels={label}. If it is a class, pass left_out_labels=[].",
            stacklevel=5,
        )


def _read_number(table, row, label, column, faults):
    """A finite float. Another label is a fault."""
    try:
        value = float(label)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        faults.add(
            *(table, row, f"no finite number in the column {column!r}"),
            f"the label in the column {column!r} is {str(label)[:40]!r}",
            "Wanted a finite number, such as 4.5. Correct it, or name another `label_column`.",
        )
    return value
