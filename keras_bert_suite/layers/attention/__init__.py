"""Attention: its kernels, its patterns, the layouts of rows, and positions within it."""
