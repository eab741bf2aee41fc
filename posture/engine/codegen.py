"""CasADi expressions to C that works for one run and for several side by side.

CasADi's own generator writes scalars only; here each instruction of an SX function becomes one line on the type
``real``, a double or a vector of doubles (see runtime.c). What depends on parameters alone is set apart and computed
once per run. Sines and cosines of the joint angles come in as inputs, so that they can be computed side by side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import casadi

from posture.errors import PostureError

BINARY = {
    casadi.OP_ADD: "({0}+{1})",
    casadi.OP_SUB: "({0}-{1})",
    casadi.OP_MUL: "({0}*{1})",
    casadi.OP_DIV: "({0}/{1})",
    casadi.OP_FMIN: "real_min({0},{1})",
    casadi.OP_FMAX: "real_max({0},{1})",
    casadi.OP_POW: "real_pow({0},{1})",
    casadi.OP_CONSTPOW: "real_pow({0},{1})",
    casadi.OP_ATAN2: "real_atan2({0},{1})",
    casadi.OP_LT: "real_less({0},{1})",
    casadi.OP_LE: "real_less_equal({0},{1})",
    casadi.OP_EQ: "real_equal({0},{1})",
    casadi.OP_NE: "(1.0-real_equal({0},{1}))",
    casadi.OP_AND: "({0}*{1})",
    casadi.OP_IF_ELSE_ZERO: "real_if({0},{1})",
}
UNARY = {
    casadi.OP_ASSIGN: "{0}",
    casadi.OP_NEG: "(-{0})",
    casadi.OP_SQ: "({0}*{0})",
    casadi.OP_TWICE: "({0}+{0})",
    casadi.OP_INV: "(1.0/{0})",
    casadi.OP_SQRT: "real_sqrt({0})",
    casadi.OP_FABS: "real_abs({0})",
    casadi.OP_SIN: "real_sin({0})",
    casadi.OP_COS: "real_cos({0})",
    casadi.OP_TAN: "real_tan({0})",
    casadi.OP_EXP: "real_exp({0})",
    casadi.OP_LOG: "real_log({0})",
    casadi.OP_TANH: "real_tanh({0})",
    casadi.OP_ATAN: "real_atan({0})",
    casadi.OP_ASIN: "real_asin({0})",
    casadi.OP_ACOS: "real_acos({0})",
    casadi.OP_SIGN: "real_sign({0})",
    casadi.OP_NOT: "(1.0-{0})",
}


class NotCompilable(PostureError):
    """A formula holds an operation the C generator does not know."""


class Hoisted:
    """Values that depend on parameters alone: C lines of ``prepare`` and the array ``k`` they fill."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.size = 0

    def keep(self, expression: str) -> str:
        """Store a value for the run; the C expression that reads it."""
        self.lines.append(f"  k[{self.size}] = {expression};")
        self.size += 1
        return f"k[{self.size - 1}]"


def function_text(
    name: str, inputs: dict[str, Any], output: Any, *, parameters: str, hoisted: Hoisted, prefix: str
) -> str:
    """A static C function ``name(k, inputs…, out)``; lines on ``parameters`` alone go to ``hoisted``.

    ``prefix`` keeps the names in the shared ``prepare`` function apart.
    """
    names = list(inputs)
    function = casadi.Function(name, [inputs[key] for key in names], [casadi.densify(output)])
    constant_input = names.index(parameters)
    work: dict[int, tuple[str, bool]] = {}  # C expression and whether it depends on parameters alone
    kept: dict[str, str] = {}
    lines: list[str] = []

    def local(slot: int, early: bool) -> str:
        text, is_early = work[slot]
        if early or not is_early or not text.startswith(prefix):
            return text
        if text not in kept:
            kept[text] = hoisted.keep(text)
        return kept[text]

    for number in range(function.n_instructions()):
        operation = function.instruction_id(number)
        into, out_of = function.instruction_output(number), function.instruction_input(number)
        if operation == casadi.OP_CONST:
            work[into[0]] = (_number(function.instruction_constant(number)), True)
        elif operation == casadi.OP_INPUT:
            which, place = out_of
            if which == constant_input:
                variable = f"{prefix}p{place}"
                hoisted.lines.append(f"  const real {variable} = p[{place}];")
                work[into[0]] = (variable, True)
            else:
                work[into[0]] = (f"{names[which]}[{place}]", False)
        elif operation == casadi.OP_OUTPUT:
            lines.append(f"  out[{into[1]}] = {local(out_of[0], False)};")
        else:
            pattern = BINARY.get(operation) or UNARY.get(operation)
            if pattern is None:
                raise NotCompilable(f"{name}: CasADi operation {operation} has no C form here; use engine 'vm'")
            early = all(work[slot][1] for slot in out_of)
            text = pattern.format(*(local(slot, early) for slot in out_of))
            variable = f"{prefix}{number}" if early else f"t{number}"
            (hoisted.lines if early else lines).append(f"  const real {variable} = {text};")
            work[into[0]] = (variable, early)
    arguments = ", ".join(f"const real *restrict {key}" for key in names if key != parameters)
    head = f"static inline void {name}(const real *restrict k, {arguments}, real *restrict out)"
    return "\n".join([head + " {", *lines, "}"])


def prepare_text(hoisted: Hoisted) -> str:
    """The C function that computes what depends on parameters alone."""
    head = "static void prepare(const real *restrict p, real *restrict k)"
    return "\n".join([f"#define CONSTANTS {max(1, hoisted.size)}", head + " {", *hoisted.lines, "}"])


def _number(value: float) -> str:
    """A constant that C reads back to the same double."""
    if math.isnan(value) or math.isinf(value):
        raise NotCompilable(f"a formula holds the constant {value}; it must be finite")
    return f"real_of({value!r})" if value >= 0 else f"real_of(-{-value!r})"


def scalars(vector: Any) -> list[Any]:
    """The entries of a CasADi column vector."""
    return [vector[index] for index in range(vector.numel())]


def column(values: Sequence[Any]) -> Any:
    """A CasADi column vector of scalars, numbers allowed."""
    return casadi.vertcat(*values) if values else casadi.SX(0, 1)
