import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import org.apache.zookeeper.AsyncCallback.StatCallback;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;

/**
 * Measures a ZooKeeper ensemble the way bench/closed_loop.py measures Quorate.
 *
 * <p>"load ADDRESS WRITERS WARM_UP_S MEASURED_S": each writer sets 100 bytes, waits for the answer
 * and sets again. "failover ADDRESSES": one writer; prints the wall time of every answer.
 */
public final class ZooKeeperLoad {
  private static final int NODES = 64;
  private static final int SESSIONS_MAX = 16;
  private static final int SAMPLES_MAX = 100_000;
  private static final byte[] VALUE = new byte[100];

  private static ZooKeeper connect(String addresses, int timeoutMs) throws Exception {
    CountDownLatch connected = new CountDownLatch(1);
    ZooKeeper session =
        new ZooKeeper(
            addresses,
            timeoutMs,
            event -> {
              if (event.getState() == KeeperState.SyncConnected) {
                connected.countDown();
              }
            });
    connected.await();
    return session;
  }

  private static String path(int number) {
    return "/bench-" + number % NODES;
  }

  private static void prepare(ZooKeeper session) throws Exception {
    for (int i = 0; i < NODES; i++) {
      try {
        session.create(path(i), VALUE, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
      } catch (KeeperException.NodeExistsException known) {
        continue;
      }
    }
  }

  /** One closed loop: the answer to a write sends the next. */
  private static final class Loop implements StatCallback {
    private final ZooKeeper session;
    private final CountDownLatch ended;
    private final long from;
    private final long until;
    private final double[] tookMs = new double[SAMPLES_MAX];
    private int count;
    private int turn;
    private int errors;
    private long began;

    Loop(ZooKeeper session, int number, long from, long until, CountDownLatch ended) {
      this.session = session;
      this.turn = number;
      this.from = from;
      this.until = until;
      this.ended = ended;
    }

    void next() {
      began = System.nanoTime();
      if (began >= until) {
        ended.countDown();
        return;
      }
      session.setData(path(turn++), VALUE, -1, this, null);
    }

    @Override
    public void processResult(
        int code, String path, Object context, org.apache.zookeeper.data.Stat stat) {
      long now = System.nanoTime();
      if (code != KeeperException.Code.OK.intValue()) {
        errors++;
      } else if (began >= from && now <= until && count < SAMPLES_MAX) {
        tookMs[count++] = (now - began) / 1e6;
      }
      next();
    }
  }

  private static void load(String address, int writers, double warmUp, double measured)
      throws Exception {
    ZooKeeper[] sessions = new ZooKeeper[Math.min(writers, SESSIONS_MAX)];
    for (int i = 0; i < sessions.length; i++) {
      sessions[i] = connect(address, 30_000);
    }
    prepare(sessions[0]);
    CountDownLatch ended = new CountDownLatch(writers);
    long from = System.nanoTime() + (long) (warmUp * 1e9);
    long until = from + (long) (measured * 1e9);
    Loop[] loops = new Loop[writers];
    for (int i = 0; i < writers; i++) {
      loops[i] = new Loop(sessions[i % sessions.length], i, from, until, ended);
    }
    for (Loop loop : loops) {
      loop.next();
    }
    ended.await();
    int total = 0;
    int errors = 0;
    for (Loop loop : loops) {
      total += loop.count;
      errors += loop.errors;
    }
    double[] all = new double[total];
    int at = 0;
    for (Loop loop : loops) {
      System.arraycopy(loop.tookMs, 0, all, at, loop.count);
      at += loop.count;
    }
    Arrays.sort(all);
    System.out.printf(
        "{\"writers\":%d,\"writes\":%d,\"errors\":%d,\"seconds\":%.3f,\"rate\":%.1f,"
            + "\"p50_ms\":%.4f,\"p99_ms\":%.4f}%n",
        writers, total, errors, measured, total / measured,
        all[total / 2], all[Math.min(total - 1, total * 99 / 100)]);
    System.exit(0);
  }

  private static void failover(String addresses) throws Exception {
    ZooKeeper session = connect(addresses, 4_000);
    prepare(session);
    while (true) {
      try {
        session.setData(path(0), VALUE, -1);
        System.out.println(System.currentTimeMillis() * 1_000_000L);
        System.out.flush();
      } catch (KeeperException.SessionExpiredException expired) {
        session.close();
        session = connect(addresses, 4_000);
      } catch (KeeperException interrupted) {
        Thread.sleep(5);
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments[0].equals("failover")) {
      failover(arguments[1]);
    } else {
      load(
          arguments[1],
          Integer.parseInt(arguments[2]),
          Double.parseDouble(arguments[3]),
          Double.parseDouble(arguments[4]));
    }
  }
}
