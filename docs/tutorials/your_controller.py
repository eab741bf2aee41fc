# %% [markdown]
# # Your controller in 20 lines
# A law is any object with `joint_names`, `memory_size`, `torque` and `memory_rate`; or a plain function; or a CasADi
# function, which is then compiled; or a policy learnt in Gymnasium. Run this file, or open it as a notebook (Jupytext).

# %% A plain function: stiffness and damping that follow what each joint carries, on any body
import casadi
import numpy as np

import posture
from controllers import FromCasadi, FromFunction

body = posture.load_body("ship_stance")
deck = posture.SineDeck({"roll": [posture.Sine(np.radians(3), 8.0, 0.0)]})
stiffness = 4 * np.array([body.toppling_stiffness()[name] for name in body.joint_names])


def my_law(time, position, velocity):
    """Torques in N·m, one per joint, in the order of body.joint_names."""
    return -stiffness * position - 0.02 * stiffness * velocity


run = posture.simulate(body, deck, FromFunction(body.joint_names, my_law), duration=10.0)
print(f"function: sway {1000 * run.position_com_in_deck.values[:, 1].std():.1f} mm, engine {run.attrs['engine']}")

# %% The same as a CasADi function: compiled to C with the body, some hundred times faster
q, v = casadi.SX.sym("q", len(stiffness)), casadi.SX.sym("v", len(stiffness))
law = FromCasadi(body.joint_names, casadi.Function("mine", [q, v], [-stiffness * q - 0.02 * stiffness * v]))
fast = posture.simulate(body, deck, law, duration=10.0)
print(f"CasADi:   sway {1000 * fast.position_com_in_deck.values[:, 1].std():.1f} mm, engine {fast.attrs['engine']}")
assert np.allclose(run.joint_position, fast.joint_position, atol=1e-9)

# %% See it beside the others: `posture compare --controllers pd lqr mpc`, or by name
for name in ("pd", "lqr", "computed_torque"):
    other = posture.simulate(body, deck, posture.make_law(name, body, deck), duration=10.0)
    print(f"{name}: sway {1000 * other.position_com_in_deck.values[:, 1].std():.1f} mm")
