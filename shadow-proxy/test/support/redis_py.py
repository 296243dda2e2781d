"""Random commands of a redis-py cluster client: PORT SECONDS SEED. Prints how many were answered, and refused."""

import random
import sys
import time

from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import RedisClusterException, RedisError

port, seconds, seed = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
choose = random.Random(seed)
client = RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", port)])
answered = refused = 0
until = time.time() + seconds


def one(key, other):
    kind = choose.randrange(10)
    if kind == 0:
        client.set("s" + key, choose.random(), ex=choose.choice([None, 100, 1000]))
    elif kind == 1:
        client.get("s" + key)
    elif kind == 2:
        client.incrby("n" + key, choose.randrange(9))
    elif kind == 3:
        client.hset("h" + key, mapping={str(choose.randrange(5)): choose.randrange(99)})
    elif kind == 4:
        client.rpush("l" + key, *range(choose.randrange(1, 5)))
    elif kind == 5:
        client.lpop("l" + key)
    elif kind == 6:
        client.zadd("z" + key, {str(choose.randrange(9)): choose.random()})
    elif kind == 7:
        client.delete("s" + key, "s" + other)
    elif kind == 8:
        client.mget_nonatomic(["s" + key, "s" + other, "n" + key])
    else:
        with client.pipeline() as pipeline:
            pipeline.set("s" + key, "p").incr("n" + other).hgetall("h" + key)
            pipeline.execute()


while time.time() < until:
    try:
        one(f":py:{choose.randrange(200)}", f":py:{choose.randrange(200)}")
        answered += 1
    except (RedisError, RedisClusterException, OSError) as error:
        refused += 1
        last = str(error)
        time.sleep(0.05)
print(answered, refused, last if refused else "")
