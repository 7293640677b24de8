"""Small graphs to compile."""

import casadi as ca
import numpy as np
import pytest

from cardan.machines.ufunc.kernel import compile_program
from cardan.program.program import Port, Program


def make_program(name, inputs, outputs, text, key=None):
    """A program from port shapes and a function of SX matrices; a vector port is a column."""

    def dims(shape):
        return shape if len(shape) == 2 else (shape[0], 1) if shape else (1, 1)

    def record():
        symbols = [ca.SX.sym(n, *dims(shape)) for n, shape in inputs.items()]
        results = text(*symbols)
        results = results if isinstance(results, tuple) else (results,)
        return ca.Function(name, symbols, [ca.SX(r) for r in results])

    def ports(shapes):
        return tuple(Port(n, shape) for n, shape in shapes.items())

    return Program(name, ports(inputs), ports(outputs), key or f"test {name} {inputs} {outputs}", record)


def make_kernel(*args, **options):
    """The kernel of `make_program`."""
    return compile_program(make_program(*args, **options))


def arm(q, v, tau):
    """A made-up chain with sines, products, quotients and long-lived values: 7 in, 7 out."""
    x = [tau[0]]
    for i in range(7):
        s, c = ca.sin(q[i]), ca.cos(q[i])
        x.append((s * x[-1] + c * v[i] - tau[i] * tau[i - 1]) / (2 + s * v[i - 2] ** 2 + ca.sqrt(1 + x[-1] ** 2)))
    return ca.vertcat(*[a * x[-1] - b for a, b in zip(x[1:], x[:-1], strict=True)])


@pytest.fixture(scope="session")
def arm_kernel():
    """Kernel of `arm`."""
    return make_kernel("arm", {"q": (7,), "v": (7,), "tau": (7,)}, {"a": (7,)}, arm)


@pytest.fixture(scope="session")
def arm_reference():
    """`arm` by CasADi's own interpreter, row by row."""
    symbols = [ca.SX.sym(n, 7) for n in "qvt"]
    function = ca.Function("arm", symbols, [arm(*symbols)])

    def evaluate(q, v, tau):
        q, v, tau = np.broadcast_arrays(q, v, tau)
        rows = [np.array(function(*row)).ravel() for row in zip(*(a.reshape(-1, 7) for a in (q, v, tau)), strict=True)]
        return np.array(rows).reshape(q.shape)

    return evaluate
