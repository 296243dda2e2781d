import java.util.Arrays;
import java.util.HashSet;
import redis.clients.jedis.JedisSentinelPool;
import redis.clients.jedis.exceptions.JedisException;

/**
 * A Jedis client that knows only Sentinels: MASTER HOST:PORT... Prints `count key` for each pair of writes that was
 * acknowledged, until its standard input ends.
 */
public class Jedis {
  public static void main(String[] args) throws Exception {
    var sentinels = new HashSet<>(Arrays.asList(args).subList(1, args.length));
    var watch = new Thread(Jedis::readInput);
    watch.start();
    try (var pool = new JedisSentinelPool(args[0], sentinels)) {
      for (int n = 1; watch.isAlive(); n++) {
        var key = "jedis:" + n;
        try (var client = pool.getResource()) {
          var count = client.incr("count:jedis");
          client.set(key, key);
          System.out.println(count + " " + key);
        } catch (JedisException problem) {
          // The next write tries again.
        }
        Thread.sleep(2);
      }
    }
    System.exit(0);
  }

  private static void readInput() {
    try {
      System.in.readAllBytes();
    } catch (java.io.IOException ended) {
      // It has ended.
    }
  }
}
