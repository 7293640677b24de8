"""Inverse kinematics: coordinates at which frames are where they shall be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.damped_least_squares import (
    BUSY,
    FIRST_DAMPING,
    REACHED,
    STOPPED,
    Problem,
    irrationals,
    size_of,
)
from cardan.analysis.targets import Aim, Target, read_targets
from cardan.errors import InputError
from cardan.model.model import Model
from cardan.model.values import array, batch, number, shown, whole
from cardan.structure.assemble import assemble
from cardan.structure.kernels import parameter_arguments, time_argument

ITERATIONS = 40
PATIENT = 400
PIECE = 8


def solve(problem, q0, starts, limits, spread, tolerance, t, data, threads=None, first=0, iterations=ITERATIONS, progress=0.02):
    model = problem.model
    B = len(q0)
    kernel = problem.kernel
    state_ports, data_ports = problem.ports
    huge = 1e300
    s = {
        "x": q0.copy(), "q": q0.copy(), "best": q0.copy(), "pressed": np.zeros((B, model.nv)), "cost": np.full(B, huge), "gap": np.full(B, huge),
        "least": np.full(B, huge), "miss": np.full(B, huge), "damping": np.full(B, FIRST_DAMPING), "steps": np.zeros(B),
        "start": np.full(B, float(first)), "outcome": np.zeros(B), "fresh": np.ones(B), "total": np.zeros(B),
    }
    names = [port.name for port in state_ports]
    given = [q0, *limits, *spread, np.asarray(float(starts)), np.asarray(float(iterations)), np.asarray(progress), *map(np.asarray, tolerance), *data]
    active = np.arange(B)
    cur, cg = s, given
    calls = 0
    while True:
        out = kernel(*(cur[n] for n in names), *cg, np.asarray(float(PIECE)), threads=threads)
        cur = dict(zip(names, out))
        calls += 1
        done = cur["outcome"] != BUSY
        if done.all():
            for n in names: s[n][active] = cur[n]
            break
        if done.mean() > 0.25 :
            for n in names: s[n][active[done]] = cur[n][done]
            keep = ~done
            active = active[keep]
            cur = {n: np.ascontiguousarray(v[keep]) for n, v in cur.items()}
            cg = [np.ascontiguousarray(g[keep]) if g.ndim > 1 else g for g in cg]
    return s, calls
