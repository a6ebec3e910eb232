"""The sender `entered`: evaluates all subscriptions, and sends each place the rows that enter answers of its subscriptions.

What is *told* would not be enough. Where the row of `SELECT risk .. ORDER BY risk LIMIT 1` is replaced by another one with the
same risk, nobody is told, and yet the place needs the other row. So evaluators report rows before equal looks cancel out
(`Replica.observe`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tidings.kernels.events import Told
from tidings.pipeline.edge.holders import Entered
from tidings.pipeline.edge.sender import Sender
from tidings.pipeline.replica.batch import Batch


class EnteredSender(Sender):
    def _entered(self, batch: Batch, told: Sequence[tuple[str, Told]]) -> list[Entered]:
        return self._evaluated(told)
