"""The commands of `keras-bert` and their flags, as Markdown."""

import argparse
import re

from keras_bert_cli import COMMANDS
from keras_bert_cli.command_flags import Flags


def list_commands():
    """A section for each command: its help, and a table of its flags."""
    return "\n## Commands and flags\n" + "".join(
        describe(name, command) for name, command in COMMANDS.items()
    )


def describe(name, command):
    flags = Flags(name, command)
    rows = [f"| {show_flag(action)} | {escape(action.help)} |" for action in list_flags(flags)]
    return "\n".join(
        [
            f"\n### keras-bert {name}\n",
            f"```text\n{flags.description}\n```\n",
            "| flag | meaning |",
            "| --- | --- |",
            *rows,
            "",
        ]
    )


def list_flags(flags):
    """The flags of a command, without `--help` and those of absl."""
    hidden = (None, argparse.SUPPRESS)
    return [
        action
        for action in flags._actions
        if action.help not in hidden and "--help" not in (action.option_strings or [""])[-1]
    ]


def show_flag(action):
    """A flag with the kind of its value: "`--epochs N`"."""
    name = action.option_strings[-1] if action.option_strings else ""
    value = "" if action.nargs == 0 else action.metavar or "TEXT"
    if action.choices:
        value = " | ".join(map(str, action.choices))
    return f"`{f'{name} {value}'.strip()}`".replace("|", r"\|")


def escape(text):
    """Text of a cell of a table, with flags as code."""
    text = re.sub(r"\s+", " ", text.replace("%%", "%")).replace("|", r"\|")
    parts = re.split(r"(--\w[\w-]*)", text)
    parts[::2] = [re.sub(r"([*<])", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [f"`{part}`" for part in parts[1::2]]
    return "".join(parts)
