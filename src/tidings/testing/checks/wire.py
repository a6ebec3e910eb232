"""Wire: the size of a message, which statistics report without making it, is that of its bytes."""

from __future__ import annotations

from tidings.network.wire import encode_message, wire_size, wire_sizes
from tidings.testing.checks.case import Case
from tidings.testing.deployment import deploy, run_steps


def check_wire(case: Case) -> None:
    strategy = case.strategy()
    steps = run_steps(deploy(case.workload, strategy), case.workload.change_lines(), case.sizes())
    for batch in (batch for step in steps for batch in step.messages):
        sizes = [len(encode_message(batch, at, form_number=1)) for at in range(len(batch))]
        assert wire_sizes(batch).tolist() == sizes, f"{strategy}: wire sizes of {batch}"
        assert wire_size(batch) == sum(sizes), f"{strategy}: wire size of {batch}"
