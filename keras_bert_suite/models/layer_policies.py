"""The dtype policies of the layers of a quantized model: for a file, and read from one."""

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


def collect_policies(
    model: keras.Model,
) -> keras.DTypePolicy | keras.dtype_policies.DTypePolicyMap:
    """The policy of a model; if it is quantized, a map with the policies of its layers.

    KerasHub's map does not say from which policy the layers were quantized, nor which policy
    the other layers have. So its models open in the policy of `keras.config`.
    """
    policy = model.dtype_policy
    layers = model._flatten_layers(include_self=False)
    quantized = {layer.path: layer.dtype_policy for layer in layers if layer.quantization_mode}
    if not quantized or isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        return policy
    return keras.dtype_policies.DTypePolicyMap(policy.name, quantized)
