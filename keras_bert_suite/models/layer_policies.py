"""The dtype policies of the layers of a quantized model that was read from a file."""

import keras


def separate_policies(model: keras.Model) -> None:
    """Gives each layer a separate policy, in place of the map that the layers of a file share.

    Keras' quantized layers read `self.dtype_policy.quantization_mode`, which is None for a map.
    Such a layer is called, but it cannot be saved, and it has no LoRA.
    """
    for layer in model._flatten_layers():
        policies = layer.dtype_policy
        if isinstance(policies, keras.dtype_policies.DTypePolicyMap):
            # The setter would write into the map. A model and its inputs have no path.
            own = policies[layer.path] if layer.path else policies.default_policy
            layer._dtype_policy = own
