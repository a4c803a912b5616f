"""Small layers that are added to the layers of an encoder, and what chooses among them."""
