import io.lettuce.core.ReadFrom;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.models.partitions.RedisClusterNode;
import java.time.Duration;
import java.util.stream.Collectors;

/** A client of a Redis Cluster by Lettuce: PORT KEYS [replica]. It prints what it knows of the nodes, and what it read. */
class Lettuce {
  public static void main(String[] args) {
    int keys = Integer.parseInt(args[1]);
    var client = RedisClusterClient.create(RedisURI.create("127.0.0.1", Integer.parseInt(args[0])));
    var refresh =
        ClusterTopologyRefreshOptions.builder()
            .enablePeriodicRefresh(Duration.ofMillis(200))
            .enableAllAdaptiveRefreshTriggers()
            .build();
    client.setOptions(ClusterClientOptions.builder().topologyRefreshOptions(refresh).build());
    try (var connection = client.connect()) {
      if (args.length > 2) connection.setReadFrom(ReadFrom.REPLICA);
      var cluster = connection.sync();
      var nodes = client.getPartitions().getPartitions();
      System.out.println(
          nodes.stream()
              .map((RedisClusterNode node) -> node.getRole() + " " + node.getUri().getPort() + " " + node.getSlots().size())
              .sorted()
              .collect(Collectors.joining(", ")));
      for (int i = 0; i < keys; i++) cluster.set("lettuce:" + i, "value " + i);
      int equal = 0;
      for (int i = 0; i < keys; i++) if (("value " + i).equals(cluster.get("lettuce:" + i))) equal++;
      cluster.incrby("{lettuce}a", 5);
      Object sum =
          cluster.eval(
              "return redis.call('INCRBY', KEYS[1], ARGV[1])",
              io.lettuce.core.ScriptOutputType.INTEGER,
              new String[] {"{lettuce}a"},
              "2");
      System.out.println(equal + " equal, " + sum + ", " + cluster.mget("lettuce:1", "lettuce:2", "lettuce:3").size());
    } finally {
      client.shutdown();
    }
  }
}
