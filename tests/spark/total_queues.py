"""Random small histories of a total queue: right ones, and broken ones."""

from random import Random

from jepsen_like.histories.history import History
from tests.jepsen_like.play import Play

__all__ = ["total_queue"]


def total_queue(seed: int) -> History:
    """Plays a queue that may lose what was put in, give it twice, or make it up."""
    random, play, inside = (
        Random(f"total queue {seed}"),
        Play(workload="total-queue"),
        list[object](),
    )
    lie = random.choice([0.0, 0.05])
    for _ in range(random.randint(5, 25)):
        f = random.choice(["enqueue", "enqueue", "dequeue", "drain"])
        value = random.choice([1, "1", 2, 2.0, True, (3, 4)])
        process = random.randrange(100) if random.random() < 0.1 else 0
        play.invoke(process, f, *([value] if f == "enqueue" else []))
        if process:
            inside += [value] if f == "enqueue" and random.random() < 0.5 else []
            play.info(process)
            continue
        inside += [value] if random.random() < lie else []
        taken = inside[:] if f == "drain" else inside[:1] if f == "dequeue" else []
        inside = inside[len(taken) :]
        taken = [each for each in taken if random.random() >= lie]
        inside += [value] if f == "enqueue" else []
        play.ok(0, {"enqueue": value, "drain": taken}.get(f, taken[0] if taken else None))
    return play.history
