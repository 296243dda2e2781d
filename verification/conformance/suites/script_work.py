"""What applications do with packages that run scripts: `python script_work.py PACKAGE PORT SECONDS`.

Prints one line of JSON: how often each kind of work was done.
"""

import json
import sys
import threading
import time
from collections import Counter

import redis

name, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
until = time.time() + seconds
counts = Counter()


def lock_work():
    """redis.lock.Lock: acquire, extend, reacquire, release."""

    def work(number):
        client = redis.Redis(port=port)
        while time.time() < until:
            lock = client.lock(f"lock:{number % 2}", timeout=2, sleep=0.005)
            with lock:
                client.get(lock.name)
                lock.extend(2)
                lock.reacquire()
                client.pttl(lock.name)
                counts["locked"] += 1
            client.get(lock.name)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def dramatiq_work():
    """Dramatiq: messages, delayed messages, results and a rate limiter."""
    import dramatiq
    from dramatiq.brokers.redis import RedisBroker
    from dramatiq.rate_limits import ConcurrentRateLimiter
    from dramatiq.rate_limits.backends import RedisBackend as LimitBackend
    from dramatiq.results import Results
    from dramatiq.results.backends import RedisBackend

    broker = RedisBroker(port=port)
    broker.add_middleware(Results(backend=RedisBackend(port=port)))
    dramatiq.set_broker(broker)
    mutex = ConcurrentRateLimiter(LimitBackend(port=port), "limit", limit=8)
    client = redis.Redis(port=port)

    @dramatiq.actor(store_results=True, max_retries=1)
    def mail(number):
        with mutex.acquire(raise_on_failure=False):
            time.sleep(0.005)
        counts["completed"] += 1
        return number

    worker = dramatiq.Worker(broker, worker_threads=4)
    worker.start()
    number = 0
    while time.time() < until:
        number += 1
        options = {"delay": 50} if number % 4 == 0 else {}
        message = mail.send_with_options(args=(number,), **options)
        if number % 5 == 0:
            message.get_result(block=True, timeout=5_000)
        client.llen("dramatiq:mail")
        client.hlen("dramatiq:default.msgs")
        client.lrange("dramatiq:default", 0, 5)
        counts["added"] += 1
        time.sleep(0.01)
    worker.stop()


{"redis-py": lock_work, "dramatiq": dramatiq_work}[name]()
print(json.dumps(counts), flush=True)
