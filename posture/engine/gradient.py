"""Gradients of runs to masses, inertias, lengths, gains and the start: what identification needs.

For few parameters ``jacobian``: central differences, all perturbed runs side by side in lanes, any output. For many
``pullback``: compiled reverse differentiation of the whole run, one weighted sum of states at a time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from posture.engine.library import NoCompiler, load_library
from posture.engine.machine import Batch, Compiled, Machine, machine_for
from posture.engine.plan import table_of
from posture.engine.program import Program
from posture.errors import ScenarioError, find_name
from posture.simulate import Run

Array = NDArray[np.floating]

# Central differences err by step² (truncation) plus 1e-16 / step (rounding): least near the cube root of 1e-16.
RELATIVE_STEP = 6e-6


class Differentiable:
    """One run whose parameters may be changed; ``names`` lists them, ``values`` holds them."""

    def __init__(self, run: Run, *, engine: str = "auto") -> None:
        dynamics = run.dynamics()
        lines = dynamics.elements.lines if dynamics.elements else []
        program = Program([run.body], run.controller, lines)
        self.machine: Machine = machine_for(program, engine)
        self.names = program.parameter_names
        self.values = program.parameters(run.body, run.controller, lines)
        steps = round(run.duration / run.step)
        outlines = [run.body.contact_polygon()] if run.body.contact_names else []
        self.batch = Batch(
            self.values[None, :],
            run.start[None, :],
            [table_of(run.deck, steps, run.step)],
            steps,
            run.step,
            run.every,
            outlines=outlines,
        )
        if program.elements.cables:
            raise ScenarioError("a run with cables has no gradient where one goes taut or slack; use ligaments instead")

    def _repeated(self, parameters: Array) -> Batch:
        runs = len(parameters)
        one = self.batch
        return replace(
            one,
            parameters=parameters,
            start=np.repeat(one.start, runs, axis=0),
            tables=list(one.tables) * runs,
            outlines=list(one.outlines) * runs,
            _kept=[],
        )

    def run(self, values: Array | None = None) -> tuple[Array, Array]:
        """States and outputs at the kept instants, for other parameter values if given."""
        chosen = self.values if values is None else np.asarray(values, float)
        states, outputs = self.machine.trajectories(self._repeated(chosen[None, :]))
        return states[0], outputs[0]

    def jacobian(self, names: Sequence[str], values: Array | None = None, *, of: str = "states") -> Array:
        """Derivatives (rows × columns × parameters) of the kept "states" or "outputs" to the named parameters."""
        find_name(of, ("states", "outputs"), what="result", where="jacobian", error=ScenarioError)
        places = [
            self.names.index(find_name(name, self.names, what="parameter", where="jacobian", error=ScenarioError))
            for name in names
        ]
        base = self.values if values is None else np.asarray(values, float)
        steps = RELATIVE_STEP * np.where(base != 0, np.abs(base), 1.0)[places]
        tried = np.repeat(base[None, :], 2 * len(places), axis=0)
        for index, (place, step) in enumerate(zip(places, steps, strict=True)):
            tried[2 * index, place] += step
            tried[2 * index + 1, place] -= step
        moved = np.array([tried[2 * index, place] - tried[2 * index + 1, place] for index, place in enumerate(places)])
        batch = self._repeated(tried)
        found = self.machine.states(batch) if of == "states" else self.machine.trajectories(batch)[1]
        return np.moveaxis((found[::2] - found[1::2]) / moved[:, None, None], 0, -1)

    def pullback(self, weights: Array, values: Array | None = None) -> tuple[Array, Array]:
        """Gradient of Σ weights · kept states (rows × states) to all parameters and to the start state.

        For a cost of the states, ``weights`` is its derivative to them.
        """
        program = self.machine.program
        if program.elements.constrained:
            raise ScenarioError("reverse differentiation does not know how rods keep their length; use jacobian()")
        batch = self._repeated((self.values if values is None else np.asarray(values, float))[None, :])
        weights = np.ascontiguousarray(weights, float)
        if weights.shape != (batch.rows, program.states):
            raise ScenarioError(f"weights have shape {weights.shape}; they need ({batch.rows}, {program.states})")
        if not isinstance(self.machine, Compiled):
            raise NoCompiler(
                "reverse differentiation of a run needs a C compiler; use jacobian(), or pip install ziglang"
            )
        library = load_library(program.form + "-adjoint", lambda: program.c_text(adjoint=True), lanes=1)
        to_parameters, to_start = np.empty(len(self.names)), np.empty(program.states)
        job = self.machine.job(batch)
        library.posture_pullback.restype = ctypes.c_int64
        arrays = (weights, to_parameters, to_start)
        if library.posture_pullback(ctypes.byref(job), *(ctypes.c_void_p(array.ctypes.data) for array in arrays)):
            raise ScenarioError("not enough memory to differentiate so long a run; shorten it")
        return to_parameters, to_start
