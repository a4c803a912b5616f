"""The relevance of texts for a query: a cross-encoder, or reranker."""
