"""secantusd-py without what makes it stand still, or do the same work again and again.

SecantusDB 0.7.0b3 is one Python process for all clients: what keeps it busy for one of them keeps all waiting. Each part
below does the same for its clients, and says what SecantusDB itself takes for it.
"""

import contextlib
import datetime
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from secantus import commands, server
from secantus.cli import main
from secantus.sessions import SessionRegistry
from secantus.storage import Storage, _retry_write_conflicts
from secantus.transactions import TransactionRegistry

SECONDS_BETWEEN = 5

Index = tuple[str, dict[str, Any], dict[str, Any]]


def seldom(forget: Callable[[Any], Any]) -> Callable[[Any], int]:
    """What was to be done with each command, every five seconds at most: it only forgets what is old."""
    due = f"parley_{forget.__qualname__}_at"

    @functools.wraps(forget)
    def forget_seldom(self: Any) -> int:
        now = time.monotonic()
        if now < self.__dict__.get(due, 0):
            return 0
        self.__dict__[due] = now + SECONDS_BETWEEN
        return forget(self) or 0

    return forget_seldom


# With each command it goes through all that it remembers of writes (and sorts them from 10,000 on), of transactions
# and of sessions. For a transaction it also waits until its statement has ended, and everybody else waits with it.
TransactionRegistry._prune_retryable_locked = seldom(TransactionRegistry._prune_retryable_locked)
TransactionRegistry._prune_locked = seldom(TransactionRegistry._prune_locked)
SessionRegistry._prune_locked = seldom(SessionRegistry._prune_locked)


FIRST_DATE = datetime.datetime(1, 1, 1, tzinfo=datetime.timezone.utc)


def remove_expired(self: Storage, db: str, coll: str, *, now: datetime.datetime | None = None) -> int:
    """Removes by a TTL index what has expired, as MongoDB does.

    SecantusDB reads all documents of each collection that has such an index, once a minute, and answers nobody until it
    has: 25 seconds and more once tests had written some ten thousand lines of batches.
    """
    when = now or datetime.datetime.now(datetime.timezone.utc)
    removed = 0
    for _name, key, options in list(self._iter_indexes(db, coll)):
        seconds = options.get("expireAfterSeconds")
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds >= 0 or len(key) != 1:
            continue
        # The index has what has no date, too, before the first date.
        dates = {"$gte": FIRST_DATE, "$lt": when - datetime.timedelta(seconds=float(seconds))}
        expired = {next(iter(key)): dates}
        partial = options.get("partialFilterExpression")
        removed += self.delete_matching(db, coll, {"$and": [expired, dict(partial)]} if partial else expired)
    return removed


Storage.prune_ttl = remove_expired

sweep = Storage.prune_ttl_all_collections


def sweep_and_let_go(self: Storage, *, now: datetime.datetime | None = None) -> int:
    """Leaves no cursor where the sweep ended.

    SecantusDB does, for the minute until the next sweep, in which the store may forget nothing that is overwritten or
    deleted: an upload of 10,000 lines took twice the CPU by the end of such a minute.
    """
    try:
        return sweep(self, now=now)
    finally:
        self.release_thread_snapshot()


Storage.prune_ttl_all_collections = sweep_and_let_go

read_indexes = Storage._iter_indexes


def indexes_of(self: Storage, db: str, coll: str) -> Iterable[Index]:
    known: dict[tuple[str, str], list[Index]] | None = getattr(self._tls, "parley_indexes", None)
    if known is None:
        return read_indexes(self, db, coll)
    if (db, coll) not in known:
        known[db, coll] = list(read_indexes(self, db, coll))
    return known[db, coll]


def with_indexes_read_once(write: Callable[..., Any]) -> Callable[..., Any]:
    """A write of many documents holds the lock of its collection, without which nobody adds or drops an index.

    SecantusDB reads and decodes all indexes of the collection again, twice to four times for each document: half of the
    time of an `insertMany`.
    """
    write_once = write.__wrapped__

    @functools.wraps(write_once)
    def run(self: Storage, *args: Any, **named: Any) -> Any:
        self._tls.parley_indexes = {}
        try:
            return write_once(self, *args, **named)
        finally:
            self._tls.parley_indexes = None

    return _retry_write_conflicts(run)


Storage._iter_indexes = indexes_of
for name in ("_insert_chunk", "_update_chunk", "_update_matching_single_txn", "_delete_chunk"):
    setattr(Storage, name, with_indexes_read_once(getattr(Storage, name)))

plan = Storage._try_index_id_keys
PLAIN = (str, int, float, datetime.datetime, type(None))


def usable_clauses(key: dict[str, Any], filter: dict[str, Any]) -> dict[str, Any]:
    """The first fields of an index that the filter names: any number by their value, then one by a range."""
    usable: dict[str, Any] = {}
    for field in key:
        clause = filter.get(field)
        if field in filter and isinstance(clause, PLAIN):
            usable[field] = clause
            continue
        if isinstance(clause, dict) and clause.keys() <= set(Storage._RANGE_OPS):
            usable[field] = clause
        break
    return usable


def record_ids(self: Storage, db: str, coll: str, filter: dict[str, Any], *, collation: Any = None) -> list[int] | None:
    """Finds what to look at by as many fields of the filter as one index has; the others are checked afterwards.

    SecantusDB takes an index of several fields only where the filter has no other field. Else it takes the first field
    that an index begins with, `tenantId` mostly: for a page of a batch's lines it read all lines of the tenant.
    """
    if len(filter) > 1 and collation is None:
        found = plan(self, db, coll, {"_id": filter["_id"]}) if "_id" in filter else None
        if found is not None:
            return found
        best = max((usable_clauses(key, filter) for _name, key, _ in self._iter_indexes(db, coll)), key=len, default={})
        found = plan(self, db, coll, best) if 0 < len(best) < len(filter) else None
        if found is not None:
            return found
    return plan(self, db, coll, filter, collation=collation)


Storage._try_index_id_keys = record_ids

open_storage = Storage.__init__


def open_without_oplog(self: Storage, *args: Any, **named: Any) -> None:
    """Keeps no log for change streams, which nobody here reads, as SecantusDB does where it says that it stands alone.

    Each document that was written was encoded and stored once more, in the write's own transaction: a third of the time of
    a batch's writes. From 100,000 entries on writes also took turns at deleting the oldest, each time a thousand.
    """
    open_storage(self, *args, **{**named, "enable_oplog": False})


Storage.__init__ = open_without_oplog

dispatch = server.dispatch
READS = {"find", "aggregate", "distinct", "count"}


def dispatch_command(command: dict[str, Any], context: commands.CommandContext) -> dict[str, Any]:
    """Reads the indexes of a collection once for each command that reads; a write does so by itself, above.

    SecantusDB reads and decodes them again for each kind of plan that it considers: a third of the time of a `find` by
    several fields.
    """
    if next(iter(command), None) not in READS:
        return dispatch(command, context)
    local = context.storage._tls
    local.parley_indexes = {}
    try:
        return dispatch(command, context)
    finally:
        local.parley_indexes = None


running: set[tuple[bytes, int]] = set()
ended = threading.Condition()


def dispatch_once(command: dict[str, Any], context: commands.CommandContext) -> dict[str, Any]:
    """Lets a write that a driver sends again wait for the first try, as MongoDB does, and repeat its answer.

    SecantusDB repeats the answer of a try that has ended, and does a write again while the first try is under way. A
    client that had waited for a second was told of a duplicate key, or had added twice.
    """
    if "txnNumber" not in command or command.get("autocommit") is False:
        return dispatch_command(command, context)
    session, number = commands._txn_envelope(command)
    if session is None or number is None:
        return dispatch_command(command, context)
    write = (session, number)
    with ended:
        ended.wait_for(lambda: write not in running)
        running.add(write)
    try:
        return dispatch_command(command, context)
    finally:
        with ended:
            running.remove(write)
            ended.notify_all()


server.dispatch = dispatch_once

# The profiler is never on; whether it is was read from the database after each command, behind the lock of the store.
commands._maybe_record_profile = lambda *_: None

# One core: Python runs one of its threads at a time, and passing the turn to a thread on another core takes as long as
# a small command does. On an idle machine half of the CPU time and of the wait, on a busy one a tenth.
with contextlib.suppress(AttributeError, OSError):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})

sys.exit(main())
