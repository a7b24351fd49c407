"""What one process of the service holds: its database and what is kept there, its settings, and who waits."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from starlette.requests import HTTPConnection

from metatree_agents.service.accounts.admin import Administration
from metatree_agents.service.accounts.keys import Keys
from metatree_agents.service.accounts.limits import RateLimits, Rates
from metatree_agents.service.accounts.other_logins import OtherLogins
from metatree_agents.service.accounts.tree_rights import TreeRights
from metatree_agents.service.accounts.users import Proofs, Users
from metatree_agents.service.database.database import ServiceDatabase
from metatree_agents.service.goal_agents import GoalAgents
from metatree_agents.service.http.metrics import Metrics
from metatree_agents.service.openai.conversations import Conversations
from metatree_agents.service.queue.human_input import HumanInput
from metatree_agents.service.queue.lookups import Lookups
from metatree_agents.service.queue.progress import Progress
from metatree_agents.service.queue.queue import ATTEMPTS, LEASE_S, Queue
from metatree_agents.service.queue.recommendations import Recommendations
from metatree_agents.service.queue.revocation import Revocation
from metatree_agents.service.queue.stopping import Stopping
from metatree_agents.service.queue.waiting import Waiting
from metatree_agents.service.replication.trees import Trees


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """How the service behaves.

    Args:
        lease_s: how long an engine has for a topic before its queries are open again.
        attempts: how many engines may try a query before it fails.
        claim_timeout_s: how long `get-new-queries` waits; below the usual limit of proxies.
        answer_timeout_s: how long `check-query` waits.
        shared: whether users may ask and read in topics of others.
        proofs: which hashes are accepted.
        chat_wait_s: how long a chat completion waits that is not streamed.
        stream_s: how long a stream goes on that comes to no end; of events, a client goes on in another where it was.
        models: names that chat clients are offered besides `metatree`; engines are given them as `Model`.
        rates: how much one address and one user may do.
        other_logins: what is believed of who somebody is on the web page, besides their secret.
    """

    lease_s: float = LEASE_S
    attempts: int = ATTEMPTS
    claim_timeout_s: float = 55.0
    answer_timeout_s: float = 55.0
    shared: bool = False
    proofs: Proofs = field(default_factory=Proofs)
    chat_wait_s: float = 300.0
    stream_s: float = 3_600.0
    models: tuple[str, ...] = ()
    rates: Rates = field(default_factory=Rates)
    other_logins: OtherLogins = field(default_factory=OtherLogins)


class Service:
    """The parts of one process."""

    def __init__(
        self,
        database: ServiceDatabase,
        settings: ServiceSettings | None = None,
        agents: GoalAgents | None = None,
    ) -> None:
        self.agents = agents
        self.settings = settings = settings or ServiceSettings()
        self.database = database
        self.users = Users(database, settings.proofs)
        self.queue = Queue(
            database, lease_s=settings.lease_s, attempts=settings.attempts, shared=settings.shared
        )
        self.tree_rights = TreeRights(database)
        self.human_input = HumanInput(database, shared=settings.shared)
        self.stopping = Stopping(database)
        self.lookups = Lookups(database)
        self.recommendations = Recommendations(database)
        self.progress = Progress(database)
        self.trees = Trees(database)
        self.waiting = Waiting(database, self.queue)
        self.revocation = Revocation(database)
        self.keys = Keys(database)
        self.conversations = Conversations(database, self.queue)
        self.admin = Administration(database, self.queue)
        self.metrics = Metrics()
        self.limits = RateLimits(settings.rates, refused=self.metrics.limited)
        self.started_at = time.time()

    @staticmethod
    def of(connection: HTTPConnection) -> Service:
        """Return the service that a request came to."""
        service: Service = connection.app.state.service
        return service
