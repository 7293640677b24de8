"""Pictures show what the run and the model say, with units, and files of them are whole or not there."""

import sys
import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import cardan as cd
from cardan.functions.check import CheckRow, Report
from cardan.mechanisms import CATALOGUE, four_bar, pendulum, stewart_platform
from cardan.model.html import html_table
from cardan.results.drawing.canvas import hull
from cardan.results.drawing.diagram import add_bodies, add_joints, begin
from cardan.results.energy_balance import work
from cardan.results.figure import image
from cardan.results.geometry import geometry_of
from cardan.results.plots import SMALLEST
from cardan.results.progress import progress_bar
from cardan.results.rounding import size_of, without_rounding, wrenches_without_rounding

from ..user_kinds import WIRE, bead

pytestmark = pytest.mark.usefixtures("quick_code")


@pytest.fixture(scope="module")
def run() -> cd.Trajectory:
    """A closed loop that starts at rest, with events that are only recorded."""
    event = cd.Event("turns", lambda s: s.rate("A"), action="record")
    return cd.simulate(four_bar().build(), 1.5, samples=61, events=[event])


@pytest.fixture(scope="module")
def batch() -> cd.Trajectory:
    """Many carts with poles, friction on the rail."""
    m = CATALOGUE["cart_pole"]()
    m.friction("rub", "rail", viscous=0.5)
    q0 = np.random.default_rng(0).normal([0.0, 0.5], 0.1, (40, 2))
    return cd.simulate(m.build(), 1.0, q0, samples=41)


def labels(figure: Figure) -> list[str]:
    return [" ".join(at.get_ylabel().split()) for at in figure.axes]


def line(figure: Figure, panel: int, number: int = 0) -> Any:
    return figure.axes[panel].lines[number]


def test_default_panels_have_units_and_the_runs_numbers(run: cd.Trajectory) -> None:
    pyplot_before = "matplotlib.pyplot" in sys.modules
    figure = run.plot(reactions="B")
    assert isinstance(figure, Figure)
    assert ("matplotlib.pyplot" in sys.modules) == pyplot_before
    wanted = ["coordinate (rad)", "rate (rad/s)", "energy (J)", "largest residual", "force of B joint axes (N)"]
    assert labels(figure) == wanted
    assert figure.axes[-1].get_xlabel() == "time (s)"
    for k in range(3):
        assert np.array_equal(line(figure, 0, k).get_xdata(), run.time)
        assert np.array_equal(line(figure, 0, k).get_ydata(), run.q[:, k])
        assert np.array_equal(line(figure, 1, k).get_ydata(), run.v[:, k])
    assert np.array_equal(line(figure, 2, 2).get_ydata(), run.energy)
    assert np.array_equal(line(figure, 4, 0).get_ydata(), run.reaction("B")[:, 3])
    legend = figure.axes[0].get_legend()
    assert legend is not None and [text.get_text() for text in legend.get_texts()] == ["A", "B", "D"]


def test_panels_by_name_in_degrees(run: cd.Trajectory) -> None:
    figure = run.plot("rates", "coordinates", "accelerations", joints=["D"], angle="deg")
    assert labels(figure) == ["rate of D (deg/s)", "coordinate of D (deg)", "acceleration of D (deg/s²)"]
    assert np.array_equal(line(figure, 1).get_ydata(), np.degrees(run.coordinate("D")))
    assert all(at.get_legend() is None for at in figure.axes)  # the only line is named beside it


def test_a_tree_has_no_residuals_and_units_have_their_own_panels(batch: cd.Trajectory) -> None:
    wanted = ["coordinate of rail (m)", "coordinate of hinge (rad)", "rate of rail (m/s)", "rate of hinge (rad/s)"]
    assert labels(batch[0].plot()) == [*wanted, "energy (J)"]
    momentum = ["angular momentum (N m s)", "linear momentum (N s)"]
    assert labels(batch[0].plot("momentum", "power")) == [*momentum, "power (W)"]


def test_reactions_leave_out_what_is_zero(run: cd.Trajectory) -> None:
    assert labels(run.plot("reactions")) == ["reaction force (N)"]  # hinges in a plane bear no moment
    sizes = np.linalg.norm(run.reactions[..., 3:], axis=-1)
    assert np.array_equal(line(run.plot("reactions"), 0, 3).get_ydata(), sizes[:, 3])
    (at,) = run.plot("reactions", reactions=["C"]).axes
    assert [text.get_text() for text in at.get_legend().get_texts()] == ["x", "y"]


def test_events_are_marked(run: cd.Trajectory) -> None:
    figure = run.plot("energy")
    marks = [mark.get_xdata()[0] for mark in figure.axes[0].lines if mark.get_gid() == "event"]
    assert marks == [event.time for event in run.events] and marks
    assert "turns" in [text.get_text() for text in figure.axes[0].texts]


def test_where_friction_sticks_is_shaded() -> None:
    """Of a block on a spring whose end moves: it sticks until the spring pulls with the friction at rest."""
    m = cd.Mechanism("stick_slip")
    m.body("block", mass=1.0, inertia=(1, 1, 1))
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), "ground", "block")
    m.drive("spring", "x", lambda t, q, v: 4.0 * (0.3 * t - q[0]))
    m.friction("floor", "x", coulomb=1.2, static=2.0, stick=True)
    run = cd.simulate(m.build(), 8.0, samples=81)
    sliding = np.pi - np.arctan2(0.2 * 2, 0.3)
    sticks = [0.0, 2.0 / 4 / 0.3, 2.0 / 4 / 0.3 + sliding, 2.0 / 4 / 0.3 + sliding + 2 * 0.2 / 0.3]
    figure = run.plot("x.coordinate", "floor.force")
    plain, forces = figure.axes
    shaded = [patch for patch in forces.patches if patch.get_gid() == "held"]
    edges = [x for patch in shaded[:2] for x in (patch.get_x(), patch.get_x() + patch.get_width())]
    np.testing.assert_allclose(edges, sticks, atol=1e-6)
    assert not [patch for patch in plain.patches if patch.get_gid() == "held"]
    words = [text.get_text() for at in figure.axes for text in at.texts]
    assert "shaded: sticks" in words and "floor slides" in words and "floor sticks" in words


def test_batches_are_lines_or_a_band(batch: cd.Trajectory) -> None:
    few = batch[:4].plot("coordinates", joints="hinge").axes[0]
    assert [tuple(one.get_ydata()) for one in few.lines] == [tuple(q) for q in batch.q[:4, :, 1]]
    many = batch.plot("coordinates", joints="hinge").axes[0]
    assert len(many.lines) == 1
    assert np.array_equal(many.lines[0].get_ydata(), np.percentile(batch.q[..., 1], 50, axis=0))
    corners = many.collections[0].get_paths()[0].vertices
    assert corners[:, 1].max() == np.percentile(batch.q[..., 1], 95, axis=0).max()
    assert "40 systems" in many.get_title(loc="right")


def test_systems_that_end_early_count_while_they_run(batch: cd.Trajectory) -> None:
    q, v = np.array(batch.q), np.array(batch.v)
    time = np.tile(batch.time, (40, 1))
    q[:39, 20:], v[:39, 20:], time[:39, 20:] = np.nan, np.nan, np.nan
    shown = cd.Trajectory(batch.model, time, q, v).plot("coordinates", joints="rail").axes[0].lines[0].get_ydata()
    assert np.array_equal(shown[:20], np.median(q[:, :20, 0], axis=0))
    assert np.array_equal(shown[20:], q[39, 20:, 0])


def test_batches_of_loops_closed_exactly_at_times(run: cd.Trajectory) -> None:
    """Residuals are zero at the start, and at many samples: nothing to show there, and no warning of it."""
    q, v = (np.broadcast_to(x, (12, *x.shape)) for x in (run.q, run.v))
    many = cd.Trajectory(run.model, run.time, q, v)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figures = many[:3].plot("residuals"), many.plot("residuals")
        assert all(image(figure, "svg") for figure in figures)
    shown = figures[1].axes[0].lines[1].get_ydata()
    true = run.residuals.velocity
    assert np.isnan(shown[true == 0]).all() and np.allclose(shown[true > 0], true[true > 0], rtol=1e-12)


def test_phase(run: cd.Trajectory) -> None:
    figure = run.plot_phase("D")
    (at,) = figure.axes
    assert (at.get_xlabel(), at.get_ylabel()) == ("D (rad)", "rate of D (rad/s)")
    assert np.array_equal(at.lines[0].get_xdata(), run.coordinate("D"))
    assert np.array_equal(at.lines[0].get_ydata(), run.rate("D"))
    assert len(run.plot_phase().axes) == 3


def test_phase_of_a_quaternion_is_refused() -> None:
    m = cd.Mechanism("top")
    m.body("top", mass=1.0, inertia=(1, 1, 1))
    m.joint("ball", cd.Spherical(), m.ground, "top")
    still = cd.Trajectory(m.build(), [0.0], [[1.0, 0, 0, 0]], [[0.0, 0, 0]])
    with pytest.raises(cd.InputError, match="quaternion"):
        still.plot_phase("ball")
    assert labels(still.plot("coordinates")) == ["coordinate (quaternion)"]


def test_power_does_the_work(batch: cd.Trajectory) -> None:
    change = batch.energy - batch.energy[:, :1]
    assert np.abs(change).max() > 1e-3
    assert np.abs(work(batch) - change).max() < 1e-4 * np.abs(change).max()
    figure = batch[0].plot_power()
    assert labels(figure) == ["power (W)", "energy (J)", "difference (J)"]
    assert np.array_equal(line(figure, 1, 0).get_ydata(), change[0])
    assert np.allclose(line(figure, 2).get_ydata(), (change - work(batch))[0], atol=1e-15)


def test_work_is_not_smoothed_over_a_jump() -> None:
    """A drive's power that jumps between two samples at the same time is integrated on both sides."""
    m = pendulum()
    m.drive("motor", m.joints[0].name, 2.0)
    t, v = np.array([0.0, 0.5, 1.0, 1.0, 1.5, 2.0]), np.array([1.0, 1, 1, 3, 3, 3])
    jump = cd.Trajectory(m.build(), t, np.zeros((6, 1)), v[:, None])
    assert np.allclose(work(jump), [0, 1, 2, 2, 5, 8])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"panels": ["coordinate"]}, cd.UnknownNameError, "did you mean 'coordinates'"),
        ({"reactions": ["Z"]}, cd.UnknownNameError, "'Z' is not in the model"),
        ({"joints": ["C"]}, cd.CardanError, "'C'"),
        ({"angle": "grad"}, cd.InputError, "'rad' or 'deg'"),
        ({"size": (0, 3)}, cd.InputError, "width and height in inches"),
        ({"lines": "all"}, cd.InputError, "number of systems"),
        ({"path": "run.jpg"}, cd.FileError, "ends in .png, .svg or .pdf"),
    ],
)
def test_a_wrong_choice_is_refused(run: cd.Trajectory, options: dict[str, Any], error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        run.plot(*options.pop("panels", ()), **options)


def test_files_are_whole_or_not_there(run: cd.Trajectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, head in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        path = tmp_path / f"run.{kind}"
        run.plot("energy", path=path)
        assert path.read_bytes().startswith(head)
        assert path.read_bytes() == image(run.plot("energy"), kind)  # whenever it is made, the same
    before = path.read_bytes()
    with pytest.raises(cd.FileError, match="overwrite=True"):
        run.plot("coordinates", path=path)
    assert path.read_bytes() == before
    run.draw(path=path, overwrite=True)
    assert path.read_bytes() != before

    def fails(*arguments: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fails)
    with pytest.raises(cd.FileError, match="No space left"):
        run.model.draw(path=tmp_path / "other.png")
    monkeypatch.undo()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.pdf", "run.png", "run.svg"]


@pytest.mark.parametrize("name", sorted({*sorted(CATALOGUE)[::2], "differential", "watt_six_bar"}))
def test_the_catalogue_is_drawn(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    model = CATALOGUE[name]().build()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = model.draw(names=True)
        image(figure, "png", dpi=40)
    written = [text.get_text() for text in figure.axes[0].texts if text.get_gid() == "name"]
    shown = {joint.name for joint in model.joints if joint.kind.name != "free"}
    assert shown <= set(written)
    boxes = [text.get_window_extent() for text in figure.axes[0].texts if text.get_gid() == "name"]
    for box in boxes:
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1  # nothing is cut off
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1
    assert capsys.readouterr() == ("", "")


def test_symbols_are_where_the_joints_are(run: cd.Trajectory) -> None:
    """In the flat view of a four-bar linkage, hinges are circles about the joints, true to scale."""
    model, geometry = run.model, geometry_of(run.model)
    poses = run.poses[7]
    canvas = begin(model, geometry, poses, None)
    add_bodies(canvas, geometry, poses)
    bars = [patch.points for patch in canvas.patches if patch.layer == "body"]
    lengths = [np.linalg.norm(bar[0] - bar[-1]) for bar in bars]
    true = [np.linalg.norm(stroke.points[0] - stroke.points[-1]) for stroke in geometry.strokes]
    assert np.allclose(lengths, true)
    add_joints(canvas, geometry, poses, poses)
    middles = [patch.points.mean(axis=0) for patch in canvas.patches if patch.layer == "joint"]
    for joint in model.joints:
        pose = np.eye(4) if joint.child < 0 else poses[joint.child]
        at = (pose @ np.append(joint.child_at.position, 1.0))[:2]
        assert min(np.linalg.norm(middle - at) for middle in middles) < 1e-9


def test_links_are_drawn_between_their_joints(run: cd.Trajectory) -> None:
    """Not to their centres of mass; a rod that is free at one end has its length, wherever its mass is."""
    for stroke in geometry_of(run.model).strokes:
        joints = [j.at if j.parent == stroke.body else j.child_at for j in run.model.joints
                  if stroke.body in (j.parent, j.child)]  # fmt: skip
        ends = sorted(map(tuple, np.round([at.position for at in joints], 12)))
        assert sorted(map(tuple, np.round(stroke.points, 12))) == ends
    random = np.random.default_rng(2)
    for length, pin in zip(random.uniform(0.2, 5, 6), random.uniform(0, 0.3, 6), strict=True):
        m = cd.Mechanism("chain")
        for k in range(2):
            m.body(f"rod{k}", mass=2.0, com=(length / 2, 0, 0), inertia=cd.inertia.rod(2.0, length))
        m.joint("A", cd.Revolute(), m.ground, "rod0")
        m.joint("B", cd.Revolute(), "rod0", "rod1", at=(length, 0, 0), child_at=(pin * length, 0, 0))
        first, last = (stroke.points for stroke in geometry_of(m.build()).strokes)
        assert np.ptp(first[:, 0]) == pytest.approx(length) and np.ptp(last[:, 0]) == pytest.approx(length)


def test_a_piston_rod_is_guided_by_its_cylinder() -> None:
    """A slider between two long bodies needs no rail; one on the ground has a rail of its travel."""
    model = stewart_platform().build()
    poses = cd.body_poses(model, model.start())
    for joint in (j for j in geometry_of(model).joints if j.slides):
        collar, travel = joint.collar(poses), joint.travel(poses)[0]
        assert collar is not None
        (low, high), (near, far) = joint.reach
        assert collar in (low, high) and travel + near <= collar <= travel + far
    crank = CATALOGUE["slider_crank"]().build()
    poses = cd.body_poses(crank, np.random.default_rng(4).normal(size=(9, crank.nq)))
    (slider,) = [j for j in geometry_of(crank).joints if j.slides]
    low, high = slider.travel(poses)
    assert slider.collar(poses) is None and slider.rail(poses, 0.1) == (low - 0.1, high + 0.1)


def test_rounding_is_zero_in_plots(run: cd.Trajectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise as small as rounding of the problem, in any unit; and small values that are real stay."""
    random = np.random.default_rng(3)
    for unit in ("rad", "m", "rad/s", "m/s^2", "N", "N m", "J", "W"):
        size = size_of(run, unit)
        assert size > 0
        small = size * random.uniform(-1, 1, 20)
        assert not without_rounding(run, 1e-16 * small, unit).any()
        assert np.array_equal(without_rounding(run, 1e-6 * small, unit), 1e-6 * small)
    noisy = run.reactions + 1e-15 * random.normal(size=run.reactions.shape)
    cleared = wrenches_without_rounding(run, noisy)
    assert not cleared[..., :3].any() and np.array_equal(cleared[..., 3:5], noisy[..., 3:5])
    drifting = cd.Trajectory(run.model, run.time, 1e-68 * run.q, 1e-68 * run.v).plot("coordinates")
    assert not line(drifting, 0).get_ydata().any()
    low, high = drifting.axes[0].get_ylim()
    assert low < -1e-3 and high > 1e-3
    monkeypatch.setattr(cd.Trajectory, "quantity", lambda run, name: np.full(run.time.shape, 1e-66))
    assert line(run.plot("residuals"), 0).get_ydata().min() >= SMALLEST


def test_a_body_without_a_moment_about_an_axis_is_drawn() -> None:
    """A moment that is 0 but for rounding, below 0, as files of robots have it: a number, and no warning."""
    m = cd.Mechanism("needle")
    m.body("needle", mass=0.1, com=(0, 0, 0), inertia=np.diag([-1e-19, 1e-3, 1e-3]))
    m.joint("A", cd.Revolute(), m.ground, "needle")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = geometry_of(m.build())
    assert all(np.isfinite(stroke.points).all() for stroke in found.strokes)


def test_plots_go_into_axes_of_the_user(run: cd.Trajectory) -> None:
    figure = Figure()
    axes = figure.subplots(2, 2)
    assert run.plot("coordinates", "energy", ax=axes[0]) is figure
    assert np.array_equal(axes[0, 1].lines[2].get_ydata(), run.energy)
    assert run.model.draw(ax=axes[1, 0]) is figure and run.plot_phase("A", ax=axes[1, 1]) is figure
    assert {c.get_gid() for c in axes[1, 0].collections} == {"mechanism"} and len(figure.axes) == 4
    for options, words in (({"ax": axes}, "1 panels"), ({"ax": 3}, "axes of matplotlib"),
                           ({"ax": axes[0, 0], "path": "run.png"}, "the figure is yours")):  # fmt: skip
        with pytest.raises(cd.InputError, match=words):
            run.plot("energy", **options)


def test_a_figure_is_shown_in_a_window_or_a_notebook(run: cd.Trajectory, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib
    import matplotlib.pyplot as plt
    from matplotlib.backend_bases import FigureManagerBase
    from matplotlib.backends import backend_agg

    figure = run.plot("energy")
    with pytest.raises(cd.InputError, match=r"no display .* path='picture.png'"):
        figure.show()
    shown: list[Any] = []
    monkeypatch.setattr(backend_agg.FigureCanvasAgg, "required_interactive_framework", "none of these")
    monkeypatch.setattr(plt, "show", lambda: shown.extend(plt.get_fignums()))
    figure.show()
    assert isinstance(figure.canvas.manager, FigureManagerBase) and shown == [figure.canvas.manager.num]
    plt.close("all")
    assert matplotlib.get_backend().lower() == "agg"
    displayed: list[Any] = []
    in_a_notebook(monkeypatch, displayed.append)
    figure.show()
    assert displayed == [figure]


def in_a_notebook(monkeypatch: pytest.MonkeyPatch, display: Any) -> None:
    """Stand-ins for what IPython has in the kernel of a notebook; it need not be installed."""
    module, shown = ModuleType("IPython"), ModuleType("IPython.display")
    vars(module).update(get_ipython=lambda: SimpleNamespace(kernel=1), display=shown)
    vars(shown).update(display=display, HTML=lambda text: SimpleNamespace(data=text))
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)


def test_a_progress_bar_shows_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    handle = type("Handle", (), {"update": lambda self, page: texts.append(page.data)})()
    in_a_notebook(monkeypatch, lambda page, display_id: handle)
    monkeypatch.setattr("cardan.results.progress.PERIOD", 0.0)
    with progress_bar(True, "a <task>", 4.0) as report:
        report(1.0)
        report(3.0)
    assert [text.count("25 %") + 2 * text.count("75 %") for text in texts] == [1, 2, 0]
    assert "a &lt;task&gt;" in texts[0] and texts[-1] == ""


def test_shapes_are_drawn_where_they_are(run: cd.Trajectory) -> None:
    """A red ball on a body hides the rods of the body, and is where its centre is on the sheet."""
    m = four_bar()
    m.shape("crank", cd.shape.Sphere(0.1, at=(0.2, 0.05, 0), colour=(1, 0, 0)), cd.shape.Box((0.4, 0.01, 0.01),
            at=(0.2, 0, 0), colour=(0, 0, 1)))  # fmt: skip
    model = m.build()
    figure = model.draw(run.q[7], scale=False, centres=False)
    (picture,) = figure.axes[0].images
    colours, (left, right, bottom, top) = np.asarray(picture.get_array()), picture.get_extent()
    rows, columns = np.nonzero((colours[..., 3] > 128) & (colours[..., 0] > 2 * colours[..., 2].astype(int)))
    height, width = colours.shape[:2]
    part = np.array([(columns.mean() + 0.5) / width, (rows.mean() + 0.5) / height])
    middle = np.array([left, top]) + part * (right - left, bottom - top)
    pose = run.poses[7, model.body_index("crank")]
    assert np.allclose(middle, (pose @ (0.2, 0.05, 0, 1))[:2], atol=2e-3)
    red = colours[rows, columns].mean(axis=0)
    assert red[0] > 100 and red[1] < 60 and red[2] < 60


def test_a_shape_apart_from_its_joint_hangs_on_a_rod() -> None:
    for below, hangs in ((1.0, True), (0.15, False)):
        m = cd.Mechanism("crane")
        m.body("hook", shape=cd.shape.Sphere(0.2, at=(0, 0, -below)), density=7000)
        m.joint("rope", cd.Spherical(), m.ground, "hook", at=(0, 0, 3))
        arms = [stroke.points.tolist() for stroke in geometry_of(m.build()).arms]
        assert np.allclose(arms, [[[0, 0, 0], [0, 0, -below]]]) if hangs else not arms


def test_views(run: cd.Trajectory) -> None:
    assert begin(run.model, geometry_of(run.model), run.poses[0], None).view.flat
    seen = begin(run.model, geometry_of(run.model), run.poses[0], (30.0, 20.0)).view
    assert not seen.flat
    assert np.allclose(seen.axes @ seen.axes.T, np.eye(3)) and np.linalg.det(seen.axes) > 0
    platform = stewart_platform().build()
    assert not begin(platform, geometry_of(platform), cd.body_poses(platform, platform.start()), None).view.flat
    for wrong in ("above", (1, 2, 3), (np.nan, 0)):
        with pytest.raises(cd.InputError, match="azimuth and elevation"):
            run.model.draw(view=wrong)


def test_a_wrong_configuration_is_refused(run: cd.Trajectory, batch: cd.Trajectory) -> None:
    for wrong in ([0.0], [np.nan, 0, 0], "start", np.zeros((2, 3))):
        with pytest.raises((cd.InputError, cd.UnknownNameError), match="draw: q"):
            cd.draw(run.model, wrong)
    with pytest.raises(cd.InputError, match="run\\[0\\]"):
        batch.draw()
    with pytest.raises(cd.InputError, match="no time"):
        run.draw([])
    with pytest.raises(cd.InputError, match="pairs"):
        run.draw(trace=[3])


def test_several_positions_and_the_path_of_a_point(run: cd.Trajectory) -> None:
    figure = run.draw(trace=[("coupler", (0.3, 0.1, 0.0))])
    (mechanism,) = [c for c in figure.axes[0].collections if c.get_gid() == "mechanism"]
    path = run.position("coupler", (0.3, 0.1, 0.0))[:, :2]
    assert any(p.vertices.shape == path.shape and np.allclose(p.vertices, path) for p in mechanism.get_paths())
    opacity = mechanism.get_edgecolors()[:, 3]
    assert len({round(float(a), 6) for a in opacity if 0 < a < 1}) == 6  # the seventh is the last, in full
    assert len(run.draw(0.5).axes[0].collections[0].get_paths()) < len(mechanism.get_paths())


def test_hull_is_that_of_scipy() -> None:
    from scipy.spatial import ConvexHull

    points = np.random.default_rng(1).normal(size=(50, 2))
    corners = points[ConvexHull(points).vertices]
    assert {tuple(p) for p in hull(points)} == {tuple(p) for p in corners}


def test_notebooks_show_tables_and_a_picture(run: cd.Trajectory) -> None:
    for thing in (four_bar(), run.model):
        page = thing._repr_html_()
        assert all(name in page for name in ("crank", "coupler", "rocker", "revolute", "closes a loop"))
        root = ET.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
        assert len(root) > 20
    run.quantity("position_residual")  # it is shown if it was computed
    assert "worst residual" in run._repr_html_()
    redundancy = cd.redundancy(run.model)._repr_html_()
    assert "<th style='text-align:left'>freedoms</th><td style='text-align:left'>1</td>" in redundancy
    assert "exact" in cd.actuation(run.model, run.q[0], ["A"])._repr_html_()
    particles = run.model.particles()._repr_html_()
    assert all(f">{head}</th>" in particles for head in ("m1 kg", "unified, kg", "at joints"))
    assert run.plot("energy")._repr_png_().startswith(b"\x89PNG")


def test_a_check_is_a_table() -> None:
    report = Report("four_bar", (CheckRow("M symmetric", 1e-16, 1e-10), CheckRow("a < b", 1e-3, 1e-10)), 64)
    page = report._repr_html_()
    assert "CHECKS FAILED on 64 random states" in page and page.count("<tr>") == 3
    assert page.index(">ok<") < page.index("a &lt; b") < page.index(">FAILED<")


def test_a_mechanism_that_is_not_ready_says_why() -> None:
    m = cd.Mechanism("half <done>")
    m.body("loose", mass=1.0, inertia=(1, 1, 1))
    page = m._repr_html_()
    assert "half &lt;done&gt;" in page and "it has no joint" in page and "<svg" not in page
    assert html_table("a & b", [("<", ">")]).count("&lt;") == 1


# A joint kind and force elements that only the tests define.


def names_in(figure: Figure) -> set[str]:
    return {text.get_text() for text in figure.axes[0].texts if text.get_gid() == "name"}


def test_kinds_of_a_user_are_drawn_and_plotted(tmp_path: Path) -> None:
    """They get a ring or a square with their name; everything else works as for Cardan's own kinds."""
    model = bead().build()
    assert names_in(model.draw()) == {"wire", "pull", "two pulls", "own torsion"}
    assert {"hinge", "bead", "bar"} <= names_in(model.draw(names=True))
    run = cd.simulate(model, 0.5, [0.3, 0.3], samples=21)
    run.draw(trace=["bar"], path=tmp_path / "run.svg")
    assert labels(run.plot("coordinates", reactions="wire"))[0] == "coordinate of wire (m)"
    assert "<svg" in model._repr_html_()
    canvas = begin(model, geometry_of(model), run.poses[0], None)
    add_joints(canvas, geometry_of(model), run.poses[0], run.poses)
    ring = next(patch for patch in canvas.patches if patch.layer == "joint").points
    assert np.allclose(ring.mean(axis=0), canvas.view(run.position("bead")[0]))


@pytest.mark.parametrize("mark", ["pin", "rail", "sleeve", "thread", "cross", "ball", "plate", "weld", "none", "new"])
@pytest.mark.parametrize("axes", [(), (("parent", 0),), (("child", 1), ("parent", 0))])
def test_every_mark_can_be_declared(mark: str, axes: tuple[tuple[str, int], ...]) -> None:
    """A mark whose axes are not declared is drawn as the ring."""
    kind = replace(WIRE, mark=mark, shown_axes=axes, slides=True)
    figure = bead(kind).build().draw([0.3, 0.3])
    plain = mark == "new" or len(axes) < {"cross": 2, "ball": 0, "weld": 0, "none": 0}.get(mark, 1)
    assert ("wire" in names_in(figure)) == plain


def test_a_latch_is_drawn_at_its_point_and_long_names_take_two_lines() -> None:
    m = cd.Mechanism("walker")
    m.body("leg", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    m.joint("hip", cd.Revolute(), m.ground, "leg", at=(0, 1.0, 0))
    m.latch("foot on the ground", "leg", m.ground, "pin", at=(1.0, 0, 0), axis=(0, 0, 1), closed=False)
    model = m.build()
    (drawn,) = geometry_of(model).elements
    assert [(end.body, *end.position) for end in drawn.ends] == [(0, 1.0, 0.0, 0.0)]
    figure = cd.simulate(model, 0.1, samples=3).plot("foot on the ground.force")
    assert figure.axes[0].get_ylabel() == "foot on the ground\nforce (N)"
