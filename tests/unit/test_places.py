"""Where things are, by the variables of an environment."""

import pytest

from ankita_agent.app.places import Places, UnitPlaces, find_places, find_unit_places
from ankita_agent.core.errors import AnkitaError

VARIABLES = ("ANKITA_STATE_DIR", "ANKITA_CONFIG_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME")


def find(**variables: str) -> Places:
    return find_places(variables, "/home/ann", lambda: "/here")


def test_without_any_variable_everything_is_below_the_home() -> None:
    assert find() == Places("/home/ann/.local/state/ankita-agent", "/home/ann/.config/ankita-agent")
    units = UnitPlaces("/home/ann/.local/share/systemd/user", "/home/ann/.config/systemd/user")
    assert find_unit_places("/home/ann") == units


@pytest.mark.parametrize("name", ["XDG_STATE_HOME", "XDG_CONFIG_HOME"])
@pytest.mark.parametrize("value", ["", "relative", "./it\nbreaks"])
def test_a_relative_path_in_a_variable_of_xdg_is_ignored(name: str, value: str) -> None:
    assert find(**{name: value}) == find()


@pytest.mark.parametrize("name", VARIABLES)
@pytest.mark.parametrize(
    ("letter", "told"),
    [("\n", "a line break"), ("\t", "a control character"), ("\x1b", "a control"), ("\x7f", "a c"), ("\x85", "a c")],
)
def test_a_path_with_a_control_character_is_refused_in_whichever_variable(name: str, letter: str, told: str) -> None:
    with pytest.raises(AnkitaError, match=f"^{name} holds {told}") as fault:
        find(**{name: f"/srv/a{letter}b"})
    assert fault.value.exit_code in (73, 78)


@pytest.mark.parametrize("name", VARIABLES)
def test_a_path_of_any_other_letters_is_taken(name: str) -> None:
    value = '/srv/An na\'s "50%" $HOME é\u00a0\udcff'
    found = find(**{name: value})
    assert found.state.startswith(value) or found.config.startswith(value)
