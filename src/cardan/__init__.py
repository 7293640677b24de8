"""Multibody dynamics for Python: one mechanism, every formulation, every machine.

Build a mechanism with `Mechanism`, or `load` a robot; then ask for its dynamics with arrays of any batch shape.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cardan import load_time  # noqa: F401, first: it takes the time
from cardan.algebra.plane import Particles, particles, rod_particles
from cardan.errors import (
    CardanError,
    DeviceError,
    DeviceMemoryError,
    EquilibriumError,
    FileError,
    InputError,
    InterruptedRunError,
    LoopError,
    ModelError,
    OutOfMemoryError,
    SimulationError,
    UnknownNameError,
)
from cardan.model import inertia
from cardan.model.body import JointData
from cardan.model.builder import Mechanism
from cardan.model.constraint import Constraint
from cardan.model.constraint_kind import ConstraintElement, ConstraintKind, ConstraintRow
from cardan.model.constraint_table import add_constraint
from cardan.model.control_law import PID, ControlLaw, Motor, StateFeedback, StateSpace
from cardan.model.curve import Curve, curve
from cardan.model.field import Field
from cardan.model.force import ForceKind, Reading, add_force
from cardan.model.html import VIEWS
from cardan.model.joint import (
    Curvilinear,
    Cylindrical,
    Free,
    InPlane,
    JointType,
    Kind,
    Planar,
    Prismatic,
    Revolute,
    Rigid,
    Screw,
    SingleMotion,
    Spherical,
    Universal,
    add_joint,
)
from cardan.model.model import Actuator, Model, State
from cardan.model.named_state import deg, rpm
from cardan.model.pose import Pose
from cardan.model.row import Law, RowLabel, RowTable

if TYPE_CHECKING:
    from cardan import mechanisms, textbook
    from cardan.analysis.identification.base_parameters import BaseParameters, base_parameters
    from cardan.analysis.identification.estimate import Identification, identify
    from cardan.analysis.identification.excitation import Excitation, excitation
    from cardan.analysis.identification.regressor import Regressor, regressor
    from cardan.analysis.kinematics.branches import Branch, Branches, SingularPosition, branches, positions
    from cardan.analysis.kinematics.inverse_kinematics import InverseKinematics, inverse_kinematics
    from cardan.analysis.kinematics.manipulability import Manipulability, manipulability, transmission_angle
    from cardan.analysis.kinematics.targets import Target
    from cardan.analysis.kinematics.workspace import Workspace, workspace
    from cardan.analysis.linear.linear_model import LinearModel
    from cardan.analysis.linear.linearise import linearise
    from cardan.analysis.linear.modes import Mode, Modes, modes
    from cardan.analysis.statics.continuation import EquilibriumPath, equilibrium_path
    from cardan.analysis.statics.equilibrium import Equilibrium, equilibrium
    from cardan.analysis.sweep.family import KinetostaticSweep, LinkageFamily, SweepSamples
    from cardan.analysis.sweep.search import LinkageSearch, RefinedLinkages, refine_linkages, search_linkages
    from cardan.analysis.synthesis.counterbalance import (
        Balance,
        Counterweight,
        balance,
        shaking_wrench,
        steady_motion,
    )
    from cardan.analysis.synthesis.synthesise import Synthesis, SynthesisSolution, synthesise
    from cardan.formulation.formulation import Formulation
    from cardan.formulation.instant import Instant
    from cardan.formulation.registry import add_formulation
    from cardan.formulation.tree import TreeFormulation
    from cardan.functions.along_constraints import independent_coordinates
    from cardan.functions.casadi_function import casadi_function
    from cardan.functions.check import check
    from cardan.functions.compiled import CompiledFunction, compile
    from cardan.functions.constraints import (
        Actuation,
        actuation,
        constraint_jacobian,
        constraint_residual,
        multipliers,
        reactions,
        undetermined_reactions,
    )
    from cardan.functions.derivative_products import jvp, vjp, weighted_hessian
    from cardan.functions.derivatives import Derivatives
    from cardan.functions.dynamics import (
        bias_force,
        coriolis_matrix,
        forward_dynamics,
        gravity_force,
        inverse_dynamics,
        inverse_mass_matrix,
        joint_wrenches,
        mass_matrix,
        plus,
        rates,
    )
    from cardan.functions.energy import (
        center_of_mass,
        centroidal_momentum,
        kinetic_energy,
        momentum,
        potential_energy,
        power,
        subtree_kinetic_energy,
        subtree_momentum,
    )
    from cardan.functions.equations import equations
    from cardan.functions.javascript import javascript
    from cardan.functions.jax_function import jax_function
    from cardan.functions.kinematics import (
        body_accelerations,
        body_poses,
        body_twists,
        frame_pose,
        jacobian,
        joint_axes,
    )
    from cardan.functions.state_convention import state_from, state_to
    from cardan.functions.torch_function import torch_function
    from cardan.integrate.changes import Change, Machine, lock, release
    from cardan.integrate.events import Event
    from cardan.integrate.integrators import (
        BDF,
        RK4,
        Adams,
        Alpha,
        DormandPrince,
        Gear,
        Integrator,
        Moreau,
        RungeKutta,
        SemiImplicitEuler,
        add_method,
    )
    from cardan.io.load import load, load_mechanism, save
    from cardan.io.table_file import table, table2
    from cardan.machines.cuda.device_array import DeviceArray, to_device
    from cardan.machines.ufunc.threads import get_threads, set_threads
    from cardan.model import shape
    from cardan.model.particles import Particle, ParticleSystem
    from cardan.model.spatial_particles import SpatialParticles, four_particles, particles_in_space
    from cardan.model.table import Table
    from cardan.readable.symbols import Symbols
    from cardan.results.comparison import Comparison, Difference, compare
    from cardan.results.drawing.draw import draw
    from cardan.results.jax_simulate import jax_simulate
    from cardan.results.motion_derivatives import Sensitivity
    from cardan.results.page.page import page
    from cardan.results.page.viewer import Viewer, view
    from cardan.results.simulate import simulate
    from cardan.results.torch_simulate import torch_simulate
    from cardan.results.trajectory.files import load_run
    from cardan.results.trajectory.store import Store
    from cardan.results.trajectory.trajectory import EventRecord, Trajectory
    from cardan.structure.assemble import assemble
    from cardan.structure.condition import condition
    from cardan.structure.planarity import in_plane, is_planar
    from cardan.structure.redundancy import Redundancy, redundancy
    from cardan.studies.design import Design, design
    from cardan.studies.distribution import Distribution, lognormal, normal, triangular, uniform
    from cardan.studies.indices import StudyIndices
    from cardan.studies.measure import Measure, final, largest, mean, peak, rms, smallest
    from cardan.studies.run import Run
    from cardan.studies.store import load_study
    from cardan.studies.study import Study
    from cardan.studies.sweep import sweep

__version__ = "0.1.0"

# Where the names live that pull in heavier parts: imported when first used.
_LAZY = {
    name: module
    for module, names in {
        "analysis.linear.linear_model": "LinearModel",
        "analysis.linear.linearise": "linearise",
        "analysis.linear.modes": "Mode Modes modes",
        "analysis.statics.continuation": "EquilibriumPath equilibrium_path",
        "analysis.statics.equilibrium": "Equilibrium equilibrium",
        "analysis.kinematics.branches": "Branch Branches SingularPosition branches positions",
        "analysis.identification.base_parameters": "BaseParameters base_parameters",
        "analysis.identification.estimate": "Identification identify",
        "analysis.identification.excitation": "Excitation excitation",
        "analysis.identification.regressor": "Regressor regressor",
        "analysis.kinematics.inverse_kinematics": "InverseKinematics inverse_kinematics",
        "analysis.kinematics.manipulability": "Manipulability manipulability transmission_angle",
        "analysis.sweep.family": "KinetostaticSweep LinkageFamily SweepSamples",
        "analysis.sweep.search": "LinkageSearch RefinedLinkages refine_linkages search_linkages",
        "analysis.synthesis.counterbalance": "Balance Counterweight balance shaking_wrench steady_motion",
        "analysis.synthesis.synthesise": "Synthesis SynthesisSolution synthesise",
        "analysis.kinematics.targets": "Target",
        "analysis.kinematics.workspace": "Workspace workspace",
        "formulation.formulation": "Formulation",
        "formulation.instant": "Instant",
        "formulation.registry": "add_formulation",
        "formulation.tree": "TreeFormulation",
        "functions.along_constraints": "independent_coordinates",
        "functions.casadi_function": "casadi_function",
        "functions.check": "check",
        "functions.compiled": "CompiledFunction compile",
        "functions.constraints": "Actuation actuation constraint_jacobian constraint_residual multipliers reactions "
        "undetermined_reactions",
        "functions.derivative_products": "jvp vjp weighted_hessian",
        "functions.derivatives": "Derivatives",
        "functions.dynamics": "bias_force coriolis_matrix forward_dynamics gravity_force inverse_dynamics "
        "inverse_mass_matrix joint_wrenches mass_matrix plus rates",
        "functions.energy": "center_of_mass centroidal_momentum kinetic_energy momentum potential_energy power "
        "subtree_kinetic_energy subtree_momentum",
        "functions.equations": "equations",
        "functions.javascript": "javascript",
        "functions.jax_function": "jax_function",
        "functions.kinematics": "body_accelerations body_poses body_twists frame_pose jacobian joint_axes",
        "functions.state_convention": "state_from state_to",
        "functions.torch_function": "torch_function",
        "textbook": "textbook",
        "integrate.changes": "Change Machine lock release",
        "integrate.events": "Event",
        "integrate.integrators": "Adams Alpha BDF DormandPrince Gear Integrator Moreau RK4 RungeKutta "
        "SemiImplicitEuler add_method",
        "io.load": "load load_mechanism save",
        "io.table_file": "table table2",
        "machines.cuda.device_array": "DeviceArray to_device",
        "machines.ufunc.threads": "get_threads set_threads",
        "mechanisms": "mechanisms",
        "model.particles": "Particle ParticleSystem",
        "model.shape": "shape",
        "model.table": "Table",
        "model.spatial_particles": "SpatialParticles four_particles particles_in_space",
        "readable.symbols": "Symbols",
        "results.comparison": "Comparison Difference compare",
        "results.drawing.draw": "draw",
        "results.jax_simulate": "jax_simulate",
        "results.motion_derivatives": "Sensitivity",
        "results.page.page": "page",
        "results.page.viewer": "Viewer view",
        "results.simulate": "simulate",
        "results.torch_simulate": "torch_simulate",
        "results.trajectory.files": "load_run",
        "results.trajectory.store": "Store",
        "results.trajectory.trajectory": "EventRecord Trajectory",
        "structure.assemble": "assemble",
        "structure.condition": "condition",
        "structure.planarity": "in_plane is_planar",
        "structure.redundancy": "Redundancy redundancy",
        "studies.design": "Design design",
        "studies.distribution": "Distribution lognormal normal triangular uniform",
        "studies.indices": "StudyIndices",
        "studies.measure": "Measure final largest mean peak rms smallest",
        "studies.run": "Run",
        "studies.store": "load_study",
        "studies.study": "Study",
        "studies.sweep": "sweep",
    }.items()
    for name in names.split()
}  # fmt: skip

__all__ = [
    "BDF", "PID", "RK4", "Actuation", "Actuator", "Adams", "Alpha", "Balance", "BaseParameters", "Branch", "Branches",
    "CardanError", "Change", "Comparison", "CompiledFunction", "Constraint", "ConstraintElement", "ConstraintKind",
    "ConstraintRow", "ControlLaw", "Counterweight", "Curve", "Curvilinear", "Cylindrical", "Derivatives", "Design",
    "DeviceArray", "DeviceError", "DeviceMemoryError", "Difference", "Distribution", "DormandPrince", "Equilibrium",
    "EquilibriumError", "EquilibriumPath", "Event", "EventRecord", "Excitation", "Field", "FileError", "ForceKind",
    "Formulation", "Free", "Gear", "Identification", "InPlane", "InputError", "Instant", "Integrator",
    "InterruptedRunError", "InverseKinematics", "JointData", "JointType", "Kind", "KinetostaticSweep", "Law",
    "LinearModel", "LinkageFamily", "LinkageSearch", "LoopError", "Machine", "Manipulability", "Measure", "Mechanism",
    "Mode", "Model", "ModelError", "Modes", "Moreau", "Motor", "OutOfMemoryError", "Particle", "ParticleSystem",
    "Particles", "Planar", "Pose", "Prismatic", "Reading", "Redundancy", "RefinedLinkages", "Regressor", "Revolute",
    "Rigid", "RowLabel", "RowTable", "Run", "RungeKutta", "Screw", "SemiImplicitEuler", "Sensitivity",
    "SimulationError", "SingleMotion", "SingularPosition", "SpatialParticles", "Spherical", "State", "StateFeedback",
    "StateSpace", "Store", "Study", "StudyIndices", "SweepSamples", "Symbols", "Synthesis", "SynthesisSolution",
    "Table", "Target", "Trajectory", "TreeFormulation", "Universal", "UnknownNameError", "Viewer", "Workspace",
    "actuation", "add_constraint", "add_force", "add_formulation", "add_joint", "add_method", "assemble", "balance",
    "base_parameters", "bias_force", "body_accelerations", "body_poses", "body_twists", "branches", "casadi_function",
    "center_of_mass", "centroidal_momentum", "check", "compare", "compile", "condition", "constraint_jacobian",
    "constraint_residual", "coriolis_matrix", "curve", "deg", "design", "draw", "equations", "equilibrium",
    "equilibrium_path", "excitation", "final", "forward_dynamics", "four_particles", "frame_pose", "get_threads",
    "gravity_force", "identify", "in_plane", "independent_coordinates", "inertia", "inverse_dynamics",
    "inverse_kinematics", "inverse_mass_matrix", "is_planar", "jacobian", "javascript", "jax_function", "jax_simulate",
    "joint_axes", "joint_wrenches", "jvp", "kinetic_energy", "largest", "linearise", "load", "load_mechanism",
    "load_run", "load_study", "lock", "lognormal", "manipulability", "mass_matrix", "mean", "mechanisms", "modes",
    "momentum", "multipliers", "normal", "page", "particles", "particles_in_space", "peak", "plus", "positions",
    "potential_energy", "power", "rates", "reactions", "redundancy", "refine_linkages", "regressor", "release", "rms",
    "rod_particles", "rpm", "save", "search_linkages", "set_threads", "shaking_wrench", "shape", "simulate", "smallest",
    "state_from", "state_to", "steady_motion", "subtree_kinetic_energy", "subtree_momentum", "sweep", "synthesise",
    "table", "table2", "textbook", "to_device", "torch_function", "torch_simulate", "transmission_angle", "triangular",
    "undetermined_reactions", "uniform", "view", "vjp", "weighted_hessian", "workspace",
]  # fmt: skip

# Public names that were removed, and what they are called now.
REMOVED = {"Moment": "Instant", "monte_carlo": "sweep", "sobol_indices": "sweep"}


def __getattr__(name: str) -> Any:
    if name in REMOVED:
        raise AttributeError(f"cd.{name} is now called cd.{REMOVED[name]}")
    if name not in _LAZY:
        raise _no_attribute(name)
    module = import_module(f"cardan.{_LAZY[name]}")
    value = globals()[name] = module if name in ("mechanisms", "shape", "textbook") else getattr(module, name)
    return value


def _no_attribute(name: str) -> AttributeError:
    """The error for a name that there is not: where to find it, or what it is called here."""
    from cardan.errors import no_attribute

    # what functions are called in other programs
    elsewhere = {
        "aba": "cd.forward_dynamics", "rnea": "cd.inverse_dynamics", "crba": "cd.mass_matrix",
        "forward_kinematics": "cd.body_poses or cd.frame_pose", "fk": "cd.body_poses or cd.frame_pose",
        "ik": "cd.inverse_kinematics", "load_urdf": "cd.load", "load_mjcf": "cd.load", "from_urdf": "cd.load",
        "read": "cd.load", "Body": "mechanism.body(...)", "Joint": "mechanism.joint(...)", "System": "cd.Mechanism",
        "Robot": "cd.load", "linearize": "cd.linearise", "Spring": "mechanism.spring(...)", "Fixed": "cd.Rigid",
        "Weld": "cd.Rigid", "Slider": "cd.Prismatic", "Hinge": "cd.Revolute", "Ball": "cd.Spherical",
        "ground": "mechanism.ground",
    }  # fmt: skip
    if not name.startswith("_"):
        from cardan.mechanisms import CATALOGUE

        elsewhere |= {kind: f"cd.mechanisms.{kind}()" for kind in CATALOGUE}
    return no_attribute("module 'cardan'", name, __all__, elsewhere)


# `model.draw()` and the picture in a notebook: drawn by the results, which the model may not import.
VIEWS["draw"] = lambda *arguments, **options: __getattr__("draw")(*arguments, **options)
VIEWS["particles"] = lambda model: import_module("cardan.functions.particles").particle_system(model)
VIEWS["redundancy"] = lambda model: __getattr__("redundancy")(model)
VIEWS["state"] = lambda *arguments: import_module("cardan.structure.assemble").state_by_name(*arguments)
VIEWS["page"] = lambda *arguments, **options: __getattr__("page")(*arguments, **options)
VIEWS["inline"] = lambda thing: import_module("cardan.results.page.inline").inline_view(thing)
VIEWS["thumbnail"] = lambda model: import_module("cardan.results.drawing.draw").thumbnail(model)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
