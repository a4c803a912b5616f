"""Static vectors of sentence-transformers and model2vec."""
