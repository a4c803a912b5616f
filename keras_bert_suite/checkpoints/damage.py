"""What to say of a file that cannot be read."""


def damaged(path, reason):
    """A ValueError that names the file, what is wrong with it, and what to do."""
    return ValueError(
        f"{path} cannot be read: {reason}. It is damaged or its download was cut short "
        f"(it has {path.stat().st_size:,} bytes): download it again."
    )
