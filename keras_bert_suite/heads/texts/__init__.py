"""A class, a set of labels, or numbers for each text."""
