"""The common problem in MuJoCo.

MuJoCo has no prescribed base acceleration, so the deck is six joints with an armature of 1e13 (kg, kg·m²), which the
person cannot move, driven by motors. Controls are constant over a step; taken at its middle they err with step².
"""

from __future__ import annotations

import mujoco
import numpy as np

from benchmarks.problem import links
from posture.deck import SineDeck
from posture.simulate import Run

ARMATURE = 1e13
AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1", "X": "1 0 0", "Y": "0 1 0", "Z": "0 0 1"}


def model_of(run: Run, *, moving: bool = True) -> mujoco.MjModel:
    """The person with springs and dampers as gains, on a driven deck or one at rest."""
    chain = links(run.body)
    stiffness, damping = run.controller.stiffness, run.controller.damping
    station = run.deck.station

    def inertial(link: dict) -> str:
        i = np.array(link["inertia"])
        full = f"{i[0, 0]} {i[1, 1]} {i[2, 2]} {i[0, 1]} {i[0, 2]} {i[1, 2]}"
        return f'<inertial mass="{link["mass"]}" pos="{" ".join(map(str, link["center"]))}" fullinertia="{full}"/>'

    text, depth = "", 0
    for number in range(1, len(chain), 3):  # three revolutes make one body
        text += f'<body pos="{" ".join(map(str, chain[number]["offset"]))}">{inertial(chain[number + 2])}'
        for k in range(3):
            index = number + k - 1
            text += f'<joint type="hinge" axis="{AXES[chain[number + k]["axis"]]}" stiffness="{stiffness[index]}" damping="{damping[index]}"/>'
        depth += 1
    person = f'<body pos="{" ".join(map(str, station))}">{inertial(chain[0])}{text}{"</body>" * depth}</body>'
    deck = "".join(
        f'<joint name="deck_{kind}_{axis}" type="{kind}" axis="{AXES[axis]}" armature="{ARMATURE}"/>'
        for kind in ("slide", "hinge")
        for axis in "xyz"
    )
    motors = "".join(
        f'<motor joint="deck_{kind}_{axis}" gear="{ARMATURE}"/>' for kind in ("slide", "hinge") for axis in "xyz"
    )
    if moving:
        person = (
            f'<body gravcomp="1"><inertial mass="1e-3" pos="0 0 0" diaginertia="1e-3 1e-3 1e-3"/>{deck}{person}</body>'
        )
    flags = " ".join(
        f'{name}="disable"'
        for name in ("contact", "constraint", "equality", "limit", "frictionloss", "filterparent", "sensor")
    )
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler angle="radian" boundmass="0"/><option timestep="{run.step}" integrator="RK4" gravity="0 0 -{run.deck.gravity}"><flag {flags}/></option>'
        f"<worldbody>{person}</worldbody>{f'<actuator>{motors}</actuator>' if moving else ''}</mujoco>"
    )


def start_and_controls(model: mujoco.MjModel, run: Run, deck: SineDeck) -> tuple[np.ndarray, np.ndarray]:
    """Full start state and the deck's accelerations at the middle of each step."""
    steps = round(run.duration / run.step)
    value, rate, _ = deck.motions(np.zeros(1))
    data = mujoco.MjData(model)
    data.qpos[:6], data.qvel[:6] = value[0], rate[0]
    state = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    return state, deck.motions((np.arange(steps) + 0.5) * run.step)[2]


def angles(model: mujoco.MjModel, states: np.ndarray, joints: int) -> np.ndarray:
    """Joint angles of the person from full states (… × size): time first, then positions."""
    return states[..., 1 + model.nq - joints : 1 + model.nq]
