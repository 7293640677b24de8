"""`cd.sweep`: run a model with many values of its numbers, on one machine or many, and keep what is measured."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from typing import Any

import numpy as np

from cardan.errors import InputError, InterruptedRunError, warn_outside
from cardan.machines.ufunc.threads import get_threads
from cardan.model.values import shown, whole
from cardan.results.progress import progress_bar
from cardan.studies.design import Design, make_design
from cardan.studies.identity import code_version, identity
from cardan.studies.measure import FILES, require_name
from cardan.studies.run import Run
from cardan.studies.store import StudyStore, labels_along, time_coordinate, words_of
from cardan.studies.study import Study
from cardan.studies.task import Results, Task, make_task
from cardan.studies.workers import DaskWorkers, LocalWorkers, in_pool, in_this_process

CHUNK = 16_384
"""Most members that are computed together: their states fit into the processor's cache."""
LARGEST = 4 << 30
"""Bytes of results that are kept without a store."""
MEMORY = 64 << 20
"""Bytes that the samples of a chunk may take."""
PARTS = 8
"""Chunks for each worker at least, so that all have work to the end."""
FEW = 256
"""Members of a chunk at least, so that threads and lanes have work."""


def sweep(
    model: Any,
    parameters: Any,
    *,
    run: Run | Callable[..., Any],
    measure: Any = None,
    samples: int | None = None,
    design: str | None = None,
    seed: int = 0,
    store: Any = None,
    client: Any = None,
    workers: int | None = None,
    chunk: int | None = None,
    progress: bool | None = None,
    notes: Mapping[str, str] | None = None,
    retry: bool = False,
) -> Study:
    """Compute a model with many values of its numbers: a parameter study, a Monte-Carlo study, a design of experiments.

    Args:
        model: the mechanism. None: `run` is a function of a dict of values (k,) by name.
        parameters: values, distributions, or a table, by name; see `cd.design`. A name is a number of the model
            ("crank.mass", "spring.stiffness", "B.at[0]"; it need not be free yet), a joint ("A", its coordinate at the
            start) or a joint's rate ("A.rate"). SI units. Or a `cd.Design`.
        run: `cd.Run(duration=...)`, a run of each member; or a function `f(m)` of a model with a batch of k values,
            `f(m, q)` or `f(m, q, v)` with their closed configurations (k, nq) and velocities (k, nv), which returns an
            array (k, ...) or a dict of them.
        measure: what is kept of each run: names of quantities (`["q", "A.reaction_force"]`: all samples), measures by
            name (`{"load": cd.peak("A.reaction_force")}`), or a function of a `cd.Trajectory` of k runs.
        samples: how many samples of distributions.
        design: "grid", "list", "sobol", "halton", "latin_hypercube", "random", "saltelli", "morris", "fast".
        seed: of the samples.
        store: folder of the study (Zarr). Results are written chunk by chunk; called again with the same arguments the
            sweep goes on where it stood. Without it results are kept in memory. Needs `cardan[sweep]`.
        client: a `dask.distributed.Client`; its workers compute, and results come back here. Needs `cardan[sweep]`.
        workers: number of local processes that compute. By default this process does, with all its threads.
        chunk: members that are computed and written together. It changes no result.
        progress: show a progress bar; by default on a terminal and in a notebook, for long studies.
        notes: words that are kept with the results, by name: who made the study, and what for.
        retry: compute members of the store that failed earlier once more, and nothing else that is there.

    Returns:
        The study: `study.dataset` with names and units, `study.failed` and `study.reasons` of members that could not be
        computed, which do not stop the others.

    Raises:
        InterruptedRunError: Ctrl-C; `error.partial` is the study so far, and the store has what is complete.

    """
    if client is not None and workers is not None:
        raise InputError("sweep: give client or workers, not both: the workers of the client compute")
    members = make_design("sweep", parameters, design, samples=samples, seed=seed)
    if not len(members):
        raise InputError("sweep: the design has no members; give at least one value of each parameter")
    task = make_task(model, members.names, run, measure)
    _require_names(task, members)
    count = None if workers is None else whole("sweep", "workers", workers)
    size = _chunk(task, members, count, chunk)
    about = _about(task, members) | {"notes": _notes(notes)}
    if retry and store is None:
        raise InputError("sweep: retry=True computes failed members of a store once more; give store=")
    if store is None:
        return _computed(_InMemory(members, size, about), task, members, client, count, progress)
    with StudyStore.open(store, members, size, identity(task, members), code_version(), about, retry) as target:
        return _computed(target, task, members, client, count, progress)


def _computed(target: Any, task: Task, members: Design, client: Any, count: int | None, progress: Any) -> Study:
    """Compute the chunks that are missing, and keep each as soon as it is there."""
    missing = target.missing
    warned: dict[str, int] = {}
    label = task.model.name if task.model is not None else "sweep"
    done = before = len(members) - sum(hi - lo for lo, hi in missing)
    with progress_bar(progress, label, len(members), unit="members", before=before) as report:
        try:
            with closing(_results(task, members, missing, client, count)) as coming:
                for lo, results in coming:
                    target.write(lo, results)
                    done += len(results.state)
                    for text, member in results.warned.items():
                        warned.setdefault(text, lo + member)
                    report(done)
        except KeyboardInterrupt:
            kept = " The store has them: call the sweep again to go on" if isinstance(target, StudyStore) else ""
            raise InterruptedRunError(
                f"sweep of {label!r} interrupted: {done:,} of {len(members):,} members are computed, and in "
                f"error.partial.{kept}",
                target.study(),
            ) from None
    found: Study = target.study()
    _warn(label, warned, found)
    return found


def _results(
    task: Task, members: Design, missing: list[tuple[int, int]], client: Any, count: int | None
) -> Generator[tuple[int, Results], None, None]:
    """First member and results of each chunk that is missing."""
    if not missing:
        return
    if client is not None:
        yield from in_pool(DaskWorkers(task, client), members.values, missing)
    elif count is not None:
        yield from in_pool(LocalWorkers(task, min(count, len(missing))), members.values, missing)
    else:
        yield from in_this_process(task, members.values, missing)


def _chunk(task: Task, members: Design, workers: int | None, given: int | None) -> int:
    """How many members are computed together."""
    if given is not None:
        return min(whole("sweep", "chunk", given), len(members))
    size = CHUNK
    if task.model is not None and isinstance(task.run, Run):
        numbers = task.samples * (task.model.nq + task.model.nv + 4)
        size = min(size, max(MEMORY // (8 * numbers), 1))
    parts = PARTS * (workers or max(get_threads() // 4, 1))
    return max(min(size, max(-(-len(members) // parts), FEW)), 1)


def _about(task: Task, members: Design) -> dict[str, Any]:
    """What is written with the results: names, units, settings."""
    found: dict[str, Any] = {"units": {c.name: c.unit for c in task.columns if c.unit}}
    if task.model is not None:
        found["model"] = task.model.name
    found["design"] = members.kind
    if isinstance(task.run, Run):
        found["duration"] = float(task.run.duration)
        found["times"] = task.run.times(task.model).tolist()  # type: ignore[arg-type]
    return found


def _notes(given: Mapping[str, str] | None) -> dict[str, str]:
    for name, text in (given or {}).items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise InputError(f"sweep: notes are texts by name, got {shown(name)}: {shown(text)}")
    return dict(given or {})


def _require_names(task: Task, members: Design) -> None:
    """Reject names of parameters and measures that a store or a dataset cannot have."""
    for name in members.names:
        if name in FILES:
            raise InputError(f"sweep: {name!r} cannot be the name of a parameter; take another word")
    for name in task.measures:
        require_name(name, (*members.names, *members.dims))


def _warn(label: str, warned: dict[str, int], study: Study) -> None:
    """Say that members failed, and pass on what runs warned of."""
    sentences = []
    if study.status.failed:
        member, why = next(iter(study.reasons.items()))
        sentences.append(
            f"{study.status.failed:,} of {len(study.state):,} members failed, the first, member {member}: {why}; "
            "study.reasons has all"
        )
    for text, member in list(warned.items())[:1]:
        more = f" (and {len(warned) - 1} more warnings of other chunks)" if len(warned) > 1 else ""
        sentences.append(f"in the chunk from member {member} on: {text}{more}")
    for sentence in sentences:
        warn_outside(f"sweep of {label!r}: {sentence}")


class _InMemory:
    """A study that is kept in memory."""

    def __init__(self, design: Design, chunk: int, about: dict[str, Any]) -> None:
        self.design, self.chunk, self.about = design, chunk, about
        self.results = Results.empty(len(design))

    @property
    def missing(self) -> list[tuple[int, int]]:
        """First member and end of all chunks."""
        n = len(self.design)
        return [(lo, min(lo + self.chunk, n)) for lo in range(0, n, self.chunk)]

    def write(self, lo: int, results: Results) -> None:
        """Keep the results of a chunk."""
        size = 8 * len(self.design) * sum(int(np.prod(x.shape[1:])) for x in results.values.values())
        if size > LARGEST:
            raise InputError(
                f"sweep: the results of {len(self.design):,} members take {size / 1e9:.1f} GB; give store='study.zarr' "
                "to write them to a folder, or measures that keep less"
            )
        self.results.join(results, lo)

    def study(self) -> Study:
        """What there is."""
        found = self.results
        variables = {
            name: (("member", *about.dims), found.values[name], words_of(about)) for name, about in found.about.items()
        }
        coords: dict[str, Any] = {}
        for about in found.about.values():
            coords |= labels_along(about)
        coords |= time_coordinate(self.about.get("times", ()), variables)
        words = {k: v for k, v in self.about.items() if k != "times"}
        reasons = dict(sorted(found.reasons.items()))
        return Study(self.design, variables, coords, found.state, reasons, self.chunk, words)
