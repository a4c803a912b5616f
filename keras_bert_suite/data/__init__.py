"""Rows for `fit`: readers of public formats, labels, orders, scores."""
