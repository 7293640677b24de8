"""The model inside a run file: text of Cardan's YAML format, read when it is first asked for.

The text is data: reading it runs no code and opens no other file. A model that the format cannot hold, such as one with
a kind of joint or force of the user's own that is not registered, is left out, and the file says why.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardan.errors import CardanError, FileError
from cardan.model.model import Model
from cardan.model.tree import GROUND
from cardan.results.trajectory.quantities import Labels, labels_of, with_values
from cardan.structure.rounding import warn_outside

FACES = 40_000
"""Most triangles of the meshes in a run file; they take about a megabyte."""
VARIABLE, WHY = "model_text", "why"


@dataclass(frozen=True)
class StoredModel:
    """A model as text in a file: its labels, to which it must fit, and values (..., size) of its free parameters."""

    path: str
    text: str
    labels: Labels
    values: np.ndarray | None = None

    def read(self) -> Model:
        """The model."""
        from cardan.io.yaml.read import read_yaml  # which runs in memory do without

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they were told when the model was made
                model = read_yaml(f"{self.text}\n").build()  # a text of one line would be taken as a path
            found = labels_of(model)
            for what in ("coordinate", "coordinate_unit", "rate", "rate_unit"):
                if getattr(found, what) != getattr(self.labels, what):
                    raise FileError(
                        f"its coordinates are {found.coordinate}, those of the run {self.labels.coordinate}"
                    )
            return model if self.values is None else with_values(model, self.values)
        except CardanError as error:
            why = str(error).removeprefix("YAML text: ")
            raise FileError(
                f"{self.path}: the model in the file cannot be read: {why}; give it: cd.load_run(path, model)"
            ) from error

    def part(self, index: Any, batch: tuple[int, ...]) -> StoredModel:
        """That of part of a batch of systems."""
        if self.values is None or self.values.ndim == 1:
            return self
        return replace(self, values=np.broadcast_to(self.values, (*batch, self.values.shape[-1]))[index])


def model_variables(path: Any, model: Model | None) -> dict[str, Any]:
    """The variable of a run file that holds the model; with a warning, why it does not."""
    if model is None:
        return {}
    from cardan.io.yaml.write import write_yaml

    words = {"long_name": "the model in Cardan's YAML format"}
    try:
        text = write_yaml(_with_meshes(model.unbound))
    except CardanError as error:
        why = str(error)
        warn_outside(f"{path}: the model is not in the file: {why}; to compute from it give cd.load_run(path, model)")
        text, words[WHY] = "", why
    return {VARIABLE: ((), np.asarray(text, dtype=object), words)}


def _with_meshes(model: Model) -> Model:
    """The model with the meshes of its bodies inside, since the file is opened without others."""
    if not (any(body.shapes for body in model.bodies) or model.ground_shapes):
        return model
    from cardan.model.shape import embedded

    found = embedded({b: body.shapes for b, body in enumerate(model.bodies)} | {GROUND: model.ground_shapes}, FACES)
    bodies = tuple(replace(body, shapes=found[b]) for b, body in enumerate(model.bodies))
    return replace(model, bodies=bodies, ground_shapes=found[GROUND])


def model_in(path: Any, data: Any, labels: Labels) -> tuple[StoredModel | None, str]:
    """The model in the dataset of a run file, or None, and why it is not there."""
    if VARIABLE not in data.variables:
        return None, ""
    variable = data.variables[VARIABLE]
    text, why = str(variable.values), str(variable.attrs.get(WHY, ""))
    values = data.variables["parameter_value"].values if "parameter_value" in data.variables else None
    return (StoredModel(str(path), text, labels, values) if text else None), why
