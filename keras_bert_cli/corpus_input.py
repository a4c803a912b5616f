"""The common part of the commands that read a corpus of plain text."""

import time

from .command_flags import REQUIRED

SECONDS_BETWEEN_LINES = 10


def define_input_flags(flags):
    """Defines the flags of the input."""
    explanation = "Files, folders, or patterns in quotes, separated by commas; .gz is unpacked."
    flags.list("input", REQUIRED, explanation)
    explanation = (
        "How files hold documents. sentences: each line is a sentence, and a blank line ends a "
        "document. files: each file is a document. jsonl: each line is a JSON object with a "
        "document. wikipedia: a dump, .xml or .xml.bz2; needs mwparserfromhell. auto: jsonl for "
        ".jsonl files, wikipedia for dumps, otherwise sentences."
    )
    formats = ("auto", "sentences", "files", "jsonl", "wikipedia")
    flags.choice("format", "auto", formats, explanation)
    flags.text("text_key", "text", "Key of the text in a JSON object.")
    explanation = (
        "Encoding of the files, by its name in Python, such as gb18030 or cp1252. Not UTF-16: "
        "convert the files first."
    )
    flags.text("encoding", "utf-8", explanation)
    explanation = (
        "What to do with bytes that are not of the encoding. strict: the document cannot be read; "
        "see --on_error. replace: read U+FFFD in place of them, which the tokenizer drops."
    )
    choices = ("strict", "replace")
    flags.choice("errors", "strict", choices, explanation)
    explanation = (
        "What to do with documents that cannot be read: bytes that are not of the encoding, lines "
        "that are not JSON or have no text, files that cannot be unpacked. stop: list them, and "
        "write nothing. skip: leave them out, and count and list them at the end."
    )
    flags.choice("on_error", "stop", ("stop", "skip"), explanation)


def describe_left_out(skipped_documents, replaced_texts, faults):
    """Lines of text about documents that were left out, replaced bytes, and their places."""
    lines = []
    if replaced_texts:
        lines.append(f"U+FFFD was read for bytes of {replaced_texts:,} lines or files")
    if skipped_documents:
        lines += [f"{skipped_documents:,} documents were left out:", *faults]
    return lines


def make_progress():
    """Makes a function that shows the progress by a line every ten seconds.

    Its arguments are the bytes of input that are done, the bytes that an earlier run has done, and
    all bytes.
    """
    begin = shown = time.monotonic()

    def show(done, kept, total):
        nonlocal shown
        now = time.monotonic()
        if now - shown < SECONDS_BETWEEN_LINES:
            return
        shown, rate = now, (done - kept) / (now - begin)
        left = f", {(total - done) / rate:,.0f} s left" if rate else ""
        megabytes = f"{done / 1e6:,.1f} of {total / 1e6:,.1f} MB, {rate / 1e6:,.1f} MB/s"
        print(megabytes + left, flush=True)

    return show
