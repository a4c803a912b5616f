"""A tag for each word, and the entities of tags: named entities, parts of speech."""
