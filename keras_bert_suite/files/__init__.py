"""Files that are there whole or not at all, and messages about damaged files."""
