"""`cardan identify`: masses, inertias, stiffness, damping and friction of a model from measurements."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cardan.commands.arguments import Changes, File, Force, Formulation, Json, Root, read_model
from cardan.commands.output import plain_table, require_writable, say_error, screen

if TYPE_CHECKING:
    from cardan.analysis.identification.estimate import Identification


def identify(
    file: File,
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA.csv", show_default=False,
                       help="Samples: columns q.JOINT, v.JOINT, a.JOINT, tau.JOINT of driven joints, time; SI units."),
    ],
    parameter: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", show_default=False,
                     help="Body or element whose numbers are looked for; repeatable. All by default."),
    ] = None,
    fit: Annotated[str, typer.Option(metavar="WORD", help="What has noise: torque or motion.")] = "torque",
    noise: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", show_default=False, help="Standard deviation of it; estimated by default."),
    ] = None,
    prior: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", show_default=False,
                     help="Relative uncertainty of the model's own numbers, such as 0.3."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", show_default=False,
                     help="Write the identified model: a .yaml, .urdf or .xml file."),
    ] = None,
    formulation: Formulation = "spatial",
    force: Force = False,
    changes: Changes = None,
    root: Root = "fixed",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Identify the parameters of a model from measured motions and forces, with confidence intervals.

    Example: [bold]cardan identify slider_crank data.csv --out identified.yaml[/bold]
    """
    if out is not None:
        require_writable(out, force)
    model = read_model(file, root, changes)
    import cardan as cd
    from cardan.analysis.identification.measurements import read_measurements

    samples = read_measurements(model, data)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = cd.identify(
            model, samples.q, samples.v, samples.a, samples.tau, driven=samples.driven, parameters=parameter, fit=fit,
            noise=noise, prior=prior, formulation=formulation,
        )  # fmt: skip
    for warning in told:
        say_error(str(warning.message))
    if out is not None:
        cd.save(found.model, out, overwrite=force)
    if as_json:
        print(json.dumps(facts_of(found) | {"files": [str(out)] if out else []}, indent=1))
        return
    console, nominal = screen(), found.base.of(found.nominal)
    rows = [
        (f"{found.base_values[k]:.5g}", f"{1.96 * found.base_std[k]:.2g}", f"{nominal[k]:.5g}",
         found.units[found.base.columns[k]], name)
        for k, name in enumerate(found.base.names)
    ]  # fmt: skip
    console.print(plain_table(("estimate", "+- 95 %", "nominal", "unit", "base parameter"), rows, right=(0, 1, 2)))
    left = ", ".join(f"{name} {r:.3g}" for name, r in zip(found.rows, found.residual, strict=True))
    for sentence in (f"left over {found.samples} samples: {left}", *found.told):
        console.print(sentence, markup=False, soft_wrap=True)
    if out is not None:
        console.print(f"model  {out}", markup=False, soft_wrap=True)


def facts_of(found: Identification) -> dict[str, Any]:
    """An identification as plain data, in SI units."""
    base = [
        {"name": name, "estimate": float(x), "std": float(s), "unit": found.units[k]}
        for name, x, s, k in zip(
            found.base.names, found.base_values, found.base_std, found.base.columns, strict=True
        )
    ]  # fmt: skip
    return {
        "model": found.model.name,
        "base": base,
        "parameters": {name: float(x) for name, x in zip(found.names, found.theta, strict=True)},
        "residual": {name: float(x) for name, x in zip(found.rows, found.residual, strict=True)},
        "samples": found.samples,
        "physical": found.physical,
        "told": list(found.told),
    }
