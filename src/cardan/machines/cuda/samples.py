"""A march taken through a list of times in one launch, printed as LLVM IR for a GPU: one thread takes one system.

A thread keeps the state of its system in registers from the first time to the last. At each time it writes a sample:
the parts of the state that are asked for. So whole runs need one launch, and only samples leave the card.

`@samples` has 64-bit arguments only, in the order of `Launch`. Times are reached in one of two ways (`SamplePorts`):

- The march chooses its steps. It pauses before the one that would lead beyond the time, and ends one at a `stop`.
- The steps have a fixed length and are counted from `origin`, one for each system. At or after a `stop` the last one is
  shorter, and kept. The arithmetic is that of `integrate.stepper.BatchStepper._fixed_steps`, rounded in the same way.

A time inside a step is reached by a shorter step that is not kept: the state waits in the card's memory meanwhile.

A thread stops at a time's end, when its launch has taken enough steps, or when the outcome of its system is not 0. Its
status says which; the state is then in the card's memory, and the next launch goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from cardan.machines.cuda.entry import INDICES, finished_text
from cardan.machines.llvm.batch_loop import print_body
from cardan.machines.llvm.module import Lines, Module, VectorType
from cardan.machines.llvm.thread import array, in_memory, memory

if TYPE_CHECKING:
    from cardan.program.march import March
    from cardan.program.program import Port, Program

SYMBOL = "samples"
_ALIGN = {"i64": 8, "double": 8, "float": 4}


class Status(IntEnum):
    """Where a system is after a launch."""

    UNDER_WAY = 0  # it has taken all steps that the launch allows
    ARRIVED = 1  # at the last time
    STOPPED = 2  # its outcome is not 0
    APART = 3  # a shorter step to a sample needs care: the state is the one before it


@dataclass(frozen=True)
class SamplePorts:
    """Which ports of a march have which meaning.

    `sampled` are written at every time. `too_many` is the outcome of a system that has taken all steps it may, and
    `careful` one after which the caller takes a shorter step itself. `fixed` are None, or for steps of fixed length how
    near to the end of a step counts as the end; `stretch` is the longest that the last one before a stop may be. Both
    are parts of a step. `pause` and `longest` are the time to pause at and the longest step of a march that chooses its
    steps.
    `low` is empty, or what the names of low parts end in where a port is one of a pair: times are then computed in
    float64, and samples are sums of pairs in float64.
    """

    time: str
    length: str
    steps: str
    outcome: str
    end: str
    limit: str
    sampled: tuple[str, ...]
    too_many: int
    careful: int
    stretch: float
    fixed: float | None
    low: str = ""
    pause: str = "pause"
    longest: str = "max_step"

    @property
    def key(self) -> str:
        """Everything that the printed text depends on."""
        return repr(self)


@dataclass(frozen=True)
class Launch:
    """Arguments of a launch: `systems` from their `next` times to the time before number `till`.

    `budget` is how many steps a system may take in this launch, `most` how many in all. `step` is the length of fixed
    steps. All that follows are addresses: `times` and `stops` (K,); `next`, `status` (B,), 64-bit integers; `origin`
    (B,). The state, the data and the samples have an address, and strides in bytes from system to system and from
    element to element; samples also from time to time, counted from time number `first`.
    """

    systems: int
    till: int
    budget: int
    most: int
    first: int
    times: int
    stops: int
    next: int
    status: int
    origin: int
    step: int
    state: Sequence[tuple[int, int, int]]
    data: Sequence[tuple[int, int, int]]
    samples: Sequence[tuple[int, int, int, int]]

    @property
    def words(self) -> list[int]:
        """The arguments in order."""
        words = [getattr(self, name) for name in _SCALARS]
        for places in (self.state, self.data, self.samples):
            words += [word for place in places for word in place]
        return words


_SCALARS = (
    "systems", "till", "budget", "most", "first", "times", "stops", "next", "status", "origin", "step",
)  # fmt: skip


def print_samples(recorded: March, program: Program, ports: SamplePorts, dtype: str) -> str:
    """A module with the kernel `@samples` of a march that `program`, without empty ports, recorded."""
    module = Module(VectorType(dtype, 1), card=True, share=True)
    module.functions[SYMBOL] = _SampleLoop(recorded, program, module, ports).print()
    return finished_text(module, SYMBOL)


def data_ports(program: Program, ports: SamplePorts) -> list[Port]:
    """The inputs that are neither state nor set by the kernel."""
    own = {ports.end, ports.end + ports.low, ports.pause, ports.limit, *(port.name for port in program.outputs)}
    return [port for port in program.inputs if port.name not in own]


class _SampleLoop(Lines):
    """The kernel under construction."""

    def __init__(self, recorded: March, program: Program, module: Module, ports: SamplePorts) -> None:
        super().__init__(module.type, "e")
        self.program, self.module, self.ports = program, module, ports
        self.size, self.in_memory = print_body(recorded, program, module), in_memory(recorded, module.type)
        self.state = list(program.outputs)
        self.data = data_ports(program, ports)
        self.clock = VectorType("double", 1) if ports.low else self.t  # the type of times
        sizes = {port.name: port for port in self.state}
        self.sampled = [sizes[name] for name in ports.sampled]

    def print(self) -> str:
        """IR of the kernel."""
        parameters = [f"i64 %{name}" for name in _SCALARS]
        for kind, listed, words in (("s", self.state, "bxn"), ("d", self.data, "bxn"), ("w", self.sampled, "bxkn")):
            parameters += [f"i64 %{kind}{word}{j}" for j in range(len(listed)) for word in words]
        self._begin()
        if self.ports.fixed is None:
            self._choose_time()
        else:
            self._choose_whole_steps(self.ports.fixed, self.ports.stretch - 1)
        self._march()
        self._arrive()
        head = f"define ptx_kernel void @{SYMBOL}({', '.join(parameters)}) {{"
        return "\n".join([head, "entry:", *self.lines, "}"])

    # pieces of text

    def _say(self, *lines: str) -> None:
        self.lines += [line if line.endswith(":") else f"  {line}" for line in lines]

    def _own(self, name: str) -> str:
        """The thread's own copy of an input port."""
        return f"%own.{name}"

    def _get(self, name: str) -> str:
        """A number of the state, of the thread's own."""
        return self.load(self._own(name))

    def _outside(self, base: str, *terms: tuple[str, str | int]) -> str:
        """Address in the card's memory: a base plus indices times strides in bytes."""
        for index, stride in terms:
            if index != "0":
                base = self.new(f"add i64 {base}, {self.new(f'mul i64 {index}, {stride}')}")
        return self.new(f"inttoptr i64 {base} to ptr addrspace(1)")

    def _read(self, kind: str, address: str) -> str:
        return self.new(f"load {kind}, ptr addrspace(1) {address}, align {_ALIGN[kind]}")

    def _write(self, kind: str, value: str, address: str) -> None:
        self._say(f"store {kind} {value}, ptr addrspace(1) {address}, align {_ALIGN[kind]}")

    def _joined(self, name: str, element: int = 0) -> str:
        """A number of the thread's own in float64, if there are pairs: the sum of its pair, if it is one."""
        value = self.load(self.element(self._own(name), element))
        if not self.ports.low:
            return value
        value = self.new(f"fpext float {value} to double")
        if all(port.name != name + self.ports.low for port in self.program.inputs):
            return value
        low = self.load(self.element(self._own(name + self.ports.low), element))
        return self.new(f"fadd double {value}, {self.new(f'fpext float {low} to double')}")

    def _set_time(self, name: str, value: str) -> None:
        """Store a time as it is, or as a pair."""
        if not self.ports.low:
            self.store(value, self._own(name))
            return
        high = self.new(f"fptrunc double {value} to float")
        self.store(high, self._own(name))
        rest = self.new(f"fsub double {value}, {self.new(f'fpext float {high} to double')}")
        self.store(self.new(f"fptrunc double {rest} to float"), self._own(name + self.ports.low))

    def _each(self, kind: str, listed: Sequence[Port], load: bool) -> None:
        """Copy ports from the card's memory to the thread's own arrays, or back."""
        system = self._system()
        for j, port in enumerate(listed):
            row = self.new(f"add i64 %{kind}b{j}, {self.new(f'mul i64 {system}, %{kind}x{j}')}")
            for e in range(port.size):
                place = self._outside(row, (str(e), f"%{kind}n{j}"))
                own = self.element(self._own(port.name), e)
                if load:
                    self.store(self._read(self.t.scalar, place), own)
                else:
                    self._write(self.t.scalar, self.load(own), place)

    def _system(self) -> str:
        """The number of the system, computed anew as far as LLVM knows: addresses would fill the registers else."""
        return self.new('call i64 asm sideeffect "", "=l,0"(i64 %i)')

    # the kernel

    def _begin(self) -> None:
        """Find the system, and go on only if it is under way."""
        t = self.t
        for name in ("tid", "ctaid", "ntid"):
            self.module.declarations.add(f"declare i32 @llvm.nvvm.read.ptx.sreg.{INDICES[name]}()")
            self._say(
                f"%{name} = call i32 @llvm.nvvm.read.ptx.sreg.{INDICES[name]}()", f"%{name}.l = zext i32 %{name} to i64"
            )
        for name, size in [*((f"own.{port.name}", port.size) for port in self.program.inputs), ("state", self.size)]:
            self.lines += memory(self.module, name, size) if self.in_memory else array(self.module, name, size)
        self._say(*(f"%{name} = alloca i64, align 8" for name in ("k", "left", "apart", "was")))
        self._say("%i.0 = mul i64 %ctaid.l, %ntid.l", "%i = add i64 %i.0, %tid.l")
        self._say("%inside = icmp ult i64 %i, %systems", "br i1 %inside, label %look, label %exit", "look:")
        place = self._outside("%next", ("%i", 8))
        first = self._read("i64", place)
        self._say(f"store i64 {first}, ptr %k", "store i64 %budget, ptr %left", "store i64 0, ptr %apart")
        number = [port.name for port in self.state].index(self.ports.outcome)
        outcome = self._read(t.scalar, self._outside(f"%sb{number}", ("%i", f"%sx{number}")))
        stopped = self.new(f"fcmp une {t.scalar} {outcome}, 0.0")
        self._say(f"store i64 {int(Status.STOPPED)}, ptr %was", f"br i1 {stopped}, label %note, label %early", "early:")
        there = self.new(f"icmp sge i64 {first}, %till")
        self._say(f"store i64 {int(Status.ARRIVED)}, ptr %was", f"br i1 {there}, label %note, label %fetch", "fetch:")
        self._each("s", self.state, load=True)
        self._each("d", self.data, load=True)
        self._say("br label %choose")

    def _times(self) -> tuple[str, str]:
        """The next time and the next stop."""
        k = self.new("load i64, ptr %k")
        clock = self.clock
        found = [self._read(clock.scalar, self._outside(f"%{x}", (k, clock.bytes))) for x in ("times", "stops")]
        return found[0], found[1]

    def _choose_time(self) -> None:
        """Steps as far as the next time, none beyond it; they end at the next stop."""
        self._say("choose:", "store i64 0, ptr %apart")
        time, stop = self._times()
        self._set_time(self.ports.end, stop)
        self._set_time(self.ports.pause, time)
        self._say("br label %march")

    def _choose_whole_steps(self, on_step: float, longer: float) -> None:
        """Whole steps from the origin as far as the next time, but not the last one before a stop."""
        t, s = self.clock, self.clock.scalar
        self._say("choose:", "store i64 0, ptr %apart")
        time, stop = self._times()
        origin = self._read(s, self._outside("%origin", ("%i", t.bytes)))
        step = self.new("bitcast i64 %step to double")
        step = step if s == "double" else self.new(f"fptrunc double {step} to float")
        floor, ceil, size = (self._intrinsic(name) for name in ("floor", "ceil", "fabs"))
        near = self.new(f"fmul {s} {step}, {t.number(on_step)}")

        def steps_until(end: str) -> str:
            return self.new(f"fdiv {s} {self.new(f'fsub {s} {end}, {origin}')}, {step}")

        whole = self.new(f"call {s} {floor}({s} {self.new(f'fadd {s} {steps_until(time)}, {t.number(on_step)}')})")
        last = self.new(f"call {s} {ceil}({s} {self.new(f'fsub {s} {steps_until(stop)}, {t.number(longer)}')})")
        last = self.new(f"fsub {s} {last}, {t.number(1.0)}")
        fewer = self.new(f"fcmp olt {s} {last}, {whole}")
        count = self.new(f"select i1 {fewer}, {s} {last}, {s} {whole}")
        at = self.new(f"fadd {s} {origin}, {self.new(f'fmul {s} {count}, {step}')}")
        here = self._joined(self.ports.time)
        off = self.new(f"fsub {s} {at}, {time}")
        off = self.new(f"call {s} {size}({s} {off})")
        on = self.new(f"fcmp ole {s} {off}, {near}")
        end = self.new(f"select i1 {on}, {s} {time}, {s} {at}")
        reach = self.new(f"fadd {s} {here}, {near}")
        there = self.new(f"fcmp ole {s} {at}, {reach}")
        self._set_time(self.ports.end, self.new(f"select i1 {there}, {s} {here}, {s} {end}"))
        self._say("br label %march")

    def _intrinsic(self, name: str, arguments: int = 1) -> str:
        """Declare a function of one time or more."""
        clock = self.clock
        given = ", ".join([clock.scalar] * arguments)
        self.module.declarations.add(f"declare {clock.scalar} @llvm.{name}.{clock.suffix}({given})")
        return f"@llvm.{name}.{clock.suffix}"

    def _march(self) -> None:
        """Take steps until the end, as many as are left."""
        t, s, ports = self.t, self.t.scalar, self.ports
        self._say("march:")
        taken = self._get(ports.steps)
        short = self._is_short()
        self._say(f"br i1 {short}, label %allowed, label %arrived", "allowed:")
        count = self.new(f"fptosi {s} {taken} to i64")
        remaining = self.new(f"sub i64 %most, {count}")
        some = self.new(f"icmp sgt i64 {remaining}, 0")
        self._say(f"br i1 {some}, label %go, label %spent", "spent:")
        self.store(t.number(float(ports.too_many)), self._own(ports.outcome))
        self._say("br label %stop", "go:")
        left = self.new("load i64, ptr %left")
        fewer = self.new(f"icmp slt i64 {remaining}, {left}")
        limit = self.new(f"select i1 {fewer}, i64 {remaining}, i64 {left}")
        none = self.new(f"icmp slt i64 {limit}, 1")
        limit = self.new(f"select i1 {none}, i64 1, i64 {limit}")
        self.store(self.new(f"sitofp i64 {limit} to {s}"), self._own(ports.limit))
        places = [f"ptr %own.{port.name}" for port in self.program.inputs]
        places += [f"ptr %own.{port.name}" for port in self.state] + ["ptr %state"]  # it reads all before it writes
        self._say(f"call void @body({', '.join(places)})")
        after = self.new(f"fptosi {s} {self._get(ports.steps)} to i64")
        used = self.new(f"sub i64 {after}, {count}")
        left = self.new(f"sub i64 {left}, {used}")
        left = self.new(f"sub i64 {left}, 1")
        self._say(f"store i64 {left}, ptr %left")
        outcome = self._get(ports.outcome)
        well = self.new(f"fcmp oeq {s} {outcome}, 0.0")
        self._say(f"br i1 {well}, label %moved, label %ended", "ended:")
        apart = self.new("load i64, ptr %apart")
        aside = self.new(f"icmp ne i64 {apart}, 0")
        needs = self.new(f"fcmp oeq {s} {outcome}, {t.number(float(ports.careful))}")
        self._say(f"store i64 {int(Status.APART)}, ptr %was")
        both = self.new(f"and i1 {aside}, {needs}")
        self._say(f"br i1 {both}, label %note, label %stop", "stop:", f"store i64 {int(Status.STOPPED)}, ptr %was")
        self._say("br label %leave", "moved:")
        self._say(f"br i1 {self._is_short()}, label %more, label %arrived", "more:")
        able = self.new(f"icmp sgt i64 {left}, 0")
        self._say(f"br i1 {able}, label %march, label %pause", "pause:")
        apart = self.new("load i64, ptr %apart")
        aside = self.new(f"icmp ne i64 {apart}, 0")
        self._say(f"store i64 {int(Status.APART)}, ptr %was", f"br i1 {aside}, label %note, label %wait", "wait:")
        self._say(f"store i64 {int(Status.UNDER_WAY)}, ptr %was", "br label %leave")

    def _is_short(self) -> str:
        """Whether the end is not reached yet, nor the pause: as `integrate.explicit.step.is_running` says."""
        s, ports = self.clock.scalar, self.ports
        here, end = self._joined(ports.time), self._joined(ports.end)
        before_end = self.new(f"fcmp olt {s} {here}, {end}")
        if ports.fixed is not None:
            return before_end
        least = self._intrinsic("minnum", 2)
        h = self.new(f"call {s} {least}({s} {self._get(ports.length)}, {s} {self._get(ports.longest)})")
        left = self.new(f"fsub {s} {end}, {here}")
        longer = self.new(f"fmul {s} {h}, {self.clock.number(ports.stretch)}")
        near = self.new(f"fcmp oge {s} {longer}, {left}")
        h = self.new(f"select i1 {near}, {s} {left}, {s} {h}")
        until = self.new(f"fsub {s} {self._get(ports.pause)}, {here}")
        before_pause = self.new(f"fcmp oge {s} {until}, {h}")
        return self.new(f"and i1 {before_end}, {before_pause}")

    def _arrive(self) -> None:
        """Write a sample, and take the next time."""
        s, ports = self.clock.scalar, self.ports
        self._say("arrived:")
        time, stop = self._times()
        here = self._joined(ports.time)
        apart = self.new("load i64, ptr %apart")
        aside = self.new(f"icmp ne i64 {apart}, 0")
        self._say(f"br i1 {aside}, label %sample.apart, label %whole", "whole:")
        inside = self.new(f"fcmp olt {s} {here}, {time}")
        self._say(f"br i1 {inside}, label %part, label %sample", "part:")  # the state waits outside
        self._each("s", self.state, load=False)
        if ports.fixed is None:
            self.store(self.clock.number(float("inf")), self._own(ports.pause))
        else:
            length = self.new(f"fsub {s} {time}, {here}")
            length = length if s == self.t.scalar else self.new(f"fptrunc double {length} to float")
            self.store(length, self._own(ports.length))
        self._set_time(ports.end, time)
        self._say("store i64 1, ptr %apart", "br label %march", "sample.apart:")
        kept = self.new(f"fcmp oge {s} {time}, {stop}")
        self._say(f"br i1 {kept}, label %sample, label %back", "back:")
        self._sample()
        self._each("s", self.state, load=True)
        self._say("br label %further", "sample:")
        self._sample()
        self._say("br label %further", "further:")
        k = self.new(f"add i64 {self.new('load i64, ptr %k')}, 1")
        self._say(f"store i64 {k}, ptr %k", f"store i64 {int(Status.ARRIVED)}, ptr %was")
        there = self.new(f"icmp sge i64 {k}, %till")
        self._say(
            f"br i1 {there}, label %leave, label %again", "again:", f"store i64 {int(Status.UNDER_WAY)}, ptr %was"
        )
        able = self.new(f"icmp sgt i64 {self.new('load i64, ptr %left')}, 0")
        self._say(f"br i1 {able}, label %choose, label %leave", "leave:")
        self._each("s", self.state, load=False)
        self._say("br label %note", "note:")
        self._write("i64", self.new("load i64, ptr %k"), self._outside("%next", ("%i", 8)))
        self._write("i64", self.new("load i64, ptr %was"), self._outside("%status", ("%i", 8)))
        self._say("br label %exit", "exit:", "ret void")

    def _sample(self) -> None:
        """Write the parts of the state that are asked for."""
        k = self.new(f"sub i64 {self.new('load i64, ptr %k')}, %first")
        system = self._system()
        for j, port in enumerate(self.sampled):
            row = self.new(f"add i64 %wb{j}, {self.new(f'mul i64 {system}, %wx{j}')}")
            row = self.new(f"add i64 {row}, {self.new(f'mul i64 {k}, %wk{j}')}")
            for e in range(port.size):
                self._write(self.clock.scalar, self._joined(port.name, e), self._outside(row, (str(e), f"%wn{j}")))
