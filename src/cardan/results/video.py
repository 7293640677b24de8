"""A run as a video, made without a display: pictures from a depth buffer (`render`), written as MP4, WebM or GIF.

PyAV writes MP4 and WebM, Pillow GIF. The file appears only when it is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.atomic_file import file_path, whole_file
from cardan.errors import FileError, InputError, nearest
from cardan.functions.kinematics import body_poses
from cardan.model.values import number
from cardan.results.drawing.draw import traced
from cardan.results.progress import progress_bar
from cardan.results.render.animation import Animation, Frame, lettering

if TYPE_CHECKING:
    from cardan.results.trajectory.trajectory import Trajectory

LONGEST, SHORTEST, USUAL = 60.0, 2.0, 6.0  # s: a run that takes longer or shorter is shown at another speed
MOST_FRAMES = 20_000
LEAST_PIXELS, MOST_PIXELS = 64, 4096  # along a side
OF_A_TRACE = 4  # points of a trace for each frame
SOME = 8  # frames from which the colours of a GIF are taken


@dataclass(frozen=True)
class VideoFormat:
    """A format of videos: how it is written, its usual size (pixels) and frames a second."""

    write: Callable[[Path, Iterator[np.ndarray], Fraction], None]
    size: tuple[int, int]
    fps: float


def video(
    run: Trajectory, path: str | os.PathLike[str], size: Any, fps: Any, speed: Any, view: Any, trace: Sequence[Any],
    forces: Any, title: str | None, overwrite: bool, progress: bool | None,
) -> None:  # fmt: skip
    """Write a run of one system as a video; the arguments are those of `Trajectory.video`."""
    made = video_format(path)
    if run.batch:
        raise InputError(f"video: the run is a batch of shape {run.batch}; show one of its systems, run[0].video(...)")
    if len(run.time) < 2:
        raise InputError("video: the run has one sample only; there is no motion to show, draw it with run.draw(path=)")
    if title is not None and not isinstance(title, str):
        raise InputError(f"video: title must be text, got {title!r}")
    points = traced("video", trace)
    width, height = _size(made.size if size is None else size)
    rate = _rate(made.fps if fps is None else number("video", "fps", fps, "of frames a second", above=0), path)
    shown = _speed(run) if speed is None else number("video", "speed", speed, "of run seconds a second", above=0)
    times = _times(run, float(rate), shown)
    label = f"video of {run.model.name}"
    with whole_file(path, overwrite) as part, progress_bar(progress, label, len(times)) as report:
        frames = _frames(run, times, shown, (width, height), view, points, forces, title)
        made.write(part, _reported(frames, report), rate)


def _frames(
    run: Trajectory, times: np.ndarray, speed: float, size: tuple[int, int], view: Any, trace: Any, forces: Any,
    title: str | None,
) -> Iterator[np.ndarray]:  # fmt: skip
    """The pictures (height, width, 3), bytes, one after the other."""
    q, v = run.at(times)
    poses = np.asarray(body_poses(run.model, q))
    finer = np.linspace(times[0], times[-1], OF_A_TRACE * (len(times) - 1) + 1)  # smooth paths
    swept = np.asarray(body_poses(run.model, run.at(finer)[0])) if len(trace) else poses
    animation = Animation(run, times, q, v, poses, swept, size, view, trace, forces)
    write = lettering(size, run.model.name if title is None else title, times, speed, animation)
    for k in range(len(times)):
        yield write(Frame(k, animation.picture(k)))


def _reported(frames: Iterable[np.ndarray], report: Callable[[float], None]) -> Iterator[np.ndarray]:
    for k, frame in enumerate(frames):
        report(k)
        yield frame


def video_format(path: Any) -> VideoFormat:
    """The format of a file, from its suffix; an error if it is unknown or cannot be written here."""
    kind = file_path(path).suffix.lower()
    if kind not in FORMATS:
        raise FileError(
            f"{os.fspath(path)}: the name of a video file ends in .mp4, .webm or .gif, this one in {kind!r}"
            f"{nearest(kind, FORMATS)}"
        )
    if FORMATS[kind].write is not _write_gif:
        _pyav(path)
    return FORMATS[kind]


def _size(size: Any) -> tuple[int, int]:
    """Width and height, even numbers of pixels, as encoders need them."""
    try:
        width, height = (int(x) for x in size)
    except (TypeError, ValueError):
        width = height = 0
    if not (min(width, height) >= LEAST_PIXELS and max(width, height) <= MOST_PIXELS):
        raise InputError(
            f"video: size must be width and height in pixels, {LEAST_PIXELS} to {MOST_PIXELS}, got {size!r}"
        )
    return width - width % 2, height - height % 2


def _rate(fps: float, path: Any) -> Fraction:
    """Frames a second that the file can have: a GIF has a whole number of hundredths of a second between frames."""
    if fps > 240:
        raise InputError(f"video: fps must be at most 240 frames a second, got {fps:g}")
    if file_path(path).suffix.lower() == ".gif":
        return Fraction(100, max(round(100 / fps), 2))
    return Fraction(fps).limit_denominator(1001)


def _speed(run: Trajectory) -> float:
    """Seconds of the run shown in a second: 1, or 1, 2 or 5 times a power of ten if the run is very long or short."""
    duration = float(run.time[-1] - run.time[0])
    if SHORTEST <= duration <= LONGEST or duration == 0:
        return 1.0
    wanted = duration / USUAL
    power = 10.0 ** np.floor(np.log10(wanted))
    return float(max(k for k in (1, 2, 5) if k * power <= wanted * (1 + 1e-9)) * power)


def _times(run: Trajectory, fps: float, speed: float) -> np.ndarray:
    """Times of the frames, s of the run."""
    first, last = float(run.time[0]), float(run.time[-1])
    count = int(np.floor((last - first) / speed * fps + 1e-9)) + 1
    if count > MOST_FRAMES:
        raise InputError(
            f"video: {count} frames are more than {MOST_FRAMES}; show the run faster (speed), or take fewer frames a "
            "second (fps)"
        )
    return np.minimum(first + np.arange(count) * speed / fps, last)


def _pyav(path: Any) -> Any:
    try:
        import av
    except ImportError:
        raise FileError(
            f"{os.fspath(path)}: MP4 and WebM need PyAV, which is not installed; pip install 'cardan[video]', or write "
            "a .gif"
        ) from None
    return av


def _write_with(container: str, codec: str, options: dict[str, str]) -> Callable[..., None]:
    """A function that writes frames in a container by a codec of FFmpeg."""

    def write(part: Path, frames: Iterator[np.ndarray], fps: Fraction) -> None:
        av = _pyav(part)
        try:
            with av.open(str(part), "w", format=container) as file:
                stream = None
                for frame in frames:
                    if stream is None:
                        stream = file.add_stream(codec, rate=fps, options=options)
                        stream.height, stream.width = frame.shape[:2]
                        stream.pix_fmt = "yuv420p"
                    file.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
                if stream is not None:
                    file.mux(stream.encode())
        except av.FFmpegError as error:
            raise FileError(f"video: FFmpeg could not write it: {error}") from error

    return write


def _write_gif(part: Path, frames: Iterator[np.ndarray], fps: Fraction) -> None:
    """An animation that repeats, with one set of colours for all frames."""
    from PIL import Image

    pictures = [Image.fromarray(frame) for frame in frames]
    some = pictures[:: max(len(pictures) // SOME, 1)]
    sheet = Image.new("RGB", (some[0].width, some[0].height * len(some)))
    for k, picture in enumerate(some):
        sheet.paste(picture, (0, k * picture.height))
    palette = sheet.quantize(255, method=Image.Quantize.MEDIANCUT)
    flat = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    flat[0].save(part, format="GIF", save_all=True, append_images=flat[1:], loop=0, duration=int(1000 / fps),
                 optimize=False)  # fmt: skip


FORMATS: dict[str, VideoFormat] = {
    ".mp4": VideoFormat(
        _write_with("mp4", "libx264", {"crf": "20", "preset": "veryfast", "movflags": "+faststart"}), (1280, 720), 30
    ),
    ".webm": VideoFormat(
        _write_with("webm", "libvpx-vp9", {"crf": "32", "b:v": "0", "deadline": "realtime", "cpu-used": "6"}),
        (1280, 720), 30,
    ),
    ".gif": VideoFormat(_write_gif, (640, 360), 25),
}  # fmt: skip
"""Formats of videos by the suffix of the file."""
