"""A text written from a text, such as a title from an article."""
