"""The notice log: every notification of every subscription, on disk, in the order of seq, until retention removes it."""

from __future__ import annotations

from tidings.server.log.reader import LogReader
from tidings.server.log.segment_layout import Record
from tidings.server.log.view import net
from tidings.server.log.writer import LogWriter

__all__ = ["LogReader", "LogWriter", "Record", "net"]
