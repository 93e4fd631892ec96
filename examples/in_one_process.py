"""A cluster of one controller and three brokers inside this process, used and stopped.

pip install aiokafka
python examples/in_one_process.py
"""

import asyncio
import tempfile
from pathlib import Path

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from quorumlab.in_process import InProcessCluster


async def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        async with InProcessCluster(Path(directory), controllers=1, brokers=3) as cluster:
            servers = cluster.bootstrap_servers
            print(f"three brokers at {servers}")

            admin = AIOKafkaAdminClient(bootstrap_servers=servers)
            await admin.start()
            await admin.create_topics([NewTopic("greetings", 1, 3)])
            await admin.close()

            async with AIOKafkaProducer(bootstrap_servers=servers, acks="all") as producer:
                for number in range(10):
                    await producer.send_and_wait("greetings", b"hello %d" % number)

            consumer = AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
            async with consumer:
                consumer.assign([TopicPartition("greetings", 0)])
                read = [(await consumer.getone()).value for _ in range(10)]
            print(f"read back: {read[0]!r} to {read[-1]!r}")
            return len(read)


if __name__ == "__main__":
    asyncio.run(main())
