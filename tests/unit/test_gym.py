"""The Gymnasium environment, by Gymnasium's own checker and against the plain simulation."""

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="Gymnasium is not installed; it is the extra gym")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from posture.body import load_body  # noqa: E402
from posture.errors import ScenarioError  # noqa: E402
from posture.gym import DeckStance, DeckStances, policy_controller, random_deck  # noqa: E402
from posture.simulate import simulate  # noqa: E402


def balance(observation: np.ndarray, joints: int = 1) -> np.ndarray:
    """A policy that stands: PD in shares of the toppling stiffness."""
    return np.clip(-2.0 * observation[..., :joints] - 0.5 * observation[..., joints : 2 * joints], -1, 1)


@pytest.mark.filterwarnings("ignore:.*Box observation space (min|max)imum value is.*infinity.*:UserWarning")
@pytest.mark.parametrize("body", ["cip", "ship_stance"])
def test_gymnasium_s_checker_is_content(body):
    check_env(DeckStance(body, duration=1.0), skip_render_check=True)


def test_an_episode_is_the_plain_simulation():
    """The environment and simulate() agree on the same deck, start and policy: compiled pieces against one run."""
    env = DeckStance("cip", duration=4.0)
    observation, _ = env.reset(seed=5)
    start, seen = env.state.copy(), [observation]
    for _ in range(100):
        observation, *_ = env.step(balance(observation))
        seen.append(observation)
    random = gymnasium.utils.seeding.np_random(5)[0]
    deck, body = random_deck(int(random.integers(2**31))), load_body("cip")
    law, begin = policy_controller(env, balance, deck), {"start_position": start[:1], "start_velocity": start[1:]}
    run = simulate(body, deck, law, duration=2.0, **begin)
    np.testing.assert_allclose(np.array(seen)[:, 0], run.joint_position.values[:, 0], atol=1e-10)
    np.testing.assert_allclose(np.array(seen)[:, 2:5], run.deck_angular_velocity.values, atol=1e-12)


def test_many_at_once_are_each_alone():
    many = DeckStances(5, "cip", duration=1.0)
    together, _ = many.reset(seed=11)
    alone = [DeckStance("cip", duration=1.0) for _ in range(5)]
    single = [env.reset(seed=11 + k)[0] for k, env in enumerate(alone)]
    for _ in range(50):
        together, rewards, fell, cut, _ = many.step(balance(together))
        results = [env.step(balance(one)) for env, one in zip(alone, single, strict=True)]
        single = [result[0] for result in results]
        np.testing.assert_allclose(together, single, atol=1e-12)
        np.testing.assert_allclose(rewards, [result[1] for result in results], atol=1e-12)
    assert cut.all()
    assert not fell.any()
    many.step(balance(together))  # the cut ones start anew
    assert (many.counts == 0).all()


def test_episodes_after_the_first_are_repeated_by_the_seed_too():
    """Gymnasium: a seed once, then reset() without one goes on with the same random numbers."""
    seen = []
    for _ in range(2):
        many = DeckStances(3, "cip", duration=0.1)
        many.reset(seed=4)
        seen.append([many.reset()[0], many.reset()[0]])
    np.testing.assert_array_equal(seen[0], seen[1])
    assert not np.allclose(seen[0][0], seen[0][1])
    with pytest.raises(ScenarioError, match="got 2 seeds for 3 persons"):
        many.reset(seed=[1, 2])


def test_who_does_nothing_falls_and_who_balances_does_not():
    env = DeckStance("cip", duration=20.0)
    for policy, falls in ((lambda seen: np.zeros(1), True), (balance, False)):
        observation, _ = env.reset(seed=1)
        ended = cut = False
        while not (ended or cut):
            observation, _, ended, cut, _ = env.step(policy(observation))
        assert ended == falls


def test_a_period_of_broken_steps_is_refused():
    with pytest.raises(ScenarioError, match="not a whole number of steps"):
        DeckStance("cip", period=0.012)
