"""What one run of the command measures with: the settings of the command line, the other host that
the load comes from, the network namespace; and what of that a single repetition is given.

Nothing below the command line reads an environment variable: what decides is passed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from quest.ground.cpus import Placement
from quest.ground.entry import takes_codes
from quest.measure.namespaces import OwnNetwork
from quest.measure.records import wants_reference
from quest.measure.remote import Client


@dataclass(frozen=True)
class Settings:
    """What was asked for on the command line."""

    client: str = ""  # user@host that the load comes from; "": this host
    server_address: str = ""  # the IPv4 address at which that host reaches us; "": ssh tells it
    many: bool = False  # consent to as many processes or connections as others may notice
    compiler_flags: str = ""  # of the servers, for the results; "": make is asked
    started_by_make: bool = False  # then the measurement ends when make is killed
    reference_only: bool = False  # the numbers of the committed run are shown, and not the reader's
    escape_codes: bool = False  # the terminal, if it is one, lets a line be rewritten

    @staticmethod
    def from_environment(environment: Mapping[str, str]) -> "Settings":
        """As the Makefile hands the settings over, and as terminals are described. InputError for a wrong RESULTS."""
        return Settings(
            client=environment.get("CLIENT", ""),
            server_address=environment.get("SERVER", ""),
            many=environment.get("MANY") == "1",
            compiler_flags=environment.get("QUEST_CFLAGS", "").strip(),
            started_by_make="MAKELEVEL" in environment,
            reference_only=wants_reference(environment.get("RESULTS", "")),
            escape_codes=takes_codes(environment),
        )


@dataclass
class Session:
    """One run of the command. `client` is there while the other host is connected; `name`: of the
    session of the reference, if it is one; `judged_by`: what the first line of a set says of those
    who will judge it, by experiment.
    """

    settings: Settings = field(default_factory=Settings)
    name: str = ""
    judged_by: Callable[[str], Mapping[str, Any]] = field(default=lambda _: {})
    client: Client | None = None
    network: OwnNetwork = field(default_factory=OwnNetwork)


@dataclass(frozen=True)
class Context:
    """What a repetition is given: on which processors it runs, how many seconds it may take, what
    is called while it waits, and where its load and its packets are.
    """

    placement: Placement
    timeout: float
    tick: Callable[[], None]
    client: Client | None = None
    own_network: bool = False  # a network namespace of our own: no other program's packets
