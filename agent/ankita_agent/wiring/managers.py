"""The service manager and the login manager of this user, and what they wrote down."""

import os

from ankita_agent.adapters.machine import user_facts
from ankita_agent.core.instants import SECOND, Duration
from ankita_agent.ports.lingering import Lingering
from ankita_agent.ports.service_manager import ServiceManager
from ankita_agent.wiring.user import ThisUser


def service_manager(user: ThisUser, *, quick: bool = False) -> ServiceManager:
    """The service manager of this user; whether it can be reached shows with each call.

    `quick` is for commands that only show how it is: through systemctl, which starts faster, and without much patience.
    """
    from ankita_agent.adapters.user_manager import UserManager, child_environment, find_program

    whereabouts = UserManager(user.environment, os.getuid())
    if not quick:
        try:
            from ankita_agent.adapters.pystemd_manager import PystemdManager
        except ImportError:  # an extra
            pass
        else:
            return PystemdManager(whereabouts.locate)
    from ankita_agent.adapters.systemctl_manager import PATIENCE, SystemctlManager

    systemctl, children = find_program("systemctl", user.environment), child_environment(user.environment)
    locate = whereabouts.locate if systemctl else whereabouts.locate_without_program
    return SystemctlManager(systemctl or "systemctl", children, locate, Duration(SECOND) if quick else PATIENCE)


def login_manager(user: ThisUser) -> Lingering:
    """What knows whether this user's services go on without a login."""
    from ankita_agent.adapters.login_manager import LoginManager
    from ankita_agent.adapters.user_manager import child_environment, find_program

    loginctl, children = find_program("loginctl", user.environment), child_environment(user.environment)
    return LoginManager(user_facts().name, loginctl, children)


def newest_lines(user: ThisUser) -> list[str]:
    """What the service, and its manager about it, said last; nothing where that cannot be read."""
    from ankita_agent.adapters.journal import newest_lines as read
    from ankita_agent.adapters.user_manager import child_environment, find_program
    from ankita_agent.core.service import UNIT

    journalctl = find_program("journalctl", user.environment)
    return [] if journalctl is None else read(journalctl, UNIT, child_environment(user.environment))
