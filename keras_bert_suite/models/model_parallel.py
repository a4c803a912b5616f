"""Model parallelism under JAX: weights that devices share, checked when they are made."""

from typing import Any

import keras


class ModelParallel(keras.distribution.ModelParallel):
    """`keras.distribution.ModelParallel` in which each weight needs a rule that fits it.

    If no rule of the map matches a weight, Keras puts the whole weight on each device. So a
    misspelt rule wastes memory without a warning. If the number of devices does not divide a
    weight, JAX raises an error that does not name the weight. This class raises an error that names
    the weight in both cases.

    `auto_shard_dataset` is False, because the tasks of this package split their batches themselves.

    ```python
    mesh = keras.distribution.DeviceMesh((2, 4), ("batch", "model"))
    layout_map = BertBackbone.get_layout_map(mesh)
    keras.distribution.set_distribution(ModelParallel(layout_map=layout_map))
    ```

    Args:
        layout_map: `keras.distribution.LayoutMap`, such as `BertBackbone.get_layout_map` makes.
        batch_dim_name: str, the axis of the mesh over which batches are split. None is the first.

    Raises:
        ValueError: when a trainable variable is made that no rule matches, or that its rule does
            not fit.
    """

    def __init__(
        self, *, layout_map: keras.distribution.LayoutMap, batch_dim_name: str | None = None
    ) -> None:
        super().__init__(
            layout_map=layout_map, batch_dim_name=batch_dim_name, auto_shard_dataset=False
        )

    def get_variable_layout(self, variable: Any) -> keras.distribution.TensorLayout:
        """The layout of a new variable. Those of metrics and optimizers need no rule."""
        layout = super().get_variable_layout(variable)
        path, shape = variable.path, tuple(variable.shape)
        if variable.trainable and self.get_tensor_layout(path) is None:
            whole = ("None",) * len(shape)
            raise ValueError(
                f"No rule of the layout map matches the weight {path!r} {shape}. To keep it whole "
                f"on each device, add layout_map[{path!r}] = ({', '.join(whole)},) before the "
                "model is built."
            )
        self._check_fit(path, shape, layout.axes)
        return layout

    def _check_fit(self, path: str, shape: tuple[int, ...], axes: tuple[str | None, ...]) -> None:
        """Raises ValueError if a layout has more axes than a weight, or does not divide it."""
        if len(axes) > len(shape):
            raise ValueError(
                f"The rule of the layout map for {path!r} has {len(axes)} axes, {axes}, and the "
                f"weight has {len(shape)}, {shape}. Name an axis of the mesh, or None, for each."
            )
        sizes = dict(zip(self.device_mesh.axis_names, self.device_mesh.shape, strict=True))
        for position, axis in enumerate(axes):
            if axis is None or shape[position] % sizes[axis] == 0:
                continue
            raise ValueError(
                f"The axis {axis!r} of {sizes[axis]} devices does not divide the weight {path!r} "
                f"{shape}, which is split along its axis {position}. Take a number of devices that "
                f"divides {shape[position]}, or set layout_map[{path!r}] to other axes before the "
                "model is built."
            )
