"""What all heads share: the task, its files, and rows of texts, classes, sets and numbers."""
