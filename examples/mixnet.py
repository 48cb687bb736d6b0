"""A mixer on a message queue: it waits for enough messages, strips what says who sent them, shuffles, and forwards.

Clients randomise a bit and put it on a queue with what any network adds, their name and the time. The mixer releases
batches of BATCH messages or none at all: what has not filled a batch stays where it is. The analyser reads bits only.
What this does not hide: how many batches there are, and when one is full. A real deployment encrypts messages for the
analyser, so that the mixer sees who and when but not what, and puts several mixers in a row.
"""

import queue
import secrets
import threading
import time

import numpy as np

from dpestim.shuffle.transport import UniformShuffler

CLIENTS, BATCH, SHARE = 2500, 1000, 0.3
#: Of 256 answers, how many are random: a quarter.
RANDOM = 64


def client(name, bit, inbox):
    """Send one bit by randomised response; integers decide."""
    draw = secrets.randbelow(2 * 256)
    inbox.put({"from": name, "at": time.time(), "message": draw & 1 if draw >> 1 < RANDOM else bit})


def mixer(inbox, outbox, batch, shuffler):
    """Forward whole batches, shuffled and without names or times, until None arrives; return what is held back."""
    held = []
    while (letter := inbox.get()) is not None:
        held.append(letter["message"])  # the name and the time go no further
        if len(held) == batch:
            outbox.put(shuffler.shuffle(np.array(held, np.uint8)))
            held = []
    outbox.put(None)
    return len(held)


def analyser(outbox):
    """Return the number of messages of each batch and the estimated share of ones."""
    batches = []
    while (batch := outbox.get()) is not None:
        batches.append(batch)
    bits = np.concatenate(batches) if batches else np.empty(0, np.uint8)
    blank = RANDOM / 256
    share = (bits.mean() - blank / 2) / (1 - blank) if len(bits) else float("nan")
    return [len(batch) for batch in batches], share


def main():
    inbox, outbox, left = queue.Queue(), queue.Queue(), []
    mixing = threading.Thread(target=lambda: left.append(mixer(inbox, outbox, BATCH, UniformShuffler())))
    mixing.start()
    for number in range(CLIENTS):
        client(f"client {number}", int(number % 10 < 10 * SHARE), inbox)
    inbox.put(None)
    mixing.join()
    sizes, share = analyser(outbox)
    assert sizes == [BATCH] * (CLIENTS // BATCH)
    assert left == [CLIENTS % BATCH]
    print(f"{CLIENTS:,} clients sent a bit; batches that were released: {sizes}; held back, as too few: {left[0]}")
    print(f"share of ones among the released: {SHARE:.3f} in truth, {share:.3f} by the analyser")


if __name__ == "__main__":
    main()
