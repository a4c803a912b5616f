"""Files that are there whole or not at all, and messages about those that are not."""
