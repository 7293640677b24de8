"""Write docs/reference.md from the docstrings of the public names: `python docs/make_reference.py`."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType

import cardan
from cardan.textbook import Equation

PAGE = Path(__file__).with_name("reference.md")
GROUPS = {
    "Building a mechanism": "Mechanism Model Pose JointData State Actuator inertia load load_mechanism save",
    "Joints": "Rigid Revolute Prismatic Screw Universal Cylindrical Spherical Planar Free",
    "Joints and forces of your own": "Kind JointType SingleMotion InPlane add_joint ForceKind Field add_force",
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
    "steady_motion shaking_wrench monte_carlo MonteCarlo sobol_indices SobolIndices",
    "Families of linkages": "LinkageFamily KinetostaticSweep SweepSamples search_linkages LinkageSearch "
    "refine_linkages RefinedLinkages",
    "Energy and momentum": "kinetic_energy potential_energy power momentum centroidal_momentum center_of_mass "
    "subtree_kinetic_energy subtree_momentum",
    "Runs": "simulate Event Instant Trajectory draw page view Viewer load_run Store EventRecord",
    "Equilibrium": "equilibrium Equilibrium equilibrium_path EquilibriumPath",
    "Identification": "regressor Regressor base_parameters BaseParameters excitation Excitation identify "
    "Identification",
    "Integrators": "DormandPrince RK4 SemiImplicitEuler Gear Alpha BDF Adams RungeKutta Integrator add_method",
    "The catalogue": "mechanisms",
    "Formulas of the textbook": "textbook",
    "Threads": "get_threads set_threads",
    "Arrays on a GPU": "to_device DeviceArray",
    "Errors": "CardanError InputError ModelError FileError LoopError UnknownNameError SimulationError "
    "InterruptedRunError EquilibriumError DeviceError DeviceMemoryError",
}


def page() -> str:
    """The whole page."""
    missing = set(cardan.__all__) - set(" ".join(GROUPS.values()).split())
    if missing:
        raise SystemExit(f"public names without a place in the reference: {sorted(missing)}")
    lines = ["# Reference", "", "Made from the docstrings by `python docs/make_reference.py`; do not edit.", ""]
    for group, names in GROUPS.items():
        lines += [f"## {group}", ""]
        for name in names.split():
            lines += _entry(f"cd.{name}", getattr(cardan, name))
    return "\n".join(lines).rstrip() + "\n"


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
        public = [
            (n, f) for n, f in vars(thing).items() if inspect.isfunction(f) and f.__module__.startswith(thing.__name__)
        ]
        inner = [line for n, f in public if not n.startswith("_") for line in _function(f"{name}.{n}", f)]
        return [*_doc(thing), "", *inner]
    if inspect.isclass(thing):
        return _class(name, thing)
    return _function(name, thing)


def _class(name: str, thing: type) -> list[str]:
    lines = [f"### `{name}`", "", *_doc(thing), ""]
    if issubclass(thing, Exception):
        return lines
    own = [base for base in thing.__mro__ if base.__module__.startswith("cardan.")]
    members = {name: value for base in reversed(own) for name, value in vars(base).items()}
    for attribute, value in members.items():
        if attribute.startswith("_") or attribute in ("kind", "orientation"):
            continue
        if inspect.isfunction(value):
            lines += [f"- `{attribute}{_signature(value, drop_self=True)}`: {_first(value)}"]
        elif isinstance(value, property) or hasattr(value, "func"):
            lines += [f"- `{attribute}`: {_first(getattr(value, 'fget', None) or value.func)}"]
    return [*lines, ""]


def _equation(name: str, thing: Equation) -> list[str]:
    first, *legend = _doc(thing)
    formula = ["", f"$${thing.latex()}$$"] if thing.is_printed else []
    return [f"### `{name}{_signature(thing)}`", "", first, *formula, *legend, ""]


def _function(name: str, thing: object) -> list[str]:
    return [f"### `{name}{_signature(thing)}`", "", *_doc(thing), ""]


def _signature(thing: object, drop_self: bool = False) -> str:
    signature = inspect.signature(thing)  # type: ignore[arg-type]
    kept = [p for p in signature.parameters.values() if not (drop_self and p.name == "self")]
    parameters = [p.replace(annotation=p.empty) for p in kept]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


def _doc(thing: object) -> list[str]:
    return (inspect.getdoc(thing) or "").splitlines()


def _first(thing: object) -> str:
    return _doc(thing)[0]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
