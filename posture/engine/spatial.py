"""Vectors, rotations and small symmetric systems in scalars that may be numbers or CasADi symbols.

Plain lists: CasADi drops products with zero by itself, so sparse inertias and offsets cost nothing later.
"""

from __future__ import annotations

from typing import Any

Scalar = Any  # float or casadi.SX (1 × 1); casadi has no types
Vector = list[Scalar]
Matrix = list[Vector]


def add(*vectors: Vector) -> Vector:
    """Sum of vectors."""
    total = list(vectors[0])
    for vector in vectors[1:]:
        total = [one + other for one, other in zip(total, vector, strict=True)]
    return total


def minus(one: Vector, other: Vector) -> Vector:
    """Difference of two vectors."""
    return [first - second for first, second in zip(one, other, strict=True)]


def cross(a: Vector, b: Vector) -> Vector:
    """Vector product a × b."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def times(matrix: Matrix, vector: Vector) -> Vector:
    """Matrix times vector."""
    return [sum((row[j] * vector[j] for j in range(1, len(vector))), row[0] * vector[0]) for row in matrix]


def transposed(matrix: Matrix) -> Matrix:
    """Transpose."""
    return [list(column) for column in zip(*matrix, strict=True)]


def add_matrices(one: Matrix, other: Matrix) -> Matrix:
    """Sum of two matrices."""
    return [add(first, second) for first, second in zip(one, other, strict=True)]


def skew(v: Vector) -> Matrix:
    """Matrix S with S b = v × b."""
    return [[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]]


def cross_matrix(v: Vector, matrix: Matrix) -> Matrix:
    """[v] times a matrix: v × each column."""
    return transposed([cross(v, column) for column in transposed(matrix)])


class Planar:
    """Rotation about coordinate axis ``axis`` (0, 1, 2) by an angle of given sine and cosine."""

    def __init__(self, axis: int, sine: Scalar, cosine: Scalar) -> None:
        self.axis, self.sine, self.cosine = axis, sine, cosine

    def up(self, v: Vector) -> Vector:
        """Child components to parent components."""
        i, j, s, c = (self.axis + 1) % 3, (self.axis + 2) % 3, self.sine, self.cosine
        turned = list(v)
        turned[i], turned[j] = c * v[i] - s * v[j], s * v[i] + c * v[j]
        return turned

    def down(self, v: Vector) -> Vector:
        """Parent components to child components."""
        return Planar(self.axis, -self.sine, self.cosine).up(v)

    def up_symmetric(self, a: Matrix) -> Matrix:
        """R A Rᵀ of a symmetric matrix; the turned plane keeps its trace, which saves six operations."""
        i, j, k, s, c = (self.axis + 1) % 3, (self.axis + 2) % 3, self.axis, self.sine, self.cosine
        first, second = c * a[i][i] - s * a[i][j], c * a[i][j] - s * a[j][j]
        result: Matrix = [[0.0] * 3 for _ in range(3)]
        result[i][i], result[i][j] = c * first - s * second, s * first + c * second
        result[j][j] = a[i][i] + a[j][j] - result[i][i]
        result[i][k], result[j][k] = c * a[i][k] - s * a[j][k], s * a[i][k] + c * a[j][k]
        result[k][k] = a[k][k]
        result[j][i], result[k][i], result[k][j] = result[i][j], result[i][k], result[j][k]
        return result


class Full:
    """Rotation given by its 3 × 3 matrix, child to parent."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix

    def up(self, v: Vector) -> Vector:
        """Child components to parent components."""
        return times(self.matrix, v)

    def down(self, v: Vector) -> Vector:
        """Parent components to child components."""
        return times(transposed(self.matrix), v)

    def up_symmetric(self, a: Matrix) -> Matrix:
        """R A Rᵀ of a symmetric matrix."""
        half = [self.up(row) for row in a]  # rows of A Rᵀ, as A is symmetric
        result: Matrix = [[0.0] * 3 for _ in range(3)]
        for row in range(3):
            for column in range(row, 3):
                result[row][column] = result[column][row] = sum(
                    (self.matrix[row][k] * half[k][column] for k in (1, 2)), self.matrix[row][0] * half[0][column]
                )
        return result


Rotation = Planar | Full


def up(turns: list[Rotation], v: Vector) -> Vector:
    """Last frame of a sequence of rotations to the first."""
    for turn in reversed(turns):
        v = turn.up(v)
    return v


def down(turns: list[Rotation], v: Vector) -> Vector:
    """First frame of a sequence of rotations to the last."""
    for turn in turns:
        v = turn.down(v)
    return v


def up_symmetric(turns: list[Rotation], a: Matrix) -> Matrix:
    """R A Rᵀ of a symmetric matrix through a sequence of rotations."""
    for turn in reversed(turns):
        a = turn.up_symmetric(a)
    return a


def up_matrix(turns: list[Rotation], a: Matrix) -> Matrix:
    """R A Rᵀ of any matrix through a sequence of rotations."""
    for turn in reversed(turns):
        columns = transposed([turn.up(column) for column in transposed(a)])
        a = [turn.up(row) for row in columns]
    return a


class Ldl:
    """L D Lᵀ of a symmetric positive definite matrix, unrolled."""

    def __init__(self, a: Matrix) -> None:
        size = len(a)
        self.lower: Matrix = [[0.0] * size for _ in range(size)]
        self.inverse: Vector = []  # 1/D
        scaled: Matrix = [[0.0] * size for _ in range(size)]  # L D
        for j in range(size):
            self.inverse.append(1.0 / (a[j][j] - sum(scaled[j][k] * self.lower[j][k] for k in range(j))))
            for i in range(j + 1, size):
                scaled[i][j] = a[i][j] - sum(scaled[i][k] * self.lower[j][k] for k in range(j))
                self.lower[i][j] = scaled[i][j] * self.inverse[j]

    def forward(self, b: Vector) -> Vector:
        """Solve L y = b."""
        y: Vector = []
        for i, value in enumerate(b):
            y.append(value - sum(self.lower[i][k] * y[k] for k in range(i)))
        return y

    def backward(self, y: Vector) -> Vector:
        """Solve D Lᵀ x = y."""
        x = [value * scale for value, scale in zip(y, self.inverse, strict=True)]
        for i in reversed(range(len(x))):
            x[i] = x[i] - sum(self.lower[k][i] * x[k] for k in range(i + 1, len(x)))
        return x
