"""A vector for each text, and the search for similar texts."""
