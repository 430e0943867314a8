"""secantusd-py, which forgets the replies of retryable writes seldom instead of with each write.

SecantusDB 0.7.0b3 goes through all that it remembers before and after each write, and from 10,000 on it sorts them as
well: that was more than half of its time in `npm test`. What it forgets stays as it is: what is older than 30 minutes,
and the oldest above 10,000.
"""

import sys
import time

from secantus.cli import main
from secantus.transactions import TransactionRegistry

SECONDS_BETWEEN = 5
forget = TransactionRegistry._prune_retryable_locked


def forget_seldom(self: TransactionRegistry) -> None:
    now = time.monotonic()
    if now >= getattr(self, "parley_forgets_at", 0):
        self.parley_forgets_at = now + SECONDS_BETWEEN
        forget(self)


TransactionRegistry._prune_retryable_locked = forget_seldom
sys.exit(main())
