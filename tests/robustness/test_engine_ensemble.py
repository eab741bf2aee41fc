"""Ensembles that are killed, resumed, spread over a cluster and robbed of a worker: always the same file."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SCENARIO = """
duration = 120.0
seed = 5
[deck]
type = "sines"
heave = [{ amplitude = 0.7, period = 8.3 }]
roll = [{ amplitude_deg = 4.0, period = 6.5 }, { amplitude_deg = 2.0, period = 9.5 }]
[controller]
stiffness_ratio = 8.0
damping_time = 0.025
"""
RUNS = 320


def command(folder: Path, out: str, *more: str) -> list[str]:
    scenario = folder / "sea.toml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    vary = ["--vary", "controller.stiffness_ratio=uniform(7, 9)"]
    return [
        sys.executable,
        "-m",
        "posture.cli",
        "ensemble",
        str(scenario),
        "--runs",
        str(RUNS),
        *vary,
        "--out",
        str(folder / out),
        *more,
    ]


def run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, capture_output=True, text=True, timeout=180, check=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The result of an undisturbed run."""
    folder = tmp_path_factory.mktemp("whole")
    done = run(command(folder, "whole.nc", "--threads", "2"))
    assert done.returncode == 0, done.stderr
    return (folder / "whole.nc").read_bytes()


def wait_for_parts(folder: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(6000):
        if len(list(folder.glob("*.npz"))) >= count or process.poll() is not None:
            break
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.xdist_group("ensemble")
def test_kill_nine_and_resume_give_the_file_of_an_undisturbed_run(tmp_path: Path, whole: bytes) -> None:
    parts = tmp_path / "ens.nc.parts"
    for wanted in (2, 7):  # killed twice
        process = subprocess.Popen(
            command(tmp_path, "ens.nc", "--threads", "1", "--resume"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for_parts(parts, wanted, process)
        assert process.poll() is None, "it ended before it could be killed"
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (tmp_path / "ens.nc").exists()
    kept = sorted(path.name for path in parts.glob("*.npz"))
    assert 7 <= len(kept) < RUNS // 16
    damaged = parts / kept[0]
    damaged.write_bytes(damaged.read_bytes()[:-7])  # as a full disk would
    refused = run(command(tmp_path, "ens.nc"))
    assert refused.returncode == 2
    assert re.fullmatch(r"posture: .*unfinished ensemble.*--resume.*\n", refused.stderr)
    done = run(command(tmp_path, "ens.nc", "--resume", "--threads", "2"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ens.nc").read_bytes() == whole
    assert not parts.exists()


@pytest.mark.xdist_group("ensemble")
def test_parts_of_another_ensemble_are_not_mixed_in(tmp_path: Path) -> None:
    process = subprocess.Popen(command(tmp_path, "ens.nc"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_parts(tmp_path / "ens.nc.parts", 1, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    refused = run(command(tmp_path, "ens.nc", "--resume", "--seed", "99"))
    assert refused.returncode == 2
    assert "belongs to another ensemble" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A real scheduler and two worker processes on loopback."""
    pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("cluster")
    address_file = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    scheduler = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "distributed.cli.dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(address_file),
        ],
        **quiet,  # type: ignore[call-overload]
    )
    for _ in range(3000):
        if address_file.exists() and address_file.read_text():
            break
        time.sleep(0.01)
    import json

    address = json.loads(address_file.read_text())["address"]
    workers = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "distributed.cli.dask_worker",
                address,
                "--host",
                "127.0.0.1",
                "--nthreads",
                "1",
                "--no-dashboard",
                "--no-nanny",
                "--local-directory",
                str(folder),
            ],
            **quiet,  # type: ignore[call-overload]
        )
        for _ in range(2)
    ]
    yield address, workers
    for process in (*workers, scheduler):
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.xdist_group("ensemble")
def test_a_cluster_gives_the_same_bytes_even_when_it_loses_a_worker(
    tmp_path: Path, whole: bytes, cluster: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    address, workers = cluster
    done = run(command(tmp_path, "full.nc", "--scheduler", address))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "full.nc").read_bytes() == whole
    process = subprocess.Popen(
        command(tmp_path, "lost.nc", "--scheduler", address),
        env=os.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    wait_for_parts(tmp_path / "lost.nc.parts", 2, process)
    assert process.poll() is None, "it ended before a worker could be killed"
    workers[0].send_signal(signal.SIGKILL)
    complaint = process.communicate(timeout=120)[1]
    assert process.returncode == 0, complaint
    assert (tmp_path / "lost.nc").read_bytes() == whole
