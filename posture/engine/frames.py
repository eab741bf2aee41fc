"""Inverse dynamics of long recordings: generalised forces of every frame, as Pinocchio's rnea gives them."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from posture.engine.library import NoCompiler, load_library, widest
from posture.engine.program import FORMULA_FILES, HERE
from posture.engine.skeleton import Skeleton
from posture.errors import BodyError

Array = NDArray[np.floating]

BLOCK_FRAMES = 4096


class InverseDynamics:
    """Compiled inverse dynamics of any ``pin.Model`` with its own gravity; other persons of one build share it.

    ``engine``: "compiled", "vm" (CasADi's interpreter), or "auto".
    """

    def __init__(self, model: pin.Model, *, engine: str = "auto") -> None:
        self.skeleton = Skeleton(model)
        self.mask = self.skeleton.values != 0
        gravity = np.array(model.gravity.linear)
        self.parameters = np.concatenate((self.skeleton.values[self.mask], -gravity))
        self._library: ctypes.CDLL | None = None
        self._function: Any = None
        if engine != "vm":
            try:
                self._library = load_library(self._form(), self._c_text, lanes=widest())
            except NoCompiler as missing:
                if engine == "compiled":
                    raise
                logging.getLogger("posture").warning("posture: %s", missing)
        self.kind = "compiled" if self._library is not None else "vm"

    def __call__(self, q: Array, v: Array, a: Array, *, threads: int = 1) -> Array:
        """Generalised forces (frames × nv) of configurations, velocities and accelerations (frames × nq, nv, nv)."""
        sizes = (self.skeleton.nq, self.skeleton.nv, self.skeleton.nv)
        given = [np.ascontiguousarray(values, float) for values in (q, v, a)]
        for values, name, size in zip(given, "qva", sizes, strict=True):
            if values.ndim != 2 or values.shape != (len(given[0]), size):
                raise BodyError(
                    f"inverse dynamics: {name} has shape {values.shape}; it needs ({len(given[0])}, {size})"
                )
        frames = len(given[0])
        result = np.empty((frames, self.skeleton.nv))
        if not frames:
            return result
        if self._library is None:
            return self._interpreted(*given)
        run = self._library.posture_frames

        def part(first: int, count: int) -> None:
            run(
                ctypes.c_void_p(self.parameters.ctypes.data),
                ctypes.c_int64(count),
                *(ctypes.c_void_p(values.ctypes.data + 8 * first * values.shape[1]) for values in (*given, result)),
            )

        if threads == 1:
            part(0, frames)
        else:
            with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
                firsts = range(0, frames, BLOCK_FRAMES)
                list(pool.map(lambda first: part(first, min(BLOCK_FRAMES, frames - first)), firsts))
        return result

    def _form(self) -> str:
        files = [(HERE / name).read_bytes() for name in (*FORMULA_FILES, "frames.c", "frames.py")]
        text = repr((self.skeleton.structure, self.mask.tolist()))
        return hashlib.sha256(b"\0".join([*files, text.encode()])).hexdigest()

    def _formulas(self, *, split: bool) -> tuple[dict[str, Any], Any]:
        """Inputs and generalised forces; ``split``: sines and cosines as inputs of their own."""
        import casadi

        from posture.engine.codegen import column, scalars
        from posture.engine.symbolic import Base, Mirror

        mirror = Mirror(self.skeleton, symbolic=self.mask)
        sizes = {"q": self.skeleton.nq, "s": len(self.skeleton.angles), "c": len(self.skeleton.angles)}
        sizes |= {"v": self.skeleton.nv, "a": self.skeleton.nv}
        inputs = {name: casadi.SX.sym(name, size) for name, size in sizes.items()}
        gravity = casadi.SX.sym("gravity", 3)
        sines = {place: (inputs["s"][index], inputs["c"][index]) for index, place in enumerate(self.skeleton.angles)}
        base = Base([0.0] * 3, [0.0] * 3, scalars(gravity))
        q, v, a = (scalars(inputs[name]) for name in "qva")
        force, _ = mirror.inverse(q, v, a, base, sines if split else None)
        inputs["p"] = casadi.vertcat(mirror.parameters, gravity)
        return inputs, column(force)

    def _interpreted(self, q: Array, v: Array, a: Array) -> Array:
        import casadi

        if self._function is None:
            inputs, force = self._formulas(split=False)
            self._function = casadi.Function("inverse", [inputs[name] for name in ("q", "v", "a", "p")], [force])
        repeated = np.tile(self.parameters[:, None], (1, len(q)))
        return np.ascontiguousarray(np.array(self._function.map(len(q))(q.T, v.T, a.T, repeated)).T)

    def _c_text(self) -> str:
        from posture.engine.codegen import Hoisted, function_text, prepare_text

        inputs, force = self._formulas(split=True)
        hoisted = Hoisted()
        function = function_text("inverse", inputs, force, parameters="p", hoisted=hoisted, prefix="a")
        places = ", ".join(str(place) for place in (*self.skeleton.angles, 0))
        sizes = {
            "NQ": self.skeleton.nq,
            "NV": self.skeleton.nv,
            "ANGLES": len(self.skeleton.angles),
            "ANGLE_PLACES": f"{{{places}}}",
            "PARAMETERS": len(self.parameters),
        }
        lines = [f"#define {name} {value}" for name, value in sizes.items()]
        texts = [(HERE / name).read_text(encoding="utf-8") for name in ("prelude.c", "frames.c")]
        return "\n".join([texts[0], *lines, prepare_text(hoisted), function, texts[1]])
