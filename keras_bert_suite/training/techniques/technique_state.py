"""The variables of a technique, as a part of a model that Keras saves."""

from typing import Any

import keras

from keras_bert_suite.training.techniques.technique import Technique


class TechniqueState(keras.layers.Layer):
    """The variables of a technique that are not variables of the model it trains.

    Keras saves them with the model, as it saves an optimizer. A file without a technique leaves
    them as they are.

    Attributes:
        rng: the `SeedGenerator` that the technique gets.
        named: dict of name -> variable, the variables that files hold. A name is the name of an
            attribute, and a number; before it the number of a part.
        constants: list of variables that the technique only reads.
    """

    def __init__(self, technique: Technique, model: keras.Model) -> None:
        super().__init__()
        self.rng = keras.random.SeedGenerator()
        technique.build(model)
        known = {id(variable) for variable in model.variables}
        named, constants = {"rng": self.rng.state}, []
        owners = {"": technique, **{f"{i}/": part for i, part in enumerate(technique.parts)}}
        for prefix, owner in owners.items():
            for attribute, part in vars(owner).items():
                for number, variable in enumerate(_list_variables(part)):
                    if id(variable) in known:
                        continue
                    known.add(id(variable))
                    if attribute in owner.constants:
                        constants.append(variable)
                    else:
                        named[f"{prefix}{attribute}/{number}"] = variable
        self.saved = list(named.values())
        # Keras would save attributes as weights.
        self.__dict__.update(named=named, constants=constants)

    @property
    def trained(self) -> list[keras.Variable]:
        """The variables that the optimizer trains."""
        return [variable for variable in self.named.values() if variable.trainable]

    @property
    def kept(self) -> list[keras.Variable]:
        """The other variables."""
        return [v for v in self.named.values() if not v.trainable] + self.constants

    def load_own_variables(self, store: Any) -> None:
        if store.keys():
            super().load_own_variables(store)


def _list_variables(part: Any) -> list[keras.Variable]:
    """The variables in a structure of variables, layers and random states."""
    variables: list[keras.Variable] = []
    for leaf in keras.tree.flatten(part):
        if isinstance(leaf, keras.Variable):
            variables.append(leaf)
        elif isinstance(leaf, keras.random.SeedGenerator):
            variables.append(leaf.state)
        elif isinstance(leaf, keras.layers.Layer):
            variables += leaf.variables
    return variables
