"""Spans of words, which may lie within each other."""
