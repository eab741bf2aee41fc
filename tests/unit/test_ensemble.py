"""Ensembles: statistics against plain NumPy on kept trajectories, determinism, persons, ends, bad requests."""

from pathlib import Path

import numpy as np
import pytest

from posture.cli import main
from posture.engine.ensemble import parse_vary, run_ensemble, summary
from posture.engine.machine import machine_for
from posture.engine.plan import BINS, LEVELS, SIGNALS, Draw, Plan
from posture.engine.statistics import deviation, merge, quantiles
from posture.errors import ResultError, ScenarioError
from posture.results import join, load
from posture.scenario import parse_scenario

SCENARIO = """
body = "ship_stance"
duration = 8.0
output_step = 0.05
seed = 3
[person]
mass = 80.0
height = 1.78
sex = "male"
[deck]
type = "sines"
station = [12.0, 3.0, 5.0]
heave = [{ amplitude = 0.7, period = 8.3 }, { amplitude = 0.4, period = 5.1 }]
roll = [{ amplitude_deg = 5.0, period = 6.5 }, { amplitude_deg = 4.0, period = 4.9 }]
pitch = [{ amplitude_deg = 2.0, period = 5.9 }]
[controller]
stiffness_ratio = 8.0
damping_time = 0.025
stiffness = { neck_x = 70.0, neck_y = 70.0 }
"""
PERSONS = {
    "person.mass": "normal(80, 15, 50, 120)",
    "person.height": "uniform(1.6, 1.95)",
    "person.sex": "choice(female, male)",
}


def plan(runs: int = 20, vary: dict[str, str] | None = None, text: str = SCENARIO, **settings: object) -> Plan:
    return Plan(parse_scenario(text, Path("test.toml")), runs, vary or {}, seed=7, **settings)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Path]:
    path = tmp_path_factory.mktemp("ensemble") / "one.nc"
    run_ensemble(plan(), path, threads=1)
    return plan(), path


def trajectories(of: Plan, runs: range) -> tuple[np.ndarray, np.ndarray]:
    """Times and watched signals (runs × rows × signals), by way of kept trajectories."""
    batch, _ = of.batch(runs)
    states, outputs = machine_for(of.program, "compiled").trajectories(batch)
    table = np.concatenate((states, outputs), axis=2)
    return np.arange(table.shape[1]) * batch.every * batch.step, table[:, :, of.statistics().columns]


def test_statistics_are_those_of_the_kept_trajectories(made: tuple[Plan, Path]) -> None:
    of, path = made
    found = load(path)
    times, table = trajectories(of, range(20))
    assert found["signal"].values.tolist() == list(SIGNALS)
    assert np.allclose(found["time"].values, times, rtol=1e-15, atol=0)
    scale = np.abs(table).max(axis=(0, 1))
    for name, expected in (
        ("mean", table.mean(axis=1)),
        ("standard_deviation", table.std(axis=1, ddof=1)),
        ("minimum", table.min(axis=1)),
        ("maximum", table.max(axis=1)),
        ("mean_over_runs", table.mean(axis=0)),
        ("standard_deviation_over_runs", table.std(axis=0, ddof=1)),
        ("pooled_mean", table.mean(axis=(0, 1))),
        ("pooled_standard_deviation", table.std(axis=(0, 1), ddof=1)),
    ):
        assert (np.abs(found[name].values - expected) <= 1e-12 * scale).all(), name
    width = np.array([(high - low) / BINS for _, low, high, _ in SIGNALS.values()])
    expected = np.quantile(table, LEVELS, axis=1)  # levels × runs × signals
    # A quantile between two samples is not defined closer than their distance; a bin comes on top.
    gaps = np.diff(np.sort(table, axis=1), axis=1).max(axis=1)
    assert (np.abs(found["quantiles"].values - np.moveaxis(expected, 0, -1)) <= (width + gaps)[..., None]).all()
    pooled = np.quantile(table.reshape(-1, len(width)), LEVELS, axis=0).T
    assert (np.abs(found["pooled_quantiles"].values - pooled) <= 1.01 * width[:, None]).all()
    assert (found["histogram"].values.sum(axis=1) == 20 * len(times)).all()


def test_an_event_is_a_step_outside_not_too_soon_after_the_last(made: tuple[Plan, Path]) -> None:
    of, path = made
    times, table = trajectories(of, range(20))
    margin = table[:, :, list(SIGNALS).index("stance_margin")]
    expected = []
    for line in margin:
        events: list[float] = []
        for before, now, time in zip([1.0, *line[:-1]], line, times, strict=True):
            if before >= 0 and not now >= 0 and (not events or time - events[-1] >= of.refractory):
                events.append(time)
        expected.append(len(events))
    assert load(path)["events"].values.tolist() == expected
    assert sum(expected) > 0
    assert len(set(expected)) > 1


def test_the_first_run_is_the_simulation_of_its_own_scenario() -> None:
    of = plan(3, {"controller.stiffness_ratio": "uniform(7, 9)"})
    scenario, drawn = of.settings_of(2)
    run = join(list(scenario.run("reference").blocks()))
    _, table = trajectories(of, range(2, 3))
    expected = run["position_cop_on_deck"].values
    assert 7 <= drawn["controller.stiffness_ratio"] <= 9
    assert np.abs(table[0][:, 6:8] - expected).max() <= 1e-11 * np.abs(expected).max()
    assert np.abs(table[0][:, 8] - run["stance_margin"].values).max() <= 1e-11
    assert np.abs(table[0][:, :3] - run["force_deck_on_person"].values).max() <= 1e-8  # of 800 N


def test_threads_and_repeats_do_not_change_a_byte(made: tuple[Plan, Path], tmp_path: Path) -> None:
    _, path = made
    run_ensemble(plan(), tmp_path / "two.nc", threads=2)
    assert (tmp_path / "two.nc").read_bytes() == path.read_bytes()
    run_ensemble(Plan(plan().scenario, 20, {}, seed=8), tmp_path / "other.nc", threads=2)
    assert (tmp_path / "other.nc").read_bytes() != path.read_bytes()
    assert not list(tmp_path.glob("*.parts"))


def test_the_interpreter_gathers_the_same_statistics(tmp_path: Path) -> None:
    short = SCENARIO.replace("duration = 8.0", "duration = 3.0")
    for engine in ("compiled", "vm"):
        run_ensemble(plan(3, PERSONS, short), tmp_path / f"{engine}.nc", engine=engine)
    one, other = (load(tmp_path / f"{engine}.nc") for engine in ("compiled", "vm"))
    for name in one.data_vars:
        if one[name].dtype.kind == "f":
            scale = max(1.0, float(np.nanmax(np.abs(one[name].values))))
            assert np.nanmax(np.abs(one[name].values - other[name].values)) <= 1e-11 * scale, name


def test_persons_of_all_sizes_share_one_library(tmp_path: Path) -> None:
    of = plan(24, PERSONS)
    run_ensemble(of, tmp_path / "persons.nc")
    found = load(tmp_path / "persons.nc")
    columns = found["varied"].values.tolist()
    assert columns == sorted(PERSONS)
    mass = found["drawn"].values[:, columns.index("person.mass")]
    force = found["mean"].values[:, list(SIGNALS).index("force_z")]
    # Over eight seconds heave averages out to a few percent: mean vertical force is the weight.
    assert np.abs(force / (mass * 9.80665) - 1).max() < 0.05
    assert mass.std() > 5
    assert len({of.body_of(of.settings_of(run)[0]).sha256 for run in range(4)}) == 4


def test_falls_are_told_and_end_their_statistics(tmp_path: Path) -> None:
    weak = SCENARIO.replace("stiffness_ratio = 8.0", "stiffness_ratio = 0.9")
    run_ensemble(plan(3, {}, weak), tmp_path / "weak.nc")
    run_ensemble(plan(3, {}, weak), tmp_path / "weak_vm.nc", engine="vm")
    found, other = load(tmp_path / "weak.nc"), load(tmp_path / "weak_vm.nc")
    assert set(found["ending"].values) <= {2.0, 3.0}
    assert (found["end_time"].values < 8).all()
    for name in ("ending", "end_time", "events", "count_over_runs", "histogram"):
        assert np.array_equal(found[name].values, other[name].values), name
    assert found["count_over_runs"].values[-1].max() == 0
    assert np.isnan(found["mean_over_runs"].values[-1]).all()
    assert summary(found)["runs_complete"] == 0


def test_merging_groups_is_the_moments_of_all_samples() -> None:
    random = np.random.default_rng(0)
    groups = [random.normal(3, 2, size) for size in (1, 7, 40)]
    total = np.zeros(3)
    for values in groups:
        total = merge(total, np.array([len(values), values.mean(), ((values - values.mean()) ** 2).sum()]))
    everything = np.concatenate(groups)
    assert total[:2] == pytest.approx([48, everything.mean()], rel=1e-14)
    assert deviation(total) == pytest.approx(everything.std(ddof=1), rel=1e-14)
    assert np.isnan(deviation(np.array([1.0, 2.0, 0.0])))


def test_quantiles_from_bins_reach_the_extremes_and_pass_outliers() -> None:
    values = np.array([-5.0, 0.15, 0.25, 0.35, 0.95, 9.0])
    counts = np.zeros((1, 12), np.int64)
    counts[0, 0] = counts[0, -1] = 1
    for value in values[1:-1]:
        counts[0, 1 + int(value * 10)] += 1
    found = quantiles(counts, np.zeros(1), np.ones(1), np.array([[-5.0, 9.0]]), np.array([0.0, 0.5, 1.0]))[0]
    assert found[0] == -5.0
    assert found[2] == 9.0
    assert 0.25 <= found[1] <= 0.35
    empty = quantiles(np.zeros((1, 12), np.int64), np.zeros(1), np.ones(1), np.zeros((1, 2)), np.array([0.5]))
    assert np.isnan(empty).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("80", "is no distribution"),
        ("norml(80, 10)", "did you mean 'normal'"),
        ("normal(80)", "has 1 arguments"),
        ("normal(80, x)", "'x' in .* is not a number"),
        ("normal(80, -1)", "standard deviation of 0 or more"),
        ("uniform(9, 3)", "lower end above the upper one"),
        ("uniform(nan, 3)", "arguments"),
    ],
)
def test_bad_distributions_are_refused_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        Draw.parse(text, "--vary person.mass")


def test_draws_have_their_distribution() -> None:
    random = np.random.default_rng(0)
    normal = np.array([Draw.parse("normal(80, 10, 70, 200)", "").draw(random) for _ in range(4000)])
    assert normal.min() >= 70
    assert np.median(normal) == pytest.approx(82.0, abs=0.6)  # cut at -1 sd, where 0.159 lie below: mean + 0.2 sd
    assert {Draw.parse("choice(a, b)", "").draw(random) for _ in range(50)} == {"a", "b"}
    with pytest.raises(ScenarioError, match="hardly ever"):
        Draw.parse("normal(0, 1, 90, 91)", "").draw(random)


def test_requests_that_make_no_sense_are_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posture.engine.ensemble.PATIENCE_S", 0.5)
    for make, message in (
        (lambda: plan(0), "runs is 0"),
        (lambda: plan(2, {"sea.height": "uniform(1, 2)"}), "no table is called 'sea'"),
        (lambda: plan(2, {"person": "uniform(1, 2)"}), "name a setting"),
        (lambda: plan(2, refractory=-1.0), "refractory is -1"),
        (lambda: plan(2, signals=("cop_q",)), "no signal is called 'cop_q'"),
        (lambda: parse_vary(["person.mass"]), "SETTING=DISTRIBUTION"),
        (lambda: run_ensemble(plan(2, {"person.mas": "uniform(1, 2)"}), tmp_path / "a.nc"), "'mas'"),
        (lambda: run_ensemble(plan(2), tmp_path / "a.nc", scheduler="tcp://127.0.0.1:9"), "no Dask scheduler answers"),
    ):
        with pytest.raises(ScenarioError, match=message):
            make()
    with pytest.raises(ResultError, match=r"written as \.nc"):
        run_ensemble(plan(2), tmp_path / "a.csv")
    assert not list(tmp_path.iterdir())


def test_the_command_writes_a_result_and_tells_its_headlines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario, out = tmp_path / "sea.toml", tmp_path / "ens.nc"
    scenario.write_text(SCENARIO, encoding="utf-8")
    arguments = [
        "ensemble",
        str(scenario),
        "--runs",
        "5",
        "--vary",
        "person.mass=uniform(60, 90)",
        "--out",
        str(out),
        "--json",
    ]
    assert main(arguments) == 0
    import json

    assert json.loads(capsys.readouterr().out)["runs"] == 5
    assert load(out).attrs["vary"] == '{"person.mass": "uniform(60, 90)"}'
    assert main([*arguments[:-1], "--engine", "warp"]) == 2
    assert "no engine is called 'warp'" in capsys.readouterr().err
    assert (
        main(["simulate", str(scenario), "--engine", "vm", "--duration", "1", "--out", str(tmp_path / "run.nc")]) == 0
    )
    assert load(tmp_path / "run.nc").attrs["engine"] == "vm"


def test_the_same_sea_is_one_deck_for_all(tmp_path: Path) -> None:
    run_ensemble(plan(4, same_sea=True), tmp_path / "same.nc")
    assert np.ptp(load(tmp_path / "same.nc")["mean"].values, axis=0).max() == 0
