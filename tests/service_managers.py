"""The real service managers as they are made where one runs, for tests that ask them from elsewhere."""

import getpass
import os

from ankita_agent.adapters.login_manager import PATIENCE, LoginManager
from ankita_agent.adapters.pystemd_manager import PystemdManager
from ankita_agent.adapters.systemctl_manager import SystemctlManager
from ankita_agent.adapters.user_manager import UserManager, child_environment, find_program
from ankita_agent.core.instants import Duration


def systemctl(patience: Duration) -> SystemctlManager:
    """The manager of whoever runs this, by systemctl(1)."""
    program = find_program("systemctl", os.environ)
    assert program is not None
    children = child_environment(os.environ)
    return SystemctlManager(program, children, UserManager(os.environ, os.getuid()).locate, patience)


def pystemd(patience: Duration) -> PystemdManager:
    """The manager of whoever runs this, by pystemd."""
    return PystemdManager(UserManager(os.environ, os.getuid()).locate, patience)


def lingering(patience: Duration = PATIENCE) -> LoginManager:
    """Whether whoever runs this lingers."""
    program = find_program("loginctl", os.environ)
    return LoginManager(getpass.getuser(), program, child_environment(os.environ), patience=patience)
