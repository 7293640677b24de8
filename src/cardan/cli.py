"""The command line: `cardan COMMAND`, with a module of `cardan.commands` for each.

Exit status: 0 success, 1 a check, simulation or search failed, 2 wrong input, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from cardan.commands.bench import bench
from cardan.commands.convert import convert
from cardan.commands.describe import check, info, mechanisms
from cardan.commands.equations import equations
from cardan.commands.equilibrium import equilibrium
from cardan.commands.identify import identify
from cardan.commands.kinematics import branches, ik, workspace
from cardan.commands.linear import linearise, modes
from cardan.commands.output import say_error, warnings_as_sentences
from cardan.commands.plot import plot
from cardan.commands.simulate import simulate
from cardan.commands.sweep import sweep_app
from cardan.commands.synthesis import balance, synthesise
from cardan.commands.textbook import textbook
from cardan.commands.view import view
from cardan.errors import CardanError, EquilibriumError, SimulationError

app = typer.Typer(
    name="cardan",
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},
    help="Multibody dynamics: one mechanism, every formulation.",
)


def main() -> None:
    """Run the command line; errors and warnings of Cardan are printed as one sentence, errors with exit status 2."""
    try:
        try:
            with warnings_as_sentences():
                app(prog_name="cardan")
        finally:
            if sys.stdout is not None:  # None if the shell has closed it
                sys.stdout.flush()
    except CardanError as error:
        say_error(str(error))
        sys.exit(1 if isinstance(error, SimulationError | EquilibriumError) else 2)
    except MemoryError:
        say_error("not enough memory; reduce the number of states or samples")
        sys.exit(1)
    except OSError as error:  # a full disk, or the reader of a pipe has gone, to whom nothing can be reported
        if not isinstance(error, BrokenPipeError):
            say_error(f"{error.filename or 'the output'}: {error.strerror or error}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _show_version(wanted: bool) -> None:
    if wanted:
        import cardan

        print(f"cardan {cardan.__version__}")
        raise typer.Exit


@app.callback()
def _cardan(
    version: Annotated[
        bool,
        typer.Option("--version", metavar="", is_eager=True, callback=_show_version, help="Show the version and exit."),
    ] = False,
) -> None:
    pass


def demo() -> None:
    """Solve the two-body problem three ways, load a robot, and show agreement and speed.

    Example: [bold]cardan demo[/bold]
    """
    from cardan.demonstration import show

    show()


for _command in (
    demo, info, check, simulate, equilibrium, modes, linearise, ik, branches, workspace, identify, synthesise,
    balance, view, plot, equations, textbook, convert, mechanisms, bench,
):  # fmt: skip
    app.command()(_command)
app.add_typer(sweep_app)


if __name__ == "__main__":
    main()
