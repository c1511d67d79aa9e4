"""What people are told when their service manager is out of reach: true of where they are, and nothing else."""

import itertools
import subprocess

import pytest

from ankita_agent.core.instants import SECOND, Duration
from ankita_agent.core.reaching import Means, Place, one_line, refused, silent, unreachable
from ankita_agent.core.service import Unreachable

ANN = Place("ann", 4242)


def advice(reason: Unreachable, place: Place = ANN) -> str:
    return unreachable(reason, place, "observed").do


def test_every_reason_names_who_is_meant_what_was_seen_and_what_helps() -> None:
    for reason in Unreachable:
        fault = unreachable(reason, ANN, f"saw {reason}")
        assert (fault.reason, fault.exit_code) == (reason, 69)
        assert str(fault).startswith(f"the service manager of ann (uid 4242) cannot be asked: saw {reason}\n")
        assert fault.now == "Nothing was done."
        assert fault.do


def test_whoever_neither_lingers_nor_is_logged_in_is_told_to_do_either() -> None:
    told = advice(Unreachable.NO_RUNTIME_DIRECTORY)
    assert "`sudo loginctl enable-linger ann`" in told
    assert told.endswith("but su and sudo make none.")


def test_whoever_came_by_ssh_is_told_when_that_is_no_login() -> None:
    told = advice(Unreachable.NO_RUNTIME_DIRECTORY, Place("ann", 4242, remote=True))
    assert told.endswith("but su, sudo and an sshd with `UsePAM no` make none.")


def test_whoever_lingers_is_not_told_to_linger() -> None:
    told = advice(Unreachable.NO_RUNTIME_DIRECTORY, Place("ann", 4242, lingers=True))
    assert "enable-linger" not in told
    assert "`sudo systemctl start user@4242.service`" in told


@pytest.mark.parametrize("reason", [each for each in Unreachable if each is not Unreachable.NO_SYSTEMD])
def test_root_by_sudo_is_sent_back_to_be_who_they_are(reason: Unreachable) -> None:
    told = advice(reason, Place("root", 0, sudo_user="ann"))
    assert "For those of ann: without sudo." in told


def test_root_who_is_root_is_told_what_anybody_is() -> None:
    for place in (Place("root", 0), Place("root", 0, sudo_user="root")):
        assert "`sudo loginctl enable-linger root`" in advice(Unreachable.NO_RUNTIME_DIRECTORY, place)


def test_whoever_became_another_user_by_sudo_is_not_sent_back() -> None:
    told = advice(Unreachable.NO_RUNTIME_DIRECTORY, Place("ann", 4242, sudo_user="bob"))
    assert "bob" not in told


def test_without_systemd_the_agent_runs_without_a_service() -> None:
    assert advice(Unreachable.NO_SYSTEMD).split("\n  ") == [
        "in this terminal, until Ctrl-C: ankita-agent run",
        "until the next boot: nohup ankita-agent run >/dev/null 2>&1 &",
    ]


def test_every_way_to_do_without_is_one_line_that_means_the_directories_of_this_shell() -> None:
    place = Place("ann", 4242, container="docker", means=frozenset(Means), directories=(("ANKITA_STATE_DIR", "/a b"),))
    ways = advice(Unreachable.NO_SYSTEMD, place).split("\n  ")
    assert ways[0] == "in this terminal, until Ctrl-C: env ANKITA_STATE_DIR='/a b' ankita-agent run"
    assert len(ways) == 6
    for way in ways:
        assert "ANKITA_STATE_DIR=" in way
        assert "/a b" in way
        assert len(way) < 200


def test_openrc_is_given_settings_that_a_shell_reads_as_the_same_command() -> None:
    place = Place("ann", 4242, means=frozenset([Means.OPENRC]), directories=(("ANKITA_STATE_DIR", "/a b"),))
    way = advice(Unreachable.NO_SYSTEMD, place).split("\n  ")[-1]
    script = way.partition(" with: ")[2] + '; eval "set -- $command $command_args"; printf "%s|" "$@"'
    said = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True).stdout
    assert said == "env|ANKITA_STATE_DIR=/a b|ankita-agent|run|"


def test_only_what_is_installed_is_recommended() -> None:
    words = {Means.CRON: "crontab", Means.TMUX: "tmux", Means.OPENRC: "OpenRC", Means.RUNIT: "runit"}
    for means in itertools.chain.from_iterable(itertools.combinations(Means, count) for count in range(len(Means) + 1)):
        told = advice(Unreachable.NO_SYSTEMD, Place("ann", 4242, means=frozenset(means)))
        assert {each for each, word in words.items() if word in told} == set(means)


def test_cron_is_given_a_line_that_it_reads_as_the_shell_would() -> None:
    place = Place("ann", 4242, means=frozenset([Means.CRON]), program="'/home/a 50%/bin/ankita-agent'")
    line = r"'@reboot '\"'\"'/home/a 50\%/bin/ankita-agent'\"'\"' run --standby'".replace('\\"', '"')
    assert f": (crontab -l; echo {line}) | crontab -" in advice(Unreachable.NO_SYSTEMD, place)


def test_a_container_and_windows_have_ways_of_their_own() -> None:
    assert "what its container runs: ankita-agent run" in advice(
        Unreachable.NO_SYSTEMD, Place("ann", 4242, container="docker")
    )
    told = advice(Unreachable.NO_SYSTEMD, Place("ann", 4242, container="wsl", wsl=True))
    assert "systemd=true" in told
    assert "container" not in told


def test_a_silent_manager_leaves_open_what_was_done() -> None:
    fault = silent("start x.service", Duration(SECOND // 2))
    assert str(fault).startswith("the service manager did not answer within 0.5 s: start x.service\n")
    assert "not known" in fault.now


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("one\n  two\r\n\tthree\n", "one two three"),
        ("bell \x07 and \x1b[31mred", "bell \N{REPLACEMENT CHARACTER} and \N{REPLACEMENT CHARACTER}[31mred"),
        ("bytes \udcff", "bytes \N{REPLACEMENT CHARACTER}"),
        ("é ü 日本", "é ü 日本"),
    ],
)
def test_what_another_program_said_is_shown_on_one_line_and_printable(said: str, shown: str) -> None:
    assert one_line(said) == shown
    assert refused("x", said).fact == shown


def test_what_another_program_said_is_cut_when_it_is_long() -> None:
    assert len(one_line("x " * 10_000)) <= 400
