"""The files of deploy/ are valid, fit the command and its settings, and ask the database what they should."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import psycopg
import pytest
import yaml

from fencerow import Config
from fencerow.cli.main import root
from fencerow.db.postgres import PostgresEngine
from fencerow.supervisor.probes import parsed_address
from tests.house.tree import ROOT
from tests.kit.jobs import new_job, submit

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
DOCKERFILE = DEPLOY / "container" / "Dockerfile"
COMMAND = "/opt/app/.venv/bin/fencerow"
EXPOSURE_MAX = "20"  # tenths: systemd calls up to 2.0 "OK"
# What a version of KEDA may not take away again; its schemas are in no package.
KEDA_FIELDS = {
    "ScaledObject": {
        "scaleTargetRef",
        "minReplicaCount",
        "maxReplicaCount",
        "pollingInterval",
        "advanced",
        "triggers",
    },
    "TriggerAuthentication": {"secretTargetRef"},
}
DRAIN_S = Config().drain_s(Config().timeout_s)


def documents() -> Iterator[dict[str, Any]]:
    for path in MANIFESTS:
        yield from yaml.safe_load_all(path.read_text("utf-8"))


def of_kind(kind: str) -> dict[str, Any]:
    (found,) = [each for each in documents() if each["kind"] == kind]
    return found


def container_of(kind: str) -> dict[str, Any]:
    (found,) = of_kind(kind)["spec"]["template"]["spec"]["containers"]
    made: dict[str, Any] = found
    return made


def dockerfile_list(instruction: str) -> list[str]:
    """The arguments of an instruction in its exec form."""
    found = re.search(rf"^\s*{instruction} \[(.+)\]$", DOCKERFILE.read_text("utf-8"), re.MULTILINE)
    assert found, f"{instruction} is no list"
    return [str(each) for each in yaml.safe_load(f"[{found[1]}]")]


def unit(name: str) -> dict[str, str]:
    text = (DEPLOY / "systemd" / name).read_text("utf-8")
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


def parsed(words: list[str]) -> click.Context:
    """The command that a command line means, with its options; refused if there is no such option."""
    name, *rest = words
    command = root.get_command(click.Context(root), name)
    assert command is not None
    return command.make_context(name, rest, resilient_parsing=False)


# --- each by its own linter -----------------------------------------------------------------------------


@pytest.mark.outside("systemd")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_finds_nothing_wrong_with_a_unit(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    copy.write_text(path.read_text("utf-8").replace(COMMAND, sys.executable))

    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(copy)],
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.outside("systemd")
def test_systemd_finds_the_worker_well_enclosed() -> None:
    path = DEPLOY / "systemd" / "fencerow-worker.service"

    done = subprocess.run(
        [
            "systemd-analyze",
            "security",
            "--offline=yes",
            f"--threshold={EXPOSURE_MAX}",
            "--no-pager",
            str(path),
        ],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout[-500:] + done.stderr


def test_hadolint_finds_nothing_wrong_with_the_container_file() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")

    done = subprocess.run([str(hadolint), "--no-color", str(DOCKERFILE)], capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("kind", ["Deployment", "Job", "PodDisruptionBudget"])
def test_a_manifest_fits_the_schema_of_kubernetes(kind: str) -> None:
    kubernetes_validate.validate(of_kind(kind), kubernetes_validate.latest_version(), strict=True)


def test_a_manifest_that_does_not_fit_would_be_found() -> None:
    broken = of_kind("Deployment")
    broken["spec"]["replica"] = 2

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, kubernetes_validate.latest_version(), strict=True)


def test_every_document_is_looked_at() -> None:
    kinds = {each["kind"] for each in documents()}

    assert kinds == {"Deployment", "Job", "PodDisruptionBudget", *KEDA_FIELDS}
    assert len(UNITS) == 2


# --- and by what it is for ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        shlex.split(unit("fencerow-worker.service")["ExecStart"])[1:],
        shlex.split(unit("fencerow-migrate.service")["ExecStart"])[1:],
        dockerfile_list("CMD"),
        container_of("Deployment")["args"],
        container_of("Job")["args"],
    ],
    ids=["unit", "unit that migrates", "container", "deployment", "job"],
)
def test_each_command_line_is_one(words: list[str]) -> None:
    with parsed(words) as context:
        assert context.info_name in ("worker", "migrate")
        if health := context.params.get("health"):
            assert parsed_address(health).host == "0.0.0.0", "a probe comes from outside of the pod"  # noqa: S104


def test_probes_ask_where_the_worker_answers() -> None:
    container = container_of("Deployment")
    (port,) = container["ports"]
    health = container["args"][container["args"].index("--health") + 1]

    assert parsed_address(health).port == port["containerPort"]
    for probe, path in (
        ("startupProbe", "/livez"),
        ("livenessProbe", "/livez"),
        ("readinessProbe", "/readyz"),
    ):
        assert container[probe]["httpGet"] == {"path": path, "port": port["name"]}
    assert str(port["containerPort"]) in DOCKERFILE.read_text("utf-8")


def test_whoever_stops_a_worker_waits_longer_than_its_longest_job_may_take() -> None:
    grace_s = of_kind("Deployment")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    stop_s = int(unit("fencerow-worker.service")["TimeoutStopSec"])

    assert min(grace_s, stop_s) > DRAIN_S
    assert f"--time {grace_s}" in DOCKERFILE.read_text("utf-8")


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_no_container_may_more_than_it_must(kind: str) -> None:
    container, pod = container_of(kind), of_kind(kind)["spec"]["template"]["spec"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not [each for each in container["env"] if "postgresql://" in str(each.get("value"))]


def test_selectors_find_the_worker() -> None:
    deployment, budget = of_kind("Deployment"), of_kind("PodDisruptionBudget")
    labels = deployment["spec"]["template"]["metadata"]["labels"]

    assert deployment["spec"]["selector"]["matchLabels"] == labels
    assert budget["spec"]["selector"]["matchLabels"] == labels
    assert of_kind("ScaledObject")["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]


@pytest.mark.parametrize("kind", KEDA_FIELDS)
def test_what_keda_reads_is_known_to_it(kind: str) -> None:
    document = of_kind(kind)

    assert document["apiVersion"] == "keda.sh/v1alpha1"
    assert set(document["spec"]) == KEDA_FIELDS[kind]
    for trigger in document["spec"].get("triggers", []):
        assert set(trigger) == {"type", "metricType", "metadata", "authenticationRef"}
        assert set(trigger["metadata"]) == {"query", "targetQueryValue"}
        assert trigger["authenticationRef"]["name"] == of_kind("TriggerAuthentication")["metadata"]["name"]


def asked(pg: PostgresEngine) -> int:
    """What KEDA would read."""
    (trigger,) = of_kind("ScaledObject")["spec"]["triggers"]
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        (row,) = connection.execute(trigger["metadata"]["query"]).fetchall()
    return int(row[0])


def test_the_autoscaler_reads_how_long_the_oldest_due_job_has_waited(pg: PostgresEngine) -> None:
    assert asked(pg) == 0, "nothing waits"
    jobs = submit(pg, *(new_job(queue="default", priority=priority) for priority in (5, 0, 0)))
    other = submit(pg, new_job(queue="other"))
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        age = "UPDATE fencerow.jobs SET run_at = now() + make_interval(secs => %s) WHERE id = %s"
        for seconds, job_id in zip((-10, -100, 3600, -5000), (*jobs, *other), strict=True):
            connection.execute(age, [seconds, job_id])

        assert 100 <= asked(pg) < 160
        connection.execute("INSERT INTO fencerow.queues (name, paused_at) VALUES ('default', now())")

    assert asked(pg) == 0, "more workers are of no use to a paused queue"


def test_the_autoscaler_reads_no_more_of_a_queue_than_its_index(pg: PostgresEngine) -> None:
    (trigger,) = of_kind("ScaledObject")["spec"]["triggers"]
    with psycopg.connect(pg.conninfo, autocommit=True) as connection:
        connection.execute("SET enable_seqscan = off")
        lines = connection.execute("EXPLAIN (COSTS OFF) " + trigger["metadata"]["query"]).fetchall()
    plan = "\n".join(str(line[0]) for line in lines)

    assert plan.count("using jobs_lane on jobs") == 4
    assert "Sort" not in plan
