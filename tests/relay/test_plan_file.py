"""Plans read back as written; what would not run is refused, with the name of the view."""

import json

import pytest

from tidings.model.errors import UsageError
from tidings.relay.files import View, read_plan
from tidings.relay.pattern import parse_pattern
from tidings.relay.plan import PUBLISHER, RelayPlan, check, own_site, parse_plan, plan_json

VIEWS = [
    View("v1", parse_pattern("//item/name{val}"), "s1"),
    View("v2", parse_pattern("//item/price{val}"), "s1"),
    View("v3", parse_pattern("//item[/name{val}]/price{val}")),
    View("v4", parse_pattern('//item[/name="pen"]/price{val}')),
]
INPUTS = {"v1": (PUBLISHER,), "v2": (PUBLISHER,), "v3": ("v1", "v2"), "v4": ("v3",)}


def test_levels_and_feeds():
    plan = RelayPlan(INPUTS)
    assert plan.levels == {"v1": 1, "v2": 1, "v3": 2, "v4": 3}
    assert plan.feeds == 2
    assert plan.dependants == {PUBLISHER: ("v1", "v2"), "v1": ("v3",), "v2": ("v3",), "v3": ("v4",), "v4": ()}
    assert plan.order.index("v4") == 3


def test_a_plan_reads_back(tmp_path):
    plan = RelayPlan(INPUTS, use=3.5, bound=3.25, gap=0.25, latency=None)
    (tmp_path / "plan.json").write_bytes(plan_json(plan))
    assert read_plan(tmp_path / "plan.json") == plan
    record = json.loads(plan_json(plan))
    assert record["views"]["v3"] == {"inputs": ["v1", "v2"], "level": 2}
    assert record["publisher"] == {"feeds": 2}
    assert (record["use"], record["latency"]) == (3.5, None)


def test_other_fields_are_passed_over():
    record = json.loads(plan_json(RelayPlan(INPUTS)))
    record["made"] = "today"
    record["views"]["v1"]["cost"] = 3
    assert parse_plan(json.dumps(record).encode()) == RelayPlan(INPUTS)


def planned(**views):
    return {"views": {view: {"inputs": inputs, "level": level} for view, (inputs, level) in views.items()}}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ([], 'no "views"'),
        ({"views": ["v1"]}, 'no "views"'),
        ({"views": {"v1": {"level": 1}}}, "view 'v1' of the plan has no \"inputs\""),
        ({"views": {"v1": {"inputs": [1], "level": 1}}}, "view 'v1' of the plan has no \"inputs\""),
        (planned(v1=([], 1)), "view 'v1' of the plan has no inputs"),
        (planned(v1=([PUBLISHER], 2)), "view 'v1' is on level 2; its inputs put it on level 1"),
        (planned(v1=(["v2"], 1)), "view 'v1' of the plan has an input 'v2', which is no view"),
        (planned(v1=([PUBLISHER], 1), v2=(["v1", "v1"], 2)), "view 'v2' of the plan has an input twice"),
        (planned(v1=(["v2"], 1), v2=(["v1"], 1)), "from itself: 'v"),
        (planned(publisher=([PUBLISHER], 1)), "the id 'publisher'"),
        (planned(v1=([PUBLISHER], 1)) | {"publisher": {"feeds": 2}}, "feeds 1 views"),
        (planned(v1=([PUBLISHER], 1)) | {"use": "much"}, '"use" of the plan is not a finite number'),
        (planned(v1=([PUBLISHER], 1)) | {"gap": float("nan")}, '"gap" of the plan is not a finite number'),
    ],
)
def test_what_is_no_plan(record, reason):
    with pytest.raises(UsageError) as caught:
        parse_plan(json.dumps(record).encode())
    assert reason in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UsageError, match="cannot read the plan"):
        read_plan(tmp_path / "none.json")
    (tmp_path / "bad.json").write_bytes(b"{")
    with pytest.raises(UsageError, match=r"bad\.json: the plan is not JSON"):
        read_plan(tmp_path / "bad.json")


def test_a_plan_fits_its_views():
    check(RelayPlan(INPUTS), VIEWS, {PUBLISHER: 2, "s1": 2, own_site("v3"): 1})
    with pytest.raises(UsageError, match="lacks the view 'v4'"):
        check(RelayPlan({view: INPUTS[view] for view in ("v1", "v2", "v3")}), VIEWS)
    with pytest.raises(UsageError, match="has a view 'v4' that is not among the views"):
        check(RelayPlan(INPUTS), VIEWS[:3])


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({"v3": ("v1",)}, "view 'v3' cannot be computed from its inputs 'v1': they lack"),
        ({"v1": ("v3",), "v3": (PUBLISHER,)}, "view 'v1' cannot be computed from its inputs 'v3': 'v3' does not embed"),
    ],
)
def test_inputs_are_enough(inputs, reason):
    with pytest.raises(UsageError) as caught:
        check(RelayPlan(INPUTS | inputs), VIEWS)
    assert reason in str(caught.value)


@pytest.mark.parametrize(("site", "name"), [(PUBLISHER, PUBLISHER), ("s1", "s1"), (own_site("v3"), "v3")])
def test_capacities(site, name):
    capacities = {PUBLISHER: 2, "s1": 2, own_site("v3"): 1}
    capacities[site] -= 1
    with pytest.raises(UsageError, match=f"{name!r} feed"):
        check(RelayPlan(INPUTS), VIEWS, capacities)


def test_views_at_one_site_do_not_count():
    views = [View(view.id, view.query, "s1") for view in VIEWS]
    check(RelayPlan(INPUTS), views, {"s1": 0})
    with pytest.raises(UsageError, match="'s1' feed"):
        check(RelayPlan(INPUTS), [*views[:3], VIEWS[3]], {"s1": 0})
