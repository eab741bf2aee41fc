"""Machines that run a program: the compiled library, and CasADi's own interpreter where there is no compiler.

Both take plain arrays for many runs at once: parameters, start states, deck tables, outlines. Columns of an output
row: joint torques, joint accelerations, deck force and moment, centre of mass, holding moments of locked joints,
centre of pressure (2), stance margin.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from posture.contact import center_of_pressure, stance_margin
from posture.engine.events import Events, observe_with_events, states_through_events
from posture.engine.library import EngineError, NoCompiler, load_library, widest
from posture.engine.program import Program
from posture.engine.tables import Components, Samples, Spline, Table, interpolation_weights

Array = NDArray[np.floating]
Whole = NDArray[np.int64]


@dataclass
class Batch:
    """Runs of one program that share step and length; first axis: run.

    ``tables``: one per run, all of one kind. ``outlines``: corners of each person's stance (n × 2), or empty.
    ``first``: index of the first step, so that a long run can be computed in pieces.
    """

    parameters: Array
    start: Array
    tables: Sequence[Table]
    steps: int
    step: float
    every: int
    first: int = 0
    keep_start: bool = False
    outlines: Sequence[Array] = ()
    lowest: Array | None = None  # height of the centre of mass that counts as fallen, per run
    gimbals: Sequence[int] = ()
    gimbal_limit: float = np.inf
    events: Sequence[Events] = ()  # one per run where a program has cables
    _kept: list[Any] = field(default_factory=list)  # arrays that a job points to

    @property
    def rows(self) -> int:
        """Kept instants per run."""
        return self.steps // self.every + int(self.keep_start)


@dataclass
class Statistics:
    """What to gather while runs go on, and where it ends up (filled by ``Machine.gather``).

    ``columns``: of the state (first) and output rows (after). ``moments``: runs × signals × (count, mean, M2, min,
    max). ``histogram``: runs × signals × (bins + 2), below and above the range at the ends. ``ending``: runs × (end
    time, why, events): 0 complete, 1 not finite, 2 past the gimbal limit, 3 fallen. ``over_time``: rows × signals ×
    (count, mean, M2) over the runs.
    """

    columns: Sequence[int]
    low: Array
    high: Array
    bins: int
    refractory: float
    moments: Array = field(default_factory=lambda: np.zeros(0))
    histogram: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    ending: Array = field(default_factory=lambda: np.zeros(0))
    over_time: Array = field(default_factory=lambda: np.zeros(0))

    def clear(self, runs: int, rows: int) -> None:
        """Zero everything for a new batch."""
        count = len(self.columns)
        self.moments = np.zeros((runs, count, 5))
        self.moments[..., 3:] = np.inf, -np.inf
        self.histogram = np.zeros((runs, count, self.bins + 2), np.int32)
        self.ending = np.zeros((runs, 3))
        self.over_time = np.zeros((rows, count, 3))


class Machine(Protocol):
    """Runs batches of one program."""

    kind: str
    program: Program

    def states(self, batch: Batch) -> Array:
        """States (runs × rows × states) at the kept instants."""
        ...

    def trajectories(self, batch: Batch) -> tuple[Array, Array]:
        """States and outputs (runs × rows × …) at the kept instants."""
        ...

    def observe(self, parameters: Array, outline: Array | None, times: Array, states: Array, channels: Array) -> Array:
        """Outputs (rows × …) at given states and deck channels of one run."""
        ...

    def rate(self, parameters: Array, time: float, state: Array, channels: Array) -> Array:
        """Time derivative of one state."""
        ...

    def gather(self, batch: Batch, statistics: Statistics) -> None:
        """Run a batch and fill the statistics; no trajectory is kept."""
        ...

    def until_alarm(self, batch: Batch) -> Array:
        """States after each step of a batch of one run, until a cable goes taut or slack in a step."""
        ...


def machine_for(program: Program, engine: str) -> Machine:
    """The machine for "compiled", "vm", or "auto": compiled, or vm with one line of advice."""
    key = (program.form, engine)
    if key not in _MACHINES:
        if engine == "vm":
            _MACHINES[key] = Interpreted(program)
        else:
            try:
                _MACHINES[key] = Compiled(program)
            except NoCompiler as missing:
                if engine == "compiled":
                    raise
                logging.getLogger("posture").warning("posture: %s", missing)
                _MACHINES[key] = Interpreted(program)
    return _MACHINES[key]


_MACHINES: dict[tuple[str, str], Machine] = {}


class _Job(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("runs", "used", "steps", "every", "first", "keep_start")),
        ("step", ctypes.c_double),
        ("parameters", ctypes.c_void_p),
        ("start", ctypes.c_void_p),
        ("deck", ctypes.c_int64),
        ("channels", ctypes.c_void_p),
        ("components", ctypes.c_int64),
        ("stride", ctypes.c_int64),
        ("points", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("frequency", "wave", "place", "mask", "weights")),
        *((name, ctypes.c_void_p) for name in ("spline", "knots", "spline_rate", "spline_start")),
        ("edges", ctypes.c_int64),
        ("outline", ctypes.c_void_p),
        ("lowest", ctypes.c_void_p),
        ("gimbals", ctypes.c_int64),
        ("gimbal", ctypes.c_void_p),
        ("gimbal_limit", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in ("states", "outputs", "final")),
        ("signals", ctypes.c_int64),
        ("signal", ctypes.c_void_p),
        ("bins", ctypes.c_int64),
        ("low", ctypes.c_void_p),
        ("high", ctypes.c_void_p),
        ("refractory", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in ("moments", "histogram", "ending", "over_time", "stopped")),
    )


class Compiled:
    """The program as a library: one run in scalars, several in lanes. ctypes lets other threads run meanwhile."""

    kind = "compiled"

    def __init__(self, program: Program) -> None:
        self.program = program
        self._libraries: dict[int, ctypes.CDLL] = {}
        self._library(1)

    def _library(self, lanes: int) -> ctypes.CDLL:
        if lanes not in self._libraries:
            library = load_library(self.program.form, self.program.c_text, lanes=lanes)
            library.posture_run.restype = ctypes.c_int64
            self._libraries[lanes] = library
        return self._libraries[lanes]

    def _run(self, batch: Batch, job: _Job) -> None:
        library = self._library(widest() if job.used > 1 else 1)
        if library.posture_run(ctypes.byref(job)):
            raise EngineError("not enough memory for the deck tables; use fewer wave components")

    def states(self, batch: Batch) -> Array:
        """States (runs × rows × states) at the kept instants."""
        if self.program.elements.cables:
            return _states_one_by_one(self, batch)
        job = self.job(batch)
        states = np.empty((len(batch.start), batch.rows, self.program.states))
        job.states = states.ctypes.data
        self._run(batch, job)
        return states

    def until_alarm(self, batch: Batch) -> Array:
        """States after each step of a batch of one run, until a cable goes taut or slack in a step."""
        job = self.job(batch)
        states, stopped = np.empty((batch.rows, self.program.states)), np.array([batch.steps], np.int64)
        job.states, job.stopped = states.ctypes.data, stopped.ctypes.data
        self._run(batch, job)
        return states[: int(stopped[0])]

    def trajectories(self, batch: Batch) -> tuple[Array, Array]:
        """States and outputs (runs × rows × …) at the kept instants."""
        if self.program.elements.cables:
            return _trajectories_one_by_one(self, batch)
        job = self.job(batch)
        states = np.empty((len(batch.start), batch.rows, self.program.states))
        outputs = np.empty((len(batch.start), batch.rows, self.program.measures + 3))
        job.states, job.outputs = states.ctypes.data, outputs.ctypes.data
        self._run(batch, job)
        return states, outputs

    def gather(self, batch: Batch, statistics: Statistics) -> None:
        """Run a batch and fill the statistics."""
        if self.program.elements.cables:
            _gather_one_by_one(self, batch, statistics)
            return
        job = self.job(batch)
        statistics.clear(len(batch.start), batch.rows)
        columns = np.asarray(statistics.columns, np.int64)
        low, high = (np.ascontiguousarray(values, float) for values in (statistics.low, statistics.high))
        job.signals, job.signal, job.bins = len(columns), columns.ctypes.data, statistics.bins
        job.low, job.high, job.refractory = low.ctypes.data, high.ctypes.data, statistics.refractory
        job.moments, job.histogram = statistics.moments.ctypes.data, statistics.histogram.ctypes.data
        job.ending, job.over_time = statistics.ending.ctypes.data, statistics.over_time.ctypes.data
        self._run(batch, job)

    def observe(self, parameters: Array, outline: Array | None, times: Array, states: Array, channels: Array) -> Array:
        """Outputs (rows × …) at given states and deck channels of one run."""
        job, kept = self._single(parameters, outline)
        arrays = [np.ascontiguousarray(values, float) for values in (times, states, channels)]
        outputs = np.empty((len(states), self.program.measures + 3))
        self._library(1).posture_observe(
            ctypes.byref(job),
            ctypes.c_int64(len(states)),
            *(ctypes.c_void_p(values.ctypes.data) for values in (*arrays, outputs)),
        )
        del kept
        return outputs

    def rate(self, parameters: Array, time: float, state: Array, channels: Array) -> Array:
        """Time derivative of one state."""
        job, kept = self._single(parameters, None)
        arrays = [np.ascontiguousarray(values, float) for values in (state, channels)]
        out = np.empty(self.program.states + 1)
        self._library(1).posture_rate(
            ctypes.byref(job),
            ctypes.c_double(time),
            *(ctypes.c_void_p(values.ctypes.data) for values in (*arrays, out)),
        )
        del kept
        return out[:-1]

    def _single(self, parameters: Array, outline: Array | None) -> tuple[_Job, list[Array]]:
        kept = [np.ascontiguousarray(parameters, float), np.zeros(0) if outline is None else _edges(outline)]
        job = _Job(runs=1, used=1, parameters=kept[0].ctypes.data, outline=kept[1].ctypes.data)
        job.edges = 0 if outline is None else len(outline)
        return job, kept

    def job(self, batch: Batch) -> _Job:
        """The C view of a batch; the batch keeps the arrays alive."""
        runs = len(batch.start)

        def place(values: Any, kind: Any = np.float64) -> int:
            array = np.ascontiguousarray(values, kind)
            batch._kept.append(array)
            return int(array.ctypes.data)

        batch._kept.clear()
        job = _Job(runs=runs, used=runs, steps=batch.steps, every=batch.every, first=batch.first, step=batch.step)
        job.keep_start = int(batch.keep_start)
        job.parameters, job.start = place(batch.parameters), place(batch.start)
        first = batch.tables[0]
        if any(type(table) is not type(first) for table in batch.tables):
            raise EngineError("the decks of one batch must be of one kind: waves, splines or samples")
        if isinstance(first, Components):
            waves: Sequence[Components] = batch.tables  # type: ignore[assignment]
            count = max(len(table.frequency) for table in waves)
            job.deck, job.components = 1, count
            job.stride, job.points = min(table.grid(batch.step) for table in waves)
            job.weights = place(interpolation_weights(job.stride, job.points))
            frequency, wave = np.zeros((runs, count)), np.zeros((runs, count, 6, 2))
            mask = np.zeros(count, np.int64)
            for run, table in enumerate(waves):
                size = len(table.frequency)
                frequency[run, :size] = table.frequency
                wave[run, :size, :, 0], wave[run, :size, :, 1] = table.cosine, table.sine
                mask[:size] |= table.mask
            job.frequency, job.wave, job.mask = place(frequency), place(wave), place(mask, np.int64)
            job.place = place([[*table.steady, *table.station, table.gravity] for table in waves])
        elif isinstance(first, Spline):
            splines: Sequence[Spline] = batch.tables  # type: ignore[assignment]
            job.deck = 2
            addresses = {id(table.pieces): place(table.pieces) for table in splines}
            job.spline = place([addresses[id(table.pieces)] for table in splines], np.uintp)
            job.knots = place([len(table.pieces) + 1 for table in splines], np.int64)
            job.spline_rate = place([table.rate for table in splines])
            job.spline_start = place([table.start for table in splines])
        else:
            job.deck, job.channels = 0, place([table.channels for table in batch.tables])  # type: ignore[union-attr]
        outlines = [_edges(outline) for outline in _same_corners(batch.outlines)]
        job.edges, job.outline = (len(outlines[0]) if outlines else 0), place(outlines)
        job.lowest = place(np.full(runs, -np.inf) if batch.lowest is None else batch.lowest)
        job.gimbals, job.gimbal = len(batch.gimbals), place(batch.gimbals, np.int64)
        job.gimbal_limit = batch.gimbal_limit
        return job


class Interpreted:
    """The same formulas in CasADi's interpreter: slower, no compiler needed, same results to rounding."""

    kind = "vm"

    def __init__(self, program: Program) -> None:
        self.program = program
        self._functions: dict[str, Any] = {}

    def _function(self, name: str) -> Any:
        if name not in self._functions:
            self._functions[name] = self._step() if name == "step" else self.program.function(name)
        return self._functions[name]

    def _step(self) -> Any:
        """One RK4 step in the order of operations of simulate.integrate."""
        import casadi

        rate = self._function("rate")
        x, p = casadi.SX.sym("x", self.program.states), casadi.SX.sym("p", rate.numel_in(3))
        channels, time, h = casadi.SX.sym("channels", 27), casadi.SX.sym("time"), casadi.SX.sym("h")
        before, middle, after = channels[:9], channels[9:18], channels[18:]
        k1 = rate(x, before, time, p)
        k2 = rate(x + h / 2 * k1, middle, time + h / 2, p)
        k3 = rate(x + h / 2 * k2, middle, time + h / 2, p)
        k4 = rate(x + h * k3, after, time + h, p)
        end = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        if self.program.elements.constrained:
            for changed in (self.program.joints, 2 * self.program.joints):  # as put_back in runtime.c
                better = self._function("project")(end, after, time + h, p)
                end = casadi.vertcat(better[:changed], end[changed:])
        return casadi.Function("step", [x, channels, time, h, p], [end])

    def states(self, batch: Batch) -> Array:
        """States (runs × rows × states) at the kept instants."""
        if self.program.elements.cables:
            return _states_one_by_one(self, batch)
        return np.stack([self._one(batch, run) for run in range(len(batch.start))])

    def trajectories(self, batch: Batch) -> tuple[Array, Array]:
        """States and outputs (runs × rows × …) at the kept instants."""
        return _trajectories_one_by_one(self, batch)

    def until_alarm(self, batch: Batch) -> Array:
        """States after each step of a batch of one run, until a cable goes taut or slack in a step."""
        return self._one(batch, 0, stop=True)

    def _one(self, batch: Batch, run: int, *, stop: bool = False) -> Array:
        """States at the kept instants of one run, with ``stop`` up to a step in which a cable goes taut or slack."""
        half_steps = (2 * batch.first + np.arange(2 * batch.steps + 1)) * (batch.step / 2)
        channels = evaluate(batch.tables[run], half_steps)
        buffer, evaluate_step = self._function("step").buffer()
        state, out = np.array(batch.start[run], float), np.empty(self.program.states)
        three, time = np.empty(27), np.empty(1)
        arrays = (state, three, time, np.array([batch.step]), np.ascontiguousarray(batch.parameters[run], float))
        for index, array in enumerate(arrays):
            buffer.set_arg(index, memoryview(array.data))
        buffer.set_res(0, memoryview(out.data))
        kept = np.empty((batch.rows, self.program.states))
        row = int(batch.keep_start)
        kept[:row] = state
        flat = channels.ravel()
        for index in range(batch.steps):
            three[:] = flat[18 * index : 18 * index + 27]
            time[0] = (batch.first + index) * batch.step
            evaluate_step()
            if stop:
                alarm = self._function("alarm")(out, three[18:], time[0] + batch.step, arrays[4])
                if (np.array(alarm) > 0).any():
                    return kept[:row]
            state[:] = out
            if (index + 1) % batch.every == 0:
                kept[row] = state
                row += 1
        return kept

    def observe(self, parameters: Array, outline: Array | None, times: Array, states: Array, channels: Array) -> Array:
        """Outputs (rows × …) at given states and deck channels of one run."""
        if not len(states):
            return np.empty((0, self.program.measures + 3))
        measure = self._function("measure").map(len(states))
        repeated = np.tile(np.asarray(parameters, float)[:, None], (1, len(states)))
        found = np.array(measure(states.T, channels.T, np.asarray(times)[None, :], repeated)).T
        force = 2 * self.program.joints
        pressure = center_of_pressure(found[:, force : force + 3], found[:, force + 3 : force + 6])
        margin = np.full(len(states), np.nan) if outline is None else stance_margin(pressure, outline)
        return np.column_stack((found, pressure, margin))

    def rate(self, parameters: Array, time: float, state: Array, channels: Array) -> Array:
        """Time derivative of one state."""
        return np.array(self._function("rate")(state, channels, time, parameters)).ravel()

    def gather(self, batch: Batch, statistics: Statistics) -> None:
        """Run a batch and fill the statistics."""
        _gather_one_by_one(self, batch, statistics)


def _states_one_by_one(machine: Machine, batch: Batch) -> Array:
    """States of a batch whose runs have cables (``Batch.events``)."""
    return np.stack([states_through_events(machine, batch, run) for run in range(len(batch.start))])


def _trajectories_one_by_one(machine: Machine, batch: Batch) -> tuple[Array, Array]:
    """States and outputs of a batch, run after run."""
    states, outputs = machine.states(batch), []
    kept = batch.every * (np.arange(batch.rows) + int(not batch.keep_start))
    half_steps = (2 * batch.first + np.arange(2 * batch.steps + 1)) * (batch.step / 2)
    for run, (parameters, own) in enumerate(zip(batch.parameters, states, strict=True)):
        channels = evaluate(batch.tables[run], half_steps)[2 * kept]
        outline = batch.outlines[run] if batch.outlines else None
        at = parameters, outline, (batch.first + kept) * batch.step, own, channels
        outputs.append(observe_with_events(machine, batch.events[run], *at) if batch.events else machine.observe(*at))
    return states, np.stack(outputs)


def _gather_one_by_one(machine: Machine, batch: Batch, statistics: Statistics) -> None:
    """Statistics of a batch, run after run in bounded memory."""
    from posture.engine.statistics import gather_run

    statistics.clear(len(batch.start), batch.rows)
    for run in range(len(batch.start)):
        one = slice(run, run + 1)
        single = replace(
            batch,
            parameters=batch.parameters[one],
            start=batch.start[one],
            tables=batch.tables[one],
            outlines=batch.outlines[one],
            events=batch.events[one],
            _kept=[],
        )
        states, outputs = (values[0] for values in machine.trajectories(single))
        gather_run(batch, statistics, run, states, outputs, machine.program)


def evaluate(table: Table, times: Array) -> Array:
    """Nine channels (n × 9) of a table in NumPy: what C does at its half steps."""
    from posture.deck import bryant_rates

    if isinstance(table, Samples):
        return table.channels
    if isinstance(table, Spline):
        at = times + table.start
        knot = np.clip((at * table.rate).astype(int), 0, len(table.pieces) - 1)
        x = (at - knot / table.rate)[:, None]
        c = np.moveaxis(table.pieces[knot], 2, 0)
        value = ((c[0] * x + c[1]) * x + c[2]) * x + c[3]
        slope = ((3 * c[0] * x + 2 * c[1]) * x + c[2])[:, :3]
        return np.hstack((value[:, :3], slope, value[:, 3:]))
    phase = np.outer(times, table.frequency)
    c, s, w = np.cos(phase), np.sin(phase), table.frequency[:, None]
    angles = table.steady[3:] + c @ table.cosine[:, 3:] + s @ table.sine[:, 3:]
    rates = c @ (w * table.sine[:, 3:]) - s @ (w * table.cosine[:, 3:])
    bend = -(c @ (w**2 * table.cosine) + s @ (w**2 * table.sine))
    spin, spin_rate = bryant_rates(angles, rates, bend[:, 3:])
    from scipy.spatial.transform import Rotation

    lifted = Rotation.from_euler("XYZ", angles).inv().apply(bend[:, :3] + np.array([0, 0, table.gravity]))
    swung = np.cross(spin_rate, table.station) + np.cross(spin, np.cross(spin, table.station))
    return np.hstack((spin, spin_rate, lifted + swung))


def _edges(outline: Array) -> Array:
    """Corner, edge to the next corner and 1 / length² of every edge: n × 5."""
    edge = np.roll(outline, -1, axis=0) - outline
    return np.column_stack((outline, edge, 1 / np.sum(edge * edge, axis=1)))


def _same_corners(outlines: Sequence[Array]) -> list[Array]:
    """Outlines with one number of corners, by cutting the first edges of those with fewer."""
    count = max((len(outline) for outline in outlines), default=0)
    padded = []
    for outline in outlines:
        corners = [tuple(corner) for corner in outline]
        while len(corners) < count:
            corners.insert(1, tuple((np.array(corners[0]) + np.array(corners[1])) / 2))
        padded.append(np.array(corners))
    return padded
