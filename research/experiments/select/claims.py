"""One number for each claim of `claims.toml`, from the results of a seed."""

from __future__ import annotations

from research.experiments.paper import Results, Values


def values(results: Results) -> Values:
    rows = results.get("photos", [])
    if not rows:
        return {}
    small, large = rows[0], rows[-1]
    return {
        "select.sectionI.stays": max(row["photos_held"] / row["photos_received"] for row in rows),
        "select.sectionI.bytes": large["region_bytes"] / large["entering_bytes"],
        "select.sectionI.small": small["region_bytes"] / small["entering_bytes"],
    }
