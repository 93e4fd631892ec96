"""The page on a living Apache Kafka of three brokers, in a real browser, while one of them dies."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.integration.test_page_in_browser import HEADLINE, ROWS, until
from tests.integration.test_top import page_of
from tests.jepsen_like.report.chromium import browser, chromium
from tests.kafka.interop import needs_kafka
from tests.kafka.kafka_jars import KafkaNode
from tests.peers.servers import kafka_of_three

pytestmark = needs_kafka


def test_death_of_a_broker_is_seen_told_and_gone_back_over(tmp_path: Path) -> None:

    program = chromium()
    if program is None:
        pytest.skip("no Chromium: the page is not looked at in a browser")

    async def look(url: str, nodes: list[KafkaNode]) -> None:
        async with browser(program, tmp_path / "profile") as opened:
            await opened.open(url, 1280, 900)
            await until(opened, f"{HEADLINE}.startsWith('All 6 partitions')")
            why = await opened.value("byId('views-why').textContent")
            assert "clients reach brokers only" in why or why == "Both say the same."
            os.kill(nodes[2].pid, signal.SIGKILL)
            await until(opened, f"{HEADLINE}.includes('broker 3 (no answer)')")
            await until(opened, f"{ROWS}[0].includes('not in sync: 3')")
            await opened.value("document.querySelector('#partitions tbody button').focus()")
            await opened.press("Enter")
            await until(opened, "byId('story-table').innerText.includes('broker 3 fell out')")
            note = await opened.value("byId('story-note').textContent")
            assert (
                note == "By Kafka's protocol, nodes do not say when each of them applied a record."
            )
            await opened.value("byId('at').focus()")
            await opened.press("Home")
            await until(opened, f"past !== null && {HEADLINE} === 'Then: No partitions yet'")
            assert opened.complaints == []

    with kafka_of_three(tmp_path) as (servers, nodes):
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic("orders", 6, 3)])["orders"].result(30)
        with page_of(servers) as url:
            asyncio.run(look(url, nodes))
