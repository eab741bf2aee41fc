"""The common problem in Drake: the deck as six driven joints of huge rotor inertia, its accelerations as a spline."""

from __future__ import annotations

import numpy as np
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import PrismaticJoint, RevoluteJoint, RevoluteSpring, SpatialInertia, UnitInertia
from pydrake.systems.analysis import ResetIntegratorFromFlags, Simulator
from pydrake.systems.framework import DiagramBuilder
from pydrake.systems.primitives import TrajectorySource
from pydrake.trajectories import PiecewisePolynomial

from benchmarks.problem import fastest, links
from posture.simulate import Run

ROTOR = 1e13
AXES = {"X": [1.0, 0, 0], "Y": [0, 1.0, 0], "Z": [0, 0, 1.0]}


def simulate(run: Run, steps: int) -> tuple[float, np.ndarray]:
    """Least seconds for so many steps, and the joint angles after them."""
    builder = DiagramBuilder()
    plant = builder.AddSystem(MultibodyPlant(0.0))
    plant.mutable_gravity_field().set_gravity_vector([0, 0, -run.deck.gravity])
    nothing = SpatialInertia(0.0, np.zeros(3), UnitInertia(0, 0, 0), skip_validity_check=True)
    below, drives = plant.world_frame(), []
    for kind, joint_class in (("slide", PrismaticJoint), ("hinge", RevoluteJoint)):
        for axis in "XYZ":
            body = plant.AddRigidBody(f"deck_{kind}_{axis}", nothing)
            joint = plant.AddJoint(joint_class(f"deck_{kind}_{axis}", below, body.body_frame(), AXES[axis]))
            actuator = plant.AddJointActuator(f"drive_{kind}_{axis}", joint)
            actuator.set_default_rotor_inertia(ROTOR)
            actuator.set_default_gear_ratio(1.0)
            drives.append(joint)
            below = body.body_frame()
    joints, bodies = [], []
    for number, link in enumerate(links(run.body)):
        mass, center, about = link["mass"], np.array(link["center"]), np.array(link["inertia"])
        spatial = nothing
        if mass:
            about = about + mass * (center @ center * np.eye(3) - np.outer(center, center))
            unit = UnitInertia(
                *(about[i, i] / mass for i in range(3)), about[0, 1] / mass, about[0, 2] / mass, about[1, 2] / mass
            )
            spatial = SpatialInertia(mass, center, unit)
        body = plant.AddRigidBody(f"link{number}", spatial)
        bodies.append(body)
        if number == 0:
            plant.WeldFrames(below, body.body_frame(), RigidTransform(run.deck.station))
            continue
        offset = plant.AddFrame(_fixed(f"at{number}", bodies[link["parent"]], link["offset"]))
        joint = plant.AddJoint(
            RevoluteJoint(
                link["name"], offset, body.body_frame(), AXES[link["axis"]], damping=run.controller.damping[number - 1]
            )
        )
        plant.AddForceElement(RevoluteSpring(joint, 0.0, run.controller.stiffness[number - 1]))
        joints.append(joint)
    plant.Finalize()
    times = np.arange(0, steps * run.step + 0.2, run.step)
    _, _, acceleration = run.deck.motions(times)
    source = builder.AddSystem(
        TrajectorySource(PiecewisePolynomial.CubicWithContinuousSecondDerivatives(times, ROTOR * acceleration.T))
    )
    builder.Connect(source.get_output_port(), plant.get_actuation_input_port())
    diagram = builder.Build()
    value, rate, _ = run.deck.motions(np.zeros(1))
    found: list[np.ndarray] = []

    simulator = Simulator(diagram)
    ResetIntegratorFromFlags(simulator, "runge_kutta3", run.step)
    simulator.get_mutable_integrator().set_fixed_step_mode(True)
    simulator.get_mutable_integrator().set_maximum_step_size(run.step)

    def work() -> None:
        context = simulator.get_mutable_context()
        context.SetTime(0.0)
        own = plant.GetMyMutableContextFromRoot(context)
        plant.SetPositions(own, np.zeros(plant.num_positions()))
        plant.SetVelocities(own, np.zeros(plant.num_velocities()))
        for index, joint in enumerate(drives):
            joint.set_translation(own, value[0, index]) if index < 3 else joint.set_angle(own, value[0, index])
            joint.set_translation_rate(own, rate[0, index]) if index < 3 else joint.set_angular_rate(
                own, rate[0, index]
            )
        simulator.Initialize()
        simulator.AdvanceTo(steps * run.step)
        found.append(np.array([joint.get_angle(own) for joint in joints]))

    return fastest(work, repeats=3), found[-1]


def _fixed(name: str, body: object, offset: list[float]) -> object:
    from pydrake.multibody.tree import FixedOffsetFrame

    return FixedOffsetFrame(name, body.body_frame(), RigidTransform(np.array(offset)))
