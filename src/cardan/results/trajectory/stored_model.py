"""The model inside a run file: text of Cardan's YAML format, read when it is first asked for.

The text is data: reading it runs no code and opens no other file. Meshes of bodies are arrays of the run file, of
fewer triangles. A model that the format cannot hold, such as one with a kind of joint or force of the user's own that
is not registered, is left out, and the file says why.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardan.errors import CardanError, FileError
from cardan.model.model import Model
from cardan.model.modes import has_modes, with_modes, without_modes
from cardan.model.shape import Mesh, MeshFile, Shape, shared_parts
from cardan.model.tree import GROUND
from cardan.results.trajectory.quantities import Labels, labels_of, with_values
from cardan.structure.rounding import warn_outside

VARIABLE, WHY, MODES = "model_text", "why", "modes"
MESHES = ("mesh_vertices", "mesh_faces", "mesh_parts", "mesh_colours")
MOST_FACES = 40_000  # triangles of all bodies together: half a megabyte


@dataclass(frozen=True)
class StoredModel:
    """A model as text in a file: its labels, to which it must fit, and values (..., size) of its free parameters.

    `meshes` are the variables of `MESHES`, or none.
    """

    path: str
    text: str
    labels: Labels
    values: np.ndarray | None = None
    meshes: tuple[Any, ...] = ()
    modes: bool = False
    """Whether the modes of its rows with laws are free parameters of it."""

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
            model = _with_meshes(model, *(np.asarray(variable) for variable in self.meshes))
            model = with_modes(model) if self.modes else model
            return model if self.values is None else with_values(model, self.values)
        except (CardanError, IndexError, TypeError, ValueError) as error:
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

    words = {"long_name": "the model in Cardan's YAML format"} | ({MODES: "free"} if has_modes(model) else {})
    try:
        text = write_yaml(_without_meshes(without_modes(model.unbound)))
    except CardanError as error:
        why = str(error)
        warn_outside(f"{path}: the model is not in the file: {why}; to compute from it give cd.load_run(path, model)")
        text, words[WHY] = "", why
    return {VARIABLE: ((), np.asarray(text, dtype=object), words), **(_mesh_variables(model) if text else {})}


def _without_meshes(model: Model) -> Model:
    return model.with_shapes(lambda shapes: tuple(s for s in shapes if not isinstance(s, Mesh | MeshFile)))


def _mesh_variables(model: Model) -> dict[str, Any]:
    """Meshes of the bodies, in body axes: vertices and triangles one after the other, and where each part begins.

    A part has the number of its body (-1 is the ground), of its first vertex and of its first triangle.
    """
    every = {b: body.shapes for b, body in enumerate(model.bodies)} | {GROUND: model.ground_shapes}
    meshes = {b: [s for s in shapes if isinstance(s, Mesh | MeshFile)] for b, shapes in every.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a mesh that cannot be read is told when somebody looks at it
        found = list(shared_parts({b: shapes for b, shapes in meshes.items() if shapes}, MOST_FACES))
    if not found:
        return {}
    sizes = np.cumsum([(0, 0), *((len(p.surface.vertices), len(p.surface.faces)) for _, p in found)], axis=0)[:-1]
    values = (
        np.concatenate([part.surface.vertices for _, part in found]).astype(np.float32),
        np.concatenate([part.surface.faces for _, part in found]).astype(np.int32),
        np.column_stack([[b for b, _ in found], sizes]).astype(np.int32),
        np.array([(np.nan,) * 4 if part.colour is None else part.colour for _, part in found]),
    )
    axes = (("mesh_vertex", "direction"), ("mesh_face", "corner"), ("mesh_part", "begin"), ("mesh_part", "rgba"))
    words: tuple[dict[str, str], ...] = ({"units": "m", "long_name": "meshes of bodies, body axes"}, {}, {}, {})
    return dict(zip(MESHES, zip(axes, values, words, strict=True), strict=True))


def _with_meshes(model: Model, *arrays: np.ndarray) -> Model:
    """The model with the meshes of a file; meshes in other files that the text may name are left out."""
    model = _without_meshes(model)
    if not arrays:
        return model
    vertices, faces, parts, colours = arrays
    ends = np.vstack([parts[1:, 1:], [len(vertices), len(faces)]])
    if (parts[:1, 1:] != 0).any() or (ends < parts[:, 1:]).any():
        raise FileError("its meshes overlap")  # a small file could fill the memory with copies
    shapes: dict[int, list[Shape]] = {}
    for (body, v0, f0), (v1, f1), colour in zip(parts.tolist(), ends.tolist(), colours, strict=False):
        if not GROUND <= body < model.nb:
            raise FileError(f"a mesh belongs to body {body}, and there are {model.nb}")
        shown = None if np.isnan(colour).any() else tuple(map(float, colour))
        shapes.setdefault(body, []).append(Mesh(vertices[v0:v1].astype(float), faces[f0:f1], colour=shown))
    bodies = tuple(replace(body, shapes=(*body.shapes, *shapes.get(b, ()))) for b, body in enumerate(model.bodies))
    return replace(model, bodies=bodies, ground_shapes=(*model.ground_shapes, *shapes.get(GROUND, ())))


def model_in(path: Any, data: Any, labels: Labels) -> tuple[StoredModel | None, str]:
    """The model in the dataset of a run file, or None, and why it is not there."""
    if VARIABLE not in data.variables:
        return None, ""
    variable = data.variables[VARIABLE]
    text, why = str(variable.values), str(variable.attrs.get(WHY, ""))
    values = data.variables["parameter_value"].values if "parameter_value" in data.variables else None
    meshes = tuple(data.variables[name] for name in MESHES) if MESHES[0] in data.variables else ()
    modes = MODES in variable.attrs
    return (StoredModel(str(path), text, labels, values, meshes, modes) if text else None), why
