"""The select family keeps every promise of the contract suite, and the examples of the design say what they say."""

import pytest

from tidings.testing import CHECKS, check_family, select_workloads


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check):
    check_family("select", select_workloads(), checks=[check], examples=60)
