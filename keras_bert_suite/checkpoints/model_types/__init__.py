"""The kinds of models that checkpoints hold, and the fields of their config.json."""
