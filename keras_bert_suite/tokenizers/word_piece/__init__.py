"""WordPiece, the tokenizer of BERT: one behaviour, in two engines."""
