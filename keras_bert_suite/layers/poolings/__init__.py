"""Poolings: layers that reduce vectors of tokens, layers or windows to one vector."""
