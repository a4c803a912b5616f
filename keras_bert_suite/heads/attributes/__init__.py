"""A class of each of several attributes for each text."""
