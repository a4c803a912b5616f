"""Atomic writes of files and folders, checksums, locks, and messages about damaged files."""
