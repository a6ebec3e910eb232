"""Webhooks, the pure parts: which URLs and addresses are refused, and that what is signed is what receivers can verify."""

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from tidings.server.registry import Target
from tidings.server.webhooks import UrlRefused, check_url
from tidings.server.webhooks.addresses import is_global
from tidings.server.webhooks.messages import Notification, Outgoing, batched, escaped, headers, line_of, single
from tidings.server.webhooks.rounds import Item, chunk

SECRET, OLD = ("whsec_" + sign * 43 + "=" for sign in "Ag")


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "https://",
        "https://u:p@example.com/",
        "https://@example.com/",
        "https://example.com:22/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:8.8.8.8]/",
        "https://169.254.169.254/",
        "ftp://example.com/",
        "https://a.localhost/",
        "https://example.com/a\r\nb",
        "https://exa mple.com/",
        "https://[x/",
        "https://example.com:x/",
    ],
)
def test_urls_are_refused(url):
    with pytest.raises(UrlRefused):
        check_url(url, False)


@pytest.mark.parametrize("url", ["https://example.com/a?b=c", "https://example.com:8443/", "https://8.8.8.8/"])
def test_public_urls_are_taken(url):
    assert check_url(url, False) is None


def test_private_urls_are_taken_in_development():
    assert check_url("http://127.0.0.1:9/", True) is None


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "100.64.0.1",
        "169.254.1.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "192.168.0.1",
        "::",
        "::1",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2002:808:808::1",
        "fe80::1",
        "fe80::1%eth0",
        "ff02::1",
        "fc00::1",
        "2001::1",
        "64:ff9b:1::1",
        "::8.8.8.8",
        "nonsense",
        "",
    ],
)
def test_addresses_that_are_not_global(address):
    assert not is_global(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700:4700::1111"])
def test_global_addresses(address):
    assert is_global(address)


@given(st.text(), st.text())
def test_escaped_texts_fit_a_header_and_stay_different(one, other):
    assert re.fullmatch(r"[A-Za-z0-9~-]*", escaped(one))
    assert (escaped(one) == escaped(other)) == (one == other)


@given(st.text(min_size=1), st.integers(0, 2**62), st.sampled_from(["json", "cloudevents"]), st.booleans())
def test_receivers_can_verify(subscription, seq, format, has_old):
    target = Target("t", "crm", "https://example.com/", SECRET, format=format, old_secret=OLD if has_old else None)
    line = line_of(subscription, b', "seq": %d, "snapshot": false, "changes": []}' % seq)
    one = Notification(subscription, seq, "change", line)
    now = time.time()
    for message in (single("e", target, one, now), batched("e", target, [one, one], now)):
        sent = headers(target, message, now)
        assert Webhook(SECRET).verify(message.body, sent)["type"] in ("tidings.change", "tidings.batch")
        assert len(sent["webhook-signature"].split(" ")) == 1 + has_old
        if has_old:
            Webhook(OLD).verify(message.body, sent)
    assert json.loads(single("e", target, one, now).body)["data"] == json.loads(line)


def test_an_old_secret_ends():
    target = Target("t", "crm", "https://example.com/", SECRET, old_secret=OLD, old_secret_until=100.0)
    counts = [len(headers(target, Outgoing("a", b"{}"), now)["webhook-signature"].split(" ")) for now in (99, 100)]
    assert counts == [2, 1]


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 7))
def test_batches_are_whole_seqs_or_parts_of_one(seqs, batch):
    items = [Item(seq, False, f"{at:03}", at) for at, seq in enumerate(sorted(seqs))]
    begin = 0
    while begin < len(items):
        end = chunk(items, begin, batch)
        assert begin < end <= begin + batch
        splits = end < len(items) and items[end - 1].seq == items[end].seq
        assert not splits or items[begin].seq == items[end].seq
        begin = end
