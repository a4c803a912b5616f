"""Which kinds of models there are, and the fields of their configs."""
