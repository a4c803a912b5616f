"""How the gradients of a batch are made, beside one plain forward and backward pass."""
