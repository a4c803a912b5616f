"""One vector of many: of tokens, of layers, of windows."""
