"""How much each of many row queries says of a batch of rows."""

from __future__ import annotations

from typing import Any

from tidings.kernels.jit import kernel


@kernel(nogil=True, _nrt=False)
def add_sizes(
    starts: Any, stops: Any, carries: Any, groups: Any, table: Any, ranks: Any, id_bytes: Any, text_bytes: Any,
    ids: Any, bytes: Any,
) -> None:  # fmt: skip
    """Adds to ids and bytes, per query in the order of groups, how many rows it selects, and their bytes in a message.

    starts .. groups: of `tidings.relay.rewriting.row_table.RowTable`. ranks, text_bytes: of rows and slots. id_bytes: of rows.
    """
    first_group, first_member, first_slot, slots, _ = groups
    for group in range(first_group[table], first_group[table + 1]):
        begin, end = first_slot[group], first_slot[group + 1]
        for query in range(first_member[group], first_member[group + 1]):
            for row in range(len(ranks)):
                is_selected = True
                for i in range(begin, end):
                    rank = ranks[row, slots[i]]
                    if rank < starts[query, slots[i]] or rank >= stops[query, slots[i]]:
                        is_selected = False
                        break
                if not is_selected:
                    continue
                ids[query] += 1
                bytes[query] += id_bytes[row]
                for slot in range(carries.shape[1]):
                    if carries[query, slot]:
                        bytes[query] += text_bytes[row, slot]
