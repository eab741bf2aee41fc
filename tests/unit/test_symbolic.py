"""The symbolic mirror against Pinocchio: values, derivatives, all joint kinds, symbols for masses and lengths."""

import casadi
import numpy as np
import pinocchio as pin
import pytest

from posture.body import load_body, model_names
from posture.engine.codegen import column, scalars
from posture.engine.skeleton import Skeleton
from posture.engine.symbolic import Base, Mirror
from posture.simulate import Dynamics

GRAVITY = 9.81
# Rounding of some hundred operations on numbers of one size, with room for the conditioning of a mass matrix.
RELATIVE = 1e-12


def all_kinds(seed: int = 0) -> pin.Model:
    """A tree with every joint kind the mirror knows, unaligned and reversed axes, branches and random inertias."""
    random = np.random.default_rng(seed)
    pin.seed(seed)
    slanted = np.array([1.0, 2.0, 0.5]) / np.linalg.norm([1.0, 2.0, 0.5])
    kinds = [
        pin.JointModelFreeFlyer(),
        pin.JointModelPlanar(),
        pin.JointModelSpherical(),
        pin.JointModelRX(),
        pin.JointModelRevoluteUnaligned(slanted),
        pin.JointModelPZ(),
        pin.JointModelPrismaticUnaligned(np.array([0, 0.6, 0.8])),
        pin.JointModelRevoluteUnaligned(np.array([0, -1.0, 0])),
        pin.JointModelRY(),
    ]
    model = pin.Model()
    for number, kind in enumerate(kinds):
        parent = int(random.integers(max(0, number - 2), number + 1)) if number else 0
        joint = model.addJoint(parent, kind, pin.SE3.Random(), f"joint{number}")
        model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
    model.gravity.linear = np.array([0, 0, -GRAVITY])
    return model


def cardan(order: str) -> pin.Model:
    """Two ball joints as triples of revolutes in any order, which the skeleton merges."""
    kinds = {"x": pin.JointModelRX, "y": pin.JointModelRY, "z": pin.JointModelRZ}
    model, joint = pin.Model(), 0
    pin.seed(1)
    for ball in range(2):
        for place, axis in enumerate(order):
            joint = model.addJoint(
                joint, kinds[axis](), pin.SE3.Random() if place == 0 else pin.SE3.Identity(), f"{ball}{axis}"
            )
        model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
    model.gravity.linear = np.array([0, 0, -GRAVITY])
    return model


class Functions:
    """Inverse and forward dynamics of a model as CasADi functions of q, v, (a or torque)."""

    def __init__(self, model: pin.Model, *, merge: bool = True) -> None:
        self.skeleton = Skeleton(model, merge=merge)
        mirror = Mirror(self.skeleton)
        q, v, a = (casadi.SX.sym(name, size) for name, size in (("q", model.nq), ("v", model.nv), ("a", model.nv)))
        given, base = [scalars(values) for values in (q, v, a)], Base.still(GRAVITY)
        tau, root = mirror.inverse(*given, base)
        acceleration, _ = mirror.forward(*given, base)
        self.inverse = casadi.Function("inverse", [q, v, a], [column(tau), column(root)])
        self.forward = casadi.Function("forward", [q, v, a], [column(acceleration)])
        self.center = casadi.Function("center", [q], [column(mirror.center_of_mass(scalars(q)))])


def random_states(model: pin.Model, count: int, seed: int = 3) -> list[tuple[np.ndarray, ...]]:
    random = np.random.default_rng(seed)
    pin.seed(seed)
    limit = np.ones(model.nq)
    return [(pin.randomConfiguration(model, -limit, limit), *random.normal(size=(2, model.nv))) for _ in range(count)]


MODELS = {"all kinds": all_kinds(), **{order: cardan(order) for order in ("xyz", "zyx", "zxy", "yxz", "yzx", "xzy")}}


@pytest.mark.parametrize("name", MODELS)
def test_consistency_with_pinocchio_on_every_joint_kind(name: str) -> None:
    model = MODELS[name]
    data, ours = model.createData(), Functions(model)
    if name != "all kinds":
        assert [node.kind for node in ours.skeleton.nodes] == ["ball", "ball"]
    for q, v, a in random_states(model, 20):
        tau = pin.rnea(model, data, q, v, a).copy()
        assert np.abs(np.array(ours.inverse(q, v, a)[0]).ravel() - tau).max() <= RELATIVE * np.abs(tau).max()
        expected = pin.aba(model, data, q, v, a).copy()
        found = np.array(ours.forward(q, v, a)).ravel()
        assert np.abs(found - expected).max() <= RELATIVE * np.abs(expected).max() * 10
        assert np.allclose(np.array(ours.center(q)).ravel(), pin.centerOfMass(model, data, q), rtol=0, atol=1e-13)


def test_merging_triples_changes_nothing_but_the_cost() -> None:
    model = cardan("xyz")
    merged, apart = Functions(model), Functions(model, merge=False)
    assert merged.forward.n_instructions() < 0.75 * apart.forward.n_instructions()
    for q, v, a in random_states(model, 5):
        one, other = (np.array(functions.forward(q, v, a)) for functions in (merged, apart))
        assert np.abs(one - other).max() <= RELATIVE * np.abs(one).max()


@pytest.mark.parametrize("name", model_names())
@pytest.mark.parametrize("locked", [False, True])
def test_consistency_with_the_reference_dynamics_on_every_body(name: str, locked: bool) -> None:
    body = load_body(name)
    if locked:
        body = body.lock({body.joint_names[0]: 0.2, body.joint_names[-2:][0]: -0.3})
    joints = len(body.joint_names)
    skeleton = Skeleton(body.model, locked=body.locked, prescribed_base=True)
    mirror = Mirror(skeleton)
    sizes = (("q", joints), ("v", joints), ("u", joints), ("c", 9))
    q, v, u, channels = (casadi.SX.sym(*pair) for pair in sizes)
    rest, base = [0.0] * 6, Base.of_channels(scalars(channels))
    pose, speed = [*rest, 1.0, *scalars(q)], [*rest, *scalars(v)]
    acceleration, wrench = mirror.forward(pose, speed, [*rest, *scalars(u)], base)
    moments, again = mirror.inverse(pose, speed, acceleration, base)
    function = casadi.Function(
        "f", [q, v, u, channels], [column(acceleration[6:]), column(wrench), column(moments[6:]), column(again)]
    )
    reference, random = Dynamics(body), np.random.default_rng(5)
    for _ in range(20):
        position, velocity, torque = random.uniform(-1, 1, (3, joints))
        held = [body.joint_index(joint) for joint in body.locked]
        position[held], velocity[held] = list(body.locked.values()), 0.0
        channel = random.normal(size=9)
        found = [np.array(part).ravel() for part in function(position, velocity, 50 * torque, channel)]
        expected = reference.acceleration(position, velocity, 50 * torque, channel)
        assert np.abs(found[0] - expected).max() <= RELATIVE * np.abs(expected).max() * 10
        reaction = reference.reactions(position, velocity, expected, channel)
        assert np.abs(found[1] - reaction[:6]).max() <= RELATIVE * np.abs(reaction).max() * 10
        assert np.abs(found[3] - reaction[:6]).max() <= RELATIVE * np.abs(reaction).max() * 10
        assert np.abs(found[2] - reaction[6:]).max() <= RELATIVE * np.abs(reaction).max() * 10


def test_derivatives_agree_with_pinocchios_analytic_ones_and_with_differences() -> None:
    model = all_kinds()
    # Pinocchio differentiates along the tangent; only joints whose q is their own tangent compare directly.
    plain = pin.Model()
    joint = 0
    pin.seed(2)
    for number, kind in enumerate((pin.JointModelRX(), pin.JointModelPY(), pin.JointModelRZ(), pin.JointModelRY())):
        joint = plain.addJoint(joint, kind, pin.SE3.Random(), f"j{number}")
        plain.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
    plain.gravity.linear = np.array([0, 0, -GRAVITY])
    for tree in (plain, cardan("xyz")):
        ours, data = Functions(tree), tree.createData()
        q, v, a = (casadi.SX.sym(name, tree.nv) for name in "qva")
        jacobian = casadi.Function(
            "j", [q, v, a], [casadi.jacobian(ours.inverse(q, v, a)[0], q), casadi.jacobian(ours.forward(q, v, a), q)]
        )
        for state in random_states(tree, 5):
            by_ad = [np.array(part) for part in jacobian(*state)]
            analytic = pin.computeRNEADerivatives(tree, data, *state)[0].copy()
            assert np.abs(by_ad[0] - analytic).max() <= 1e-11 * np.abs(analytic).max()
            forward = pin.computeABADerivatives(tree, data, *state)[0].copy()
            assert np.abs(by_ad[1] - forward).max() <= 1e-10 * np.abs(forward).max()
    ours, step = Functions(model), 1e-6
    v = casadi.SX.sym("v", model.nv)
    pose, speed, a = random_states(model, 1)[0]
    by_ad = np.array(casadi.Function("j", [v], [casadi.jacobian(ours.forward(pose, v, a), v)])(speed))
    for place in range(model.nv):
        shift = np.zeros(model.nv)
        shift[place] = step
        difference = (ours.forward(pose, speed + shift, a) - ours.forward(pose, speed - shift, a)) / (2 * step)
        # Central differences: rounding 1e-16 / 1e-6 of the accelerations' size.
        assert np.abs(np.array(difference).ravel() - by_ad[:, place]).max() <= 1e-8 * np.abs(by_ad).max()


def test_masses_and_lengths_can_be_symbols() -> None:
    body = load_body("ship_stance")
    model = body.model.copy()
    skeleton = Skeleton(model, prescribed_base=True)
    mirror = Mirror(skeleton, symbolic=skeleton.values != 0)
    place = mirror.parameter_names.index("hip_z.offset_z")
    joints = len(body.joint_names)
    rest, lift = [0.0] * 6, Base.still(GRAVITY)
    torque = mirror.inverse([*rest, 1.0, *[0.1] * joints], [0.0] * (joints + 6), [0.0] * (joints + 6), lift)[0][6:]
    function = casadi.Function("torque", [mirror.parameters], [column(torque)])
    slope = casadi.Function("slope", [mirror.parameters], [casadi.jacobian(column(torque), mirror.parameters)])
    values = skeleton.values[skeleton.values != 0]
    values[place] += 0.05
    changed = model.jointPlacements[8].copy()
    assert str(model.names[8]) == "hip_x"
    changed.translation = changed.translation + np.array([0, 0, 0.05])
    model.jointPlacements[8] = changed
    lifted = np.zeros(model.nv)
    lifted[2] = GRAVITY
    expected = pin.rnea(model, model.createData(), body.with_base(np.full(joints, 0.1)), np.zeros(model.nv), lifted)[6:]
    assert np.allclose(np.array(function(values)).ravel(), expected, rtol=1e-12, atol=1e-12)
    shift = np.zeros(len(values))
    shift[place] = 1e-5
    difference = np.array(function(values + shift) - function(values - shift)).ravel() / 2e-5
    assert np.allclose(np.array(slope(values))[:, place], difference, rtol=1e-8, atol=1e-8)


def test_a_joint_the_mirror_does_not_know_is_refused_by_name() -> None:
    from posture.errors import BodyError

    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelSphericalZYX(), pin.SE3.Identity(), "odd_one")
    model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
    with pytest.raises(BodyError, match=r"odd_one.*JointModelSphericalZYX"):
        Skeleton(model)


def test_a_wrong_sign_in_the_mirror_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison above can fail: one flipped Coriolis term of the ball joint is far outside its tolerance."""
    from posture.engine import symbolic

    model = cardan("xyz")
    right = symbolic._ball_rates

    def wrong(*arguments: object) -> tuple[list, list]:
        relative, bias = right(*arguments)  # type: ignore[arg-type]
        return relative, [-value for value in bias]

    monkeypatch.setattr(symbolic, "_ball_rates", wrong)
    ours, data = Functions(model), model.createData()
    q, v, a = random_states(model, 1)[0]
    tau = pin.rnea(model, data, q, v, a)
    assert np.abs(np.array(ours.inverse(q, v, a)[0]).ravel() - tau).max() > 1e-3 * np.abs(tau).max()
