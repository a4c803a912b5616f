"""The answers of a text classifier for documents of any length, read in windows."""
