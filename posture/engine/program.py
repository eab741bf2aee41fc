"""A body under a control law on a moving deck, as formulas: what is compiled, and what the CasADi machine evaluates.

A program fits every person and every gain of one build: masses, inertias, offsets and the law's parameters are
numbers given with each run. Building one costs nothing; CasADi is loaded when the formulas are first asked for.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controllers import Controller, SymbolicController, Symbols
from posture.body import STANDARD_GRAVITY, Body
from posture.elements import Line
from posture.engine.lines import Fastened, carriers
from posture.engine.skeleton import FIELDS, Skeleton
from posture.errors import ScenarioError

Array = NDArray[np.floating]

HERE = Path(__file__).parent
FORMULA_FILES = (
    "spatial.py",
    "skeleton.py",
    "symbolic.py",
    "lines.py",
    "pulling.py",
    "../elements.py",
    "codegen.py",
    "program.py",
    "prelude.c",
    "runtime.c",
    "adjoint.c",
)


class Program:
    """Formulas of ``bodies`` (one or more persons of one build) under ``controller``'s law.

    ``elements``: lines between links, as they are on the first body (lengths said).
    """

    def __init__(self, bodies: Sequence[Body], controller: Controller, elements: Sequence[Line] = ()) -> None:
        if not isinstance(controller, SymbolicController):
            raise ScenarioError(
                f"the controller {type(controller).__name__} has no symbolic law, so it cannot be compiled; "
                "give it symbolic(), symbolic_form() and parameters() (see controllers/protocol.py), "
                "or use engine 'reference'"
            )
        self.controller = controller
        self._apart = carriers(bodies[0], elements)
        self.skeleton = skeleton_of(bodies[0], self._apart)
        self.elements = Fastened(bodies[0], self.skeleton, elements)
        self.joints = len(bodies[0].joint_names)
        self.joint_names = tuple(bodies[0].joint_names)
        self.locked = tuple(bodies[0].joint_index(name) for name in bodies[0].locked)
        self.mask = np.zeros(self.skeleton.values.shape, bool)
        for body in bodies:
            other = skeleton_of(body, self._apart)
            if other.structure != self.skeleton.structure:
                raise ScenarioError(
                    f"{body.name}: joints, axes or locked angles differ from {bodies[0].name}'s; "
                    "persons of one ensemble must be one body in different sizes"
                )
            self.mask |= other.values != 0
        self.gains = {name: len(value) for name, value in controller.parameters().items()}
        self.states = 2 * self.joints + controller.memory_size

    @property
    def parameter_names(self) -> list[str]:
        """Names of all numbers a run needs, such as ``hip_z.mass`` and ``stiffness.hip_x``."""
        inertial = [
            f"{node.name}.{FIELDS[column]}"
            for node, row in zip(self.skeleton.nodes, self.mask, strict=True)
            for column in np.flatnonzero(row)
        ]
        own = []
        for name, size in self.gains.items():
            labels = self.joint_names if size == self.joints else [str(index) for index in range(size)]
            own += [f"{name}.{label}" for label in labels]
        return inertial + own + self.elements.number_names

    def parameters(self, body: Body, controller: Controller, elements: Sequence[Line] = ()) -> Array:
        """The numbers of one run, in the order of ``parameter_names``; ``elements`` with their lengths said."""
        skeleton = skeleton_of(body, self._apart)
        values = skeleton.values
        if (values[~self.mask] != 0).any():
            raise ScenarioError(f"{body.name}: this person was not among those the program was built for; add it")
        assert isinstance(controller, SymbolicController)
        own = controller.parameters()
        gains = [np.asarray(own[name], float) for name in self.gains]
        return np.concatenate([values[self.mask], *gains, self.elements.numbers(body, skeleton, elements)])

    @property
    def measures(self) -> int:
        """Size of what ``measure`` gives: torques, accelerations, force, moment, centre of mass, holding moments.

        With elements also their tensions, lengths and total force on the person.
        """
        lines = len(self.elements.lines)
        return 2 * self.joints + 9 + len(self.locked) + (2 * lines + 3 if lines else 0)

    @property
    def form(self) -> str:
        """Fingerprint of everything that decides the C text."""
        law = Path(inspect.getfile(type(self.controller))).read_bytes()
        parts = [(HERE / name).read_bytes() for name in FORMULA_FILES]
        text = repr(
            (self.skeleton.structure, self.mask.tolist(), self.joint_names, self.locked, self.gains, self.states)
        )
        text += self.elements.structure
        form = type(self.controller).__qualname__ + self.controller.symbolic_form()
        return hashlib.sha256(b"\0".join([*parts, law, text.encode(), form.encode()])).hexdigest()

    # ------------------------------------------------------------ formulas

    @cached_property
    def formulas(self) -> dict[str, Any]:
        """CasADi columns: inputs x, s, c, channels, now, p; outputs rate and measure.

        With rods or cables also ``project`` (positions and velocities of the joints), with cables ``alarm``.
        """
        import casadi

        from posture.engine.codegen import column, scalars
        from posture.engine.symbolic import Base, Mirror

        mirror = Mirror(self.skeleton, symbolic=self.mask)
        joints = self.joints
        gains = {name: casadi.SX.sym(name, size) for name, size in self.gains.items()}
        x, s, c = (casadi.SX.sym(*pair) for pair in (("x", self.states), ("s", joints), ("c", joints)))
        channels, now = casadi.SX.sym("channels", 9), casadi.SX.sym("now")
        position, velocity, memory = x[:joints], x[joints : 2 * joints], x[2 * joints :]
        sines = {7 + index: (s[index], c[index]) for index in range(joints)}
        rest, still = [0.0] * 6, [0.0] * (joints + 6)
        q, v = [*rest, 1.0, *scalars(position)], [*rest, *scalars(velocity)]

        def gravity_torque() -> Any:
            return column(mirror.inverse(q, still, still, Base.still(STANDARD_GRAVITY), sines)[0][6:])

        torque, memory_rate = self.controller.symbolic(Symbols(now, position, velocity, memory, gains, gravity_torque))
        base = Base.of_channels(scalars(channels))
        numbers = casadi.SX.sym("lines", len(self.elements.number_names))
        more: dict[str, Any] = {}
        lines: list[Any] = []
        pulls = None
        if self.elements.lines:
            from posture.engine.pulling import Pulling

            pulling = Pulling(
                self.elements, mirror, numbers,
                position=position, velocity=velocity, s=s, c=c, q=q, sines=sines, now=now,
            )  # fmt: skip
            acceleration = [*rest, *pulling.forward(v, scalars(torque), base)]
            pulls = pulling.pulls()
            lines = [*pulling.tension, *scalars(pulling.length), *pulling.total()]
            if self.elements.constrained:
                more["project"] = column(pulling.projected(scalars(position), scalars(velocity)))
            if self.elements.cables:
                more["alarm"] = column(pulling.alarms())
        else:
            acceleration, wrench = mirror.forward(q, v, [*rest, *scalars(torque)], base, sines)
        held = []
        if self.locked or self.elements.lines:
            torques, reaction = mirror.inverse(q, v, acceleration, base, sines, pulls)
            held = [torques[6 + index] for index in self.locked]
            wrench = reaction if self.elements.lines else wrench
        acting = [0.0 if index in self.locked else value for index, value in enumerate(scalars(torque))]
        center = mirror.center_of_mass(q, sines)
        return {
            "inputs": {
                "x": x, "s": s, "c": c, "channels": channels, "now": now,
                "p": casadi.vertcat(mirror.parameters, *gains.values(), numbers),
            },
            "rate": column([*scalars(velocity), *acceleration[6:], *scalars(memory_rate)]),
            "measure": column([*acting, *acceleration[6:], *wrench, *center, *held, *lines]),
            **more,
        }  # fmt: skip

    def function(self, name: str) -> Any:
        """A CasADi function (x, channels, now, p) of "rate" or "measure", with the sines inside."""
        import casadi

        inputs = self.formulas["inputs"]
        position = inputs["x"][: self.joints]
        plain = casadi.substitute(
            [self.formulas[name]], [inputs["s"], inputs["c"]], [casadi.sin(position), casadi.cos(position)]
        )
        return casadi.Function(name, [inputs[key] for key in ("x", "channels", "now", "p")], plain)

    def _adjoint(self) -> tuple[dict[str, Any], Any]:
        """Inputs with weights l, and (df/dx)ᵀ l, (df/dp)ᵀ l of the rates f; s and c follow x."""
        import casadi

        inputs, rate = self.formulas["inputs"], self.formulas["rate"]
        weights = casadi.SX.sym("l", self.states)
        of = {name: casadi.jtimes(rate, inputs[name], weights, True) for name in ("x", "s", "c", "p")}
        turned = inputs["c"] * of["s"] - inputs["s"] * of["c"]
        to_state = of["x"] + casadi.vertcat(turned, casadi.SX.zeros(self.states - self.joints))
        return {**inputs, "l": weights}, casadi.vertcat(to_state, of["p"])

    def c_text(self, *, adjoint: bool = False) -> str:
        """The whole C file but for LANES; ``adjoint`` adds reverse differentiation."""
        from posture.engine.codegen import Hoisted, function_text, prepare_text

        hoisted = Hoisted()
        wanted = [
            (name, prefix, self.formulas["inputs"], self.formulas[name])
            for name, prefix in (("rate", "a"), ("measure", "b"), ("project", "e"), ("alarm", "f"))
            if name in self.formulas
        ]
        if adjoint:
            wanted.append(("adjoint", "d", *self._adjoint()))
        functions = [
            function_text(name, inputs, output, parameters="p", hoisted=hoisted, prefix=prefix)
            for name, prefix, inputs, output in wanted
        ]
        sizes = {
            "JOINTS": self.joints,
            "PADDED": max(4, -(-self.joints // 4) * 4),
            "STATES": self.states,
            "PARAMETERS": self.formulas["inputs"]["p"].numel(),
            "MEASURES": self.measures,
            "OUTPUTS": self.measures + 3,
            "PROJECTED": int(self.elements.constrained),
            "CABLES": len(self.elements.cables),
        }
        lines = [f"#define {name} {value}" for name, value in sizes.items()]
        texts = [(HERE / name).read_text(encoding="utf-8") for name in ("prelude.c", "runtime.c", "adjoint.c")]
        after = texts[1:] if adjoint else texts[1:2]
        return "\n".join([texts[0], *lines, prepare_text(hoisted), *functions, *after])


def skeleton_of(body: Body, apart: Collection[str] = ()) -> Skeleton:
    """The skeleton of a body whose root moves with the deck."""
    return Skeleton(body.model, locked=body.locked, prescribed_base=True, apart=apart)
