# %% [markdown]
# # Your URDF in 10 lines
# Any human or humanoid: root in the pelvis or fixed, own joint names, meshes or none. Its feet and head are found by
# name and place; where they are not, `stand` says what to write into a small .toml beside the file. Run this file, or
# open it as a notebook (Jupytext). Give a path as argument to stand your own.

# %%
import sys

import numpy as np

import posture

body = posture.stand(sys.argv[1] if len(sys.argv) > 1 else "gait")  # 57 joints, root in the pelvis
print(
    f"{body.name}: {body.mass:.1f} kg, {len(body.joint_names)} joints, centre of mass {body.center_of_mass()[2]:.2f} m"
)
print("found:", body.sidecar["stand"]["feet"], "and roles", ", ".join(sorted(posture.roles(body))[:6]), "…")

# %% The controller settings of one body carry over to another by role, or in multiples of what each joint carries
deck = posture.SineDeck({"pitch": [posture.Sine(np.radians(2), 6.0, 0.0)]})
run = posture.simulate(body, deck, posture.make_law("pd", body, deck), duration=2.0, engine="reference")
print(f"sway {1000 * run.position_com_in_deck.values[:, 0].std():.1f} mm")

# %% Look at it, keep it, give it away
posture.write_view(run, "your_urdf.html", title=body.name)
posture.write_body(body, "your_urdf_standing.urdf")  # with its .toml: every command of posture takes it
posture.write_export(body.lock(["*wrist*"]), "your_urdf_given.urdf")  # plain URDF for ROS and Drake; .xml for MuJoCo
