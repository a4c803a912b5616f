"""SentencePiece for ALBERT, XLM-RoBERTa and their like, with its two engines."""
