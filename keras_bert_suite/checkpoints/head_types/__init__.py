"""The kinds of heads: one record each."""
