"""A short, reproducible run of every fuzzing target, files of random structure, and every crash that was ever found.

Long runs: `python -m tests.fuzz TARGET --seconds 600`.
"""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given, settings
from tests.fuzz.mutate import mutated
from tests.fuzz.strategies import STRATEGIES
from tests.fuzz.targets import TARGETS
from tests.fuzz.watch import Watch

EXECUTIONS = {"urdf": 500, "yaml": 500, "mjcf": 200, "mesh": 120, "shape": 300, "expression": 3000, "units": 5000}


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_input_is_read_or_refused(name: str) -> None:
    target = TARGETS[name]
    watch = Watch(target)
    for data in islice(mutated(list(target.seeds()), target.words, 1), EXECUTIONS[name]):
        watch.run(data)
    assert not watch.crashes
    assert 0 < watch.read < watch.executions


@pytest.mark.parametrize("name", STRATEGIES)
def test_input_of_random_structure_is_read_or_refused(name: str) -> None:
    watch = Watch(TARGETS[name])

    @settings(max_examples=40, database=None, derandomize=True)
    @given(STRATEGIES[name])
    def search(text: str) -> None:
        watch.run(text.encode())
        assert not watch.crashes

    search()


# Every crash that fuzzing or reading the code has found, by target.
CRASHES = [
    ("yaml", b"cardan: 1\nname: \xa4\n"),  # half a character reached libyaml
    ("units", b"1e300 km^99"),  # a fraction beyond the range of floats
    ("units", b"5 rev^99*rev^99*rev^99*rev^99*rev^99*rev^99*rev^99"),  # a power of pi beyond it
    ("units", b"1 ((((km^99)^99)^99)^99)^99"),  # a number of 10^10 digits
    (
        "urdf",
        b"<robot>" + (b'<link name="a">' + b"<v>" * 2000 + b"</v>" * 2000 + b"</link>") * 2 + b"</robot>",
    ),  # depth
    ("urdf", b'<robot><link name="a"/><joint name="' + b"x" * 10**5 + b'"/></robot>'),  # a sentence without end
    ("mjcf", b"<mujoco>" + b"<default>" * 3000 + b"</default>" * 3000 + b"</mujoco>"),  # depth
]


@pytest.mark.parametrize(("name", "data"), CRASHES, ids=range(len(CRASHES)))
def test_a_crash_is_now_a_refusal(name: str, data: bytes) -> None:
    watch = Watch(TARGETS[name])
    watch.run(data)
    assert not watch.crashes
    assert watch.read == 0


def test_the_watch_sees_a_crash() -> None:
    """A target that fails now and then: the fuzzer finds it and tells it once."""
    from tests.fuzz.targets import Target

    watch = Watch(Target(lambda data: 1 / (b"m" not in data), lambda: iter((b"abc",)), ("m",)))
    for data in islice(mutated([b"abc"], ("m",), 1), 200):
        watch.run(data)
    assert [place.split(" ")[0] for place in watch.crashes] == ["ZeroDivisionError"]
