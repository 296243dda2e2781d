"""A redis-py client that knows only Sentinels: MASTER HOST:PORT... Prints `count key` for each pair of writes that
was acknowledged, until its standard input ends."""

import sys
import threading
import time

from redis.exceptions import RedisError
from redis.sentinel import Sentinel

master, sentinels = sys.argv[1], [address.rsplit(":", 1) for address in sys.argv[2:]]
client = Sentinel([(host, int(port)) for host, port in sentinels], socket_timeout=2).master_for(master)
ended = threading.Event()


def watch_input():
    sys.stdin.read()
    ended.set()


threading.Thread(target=watch_input, daemon=True).start()
n = 0
while not ended.is_set():
    n += 1
    key = f"redis-py:{n}"
    try:
        count = client.incr("count:redis-py")
        client.set(key, key)
        print(count, key, flush=True)
    except (RedisError, OSError):
        pass
    time.sleep(0.002)
