"""Questions about a context: the answer is a span of it, or there is none."""
