"""Videos show the run: every pixel is that of the nearest surface, frames are at the right times, files are whole."""

import builtins
import sys
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

import cardan as cd
from cardan.mechanisms import four_bar, slider_crank
from cardan.results.render.camera import fitted
from cardan.results.render.depth_buffer import DepthBuffer, covered, planes_of
from cardan.results.render.renderer import Placed, Renderer
from cardan.results.render.surfaces import coloured
from cardan.results.video import _speed

pytestmark = pytest.mark.usefixtures("quick_code")


@pytest.fixture(scope="module")
def run() -> cd.Trajectory:
    return cd.simulate(four_bar().build(), 0.5, samples=51)


def test_every_pixel_has_the_nearest_triangle() -> None:
    """Against a search over all triangles for every pixel, by the signs of areas."""
    random = np.random.default_rng(0)
    width, height = 37, 29
    corners = random.uniform(-8, 42, (60, 3, 2))
    depths = random.uniform(0.1, 0.9, (60, 3))
    buffer = DepthBuffer(width, height)
    seen = buffer.nearest(covered(corners.astype(np.float32), width, height), planes_of(corners, depths))
    found = np.full(width * height, -1)
    found[seen.pixels] = seen.triangles
    y, x = np.divmod(np.arange(width * height), width)
    p = np.column_stack([x, y]) + 0.5
    a, b, c = (corners[:, k] for k in range(3))
    cross = lambda u, v: u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]
    whole = cross(b - a, c - a)
    weights = np.stack([cross(q[:, None] - p, r[:, None] - p) for q, r in ((b, c), (c, a), (a, b))]) / whole[:, None]
    inside = (weights >= 0).all(axis=0)
    z = np.where(inside, np.einsum("ktp,tk->tp", weights, depths), -1.0)
    true = np.where(z.max(axis=0) > 0, z.argmax(axis=0), -1)
    # a pixel whose middle is on a side, or with two triangles at one depth, may go either way
    clear = (np.abs(weights).min(axis=(0, 1)) > 1e-5) & (np.diff(np.sort(z, axis=0)[-2:], axis=0)[0] > 1e-5)
    assert clear.mean() > 0.9 and (true >= 0).mean() > 0.5
    assert np.array_equal(found[clear], true[clear])


def test_a_nearer_body_covers_a_farther_one() -> None:
    """Two squares that turn about the vertical: whichever is nearer to the viewer is seen in the middle."""
    square = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], dtype=float)
    faces = np.array([[0, 1, 2], [0, 2, 3]])
    red, blue = (coloured(square, faces, colour) for colour in ((1, 0, 0), (0, 0, 1)))
    for perspective in (False, True):
        camera = fitted(np.eye(3), np.vstack([square - 2, square + 2]), 60, 40, perspective, 0.8)
        renderer = Renderer(camera, np.array([0.0, 0.0, 1.0]))
        for nearer in (-1, 1):
            placed = [
                Placed(surface, np.eye(3), np.array([0.0, 0.0, z]), np.eye(3), k)
                for k, (surface, z) in enumerate(((red, 0.5 * nearer), (blue, -0.5 * nearer)))
            ]
            r, _, b = renderer.picture(placed)[20, 30]
            assert (r > b) == (nearer > 0)
            assert np.array_equal(renderer.picture(placed[::-1])[20, 30], renderer.picture(placed)[20, 30])


def frames_of(path: Path) -> tuple[list[np.ndarray], float]:
    with av.open(str(path)) as file:
        frames = [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]
        return frames, float(file.streams.video[0].average_rate)


@pytest.mark.parametrize("suffix", ["mp4", "webm", "gif"])
def test_frames_are_at_the_times_of_the_run(run: cd.Trajectory, tmp_path: Path, suffix: str) -> None:
    """The crank's pin in red is where the run says, in every frame, at a speed that is chosen."""
    m = four_bar()
    m.shape("crank", cd.shape.Sphere(0.08, at=(0.4, 0, 0), colour=(1, 0, 0)))
    m.shape("ground", cd.shape.Sphere(0.02, colour=(0, 1, 0)), cd.shape.Sphere(0.02, at=(1, 0, 0), colour=(0, 1, 0)))
    shown = cd.Trajectory(m.build(), run.time, run.q, run.v)
    path = tmp_path / f"run.{suffix}"
    shown.video(path, size=(320, 180), fps=10, speed=0.5, title="")
    if suffix == "gif":
        with Image.open(path) as file:
            frames = [np.asarray((file.seek(k), file.convert("RGB"))[1]) for k in range(file.n_frames)]
            rate = 1000 / file.info["duration"]
    else:
        frames, rate = frames_of(path)
    assert len(frames) == 11 and rate == 10 and frames[0].shape == (180, 320, 3)
    pins = shown.position("crank", (0.4, 0, 0))[::5, :2]
    middles = []
    for frame in frames:
        r, g, b = (frame[..., k].astype(int) for k in range(3))
        rows, columns = np.nonzero((r > 100) & (g < 60) & (b < 60))
        middles.append((columns.mean(), -rows.mean()))
    fit = np.linalg.lstsq(np.column_stack([pins, np.ones(len(pins))]), np.array(middles), rcond=None)
    error = np.column_stack([pins, np.ones(len(pins))]) @ fit[0] - middles
    assert np.abs(error).max() < 1.5  # pixels
    assert np.ptp(np.array(middles), axis=0).max() > 20


def test_traces_and_forces_add_to_the_picture(run: cd.Trajectory, tmp_path: Path) -> None:
    plain, more = tmp_path / "plain.gif", tmp_path / "more.gif"
    options: dict[str, Any] = {"size": (240, 136), "fps": 5, "speed": 0.5}
    run.video(plain, **options)
    run.video(more, trace=[("coupler", (0.2, 0.1, 0))], forces=["B"], title="with forces", **options)
    a, b = (np.asarray(Image.open(path).convert("RGB")).astype(int) for path in (plain, more))
    red = (b[..., 0] > 120) & (b[..., 1] < 50) & (b[..., 2] < 60)
    assert red.sum() > 20 and (np.abs(a - b).max(axis=-1) > 20).sum() > red.sum()
    with Image.open(more) as file:
        file.seek(4)
        late = np.asarray(file.convert("RGB")).astype(int)
    gold = (np.abs(late - (214, 148, 0)).max(axis=-1) < 60).sum()
    assert gold > 10  # the path grows


def test_the_speed_of_a_short_run_is_slow_motion() -> None:
    model = slider_crank().build()
    for duration, speed in ((5.0, 1.0), (60.0, 1.0), (0.03, 0.005), (1.0, 0.1), (600.0, 100.0)):
        still = cd.Trajectory(model, [0.0, duration], np.tile(model.start(), (2, 1)), np.zeros((2, model.nv)))
        assert _speed(still) == pytest.approx(speed)


@pytest.mark.parametrize(
    ("name", "options", "error", "words"),
    [
        ("run.avi", {}, cd.FileError, "ends in .mp4, .webm or .gif"),
        ("run.gif", {"size": (3, 3)}, cd.InputError, "width and height in pixels"),
        ("run.gif", {"fps": 0}, cd.InputError, "fps"),
        ("run.gif", {"speed": 1e-9}, cd.InputError, "show the run faster"),
        ("run.gif", {"forces": ["Z"]}, cd.UnknownNameError, "'Z' is not in the model"),
        ("run.gif", {"trace": 3}, cd.InputError, "pairs"),
        ("run.gif", {"view": "above"}, cd.InputError, "azimuth and elevation"),
        ("run.gif", {"title": 3}, cd.InputError, "title must be text"),
    ],
)
def test_a_wrong_choice_is_refused(
    run: cd.Trajectory, tmp_path: Path, name: str, options: dict[str, Any], error: type, words: str
) -> None:
    with pytest.raises(error, match=words):
        run.video(tmp_path / name, **options)
    assert not list(tmp_path.iterdir())


def test_files_are_whole_or_not_there(run: cd.Trajectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.mp4"
    path.write_bytes(b"mine")
    with pytest.raises(cd.FileError, match="overwrite=True"):
        run.video(path, size=(64, 64), fps=4)
    with pytest.raises(cd.InputError, match="one of its systems"):
        cd.Trajectory(run.model, run.time, run.q[None], run.v[None]).video(path, overwrite=True)
    count = 0

    def stopped(*arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    real = Renderer.picture
    monkeypatch.setattr(Renderer, "picture", stopped)
    with pytest.raises(KeyboardInterrupt):
        run.video(path, size=(64, 64), fps=4, speed=0.1, overwrite=True)
    assert count == 3 and path.read_bytes() == b"mine" and list(tmp_path.iterdir()) == [path]


def test_without_pyav_the_message_says_what_to_install(
    run: cd.Trajectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def missing(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "av":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.delitem(sys.modules, "av")
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(cd.FileError, match=r"pip install 'cardan\[video\]', or write a .gif"):
        run.video(tmp_path / "run.mp4")
