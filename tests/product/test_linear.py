"""Linear models as a user meets them: refusals in one sentence, commands, pages, python-control."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan import cli, mechanisms

pytestmark = pytest.mark.usefixtures("quick_code")

PENDULUM = mechanisms.double_pendulum().build()
LOOP = mechanisms.four_bar().build()
FLAT = mechanisms.parallelogram(angle=0.0, cranks=2).build()
SARRUS = mechanisms.sarrus().build()
SLIDER = mechanisms.slider_crank().build()
STRETCHED = np.array([0.0, 0.0, 0.7])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cd.linearise(mechanisms.pendulum()), "use build() first"),
        (lambda: cd.linearise(PENDULUM, [1.0, 2.0, 3.0]), "q must have the shape (..., 2)"),
        (lambda: cd.linearise(PENDULUM, [np.nan, 0.0]), "q[0] is nan"),
        (lambda: cd.linearise(PENDULUM, (np.zeros((3, 2)), np.zeros((4, 2)))), "batches do not fit"),
        (lambda: cd.linearise(PENDULUM, {"q": [0, 0], "speed": 1}), "'speed' is not part of a state"),
        (lambda: cd.linearise(PENDULUM, "home"), "no state 'home'"),
        (lambda: cd.linearise(PENDULUM, object()), "`at` must be q, (q, v)"),
        (lambda: cd.linearise(LOOP, [0.1, 0.2, 0.3], inputs=()), "leaves loops or constraints open by 0.363"),
        (lambda: cd.linearise(LOOP, (cd.assemble(LOOP)[0], np.ones(3)), inputs=()), "rates that break loops"),
        (lambda: cd.linearise(LOOP, inputs=["tau.C"]), "'C' is not known to 'tau'"),
        (lambda: cd.linearise(LOOP, inputs=["crank.mass"]), "free it with model.free('crank.mass')"),
        (lambda: cd.linearise(LOOP, inputs=["A", "tau.A"]), "name 'tau.A' twice"),
        (lambda: cd.linearise(LOOP, inputs=["parameters"]), "has no free parameters"),
        (lambda: cd.linearise(LOOP, outputs=["poition.crank"]), "did you mean 'position.crank'?"),
        (lambda: cd.linearise(LOOP, outputs={"x": lambda s: s.speed}), "failed on symbols: AttributeError"),
        (lambda: cd.linearise(LOOP, coordinates=["A", "B"]), "has 1 independent coordinate"),
        (lambda: cd.linearise(LOOP, form="full"), "form='full' is not one"),
        (lambda: cd.linearise(SLIDER, STRETCHED, coordinates=["guide"], inputs=()), "model 'slider_crank'; 'pin'"),
        (lambda: cd.modes(FLAT), "singular position: its constraints have rank 1 there and 2 elsewhere"),
        (lambda: cd.modes(SARRUS, cd.equilibrium(SARRUS)), "at a singular position: its constraints have rank 3"),
        (lambda: cd.modes(PENDULUM).derivatives(), "no free parameter"),
        (lambda: cd.modes(PENDULUM)[5], "a number from 0 to 1, got 5"),
        (lambda: cd.modes(PENDULUM.free("rod.mass")).derivatives(of=3), "of must be a list of numbers"),
        (lambda: cd.linearise(PENDULUM).select(inputs=0), "0 is not an input"),
        (lambda: cd.linearise(PENDULUM).bode(frequencies=[1.0, -2.0]), "positive numbers, Hz, got -2"),
        (lambda: cd.modes(PENDULUM, [np.pi, 0]).natural_frequencies, "an unstable equilibrium"),
        (lambda: cd.modes(PENDULUM, np.zeros((2, 2))).draw(), "a batch of shape (2,)"),
        (lambda: cd.linearise(PENDULUM).transfer(cd.modes(PENDULUM).eigenvalues[0]), "is an eigenvalue"),
        (lambda: cd.linearise(PENDULUM, form="descriptor").scipy(), "has no A, B, C, D of its own"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_sentence(call, words: str) -> None:
    with pytest.raises(cd.CardanError) as told:
        call()
    assert words in str(told.value)
    assert "\n" not in str(told.value)


def test_other_coordinates_are_chosen_at_a_dead_point() -> None:
    """Where the crank is stretched the guide does not determine it; the model's own choice is another."""
    assert cd.linearise(SLIDER, STRETCHED, inputs=()).states == ("q.pin", "v.pin")
    with pytest.warns(UserWarning, match="not in equilibrium or steady motion"):
        cd.modes(LOOP)


def test_a_mode_is_a_run_with_closed_loops() -> None:
    """Of a loop that its crank holds: a real mode is shown to and fro, and every sample is a state of the mechanism."""
    q, v = cd.assemble(LOOP)
    tau = cd.inverse_dynamics(LOOP, q, v, np.zeros(3), driven=["A"])
    run = cd.modes(LOOP, (q, v, tau)).run(0, amplitude=0.1, periods=1, samples=9)
    assert run.time[-1] == 1.0 and max(run.residuals.position.max(), run.residuals.velocity.max()) < 1e-12
    assert np.allclose(np.abs(run.q - q).max(), 0.1, rtol=0.1)
    assert np.allclose(run.q[2], q, atol=1e-12)
    two = cd.modes(PENDULUM, np.zeros((2, 2)))
    assert len(two) == 2 and [mode.frequency for mode in two[1]] == list(two.natural_frequencies[1])


def test_commands_print_modes_and_matrices(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> str:
        monkeypatch.setattr(sys, "argv", ["cardan", *args])
        with pytest.raises(SystemExit) as left:
            cli.main()
        assert not left.value.code
        return capsys.readouterr().out

    found = cd.modes(PENDULUM)
    told = json.loads(run("modes", "double_pendulum", "--json"))
    assert np.allclose([m["frequency"] for m in told["modes"]], found.natural_frequencies)
    told = json.loads(run("modes", "double_pendulum", "--start", "pivot=0.3", "--equilibrium", "--json"))
    assert np.allclose([m["frequency"] for m in told["modes"]], found.natural_frequencies)
    linear = cd.linearise(PENDULUM, inputs="pivot", outputs=["elbow"])
    told = json.loads(run("linearise", "double_pendulum", "--json", "-i", "pivot", "--output", "elbow"))
    assert np.array_equal(told["A"], linear.A) and np.array_equal(told["C"], linear.C)
    assert told["states"] == list(linear.states)


def test_python_control_has_the_same_response_and_names() -> None:
    control = pytest.importorskip("control")
    linear = cd.linearise(PENDULUM, inputs="tau", outputs=["q.elbow", "velocity.lower"])
    theirs = linear.control()
    assert theirs.input_labels == ["tau_pivot", "tau_elbow"]
    f = np.array([0.1, 3.0])
    H = control.frequency_response(theirs, 2 * np.pi * f).complex
    assert np.allclose(np.moveaxis(H, -1, 0), linear.response(f), rtol=1e-12)


def test_plots_show_the_response() -> None:
    linear = cd.linearise(PENDULUM, inputs="tau.pivot", outputs=["q.elbow"])
    f = np.array([0.1, 0.3, 2.0])
    H = linear.response(f)[:, 0, 0]
    top, bottom = linear.bode(f).axes
    assert np.allclose(top.lines[0].get_ydata(), 20 * np.log10(np.abs(H)))
    assert np.allclose(np.exp(1j * np.radians(bottom.lines[0].get_ydata())), H / np.abs(H))
    assert np.allclose(linear.nyquist(f).axes[0].lines[0].get_xdata(), H.real)
    found = cd.modes(PENDULUM, np.zeros((2, 2)))
    shown = found.root_locus([1.0, 2.0]).axes[0].collections[0].get_offsets()
    assert np.allclose(shown, np.stack([found.eigenvalues.real.ravel(), found.eigenvalues.imag.ravel()], axis=1))
