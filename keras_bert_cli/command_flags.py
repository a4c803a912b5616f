"""Defines, parses and explains the flags of a command."""

import inspect
import os
import shutil
import textwrap

from absl import flags as absl_flags

from .backend import BACKENDS

#: Values of flags of several commands: sizes of `BertBackbone.from_size`, and precisions.
SIZES = ("tiny", "mini", "small", "medium", "base", "large")
DTYPES = ("float32", "bfloat16", "mixed_bfloat16", "mixed_float16")


class UsageError(Exception):
    """An error in the command line itself. The exit status is 2."""


class PathParser(absl_flags.ArgumentParser):
    """Reads `~/model` as a folder at home; `hf://owner/name` stays as it is."""

    def parse(self, argument):
        return argument if "://" in argument else os.path.expanduser(argument)


def define_path(values, name, default, explanation):
    """Defines a flag that takes a path.

    Args:
        values: `absl.flags.FlagValues`.
        name, explanation: str.
        default: str or None.
    """
    serializer = absl_flags.ArgumentSerializer()
    absl_flags.DEFINE(
        PathParser(), name, default, explanation, flag_values=values, serializer=serializer
    )


def make_flags(command):
    """The flags of a command and the flags of every command, in a new `absl.flags.FlagValues`.

    The global `absl.flags.FLAGS` would accept and list the flags of every imported module.
    """
    values = absl_flags.FlagValues()
    command.define_flags(values)
    absl_flags.DEFINE_enum(
        "backend",
        None,
        BACKENDS,
        "The backend of Keras. Default: the environment variable KERAS_BACKEND, or Keras' own "
        "configuration.",
        flag_values=values,
    )
    absl_flags.DEFINE_boolean(
        "traceback",
        False,
        "Show the traceback of an error, and every log message of the frameworks.",
        flag_values=values,
    )
    absl_flags.DEFINE_boolean("help", False, "Show this help.", short_name="h", flag_values=values)
    return values


def parse_flags(name, command, arguments):
    """Parses the flags of a command.

    Args:
        name: str, the name of the command.
        command: module with `define_flags(values)` and `REQUIRED`, names of flags.
        arguments: list of str.

    Returns:
        `absl.flags.FlagValues`.

    Raises:
        UsageError: if a flag is unknown, missing or has a wrong value.
    """
    values = make_flags(command)
    values.set_gnu_getopt(True)
    try:
        _, *positional = values([name, *arguments])
    except absl_flags.Error as error:
        raise UsageError(f"{_one_line(error)} ({_help_hint(name)})") from None
    if values.help:
        return values
    if positional:
        raise UsageError(
            f"{name} takes flags only, got {' '.join(positional)!r} ({_help_hint(name)})"
        )
    missing = [f"--{flag}" for flag in command.REQUIRED if not values[flag].value]
    if missing:
        raise UsageError(f"{name} needs {' and '.join(missing)} ({_help_hint(name)})")
    return values


def format_overview(commands):
    """The help of the program: every command with its first line."""
    lines = [
        "keras-bert: BERT on Keras 3, fine-tuned, served and converted.",
        "",
        "Usage: keras-bert COMMAND --flag=value ...",
        "",
        "Commands:",
    ]
    lines += [f"  {name:<10}{_summary(command)}" for name, command in commands.items()]
    return "\n".join([*lines, "", "keras-bert COMMAND --help explains a command and its flags."])


def format_command_help(name, command):
    """The help of a command: its module's docstring, then each flag with its default."""
    values = make_flags(command)
    lines = [f"keras-bert {name}: {inspect.cleandoc(command.__doc__)}", "", "Flags:"]
    for flag_name in values:
        flag = values[flag_name]
        if flag_name != flag.name:
            continue  # a short name
        lines += _explain(flag, required=flag_name in command.REQUIRED)
    return "\n".join(lines)


def _explain(flag, required):
    # absl adds a sentence of its own to a flag that may be repeated.
    spelling, explanation, remark = f"--{flag.name}", flag.help.partition(";\n")[0], ""
    if flag.boolean:
        spelling = f"--[no]{flag.name}" if flag.default else spelling
    elif choices := getattr(flag.parser, "enum_values", None):
        spelling += f" {'|'.join(choices)}"
        explanation = explanation.partition(">: ")[2]  # absl begins it with the choices
    else:
        spelling += {"int": " N", "float": " X"}.get(flag.flag_type(), " VALUE")
    if required:
        remark = " Required."
    elif flag.default not in (None, []) and not flag.boolean:
        default = ",".join(flag.default) if isinstance(flag.default, list) else flag.default
        remark = f" Default: {default}."
    width = min(shutil.get_terminal_size().columns, 88)
    return [
        f"  {spelling}",
        *textwrap.wrap(
            explanation + remark, width, initial_indent=" " * 6, subsequent_indent=" " * 6
        ),
    ]


def _summary(command):
    return command.__doc__.partition("\n")[0]


def _one_line(error):
    return " ".join(str(error).split()).rstrip(".")


def _help_hint(name):
    return f"keras-bert {name} --help lists the flags"
