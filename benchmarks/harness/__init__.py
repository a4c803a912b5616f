"""What the benchmarks share: sides in turn, their figures as Markdown, and the machine."""
