"""The faulty network: order by default, and each fault as named."""

from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.world.network import LinkFaults, Message, Network


class Bench:
    def __init__(self, seed: int = 0, **faults: float) -> None:
        self.world = VirtualTime(seed)
        self.counts = self.world.counts
        self.arrived: list[Message] = []
        self.network = Network(
            world=self.world,
            random=self.world.fork("network"),
            faults=LinkFaults(**faults),  # type: ignore[arg-type]
            deliver=self.arrived.append,
        )

    def send(
        self, number: int, *, source: int = 1, target: int = 2, is_request: bool = True
    ) -> None:
        self.network.send(
            Message(
                source=source,
                target=target,
                channel="quorum",
                correlation=number,
                is_request=is_request,
                body=None,
            )
        )

    def settle(self) -> list[int]:
        self.world.run_until(self.world.now_us + 10_000_000, events_max=100_000)
        return [message.correlation for message in self.arrived]


def test_messages_of_one_connection_stay_in_order() -> None:
    bench = Bench(delay_us_mean=10_000)
    for number in range(50):
        bench.send(number)
    assert bench.settle() == list(range(50))


def test_messages_of_two_connections_may_overtake() -> None:
    bench = Bench(delay_us_mean=10_000)
    for number in range(50):
        bench.send(number, source=1 + number % 2, target=3)
    assert bench.settle() != list(range(50))


def test_reordered_messages_overtake_on_one_connection() -> None:
    bench = Bench(delay_us_mean=10_000, reordering=0.3)
    for number in range(50):
        bench.send(number)
    arrived = bench.settle()
    assert arrived != list(range(50))
    assert sorted(arrived) == list(range(50))
    assert bench.counts.by_kind["reordered"] > 0


def test_lost_messages_do_not_arrive_and_are_counted() -> None:
    bench = Bench(loss=0.5)
    for number in range(100):
        bench.send(number)
    assert len(bench.settle()) == 100 - bench.counts.by_kind["lost"]
    assert 20 < bench.counts.by_kind["lost"] < 80


def test_duplicated_messages_arrive_twice() -> None:
    bench = Bench(duplication=1.0)
    bench.send(7)
    assert bench.settle() == [7, 7]


def test_cut_in_one_direction_lets_the_other_through() -> None:
    bench = Bench()
    bench.network.cut([(2, 1)], kind="partition-one-way")
    bench.send(1, source=1, target=2)
    bench.send(2, source=2, target=1, is_request=False)
    assert bench.settle() == [1]
    assert bench.counts.by_kind["partition-one-way"] == 1


def test_cut_stops_what_is_already_under_way() -> None:
    bench = Bench()
    bench.send(1)
    bench.network.cut([(1, 2)], kind="partition")
    assert bench.settle() == []


def test_holding_cut_delivers_when_it_heals() -> None:
    bench = Bench()
    cut = bench.network.cut([(1, 2)], kind="partition", holding=True)
    bench.send(1)
    assert bench.settle() == []
    bench.network.heal(cut)
    assert bench.settle() == [1]
    assert cut.stopped == 1
    assert bench.counts.by_kind["held"] == 1


def test_link_is_whole_only_when_every_cut_over_it_has_healed() -> None:
    bench = Bench()
    cuts = [bench.network.cut([(1, 2)], kind="partition") for _ in range(2)]
    bench.network.heal(cuts[0])
    assert bench.network.is_cut(1, 2)
    bench.network.heal(cuts[1])
    assert not bench.network.is_cut(1, 2)


def test_same_seed_same_arrivals() -> None:
    def arrivals() -> list[int]:
        bench = Bench(5, loss=0.2, duplication=0.2, reordering=0.2, delay_us_mean=1000)
        for number in range(100):
            bench.send(number, target=2 + number % 3)
        return bench.settle()

    assert arrivals() == arrivals()
