"""Files of tokenizers: read, checked, written."""
