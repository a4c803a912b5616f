"""The relation of two entities that are marked in a text."""
