"""Parts of messages about files. They are short, whatever the files hold."""

import contextlib
import errno

#: The most characters of a value or a name, and the most names, that a message shows.
MAX_CHARACTERS = 120
MAX_NAMES = 20

#: The most characters of a message.
MAX_MESSAGE = 1900

_ERRORS_OF_DEVICES = (
    "AcceleratorError",
    "JaxRuntimeError",
    "OutOfMemoryError",
    "ResourceExhaustedError",
    "XlaRuntimeError",
)

#: The words of PyTorch's plain RuntimeError when a processor's memory is full.
_CPU_ALLOCATOR = "DefaultCPUAllocator"


@contextlib.contextmanager
def reading(path, *others):
    """Lets errors name the file that is read in the block, whatever the file holds.

    Errors of a backend about its device, such as one without memory, say nothing about the file. So
    they stay as they are, and so do ImportErrors, and OSErrors that name a file.

    A reader cannot foresee each value that a damaged or hostile file may hold instead of another.
    An error that does not name the file, or says more than `MAX_MESSAGE` characters, becomes a
    ValueError that does. The block must only read: an error about an argument of the user would
    blame the file. The error may instead name one of the `others`, files or folders with a "/" at
    their end.
    """
    try:
        yield
    except (ImportError, MemoryError, Warning):
        raise
    except Exception as error:
        if type(error).__name__ in _ERRORS_OF_DEVICES or _CPU_ALLOCATOR in str(error):
            raise
        # A name that is too long came out of the file.
        is_of_system = (
            isinstance(error, OSError)
            and error.filename is not None
            and error.errno != errno.ENAMETOOLONG
        )
        is_named = any(str(name) in str(error) for name in (path, *others))
        is_good = isinstance(error, OSError | ValueError) and is_named
        if is_of_system or (is_good and len(str(error)) <= MAX_MESSAGE):
            raise
        reason = shorten(f"{type(error).__name__}: {error}", MAX_MESSAGE // 3).rstrip(".")
        raise ValueError(
            f"{shorten(path, MAX_MESSAGE // 2)} cannot be read: {reason}. It is damaged, or was "
            "not written for this. Restore it, or pass another one."
        ) from error


def damaged(path, reason):
    """A ValueError that names the file, the fault and the remedy."""
    return ValueError(
        f"{path} cannot be read: {shorten(reason)}. It is damaged or its download was cut short: "
        "download it again."
    )


def shorten(value, max_characters=MAX_CHARACTERS):
    """The text of a value. The middle of a long text is left out.

    >>> shorten("x" * 1000, 11)
    'xxxx...xxxx'
    """
    text = str(value)
    if len(text) <= max_characters:
        return text
    half = (max_characters - 3) // 2
    return f"{text[:half]}...{text[-half:]}"


def list_names(names, separator=", ", max_characters=MAX_CHARACTERS):
    """Joins names. Of many names it shows the first, and the number of the rest.

    >>> list_names(["a", "b"])
    'a, b'
    """
    names = list(names)
    shown = [shorten(name, max_characters) for name in names[:MAX_NAMES]]
    if len(names) > MAX_NAMES:
        shown.append(f"... and {len(names) - MAX_NAMES:,} more")
    return separator.join(shown)


def list_directory(path):
    """The names in a directory."""
    return list_names(sorted(file.name for file in path.iterdir())) or "nothing"
