"""Which tokens a pretraining hides or moves, and which it asks for."""
