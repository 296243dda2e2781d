import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;

/**
 * A Lettuce client that knows only Sentinels: MASTER HOST:PORT... Prints `count key` for each pair of writes that was
 * acknowledged, until its standard input ends.
 */
public class Lettuce {
  public static void main(String[] args) throws Exception {
    var uri = RedisURI.builder().withSentinelMasterId(args[0]).withTimeout(java.time.Duration.ofSeconds(2));
    for (int i = 1; i < args.length; i++) {
      var at = args[i].split(":");
      uri.withSentinel(at[0], Integer.parseInt(at[1]));
    }
    var watch = new Thread(Lettuce::readInput);
    watch.start();
    var commands = RedisClient.create(uri.build()).connect().sync();
    for (int n = 1; watch.isAlive(); n++) {
      var key = "lettuce:" + n;
      try {
        var count = commands.incr("count:lettuce");
        commands.set(key, key);
        System.out.println(count + " " + key);
      } catch (RedisException problem) {
        // The next write tries again.
      }
      Thread.sleep(2);
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
