"""Settings: from the environment, checked, and never showing a secret."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from fencerow import Config
from fencerow.core.config import RESERVED_NAMES, CoreConfig, settings
from fencerow.errors import ConfigError, WrongCall
from fencerow.retention.settings import RetentionSettings
from fencerow.wings import WINGS


def test_without_anything_the_defaults_hold() -> None:
    config = Config.load({"HOME": "x"})

    assert (config.lease_s, config.renew_s, config.slots, config.url) == (30.0, 5.0, 10, None)
    # Seen at a renewal, an exception after that, and killed or given up after that.
    assert (config.renew_s, config.cancel_raise_s, config.cancel_kill_s) == (5.0, 5.0, 10.0)
    assert config == Config()
    assert config.job_defaults().timeout_s == 900


def test_the_environment_sets_and_an_override_wins() -> None:
    environ = {
        "FENCEROW_LEASE_S": " 60 ",
        "FENCEROW_SLOTS": "4",
        "FENCEROW_ACTOR": "",
        "FENCEROW_LOG_FORMAT": "json",
    }

    config = Config.load(environ, slots=7, lease_s=None)

    assert (config.lease_s, config.slots, config.actor, config.log_format) == (60.0, 7, None, "json")


@pytest.mark.parametrize(
    ("name", "nearest"), [("FENCEROW_LEASE", "FENCEROW_LEASE_S"), ("FENCEROW_SLOT", "FENCEROW_SLOTS")]
)
def test_an_unknown_variable_is_refused_with_the_nearest_names(name: str, nearest: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.load({name: "hunter2"})

    assert nearest in caught.value.fix
    assert "hunter2" not in str(caught.value)


def test_an_unknown_option_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(WrongCall, match="did you mean lease_s"):
        Config.load({}, lease=3)


@pytest.mark.parametrize("name", ["FENCEROW_DATABASE_URL", "FENCEROW_POOLMAX", "FENCEROW_LEASE_SECONDS"])
def test_what_others_call_a_setting_is_refused_too(name: str) -> None:
    with pytest.raises(ConfigError, match="no setting"):
        Config.load({name: "hunter2"})


def test_a_variable_that_is_near_to_no_setting_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        Config.load({"FENCEROW_GREENHOUSE": "hunter2"})

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "FENCEROW_GREENHOUSE" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("service", ["FENCEROW", "FENCEROW_WORKER", "FENCEROW_CLI"])
def test_what_kubernetes_makes_for_a_service_is_ignored(
    service: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = {
        f"{service}_SERVICE_HOST": "10.0.0.1",
        f"{service}_SERVICE_PORT": "80",
        f"{service}_SERVICE_PORT_HTTP_METRICS": "9090",
        f"{service}_PORT": "tcp://10.0.0.1:80",
        f"{service}_PORT_80_TCP": "tcp://10.0.0.1:80",
        f"{service}_PORT_80_TCP_PROTO": "tcp",
        f"{service}_PORT_80_TCP_PORT": "80",
        f"{service}_PORT_80_TCP_ADDR": "10.0.0.1",
    }

    assert Config.load(made) == Config()
    assert caplog.records == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FENCEROW_PORT", "8080"),
        ("FENCEROW_HEALTH_PORT", "8080"),
        ("FENCEROW_SERVICE_HOST", "db.example.com"),
        ("FENCEROW_PORT_5432_TCP_PROTO", "tcp://10.0.0.1"),
        ("FENCEROW_PORT_5432_TCP_ADDR", ""),
    ],
)
def test_what_a_person_calls_like_that_is_warned_of(
    name: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    Config.load({name: value})

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert name in caplog.text


def test_a_slip_of_the_pen_is_refused_beside_them() -> None:
    with pytest.raises(ConfigError, match="FENCEROW_SLOT "):
        Config.load({"FENCEROW_PORT": "tcp://10.0.0.1:80", "FENCEROW_SLOT": "5"})


def test_names_of_the_tools_are_let_through() -> None:
    Config.load(dict.fromkeys(RESERVED_NAMES, "x"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FENCEROW_SLOTS", "1.5"),
        ("FENCEROW_SLOTS", "ten"),
        ("FENCEROW_SLOTS", "1_0"),
        ("FENCEROW_SLOTS", "٣"),
        ("FENCEROW_SLOTS", "0"),
        ("FENCEROW_LEASE_S", "30s"),
        ("FENCEROW_LEASE_S", "nan"),
        ("FENCEROW_LEASE_S", "1e999"),
        ("FENCEROW_LEASE_S", "-1"),
        ("FENCEROW_LOG_FORMAT", "xml"),
        ("FENCEROW_SCHEMA", "x; DROP TABLE jobs"),
        ("FENCEROW_SCHEMA", "pg_catalog"),
        ("FENCEROW_TABLE_PREFIX", "sqlite_"),
        ("FENCEROW_ACTOR", "a\x1b[2J"),
        ("FENCEROW_URL", "mysql://h/d"),
        ("FENCEROW_SLOTS", "9" * 5000),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.load({name: value})

    assert len(str(caught.value)) < 400
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "options", [{"slots": True}, {"slots": "3"}, {"lease_s": "30"}, {"schema": 3}, {"schema": None}]
)
def test_options_of_the_wrong_type_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        Config(**options)


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="three renewals"):
        Config(renew_s=11, lease_s=30)
    with pytest.raises(ConfigError, match="poll_min_s"):
        Config(poll_min_s=2, poll_max_s=1)
    with pytest.raises(ConfigError, match="listen_url names a SQLite file"):
        Config(url="postgresql://app@pooler/shop", listen_url="sqlite:///shop.db")


def test_a_password_shows_neither_in_repr_nor_in_errors() -> None:
    assert "hunter2" not in repr(Config(url="postgresql://u:hunter2@h/d"))
    with pytest.raises(ConfigError) as caught:
        Config(url="mysql://u:hunter2@h/d")
    assert "hunter2" not in str(caught.value)


def test_a_stop_waits_for_the_longest_job_unless_told_otherwise() -> None:
    assert Config().drain_s(120) == 150
    assert Config(shutdown_s=3).drain_s(120) == 3


def test_every_setting_is_documented_and_its_default_is_in_range() -> None:
    for setting in settings(Config):
        assert setting.doc.endswith(".")
        assert setting.environment_name == f"FENCEROW_{setting.name.upper()}"


def test_it_has_the_settings_of_the_core_and_of_each_wing() -> None:
    told = [wing.settings() for wing in WINGS if wing.settings is not None]
    assert Config.__bases__ == (*reversed(told), CoreConfig)
    parts = sum(len(dataclasses.fields(part)) for part in (*told, CoreConfig))
    assert len(settings(Config)) == parts, "a name of one hides that of another"


def test_a_wing_finds_its_own_settings_in_those_of_the_process() -> None:
    assert RetentionSettings.of(Config(retention_failed_s=5.0)).retention_failed_s == 5.0
    assert RetentionSettings.of(CoreConfig()) == RetentionSettings(), "a core without its wings"
