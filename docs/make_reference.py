"""Write docs/reference.md and its pages from the docstrings of the public names: `python docs/make_reference.py`."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from pathlib import Path
from types import ModuleType

import cardan
from cardan.textbook import Equation

PAGE = Path(__file__).with_name("reference.md")
FOLDER = PAGE.with_name("reference")
GROUPS = {
    "Building a mechanism": "Mechanism Model Pose JointData State Actuator shape inertia load load_mechanism save",
    "Joints": "Rigid Revolute Prismatic Screw Universal Cylindrical Spherical Planar Free Curvilinear",
    "Joints and forces of your own": "Kind JointType SingleMotion InPlane add_joint ForceKind Field Reading add_force "
    "ConstraintKind ConstraintRow ConstraintElement add_constraint",
    "Tables": "table table2 Table",
    "Curves": "curve Curve",
    "Formulations of your own": "Formulation TreeFormulation add_formulation",
    "Dynamics": "forward_dynamics inverse_dynamics mass_matrix inverse_mass_matrix bias_force gravity_force "
    "coriolis_matrix joint_wrenches equations Symbols javascript check",
    "Derivatives": "Derivatives Sensitivity jvp vjp weighted_hessian independent_coordinates "
    "compile CompiledFunction jax_function jax_simulate torch_function torch_simulate casadi_function",
    "Linear models": "linearise LinearModel modes Modes Mode",
    "Loops": "assemble reactions undetermined_reactions redundancy Redundancy actuation Actuation constraint_residual "
    "constraint_jacobian multipliers condition Constraint RowTable RowLabel Law",
    "Planar mechanisms": "is_planar in_plane particles rod_particles Particles ParticleSystem Particle",
    "Particles in space": "particles_in_space four_particles SpatialParticles",
    "Kinematics": "body_poses body_twists body_accelerations frame_pose jacobian joint_axes plus rates",
    "Inverse kinematics and workspace": "inverse_kinematics InverseKinematics Target positions branches Branches "
    "Branch SingularPosition manipulability Manipulability transmission_angle workspace Workspace",
    "Synthesis, balancing, sensitivities": "synthesise Synthesis SynthesisSolution balance Balance Counterweight "
    "steady_motion shaking_wrench",
    "Families of linkages": "LinkageFamily KinetostaticSweep SweepSamples search_linkages LinkageSearch "
    "refine_linkages RefinedLinkages",
    "Energy and momentum": "kinetic_energy potential_energy power momentum centroidal_momentum center_of_mass "
    "subtree_kinetic_energy subtree_momentum",
    "Controllers": "PID StateSpace StateFeedback Motor ControlLaw",
    "Runs": "simulate Event Change Machine lock release Instant Trajectory draw page view Viewer load_run Store "
    "EventRecord compare Comparison Difference",
    "Studies": "sweep Run design Design normal uniform triangular lognormal Distribution Measure peak largest smallest "
    "mean rms final Study StudyIndices load_study",
    "Units, and states of other programs": "deg rpm state_to state_from",
    "Equilibrium": "equilibrium Equilibrium equilibrium_path EquilibriumPath",
    "Identification": "regressor Regressor base_parameters BaseParameters excitation Excitation identify "
    "Identification",
    "Integrators": "DormandPrince RK4 SemiImplicitEuler Moreau Gear Alpha BDF Adams RungeKutta Integrator add_method",
    "The catalogue": "mechanisms",
    "Formulas of the textbook": "textbook",
    "Threads": "get_threads set_threads",
    "Arrays on a GPU": "to_device DeviceArray",
    "Errors": "CardanError InputError ModelError FileError LoopError UnknownNameError SimulationError "
    "InterruptedRunError EquilibriumError DeviceError DeviceMemoryError OutOfMemoryError",
}


SECTIONS = {"Args:": "Arguments:", "Returns:": "Returns:", "Raises:": "Raises:"}
NAMED = re.compile(r"[*\w, ]+").fullmatch
MADE_BY = {
    "Model": "`Mechanism.build` and `cd.load`", "Actuation": "`cd.actuation`", "Balance": "`cd.balance`",
    "Actuator": "`Mechanism.actuator`", "BaseParameters": "`cd.base_parameters`", "Branch": "`cd.branches`",
    "Comparison": "`cd.compare`", "Difference": "`cd.compare`",
    "Branches": "`cd.branches`", "CompiledFunction": "`cd.compile`", "Constraint": "`Mechanism.constraint`",
    "Counterweight": "`cd.balance`", "Derivatives": "functions with `by=`", "DeviceArray": "`cd.to_device`",
    "Equilibrium": "`cd.equilibrium`", "EquilibriumPath": "`cd.equilibrium_path`", "EventRecord": "`cd.simulate`",
    "Excitation": "`cd.excitation`", "Identification": "`cd.identify`", "Instant": "`cd.simulate`, for events",
    "InverseKinematics": "`cd.inverse_kinematics`", "KinetostaticSweep": "`LinkageFamily.sweep`",
    "LinearModel": "`cd.linearise`", "LinkageSearch": "`cd.search_linkages`", "Manipulability": "`cd.manipulability`",
    "Mode": "`cd.modes`", "Modes": "`cd.modes`", "Particle": "`cd.particles`",
    "ParticleSystem": "`Model.particles`", "Particles": "`cd.rod_particles`", "Redundancy": "`cd.redundancy`",
    "RefinedLinkages": "`cd.refine_linkages`", "Regressor": "`cd.regressor`", "RowLabel": "`Model.rows`",
    "RowTable": "`Model.rows`", "Sensitivity": "`cd.simulate`", "SingularPosition": "`cd.branches`",
    "SpatialParticles": "`cd.particles_in_space`",
    "Distribution": "`cd.normal` and others", "Study": "`cd.sweep` and `cd.load_study`",
    "StudyIndices": "`Study.indices`",
    "SweepSamples": "`LinkageFamily.samples`", "Symbols": "`cd.equations(model).sympy`",
    "Synthesis": "`cd.synthesise`", "SynthesisSolution": "`cd.synthesise`", "Trajectory": "`cd.simulate`",
    "Viewer": "`cd.view`", "Workspace": "`cd.workspace`", "State": "`Model.state` and `Model.states`",
}  # fmt: skip
"""Classes that users do not make themselves, and what makes them."""


def pages() -> dict[Path, str]:
    """The text of every page by its file: an index, and a page for each group of names."""
    missing = set(cardan.__all__) - set(" ".join(GROUPS.values()).split())
    if missing:
        raise SystemExit(f"public names without a place in the reference: {sorted(missing)}")
    made = "Made from the docstrings by `python docs/make_reference.py`; do not edit."
    found, index = {}, ["# Reference", "", f"Every public name; `import cardan as cd`. {made}", ""]
    for group, names in GROUPS.items():
        file = FOLDER / f"{re.sub(r'[^a-z]+', '_', group.lower())}.md"
        lines = [f"# {group}", "", made, ""]
        for name in names.split():
            lines += _entry(f"cd.{name}", getattr(cardan, name))
        found[file] = "\n".join(lines).rstrip() + "\n"
        index += [f"## {group}", "", *_listed(file, lines), ""]
    return {PAGE: "\n".join(index).rstrip() + "\n", **found}


def _listed(file: Path, lines: list[str]) -> list[str]:
    """A line with a link for each heading of a page, with the first sentence below it."""
    inside, listed = False, []
    for k, line in enumerate(lines):
        if line.startswith("### `"):
            name = line.removeprefix("### `").rstrip("`")
            anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", name.lower()).strip())
            told, inside = "", False
            for text in lines[k + 1 :]:
                inside = inside != text.startswith("```")
                if text and not inside and not text.startswith("```"):
                    told = text
                    break
            listed += [f"- [`{name}`]({FOLDER.name}/{file.name}#{anchor}): {told.partition('. ')[0].rstrip('.')}."]
    return listed


def _entry(name: str, thing: object) -> list[str]:
    if isinstance(thing, ModuleType) and hasattr(thing, "EQUATIONS"):
        inner = [line for n in ("Equation", "Source", "Quantity") for line in _class(f"{name}.{n}", getattr(thing, n))]
        equations = {e.name: e for e in thing.EQUATIONS.values()}
        return [
            *_doc(thing),
            "",
            *inner,
            *(line for e in equations.values() for line in _equation(f"{name}.{e.name}", e)),
        ]
    if isinstance(thing, ModuleType):
        public = {n: f for n, f in vars(thing).items() if not n.startswith("_")}
        classes = [(n, c) for n, c in public.items() if inspect.isclass(c) and c.__module__ == thing.__name__]
        if classes:  # a module of classes: its functions are the engine's
            return [*_doc(thing), "", *(line for n, c in classes for line in _class(f"{name}.{n}", c))]
        inner = [
            line
            for n, f in public.items()
            if inspect.isfunction(f) and f.__module__.startswith(thing.__name__)
            for line in _function(f"{name}.{n}", f)
        ]
        return [*_doc(thing), "", *inner]
    if inspect.isclass(thing):
        return _class(name, thing)
    return _function(name, thing)


def _class(name: str, thing: type) -> list[str]:
    """A class: how it is made, its arguments or attributes, then its methods and properties."""
    made = MADE_BY.get(name.removeprefix("cd."))
    constructor = [] if made or issubclass(thing, Exception) else _call(name, _signature(thing))
    lines = [f"### `{name}`", "", *constructor, *_doc(thing), ""]
    if issubclass(thing, Exception):
        return lines
    arguments = _sections(inspect.getdoc(thing.__init__) or "") if "__init__" in vars(thing) else []
    if made:
        lines += [f"Made by {made}.", "", *_attributes(thing), ""]
    elif any(line.startswith("- ") for line in arguments):
        lines += [*arguments, ""]
    elif dataclasses.is_dataclass(thing) and "Args:" not in (inspect.getdoc(thing) or ""):
        lines += [*_attributes(thing), ""]
    own = [base for base in thing.__mro__ if base.__module__.startswith("cardan.")]
    members = {name: value for base in reversed(own) for name, value in vars(base).items()}
    methods, properties = [], []
    for attribute, value in members.items():
        if attribute.startswith("_") or attribute in ("kind", "orientation"):
            continue
        function = getattr(value, "__func__", value)
        if inspect.isfunction(function):
            call = _call(f"{name.removeprefix('cd.')}.{attribute}", _signature(function, drop_self=True))
            methods += [f"#### `{name.removeprefix('cd.')}.{attribute}`", "", *call, *_doc(function), ""]
        elif isinstance(value, property) or hasattr(value, "func"):
            properties += [f"- `{attribute}`: {_first(getattr(value, 'fget', None) or value.func)}"]
    return [*lines, *(["Properties:", "", *properties, ""] if properties else []), *methods]


def _attributes(thing: type) -> list[str]:
    """The fields of a dataclass, with their types and what the source says below or beside them."""
    if not dataclasses.is_dataclass(thing):
        return []
    told = {name: words for base in reversed(thing.__mro__) for name, words in _told(base).items()}
    fields = [field for field in dataclasses.fields(thing) if not field.name.startswith("_")]
    rows = [f"- `{f.name}` ({_plain(f.type)}){': ' + told[f.name] if f.name in told else ''}" for f in fields]
    return ["Attributes:", "", *rows] if rows else []


def _told(thing: type) -> dict[str, str]:
    """What follows the fields of a class in its source: a string below, or a comment on the same line."""
    if not thing.__module__.startswith("cardan."):
        return {}
    source = textwrap.dedent(inspect.getsource(thing))
    lines, [tree] = source.splitlines(), ast.parse(source).body
    found = {}
    body = tree.body  # type: ignore[attr-defined]
    for node, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        _, _, comment = lines[node.end_lineno - 1].partition("  # ")  # type: ignore[operator]
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            found[node.target.id] = " ".join(after.value.value.split())
        elif comment and not comment.startswith(("type:", "noqa")):
            found[node.target.id] = comment.strip()
    return found


def _plain(type_: object) -> str:
    """A type in words that a reader knows."""
    text = str(type_).replace("NDArray[Any]", "array").replace("np.ndarray", "array").replace(" | None", ", or None")
    return re.sub(r"\bAny\b", "any", text)


def _equation(name: str, thing: Equation) -> list[str]:
    first, *legend = _doc(thing)
    formula = ["", f"$${thing.latex()}$$"] if thing.is_printed else []
    return [f"### `{name}{_signature(thing)}`", "", first, *formula, *legend, ""]


def _function(name: str, thing: object) -> list[str]:
    return [f"### `{name}`", "", *_call(name, _signature(thing)), *_doc(thing), ""]


def _call(name: str, signature: str) -> list[str]:
    """How it is called, as code, in lines of readable length."""
    lines = textwrap.wrap(f"{name}{signature}", 96, subsequent_indent="    ", break_long_words=False)
    return ["```text", *lines, "```", ""]


def _signature(thing: object, drop_self: bool = False) -> str:
    signature = inspect.signature(thing)  # type: ignore[arg-type]
    kept = [p for p in signature.parameters.values() if not (drop_self and p.name == "self")]
    parameters = [p.replace(annotation=p.empty) for p in kept]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


def _doc(thing: object) -> list[str]:
    return _sections(inspect.getdoc(thing) or "")


def _sections(text: str) -> list[str]:
    """A docstring as Markdown: the entries of `Args:`, `Returns:` and `Raises:` as a list."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.rstrip() in SECTIONS:
            inside = True
            lines += [*([""] if lines and lines[-1] else []), SECTIONS[line.rstrip()], ""]
        elif inside and line.startswith("    ") and not line.startswith("     "):
            entry, colon, words = line.strip().partition(": ")
            lines += [f"- `{entry}`: {words}" if colon and NAMED(entry) else f"- {line.strip()}"]
        elif inside and line.startswith("     "):
            lines[-1] += " " + line.strip()
        else:
            inside = inside and not line
            lines += [line]
    return lines


def _first(thing: object) -> str:
    return _doc(thing)[0]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, text in pages().items():
        file.write_text(text, encoding="utf-8")
