"""The flags of a command: how they are defined, parsed and explained."""

import argparse
import inspect
import itertools
import os

from absl import flags as absl_flags
from absl.flags import argparse_flags

from keras_bert_suite.foreign_arguments import find_meant

from .backend import BACKENDS

#: Values of flags of several commands: sizes of `BertBackbone.from_size`, and precisions.
SIZES = ("tiny", "mini", "small", "medium", "base", "large")
DTYPES = ("float32", "bfloat16", "mixed_bfloat16", "mixed_float16")

#: In place of a default, for a flag that must be given.
REQUIRED = object()


class UsageError(Exception):
    """An error in the command line itself. The exit status is 2."""


class Flags(argparse_flags.ArgumentParser):
    """The flags of a command and the common flags, among them absl's, such as --verbosity.

    A method adds a flag. `default` may be `REQUIRED`. `explanation` is for the help, which adds the
    default. `command` is a module with a docstring and `define_flags(flags)`.
    """

    def __init__(self, name, command):
        super().__init__(
            prog=f"keras-bert {name}",
            usage="%(prog)s --flag=value ...",
            description=inspect.cleandoc(command.__doc__),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.defaults = {}
        self.opposites = set()
        command.define_flags(self)
        explanation = "The backend of Keras. Default: the environment variable KERAS_BACKEND, or "
        self.choice("backend", None, BACKENDS, explanation + "Keras' own configuration.")
        explanation = "Show the traceback of an error, and every log message of the frameworks."
        self.switch("traceback", False, explanation)

    def text(self, name, default, explanation, **options):
        """Adds a flag that takes a str. `options` go to `add_argument`."""
        required = default is REQUIRED
        self.defaults[name] = None if required else default
        if required:
            explanation += " Required."
        elif default is not None and not isinstance(default, bool):
            explanation += f" Default: {default}."
        explanation = explanation.replace("%", "%%")
        self.add_argument(f"--{name}", required=required, help=explanation, **options)

    def path(self, name, default, explanation):
        """Adds a flag that takes a path. `~` is expanded, and `hf://owner/name` stays as it is."""
        self.text(name, default, explanation, type=_expand_user, metavar="PATH")

    def paths(self, name, default, explanation):
        """Adds a flag that takes one path or several, a list: --NAME A B C."""
        self.text(name, default, explanation, type=_expand_user, metavar="PATH", nargs="+")

    def path_or_flag(self, name, explanation):
        """Adds a flag that takes a path and must be given. The path may stand without the flag."""
        self.defaults[name] = None
        options = {"type": _expand_user, "metavar": "PATH"}
        either = self.add_mutually_exclusive_group(required=True)
        explanation = f"{explanation} Required.".replace("%", "%%")
        either.add_argument(name, nargs="?", default=argparse.SUPPRESS, help=explanation, **options)
        either.add_argument(f"--{name}", help="The same.", **options)

    def choice(self, name, default, choices, explanation, **options):
        """Adds a flag that takes one of a few values. `options` go to `add_argument`."""
        if len(",".join(choices)) > 70 and "metavar" not in options:  # Help does not wrap them.
            options["metavar"] = name.upper()
            explanation = f"{explanation} One of {', '.join(choices)}."
        self.text(name, default, explanation, choices=choices, **options)

    def list(self, name, default, explanation, kind=str):
        """Adds a flag that takes texts, or numbers, with commas between them."""

        def read(text):
            return [kind(value) for value in text.split(",")]

        read.__name__ = f"list of {kind.__name__}"  # argparse shows it in errors.
        self.text(name, default, explanation, type=read, metavar="A,B")

    def mapping(self, name, explanation):
        """Adds a flag that takes pairs of texts, A=B,C=D, as a dict. A text may be empty."""

        def read(text):
            pairs = [pair.partition("=") for pair in text.split(",")]
            if wrong := [key for key, mark, _ in pairs if not mark]:
                raise argparse.ArgumentTypeError(f"wanted A=B,C=D, got {wrong[0]!r} without a =")
            return {key: value for key, _, value in pairs}

        self.text(name, None, explanation, type=read, metavar="A=B,C=D")

    def integer(self, name, default, explanation, at_least=1, words=()):
        """Adds a flag that takes an int, or one of a few words."""
        self.text(name, default, explanation, type=_Number(int, at_least, None, words), metavar="N")

    def number(self, name, default, explanation, at_most=None, at_least=0):
        """Adds a flag that takes a float."""
        self.text(name, default, explanation, type=_Number(float, at_least, at_most), metavar="X")

    def switch(self, name, default, explanation):
        """Adds the flag --NAME. Unless `default` is False, it also adds --noNAME."""
        self.text(name, default, explanation, action="store_true")
        if default is not False:
            self.opposites.add(f"no{name}")
            self.add_argument(f"--no{name}", dest=name, action="store_false", help="The opposite.")

    def parse(self, arguments):
        """Parses a list of str.

        The result has the value of each flag, and `given`, the names of the flags that the command
        line has. Errors are `UsageError`s.
        """
        self._check_names(arguments)
        absent = argparse.Namespace(**dict.fromkeys(self.defaults))
        parsed = vars(self.parse_args(arguments, absent))
        given = {name: value for name, value in parsed.items() if value is not None}
        return argparse.Namespace(**{**self.defaults, **given}, given=frozenset(given))

    def _check_names(self, arguments):
        """Names flags that do not exist, before argparse names flags that are missing."""
        known = {*self.defaults, *self.opposites, *_find_absl_names()}
        flags = itertools.takewhile(lambda argument: argument != "--", arguments)
        for flag in flags:
            name = flag[2:].partition("=")[0]
            # What holds a space is a value, as for argparse.
            if flag.startswith("--") and " " not in name and name not in known:
                meant, _ = find_meant(name, list(self.defaults))
                hint = f". Did you mean --{meant}?" if meant else ""
                self.error(f"unrecognized arguments: {flag}{hint}")

    def error(self, message):
        raise UsageError(f"{message} ({self.prog} --help lists the flags)")


class _Number:
    """Reads a number of a type, within bounds, or one of a few words."""

    def __init__(self, kind, at_least, at_most=None, words=()):
        self.__name__, self.kind, self.words = " or ".join([kind.__name__, *words]), kind, words
        self.at_least = at_least
        self.at_most = float("inf") if at_most is None else at_most

    def __call__(self, text):
        if text in self.words:
            return text
        value = self.kind(text)
        if not self.at_least <= value <= self.at_most:
            wanted = f"from {self.at_least} to {self.at_most}"
            raise argparse.ArgumentTypeError(f"wanted a number {wanted}, got {text}")
        return value


def _find_absl_names():
    """The names of the flags that each parser takes from absl, and the flags of help."""
    names = {"help", "helpshort", "helpfull", "helpxml", "flagfile", "undefok"}
    return names | {f"{no}{name}" for name in absl_flags.FLAGS for no in ("", "no")}


def _expand_user(path):
    return path if "://" in path else os.path.expanduser(path)


def format_overview(commands):
    """The help of the program: every command with its first line."""
    lines = [
        "keras-bert: BERT on Keras 3, fine-tuned, served and converted.",
        "",
        "Usage: keras-bert COMMAND --flag=value ...",
        "",
        "Commands:",
        *(f"  {name:<10}{c.__doc__.partition(chr(10))[0]}" for name, c in commands.items()),
    ]
    return "\n".join([*lines, "", "keras-bert COMMAND --help explains a command and its flags."])
