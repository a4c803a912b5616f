"""Parts of messages about files. They are short, whatever the files hold."""

#: The most characters of a value or a name, and the most names, that a message shows.
MAX_CHARACTERS = 120
MAX_NAMES = 20


def damaged(path, reason):
    """A ValueError that names the file, what is wrong with it, and what to do."""
    return ValueError(
        f"{path} cannot be read: {shorten(reason)}. It is damaged or its download was cut short "
        f"(it has {path.stat().st_size:,} bytes): download it again."
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
    """Joins names. Of many names it shows the first ones, and how many more there are.

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


def name_of(function):
    """The name of a function, or of an object that can be called.

    >>> name_of(len)
    'len'
    """
    return getattr(function, "__name__", None) or type(function).__name__
