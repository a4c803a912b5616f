"""A student learns from teachers: their outputs, their hidden states, and their attention."""
