"""Reads files with a word and its tag in each line."""
