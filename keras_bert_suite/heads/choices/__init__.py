"""The right one of several endings of a prompt."""
