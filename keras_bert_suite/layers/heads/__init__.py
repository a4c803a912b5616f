"""What is asked of the hidden states: guesses of tokens, labels of words, spans."""
